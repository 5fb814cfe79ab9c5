"""Would boosting with other settings beat our default?

Our default was chosen with four datasets in view, so boosting gets the same chance: certified throughput of histogram gradient boosting
with few changes each, trained on training and selection rows together, as ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.datasets import load_dataset
from reliablenet.tables import Folds, TabularEncoder
from studies.default.fitting import ALPHAS, SEEDS, certified_throughput, quietly
from studies.runner import Block, Study

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "200 trees at 0.05": {"learning_rate": 0.05, "max_iter": 200},
    "300 trees": {"max_iter": 300},
    "15 leaves": {"max_leaf_nodes": 15},
    "50 rows a leaf": {"min_samples_leaf": 50},
    "L2 10": {"l2_regularization": 10.0},
    "half the columns a split": {"max_features": 0.5},
    "categories of its own": {"categorical_features": "from_dtype"},
    "300 trees, categories of its own": {"max_iter": 300, "categorical_features": "from_dtype"},
}


def throughput(folds: Folds, seed: int, alpha: float, settings: dict[str, Any]) -> float:
    """Return the certified throughput of one fit."""
    parts = [folds.train, folds.selection]
    frame = isinstance(parts[0].X, pd.DataFrame)
    join: Any = pd.concat if frame else np.concatenate
    X = join([part.X for part in parts])
    new = folds.certification.X
    trees = HistGradientBoostingClassifier(random_state=seed, **settings)
    if "categorical_features" not in settings:
        model: Any = make_pipeline(TabularEncoder(), trees)
    else:
        model = trees
        if frame:
            X, new = _as_categories(X, new)
    model.fit(X, np.concatenate([part.y for part in parts]))
    found = rn.certified_threshold(
        model.predict_proba(new), folds.certification.y, alpha, classes=model.classes_
    )
    return certified_throughput(found)


def _as_categories(known: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both tables with texts as categories; what is rare or new is missing."""
    known, new = known.copy(), new.copy()
    for column in known.select_dtypes(exclude=["number", "bool"]):
        texts = known[column].astype("object")
        levels = texts.value_counts().index[:254]  # as many as it can tell apart
        for table in (known, new):
            table[column] = pd.Categorical(table[column].astype("object"), categories=levels)
    return known, new


def throughputs(name: str) -> dict[str, Any]:
    """Return the mean over the seeds for each setting."""
    found: dict[str, list[float]] = {label: [] for label in SETTINGS}
    with quietly():
        for seed in SEEDS:
            folds = load_dataset(name, seed).folds
            for label, settings in SETTINGS.items():
                found[label].append(throughput(folds, seed, ALPHAS[name], settings))
    return {"throughput": {label: round(float(np.mean(v)), 4) for label, v in found.items()}}


def blocks() -> list[Block]:
    """Return the datasets."""
    return [
        Block.once(
            {"dataset": name, "alpha": alpha, "seeds": len(SEEDS)}, partial(throughputs, name)
        )
        for name, alpha in ALPHAS.items()
    ]


STUDY = Study(
    "default",
    "boosting_tried",
    about="Would boosting with other settings beat our default?",
    cost="half an hour; needs the source files",
    blocks=blocks,
)
