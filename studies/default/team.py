"""Our default against what a user might have found, on tables that nobody tuned on.

`unseen_tables` says which tables decided about the default and which are reported. Each draw gives `fit` some rows and keeps the others
fresh: certified throughput and the area under the risk-coverage curve are those of the fresh rows. Rivals have the same folds, train on
training and selection rows together as ours does, and are certified on the same rows. The tuned boosting is chosen among six settings
by its loss on the selection fold.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.metrics import area_under_risk_coverage
from reliablenet.tables import Folds, TabularEncoder
from reliablenet.tables.folds import cut_folds
from reliablenet.training.growing import KINDS
from studies.default.fitting import quietly
from studies.default.unseen_tables import DEVELOPMENT, REPORTING, Table
from studies.runner import Block, Study

SEEDS = range(5)
LONG = ("flows_unnamed", "flows_names", "questions", "pixels", "flows_web")  # minutes a draw
MANY_CLASSES = 20  # with so many the search has two settings, or a run would take hours
SEARCH: list[dict[str, Any]] = [
    {},
    {"learning_rate": 0.05, "max_iter": 200, "max_leaf_nodes": 15},
    {"learning_rate": 0.05, "max_iter": 200, "max_leaf_nodes": 15, "max_features": 0.5},
    {"max_iter": 60, "max_leaf_nodes": 8},
    {"max_iter": 300},
    {"learning_rate": 0.05, "max_iter": 200, "categorical_features": "from_dtype"},
]

Probabilities = NDArray[np.float64]


class Draw:
    """One draw of a table: folds for all methods, and fresh rows to judge them by."""

    def __init__(self, table: Table, seed: int) -> None:
        (X, y), (self.fresh, labels) = table.draw(seed)
        self.alpha, self.seed = table.alpha, seed
        self.folds: Folds = cut_folds(X, y.to_numpy(), alpha=table.alpha, random_state=seed)
        self.classes = np.unique(y)
        self.truth = np.asarray(labels)

    def judge(self, held: Probabilities, fresh: Probabilities) -> list[float]:
        """Return certified throughput and AURC of a model on the fresh rows."""
        y = self.folds.certification.y
        found = rn.certified_threshold(held, y, self.alpha, classes=self.classes)
        score, wrong = fresh.max(1), self.classes[fresh.argmax(1)] != self.truth
        acted = (score >= found.threshold) & found.certified
        area = area_under_risk_coverage(score, wrong)
        return [round(float((acted & ~wrong).mean()), 4), round(area, 5)]

    def judge_model(self, model: Any) -> list[float]:
        """Return the same of a fitted classifier, which may know fewer classes."""
        known = np.searchsorted(self.classes, model.classes_)
        wide = []
        for X in (self.folds.certification.X, self.fresh):
            wide.append(np.zeros((len(X), len(self.classes))))
            wide[-1][:, known] = model.predict_proba(X)
        return self.judge(*wide)

    def both(self) -> tuple[pd.DataFrame, NDArray[Any]]:
        """Return training and selection rows together."""
        parts = self.folds.train, self.folds.selection
        return pd.concat([part.X for part in parts]), np.concatenate([part.y for part in parts])


class CategoryBoosting:
    """Boosting that splits texts as the categories they are; what is rare or new is missing."""

    def __init__(self, **settings: Any) -> None:
        self.model = HistGradientBoostingClassifier(**settings)

    def fit(self, X: pd.DataFrame, y: Any) -> CategoryBoosting:
        texts = X.select_dtypes(exclude=["number", "bool"])
        self.levels = {c: texts[c].astype(object).value_counts().index[:254] for c in texts}
        self.model.fit(self.read(X), y)
        self.classes_ = self.model.classes_
        return self

    def read(self, X: pd.DataFrame) -> pd.DataFrame:
        read = X.copy()
        for column, levels in self.levels.items():
            read[column] = pd.Categorical(X[column].astype(object), categories=levels)
        return read

    def predict_proba(self, X: pd.DataFrame) -> Probabilities:
        return np.asarray(self.model.predict_proba(self.read(X)))


def boosting(settings: dict[str, Any], seed: int) -> Any:
    """Return boosting with some settings, unfitted."""
    if "categorical_features" in settings:
        return CategoryBoosting(random_state=seed, **settings)
    trees = HistGradientBoostingClassifier(random_state=seed, **settings)
    return make_pipeline(TabularEncoder(), trees)


def tune(draw: Draw) -> Any:
    """Return boosting with the settings that have the lowest loss on the selection fold, unfitted."""
    train, selection = draw.folds.train, draw.folds.selection
    search = SEARCH if len(draw.classes) < MANY_CLASSES else SEARCH[:2]
    losses = []
    for settings in search:
        model = boosting(settings, draw.seed).fit(train.X, train.y)
        known = np.isin(selection.y, model.classes_)
        proba = model.predict_proba(selection.X[known])
        losses.append(log_loss(selection.y[known], proba, labels=model.classes_))
    return boosting(search[int(np.argmin(losses))], draw.seed)


def rivals(draw: Draw) -> dict[str, Any]:
    """Return what a user might have tried, unfitted but for the search."""
    forest = RandomForestClassifier(random_state=draw.seed)
    return {
        "boosting": boosting({}, draw.seed),
        "boosting, slow and shallow": boosting(SEARCH[1], draw.seed),
        "random forest": make_pipeline(TabularEncoder(), forest),
        "logistic regression": make_pipeline(TabularEncoder(), LogisticRegression(max_iter=1000)),
    }


def measure(table: Table, seed: int) -> dict[str, Any]:
    """Return what each method does on one draw, and the seconds of its fit."""
    draw, found, seconds = Draw(table, seed), {}, {}
    folds = draw.folds
    with quietly():
        start = time.perf_counter()
        ours = rn.ReliableClassifier(table.alpha, members="auto", random_state=seed, verbose=False)
        ours.fit(
            folds.train.X,
            folds.train.y,
            selection=folds.selection,
            certification=folds.certification,
        )
        seconds["team"] = time.perf_counter() - start
        found["team"] = draw.judge_model(ours)
        found |= parts_of(ours, draw)
        for name, model in rivals(draw).items():
            start = time.perf_counter()
            model.fit(*draw.both())
            seconds[name] = time.perf_counter() - start
            found[name] = draw.judge_model(model)
        start = time.perf_counter()
        tuned = tune(draw).fit(*draw.both())
        seconds["boosting, tuned"] = time.perf_counter() - start
        found["boosting, tuned"] = draw.judge_model(tuned)
        with TemporaryDirectory() as folder:
            size = ours.save(Path(folder) / "model.rnet").stat().st_size
    weights = [1.0] if ours.team_ is None else ours.team_.weights
    return {
        "found": found,
        "seconds": {name: round(taken, 1) for name, taken in seconds.items()},
        "weights": [round(weight, 3) for weight in weights],
        "megabytes": round(size / 1e6, 2),
    }


def parts_of(ours: rn.ReliableClassifier, draw: Draw) -> dict[str, list[float]]:
    """Return what each member is worth alone, and the team without it or with equal weights."""
    if ours.team_ is None:
        return {}
    said: list[list[Probabilities]] = []
    known = np.searchsorted(draw.classes, ours.classes_)
    for X in (draw.folds.certification.X, draw.fresh):
        matrix = ours.encoder_.compact(X)
        members = ours.team_.listen(matrix, len(ours.classes_))
        wide = [np.zeros((len(X), len(draw.classes))) for _ in range(1 + len(members))]
        for one, proba in zip(wide, [ours._class_outputs(X).proba, *members], strict=True):
            one[:, known] = proba
        said.append(wide)
    names = ["network", *KINDS]
    weights = np.array(ours.team_.weights)
    shares = {f"{name} alone": np.eye(len(names))[place] for place, name in enumerate(names)}
    for place, name in enumerate(names):
        rest = np.where(np.arange(len(names)) == place, 0.0, weights)
        shares[f"without {name}"] = rest / rest.sum()
    shares["equal weights"] = np.full(len(names), 1.0 / len(names))
    return {
        label: draw.judge(*(np.tensordot(share, np.stack(wide), 1) for wide in said))
        for label, share in shares.items()
    }


def blocks() -> list[Block]:
    """Return the draws, all tables of a seed together: the reported ones first, long ones later."""
    halves = {"reporting": REPORTING, "development": DEVELOPMENT}
    draws = [
        (half, seed, name) for half, tables in halves.items() for seed in SEEDS for name in tables
    ]
    draws.sort(key=lambda draw: (draw[0] == "development", draw[2] in LONG))
    return [
        Block.once(
            {"half": half, "table": name, "alpha": halves[half][name].alpha, "seed": seed},
            partial(measure, halves[half][name], seed),
        )
        for half, seed, name in draws
    ]


STUDY = Study(
    "default",
    "team",
    about="Is our default as good as the best that a user might have found, on tables nobody tuned on?",
    cost="two hours; needs the source files",
    blocks=blocks,
)
