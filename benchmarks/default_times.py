"""What our default for tables costs beside the paper's: python benchmarks/default_times.py.

Fit: seconds of the default over those of the paper's network and schedule, on the same rows; best of several where that is
quick. Prediction: `predict_proba` of the training rows, medians taken in turns, over the plain network of the paper. One
thread. Writes default_times_results.json.
"""

from __future__ import annotations

import json
import statistics
import time
import warnings
from pathlib import Path

import torch

import reliablenet as rn
from reliablenet.datasets import load_dataset

RESULTS = Path(__file__).with_name("default_times_results.json")
DATASETS = {"synthetic_band": 3, "german_credit": 3, "adult": 1, "unsw_nb15": 1}  # fits of each
PREDICTIONS = 9


def ratios(name: str, fits: int) -> dict[str, float]:
    """Return rows, and how many times the paper's time our default takes to fit and to predict."""
    folds = load_dataset(name, 0).folds
    held = {"selection": folds.selection, "certification": folds.certification}
    kinds = {"default": {}, "paper": {"network": "mlp", "schedule": "paper"}}
    models, fitted = {}, {kind: [] for kind in kinds}
    for _ in range(fits):
        for kind, settings in kinds.items():
            model = rn.ReliableClassifier(random_state=0, verbose=False, **settings)
            start = time.perf_counter()
            models[kind] = model.fit(folds.train.X, folds.train.y, **held)
            fitted[kind].append(time.perf_counter() - start)
    predicted = {kind: [] for kind in kinds}
    for _ in range(PREDICTIONS):
        for kind, model in models.items():
            start = time.perf_counter()
            model.predict_proba(folds.train.X)
            predicted[kind].append(time.perf_counter() - start)
    middle = {kind: statistics.median(times) for kind, times in predicted.items()}
    return {
        "rows": len(folds.train),
        "fit": round(min(fitted["default"]) / min(fitted["paper"]), 3),
        "predict": round(middle["default"] / middle["paper"], 3),
    }


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found = {}
    for name, fits in DATASETS.items():
        found[name] = ratios(name, fits)
        print(name, found[name], flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
