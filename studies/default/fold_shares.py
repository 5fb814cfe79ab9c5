"""How rows are best divided.

Certified throughput on fresh rows, 0 without a certificate, by the rule that says how many of the given rows certify. All rules of a setting
see the same rows in the same order, seed by seed. Our default has a selection fold besides, the other two models need none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import reliablenet as rn
from reliablenet.certificate.planning import (
    certification_rows,
    largest_certifiable_errors,
    rows_for_errors,
)
from reliablenet.datasets import SyntheticBand, load_dataset
from reliablenet.tables import Fold
from studies.default.fitting import quietly
from studies.runner import Block, Study

FRESH = 20_000  # at most
SELECTION = 0.15  # of the rows, for the default

Rule = Callable[[int, float], int]  # rows and alpha become certification rows


def as_it_was(n: int, alpha: float) -> int:
    """Return 15 %, or what three errors need, up to 40 %."""
    wanted = max(int(0.15 * n), int(rows_for_errors(3, alpha)))
    return min(wanted, int(0.4 * n))


def share(part: float) -> Rule:
    """Return the rule of a fixed share, less what affords no error."""
    return lambda n, alpha: at_tooth(int(part * n), alpha)


def errors(enough: int, least: float, most: float) -> Rule:
    """Return the rule that affords so many errors, within shares."""

    def rows(n: int, alpha: float) -> int:
        wanted = min(max(int(rows_for_errors(enough, alpha)), int(least * n)), int(most * n))
        return at_tooth(wanted, alpha)

    return rows


def at_tooth(rows: int, alpha: float) -> int:
    """Return the fewest rows that afford as many errors."""
    most = largest_certifiable_errors(rows, alpha)
    return rows if most < 0 else int(rows_for_errors(most, alpha))


RULES: dict[str, Rule] = {
    "3 errors, 15 to 40 % (as it was)": as_it_was,
    "15 %": share(0.15),
    "30 %": share(0.30),
    "40 %": share(0.40),
    "10 errors, 15 to 40 %": errors(10, 0.15, 0.40),
    "50 errors, 20 to 40 % (as it is)": certification_rows,
    "50 errors, 20 to 50 %": errors(50, 0.20, 0.50),
    "200 errors, 20 to 40 %": errors(200, 0.20, 0.40),
}
SELECTIONS = {"selection 10 %": 0.10, "selection 25 %": 0.25}  # with the rule as it is


def logistic(seed: int) -> Any:
    """Return a logistic regression for any table."""
    texts = make_column_selector(dtype_exclude="number")
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), texts), remainder=StandardScaler()
    )
    return make_pipeline(encoder, LogisticRegression(max_iter=300))


def boosting(seed: int) -> Any:
    """Return gradient boosting with its defaults."""
    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)


MODELS: dict[str, Callable[[int], Any] | None] = {
    "logistic": logistic,
    "boosting": boosting,
    "our default": None,
}


@dataclass(frozen=True)
class Setting:
    """A table, how many of its rows `fit` gets, a budget, a model, and how many draws to take."""

    table: str
    rows: int
    alpha: float
    model: str
    seeds: int


SIZES = (  # table, rows, seeds for each of the models
    ("synthetic_band", 120, (60, 0, 0)),
    ("synthetic_band", 500, (60, 20, 10)),
    ("synthetic_band", 1500, (30, 10, 10)),
    ("synthetic_band", 5000, (10, 5, 5)),
    ("synthetic_band", 9500, (10, 5, 5)),
    ("german_credit", 700, (40, 20, 20)),
    ("breast_cancer", 400, (40, 20, 10)),
    ("adult", 1000, (20, 10, 10)),
    ("adult", 5000, (10, 5, 5)),
    ("adult", 24_000, (4, 4, 3)),
)
SETTINGS = [
    Setting(table, rows, alpha, model, seeds)
    for alpha in (0.05, 0.1)
    for table, rows, counts in SIZES
    for model, seeds in zip(MODELS, counts, strict=True)
    if seeds and (alpha == 0.05 or (model != "our default" and rows < 9000))
]


@cache
def all_rows(table: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return a table of the source domain and of its shifts, in no particular order."""
    if table == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return pd.DataFrame(X), y
    dataset = load_dataset(table, 0)
    parts = [*vars(dataset.folds).values(), *dataset.shifts.values()]
    X = pd.concat([part.X for part in parts], ignore_index=True)
    return X, np.concatenate([part.y for part in parts])


def draw(setting: Setting, seed: int) -> tuple[Fold, Fold]:
    """Return rows to fit on, in random order, and fresh ones."""
    if setting.table == "synthetic_band":
        band = SyntheticBand(seed)
        known, fresh = band.sample(setting.rows), band.sample(FRESH)
        return Fold(pd.DataFrame(known.X), known.y), Fold(pd.DataFrame(fresh.X), fresh.y)
    X, y = all_rows(setting.table)
    order = np.random.default_rng(seed).permutation(len(y))
    first, rest = order[: setting.rows], order[setting.rows :][:FRESH]
    return Fold(X.iloc[first], y[first]), Fold(X.iloc[rest], y[rest])


def throughput(setting: Setting, seed: int, certified: int, selection: float) -> float:
    """Return the share of fresh rows on which the certified rule acts and is right."""
    known, fresh = draw(setting, seed)
    chosen = int(selection * setting.rows)
    certification, middle, train = (
        Fold(known.X.iloc[a:b], known.y[a:b])
        for a, b in (
            (0, certified),
            (certified, certified + chosen),
            (certified + chosen, setting.rows),
        )
    )
    make = MODELS[setting.model]
    if make is None:
        model = rn.ReliableClassifier(
            setting.alpha, members=("network",), random_state=seed, verbose=False
        )
        model.fit(train.X, train.y, selection=middle, certification=certification)
        decided = model.decide(fresh.X)
        return float((decided.accepted & (decided.label == fresh.y)).mean())
    fitted = make(seed).fit(train.X, train.y)
    proba = fitted.predict_proba(certification.X)
    found = rn.certified_threshold(proba, certification.y, setting.alpha, classes=fitted.classes_)
    if not found.certified:
        return 0.0
    proba = fitted.predict_proba(fresh.X)
    right = fitted.classes_[proba.argmax(axis=1)] == fresh.y
    return float(((proba.max(axis=1) >= found.threshold) & right).mean())


def measure(setting: Setting) -> dict[str, Any]:
    """Return certified throughput by rule; rules that come to the same size are fitted once."""
    network = setting.model == "our default"
    usual = SELECTION if network else 0.0
    sizes = {name: (rule(setting.rows, setting.alpha), usual) for name, rule in RULES.items()}
    if network:
        ours = sizes["50 errors, 20 to 40 % (as it is)"][0]
        sizes |= {name: (ours, part) for name, part in SELECTIONS.items()}
    with quietly():
        found = {
            size: [throughput(setting, seed, *size) for seed in range(setting.seeds)]
            for size in dict.fromkeys(sizes.values())
        }
    best = sizes["50 errors, 20 to 40 % (as it is)"]
    return {
        "certification": {name: size[0] for name, size in sizes.items()},
        "throughput": {name: round(float(np.mean(found[size])), 5) for name, size in sizes.items()},
        # of the difference to the rule as it is, over the seeds
        "standard_error": {
            name: round(_error(np.subtract(found[size], found[best])), 5)
            for name, size in sizes.items()
        },
    }


def _error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def blocks() -> list[Block]:
    """Return the settings."""
    return [Block.once(vars(setting), partial(measure, setting)) for setting in SETTINGS]


STUDY = Study(
    "default",
    "fold_shares",
    about="How many rows should certify, and how many select?",
    cost="several hours; needs the source files",
    blocks=blocks,
)
