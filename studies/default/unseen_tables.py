"""Tables on which nothing had been tuned when the team of members was begun, in two halves fixed beforehand.

What the default is made of may be decided on `DEVELOPMENT` alone. `REPORTING` is run once the default stands, and its figures are
published whichever way they come out. Which table is in which half was committed before the first run on any of them.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd
import statsmodels.api as sm
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from reliablenet.datasets import adult, unsw_nb15
from reliablenet.datasets.coloured_mnist import FILES as MNIST
from reliablenet.datasets.sources import fetch, find

Rows = tuple[pd.DataFrame, pd.Series]
LEAST_OF_A_CLASS = 30  # rows of rarer attack categories are left out


@dataclass(frozen=True)
class Table:
    """A table, the budget it is judged by, and how many of its rows `fit` gets; the others are fresh.

    Parameters
    ----------
    load
        Returns rows and labels.
    alpha
    fitted
        Rows for `fit`, at most; never more than four fifths.
    about
        What is to be told, and the kind of the table.
    """

    load: Callable[[], Rows]
    alpha: float
    fitted: int
    about: str

    def draw(self, seed: int) -> tuple[Rows, Rows]:
        """Return the rows for `fit` and the fresh ones, a random draw."""
        X, y = self.load()
        order = np.random.default_rng(seed).permutation(len(X))
        cut = min(self.fitted, 4 * len(X) // 5)
        known, fresh = order[:cut], order[cut:]
        return (X.iloc[known], y.iloc[known]), (X.iloc[fresh], y.iloc[fresh])


@cache
def _adult() -> Rows:
    X, y = adult.read()
    return X, pd.Series(y, index=X.index)


def adult_by_work(works: Sequence[str]) -> Rows:
    """Return the people of some states of work: does a person earn more than 50,000 dollars?"""
    X, y = _adult()
    chosen = X["workclass"].isin(works)
    return X[chosen], y[chosen]


@cache
def _flows() -> pd.DataFrame:
    table, _ = unsw_nb15.read("small")
    return table


def flows_by_service(services: Sequence[str]) -> Rows:
    """Return the network flows of some services: normal, or which family of attacks?"""
    table = _flows()
    table = table[table["service"].isin(services)]
    family = table["attack_cat"].astype(str)
    common = family.map(family.value_counts()) >= LEAST_OF_A_CLASS
    return table[common].drop(columns=list(unsw_nb15.NOT_FEATURES)), family[common]


def pixels() -> Rows:
    """Return MNIST's 10,000 test digits, each as the means of 7 x 7 patches."""
    images, labels = (gzip.decompress(fetch(file).read_bytes()) for file in MNIST[2:])
    squares = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 7, 4, 7, 4)
    means = squares.mean((2, 4)).reshape(len(squares), -1)
    return pd.DataFrame(means).add_prefix("patch"), pd.Series(
        np.frombuffer(labels, np.uint8, offset=8)
    )


@cache
def questions() -> Rows:
    """Return 13,083 questions to a bank, 48 components of their words each: which of 77 intents?"""
    paths = [find([f"banking77/{name}.csv"]) for name in ("train", "test")]
    if None in paths:
        raise FileNotFoundError("Banking77 is not in the folder named by RELIABLENET_DATA.")
    table = pd.concat([pd.read_csv(str(path)) for path in paths], ignore_index=True)
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True)
    parts = TruncatedSVD(48, random_state=0).fit_transform(words.fit_transform(table["text"]))
    return pd.DataFrame(parts).add_prefix("part"), table["category"]


def doctors() -> Rows:
    """Return years of the RAND health insurance experiment: any visit to a doctor?"""
    table = sm.datasets.randhie.load_pandas().data
    return table.drop(columns="mdvis"), table["mdvis"] > 0


def affairs() -> Rows:
    """Return answers to a magazine's survey: any affair?"""
    table = sm.datasets.fair.load_pandas().data
    return table.drop(columns="affairs"), table["affairs"] > 0


def voters() -> Rows:
    """Return voters of the American election of 1996: for which of the two candidates?"""
    table = sm.datasets.anes96.load_pandas().data
    return table.drop(columns=["vote", "popul"]), table["vote"].astype(int)


def tumours() -> Rows:
    """Return patients of Wisconsin: malignant or benign?"""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X, y


def digits() -> Rows:
    """Return handwritten digits of 64 pixels."""
    X, y = load_digits(return_X_y=True, as_frame=True)
    return X, y


def wines() -> Rows:
    """Return wines of three growers: whose?"""
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, y


PRIVATE, OWN = ("Private",), ("Self-emp-inc", "Self-emp-not-inc")
GOVERNMENT = ("Federal-gov", "Local-gov", "State-gov")

DEVELOPMENT = {
    "doctors": Table(doctors, 0.1, 8_000, "few columns, noisy, 2 classes"),
    "adult_private": Table(partial(adult_by_work, PRIVATE), 0.05, 8_000, "mixed, 2 classes"),
    "flows_web": Table(partial(flows_by_service, ("http",)), 0.05, 6_000, "mixed, 7 classes"),
    "flows_mail": Table(
        partial(flows_by_service, ("smtp", "pop3")), 0.05, 1_800, "small, skewed numbers"
    ),
    "pixels": Table(pixels, 0.02, 6_000, "numbers, 10 classes"),
    "tumours": Table(tumours, 0.05, 455, "small, numbers, 2 classes"),
}
REPORTING = {
    "adult_own_business": Table(partial(adult_by_work, OWN), 0.05, 4_500, "mixed, 2 classes"),
    "adult_government": Table(partial(adult_by_work, GOVERNMENT), 0.05, 5_200, "mixed, 2 classes"),
    "flows_unnamed": Table(partial(flows_by_service, ("-",)), 0.05, 10_000, "mixed, many classes"),
    "flows_names": Table(partial(flows_by_service, ("dns",)), 0.01, 10_000, "skewed numbers"),
    "flows_files": Table(
        partial(flows_by_service, ("ftp", "ftp-data")), 0.05, 2_350, "small, skewed numbers"
    ),
    "questions": Table(questions, 0.05, 8_000, "numbers, 77 classes"),
    "affairs": Table(affairs, 0.1, 5_000, "few columns, noisy, 2 classes"),
    "voters": Table(voters, 0.1, 755, "small, few columns, 2 classes"),
    "digits": Table(digits, 0.02, 1_437, "small, numbers, 10 classes"),
    "wines": Table(wines, 0.1, 142, "tiny, numbers, 3 classes"),
}
