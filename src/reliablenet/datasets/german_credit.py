"""German Credit: is a loan a bad risk? Trained on applicants of 30 and above, tested on younger ones.

H. Hofmann, 1994, UCI Machine Learning Repository, doi:10.24432/C5NC77.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.datasets.dataset import Dataset
from reliablenet.datasets.sources import SourceFile, fetch
from reliablenet.tables.folds import Fold, cut_paper_folds

SITE = "https://archive.ics.uci.edu"
FILE = SourceFile(
    path="german/german.data",
    url=f"{SITE}/ml/machine-learning-databases/statlog/german/german.data",
    sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    page=f"{SITE}/dataset/144/statlog+german+credit+data",
    alternatives=("german_credit/german.data",),
)
ADULT_AGE = 30  # the source domain begins here
AGE_GROUPS = {"20-25": (20, 25), "25-30": (25, 30)}  # the lower end belongs to a group
# In the order of the file; an empty mapping marks a number.
COLUMNS: dict[str, dict[str, str]] = {
    "checking_status": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more, or salary for at least 1 year",
        "A14": "no checking account",
    },
    "duration_months": {},
    "credit_history": {
        "A30": "no credits taken, or all paid back duly",
        "A31": "all credits at this bank paid back duly",
        "A32": "existing credits paid back duly till now",
        "A33": "delay in paying off in the past",
        "A34": "critical account, or other credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture or equipment",
        "A43": "radio or television",
        "A44": "domestic appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation",
        "A48": "retraining",
        "A49": "business",
        "A410": "others",
    },
    "credit_amount": {},
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employment": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "installment_rate_percent": {},
    "personal_status": {
        "A91": "male, divorced or separated",
        "A92": "female, divorced, separated or married",
        "A93": "male, single",
        "A94": "male, married or widowed",
        "A95": "female, single",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "residence_since": {},
    "property": {
        "A121": "real estate",
        "A122": "building society savings or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "age": {},
    "other_installment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "existing_credits": {},
    "job": {
        "A171": "unemployed, or unskilled and non-resident",
        "A172": "unskilled, resident",
        "A173": "skilled employee or official",
        "A174": "management, self-employed, highly qualified or officer",
    },
    "dependants": {},
    "telephone": {"A191": "none", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}


def load(random_state: int = 0) -> Dataset:
    """Load German Credit in the paper's folds: age 30 and above the source, below 30 the shift.

    A label of 1 is a bad risk, 0 a good one. All 20 features are predictors, ``age`` among them: the
    paper wants a shift of the support. Codes such as A11 are spelt out as the source's description
    does. Rows keep their number in the file as their index.

    Parameters
    ----------
    random_state : int
        Decides the folds.

    Returns
    -------
    Dataset
        Its groups are the young applicants of 20 to 24 years ("20-25") and of 25 to 29 ("25-30"). Those
        below 20 are in neither, but in the shift.
    """
    X, y = read()
    age = X["age"].to_numpy()
    source = age >= ADULT_AGE
    groups = {name: (low <= age) & (age < high) for name, (low, high) in AGE_GROUPS.items()}
    return Dataset(
        name="german_credit",
        folds=cut_paper_folds(X[source], y[source], random_state),
        shifts={"under 30": Fold(X[~source], y[~source])},
        groups={name: Fold(X[mask], y[mask]) for name, mask in groups.items()},
        info={
            "files": {FILE.path: FILE.sha256},
            "rows": len(y),
            "source": "age 30 and above",
            "target": "1 = bad risk, 0 = good risk",
        },
    )


def read() -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Return the 1,000 records with their codes spelt out, and their labels."""
    table = pd.read_csv(fetch(FILE), sep=" ", header=None, names=[*COLUMNS, "risk"])
    bad = (table.pop("risk") == 2).to_numpy().astype(np.intp)
    for name, meanings in COLUMNS.items():
        if meanings:
            codes = pd.Categorical(table[name], categories=list(meanings))
            table[name] = codes.rename_categories(meanings)
    return table, bad
