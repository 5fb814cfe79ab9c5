"""What our default for tables costs beside the paper's.

Fit: seconds of the default over those of the paper's network and schedule, on the same rows; best of several where that is
quick. Prediction: `predict_proba` of the training rows, medians taken in turns, over the plain network of the paper. One
thread.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import reliablenet as rn
from reliablenet.datasets import load_dataset
from studies.default.fitting import quietly
from studies.runner import Block, Study
from studies.speed.timing import best_times, times_in_turns

DATASETS = {"synthetic_band": 3, "german_credit": 3, "adult": 1, "unsw_nb15": 1}  # fits of each
PREDICTIONS = 9


def ratios(name: str, fits: int) -> dict[str, float]:
    """Return rows, and how many times the paper's time our default takes to fit and to predict."""
    folds = load_dataset(name, 0).folds
    held = {"selection": folds.selection, "certification": folds.certification}
    kinds: list[dict[str, Any]] = [
        {"members": ("network",)},
        {"network": "mlp", "schedule": "paper"},
    ]
    models = [rn.ReliableClassifier(random_state=0, verbose=False, **kind) for kind in kinds]
    with quietly():
        fitted = best_times(
            [partial(model.fit, folds.train.X, folds.train.y, **held) for model in models], fits
        )
        predicted = times_in_turns(
            [partial(model.predict_proba, folds.train.X) for model in models], PREDICTIONS
        )
    ours, papers = map(statistics.median, predicted)
    return {
        "rows": len(folds.train),
        "fit": round(fitted[0] / fitted[1], 3),
        "predict": round(ours / papers, 3),
    }


def blocks() -> list[Block]:
    """Return the datasets."""
    return [
        Block.once({"dataset": name}, partial(ratios, name, fits))
        for name, fits in DATASETS.items()
    ]


STUDY = Study(
    "speed",
    "default_times",
    about="What does our default for tables cost beside the paper's network?",
    cost="half an hour; needs the source files",
    blocks=blocks,
)
