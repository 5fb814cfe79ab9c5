"""Our default on tables that nobody tuned it on.

Every method of `compare` with its defaults, on the same folds, on tables that come with scikit-learn and statsmodels; certified
throughput, mean over seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import statsmodels.api as sm
from sklearn.datasets import load_breast_cancer, load_digits

import reliablenet as rn
from studies.default.fitting import quietly
from studies.runner import Block, Study

SEEDS = (0, 1, 2)
Table = tuple[pd.DataFrame, pd.Series, float]  # with the budget


def affairs() -> Table:
    """6,366 answers to a magazine's survey: any affair?"""
    table = sm.datasets.fair.load_pandas().data
    return table.drop(columns="affairs"), table["affairs"] > 0, 0.1


def doctors() -> Table:
    """20,190 years of the RAND health insurance experiment: any visit to a doctor?"""
    table = sm.datasets.randhie.load_pandas().data
    return table.drop(columns="mdvis"), table["mdvis"] > 0, 0.1


def tumours() -> Table:
    """569 patients of Wisconsin: malignant or benign?"""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X, y, 0.05


def digits() -> Table:
    """1,797 digits of 64 pixels, as a table."""
    X, y = load_digits(return_X_y=True, as_frame=True)
    return X, y, 0.02


TABLES: dict[str, Callable[[], Table]] = {
    "affairs": affairs,
    "doctors": doctors,
    "tumours": tumours,
    "digits": digits,
}


def throughputs(X: pd.DataFrame, y: pd.Series, alpha: float) -> dict[str, Any]:
    """Return the certified throughput of each method, mean over the seeds."""
    runs = []
    with quietly():
        for seed in SEEDS:
            found = rn.compare(X, y, alpha=alpha, random_state=seed, resamples=1, verbose=False)
            runs.append({r.name: r.certified_throughput for r in found.results.values()})
    means = pd.DataFrame(runs).mean().round(4).sort_values(ascending=False)
    return {"throughput": means.to_dict()}


def blocks() -> list[Block]:
    """Return the tables."""
    return [
        Block.once(
            {"table": name, "rows": len(X), "alpha": alpha, "seeds": len(SEEDS)},
            partial(throughputs, X, y, alpha),
        )
        for name, load in TABLES.items()
        for X, y, alpha in [load()]
    ]


STUDY = Study(
    "default",
    "untuned",
    about="What is our default worth on tables that nobody tuned it on?",
    cost="twenty minutes",
    blocks=blocks,
)
