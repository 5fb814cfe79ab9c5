"""Certified throughput for numbers: our network against boosting, on tables with real columns.

The bins of `y`, the centre of the best window and the forest of `ErrorModel` were chosen on other targets:
the age of people in Adult, their age in a survey of marriages, and the duration of flows in UNSW-NB15.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.datasets import adult, german_credit, unsw_nb15
from reliablenet.methods import ledger
from reliablenet.tables import TabularEncoder
from studies.runner import Block, Record, Study

ALPHA, SEEDS, MOST = 0.1, 3, 4000

Table = tuple[pd.DataFrame, str, Any]


def flows() -> Table:
    """Return flows and the bytes sent, without columns that are computed from them."""
    frame = unsw_nb15.read()[0]
    told = ["id", "attack_cat", "label", "sload", "smean", "sinpkt"]
    return frame.drop(columns=[name for name in told if name in frame]), "sbytes", "10%"


def visits() -> Table:
    """Return the RAND health insurance experiment: visits to a doctor in a year."""
    from statsmodels.datasets import randhie

    return randhie.load_pandas().data, "mdvis", 2


def marriages() -> Table:
    """Return a survey of marriages: years married."""
    from statsmodels.datasets import fair

    return fair.load_pandas().data, "yrs_married", 2


TABLES: dict[str, Callable[[], Table]] = {
    "diabetes, progression": lambda: (load_diabetes(as_frame=True).frame, "target", 60),
    "German Credit, amount": lambda: (german_credit.read()[0], "credit_amount", "40%"),
    "Adult, hours a week": lambda: (adult.read()[0], "hours-per-week", 5),
    "UNSW-NB15, bytes sent": flows,
    "RAND health, visits": visits,
    "marriages, years": marriages,
}


def boosting(seed: int) -> Any:
    """Return boosted trees on the plain encoder."""
    trees = HistGradientBoostingRegressor(random_state=seed)
    return make_pipeline(TabularEncoder(), trees)


METHODS: dict[str, Callable[[Any, int], Any]] = {
    "ReliableRegressor": lambda tolerance, seed: rn.ReliableRegressor(
        tolerance, ALPHA, random_state=seed
    ),
    "boosting": lambda tolerance, seed: rn.CertifiedThreshold(
        boosting(seed), ALPHA, tolerance=tolerance, random_state=seed
    ),
    "ridge": lambda tolerance, seed: rn.CertifiedThreshold(
        make_pipeline(TabularEncoder(), BayesianRidge()),
        ALPHA,
        tolerance=tolerance,
        random_state=seed,
    ),
}


def measure(table: Callable[[], Table], make: Callable[[Any, int], Any]) -> Record:
    """Return throughput and JCW on test rows, of fits that cut their own folds."""
    frame, target, tolerance = table()
    X, y = frame.drop(columns=target), frame[target].to_numpy(float)
    found: dict[str, list[Any]] = {"certified": [], "throughput": [], "jcw": [], "right": []}
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(y))[: 2 * MOST]
        known, test = np.split(order, [min(MOST, len(order) * 2 // 3)])
        with warnings.catch_warnings(), ledger.closed():
            warnings.simplefilter("ignore")
            model = make(tolerance, seed).fit(X.iloc[known], y[known])
            measured = model.evaluate(X.iloc[test], y[test])
        found["certified"].append(model.certificate_.certified)
        found["throughput"].append(measured.throughput)
        found["jcw"].append(measured.jcw)
        found["right"].append(measured.accuracy)
    return found | {"rows": len(known), "test": len(test), "tolerance": tolerance}


def blocks() -> list[Block]:
    """Return every method on every table."""
    return [
        Block.once({"table": table, "method": method}, partial(measure, load, make))
        for table, load in TABLES.items()
        for method, make in METHODS.items()
    ]


STUDY = Study(
    "default",
    "regression",
    about="How many rows may be acted on, for numbers, against boosting?",
    cost="about 10 minutes, and the files of Adult, German Credit and UNSW-NB15",
    blocks=blocks,
)
