"""Short fits and small tables for the tests of this folder."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd

import reliablenet as rn
from reliablenet.methods import ledger

QUICK = rn.training.Schedule(warmup_epochs=3, epochs_per_stage=2, max_stages=2)
ABSTAINING = (rn.SelectiveNetClassifier, rn.DeepGamblersClassifier)  # they learn their own score
RULES = [
    rn.CertifiedThreshold,
    rn.ConfidenceThreshold,
    rn.ConformalRiskControl,
    rn.TemperatureScaling,
]
NETWORKS = (rn.ReliableClassifier, rn.ERMClassifier, *ABSTAINING)
EXPECTED_WARNINGS = (
    rn.errors.ConstraintWarning,
    rn.errors.EmptyCertificateWarning,
    rn.errors.FoldWarning,
    rn.errors.NotCertifiedWarning,
    rn.errors.ReuseWarning,
)


def quick(kind: type, **settings: Any) -> Any:
    """Return an estimator that trains for seven epochs."""
    short = {"schedule": QUICK} if kind is rn.ReliableClassifier else {"epochs": 7}
    if kind is rn.DeepGamblersClassifier:
        short |= {"warmup_epochs": 2}
    return kind(**({"random_state": 0} | short | settings))


def fit_quietly(model: Any, *rows: Any, **folds: Any) -> Any:
    """Fit without the warnings that a short training on few rows deserves."""
    with warnings.catch_warnings():
        for category in EXPECTED_WARNINGS:
            warnings.simplefilter("ignore", category)
        return model.fit(*rows, **folds)


def certify_again(model: Any, X: Any, y: Any, **settings: Any) -> rn.Certificate:
    """Certify on rows that the model may have seen, for tests to which the counts alone matter."""
    forgetful = copy.copy(model)
    forgetful.seen_ = None
    with ledger.closed():
        return forgetful.certify(X, y, **settings)


def frame_of(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with numbers, categories, flags, gaps and a constant column, and its labels."""
    random = np.random.RandomState(seed)
    number = random.standard_normal(n)
    job = random.choice(["a", "b", "c"], n)
    y = np.where(number + (job == "a") + 0.3 * random.standard_normal(n) > 0.3, "yes", "no")
    table = pd.DataFrame(
        {
            "number": number,
            "job": pd.Categorical(job),
            "flag": random.uniform(size=n) > 0.5,
            "constant": 1.0,
        }
    )
    table.loc[random.uniform(size=n) < 0.1, ["number", "job"]] = np.nan
    return table, y


class Scores:
    """A fitted classifier that reads its probabilities from a column of the rows."""

    classes_ = np.array([0, 1])

    def __init__(self, column: int) -> None:
        self.column = column

    def predict_proba(self, X: Any) -> np.ndarray:
        p = np.asarray(X)[:, self.column]
        return np.column_stack([1 - p, p])
