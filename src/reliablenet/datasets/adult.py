"""Adult: does a person earn more than 50,000 dollars? Trained on men, tested on women.

B. Becker and R. Kohavi, 1996, UCI Machine Learning Repository, doi:10.24432/C5XW20.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.datasets.dataset import Dataset
from reliablenet.datasets.sources import SourceFile, fetch
from reliablenet.tables.folds import Fold, cut_paper_folds

SITE = "https://archive.ics.uci.edu"
FILES = tuple(
    SourceFile(
        path=f"adult/{name}",
        url=f"{SITE}/ml/machine-learning-databases/adult/{name}",
        sha256=digest,
        page=f"{SITE}/dataset/2/adult",
    )
    for name, digest in (
        ("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        ("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    )
)
# In the order of the files; True marks categories.
COLUMNS = {
    "age": False,
    "workclass": True,
    "fnlwgt": False,
    "education": True,
    "education-num": False,
    "marital-status": True,
    "occupation": True,
    "relationship": True,
    "race": True,
    "sex": True,
    "capital-gain": False,
    "capital-loss": False,
    "hours-per-week": False,
    "native-country": True,
    "income": True,
}


def load(random_state: int = 0) -> Dataset:
    """Load Adult in the paper's folds: men the source domain, women the shift.

    A label of 1 is an income of more than 50,000 dollars a year. The 13 predictors are all but
    ``sex``; ``fnlwgt``, the sampling weight, is among them, as in the paper. Rows keep their number
    in the two files, one after the other, as their index; ``?`` is a missing value.

    Parameters
    ----------
    random_state : int
        Decides the folds.

    Returns
    -------
    Dataset
        Its groups are the women by education, from the lowest to the highest.
    """
    table, y = read()
    male = (table["sex"] == "Male").to_numpy()
    X = table.drop(columns="sex")
    women = Fold(X[~male], y[~male])
    return Dataset(
        name="adult",
        folds=cut_paper_folds(X[male], y[male], random_state),
        shifts={"women": women},
        groups=_by_education(women),
        info={
            "files": {file.path: file.sha256 for file in FILES},
            "rows": len(y),
            "source": "men",
            "target": "1 = income of more than 50,000 dollars a year",
        },
    )


def read() -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Return the 48,842 records of both files, and their labels."""
    training, test = (fetch(file).read_bytes() for file in FILES)
    _comment, test = test.split(b"\n", 1)
    # Both at once, with the blanks after the commas: half the time of stripping them while parsing.
    table = pd.read_csv(
        BytesIO(training + test),
        header=None,
        names=list(COLUMNS),
        dtype={name: "category" if category else "int64" for name, category in COLUMNS.items()},
        na_filter=False,
    )
    y = table.pop("income").str.contains(">50K").to_numpy().astype(np.intp)  # or >50K. in the test
    for name in table.columns[table.dtypes == "category"]:
        stripped = table[name].cat.rename_categories(lambda text: text.strip())
        table[name] = stripped.cat.set_categories([c for c in stripped.cat.categories if c != "?"])
    return table, y


def _by_education(women: Fold) -> dict[str, Fold]:
    rank = women.X.groupby("education", observed=True)["education-num"].first().sort_values()
    masks = {name: (women.X["education"] == name).to_numpy() for name in rank.index}
    return {name: Fold(women.X[mask], women.y[mask]) for name, mask in masks.items()}
