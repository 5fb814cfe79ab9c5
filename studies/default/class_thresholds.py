"""Does one budget go further with a threshold for each predicted class than with one for all?

Both rules act on the same model's probabilities and are certified on the same rows; the scale of each class is learned
on the selection fold, which trains nothing here. Tables of the paper, two models, and made rows whose truth is known.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reliablenet import Promise, certified_rule, certified_threshold
from reliablenet.datasets import load_dataset
from reliablenet.tables import TabularEncoder
from studies.default.fitting import SEEDS, certified_throughput, quietly
from studies.runner import Block, Study

RHO = 0.05
TABLES = {
    "synthetic_band": (0.05,),
    "german_credit": (0.05,),
    "adult": (0.05,),
    "unsw_nb15": (0.05, 0.01),
}
# How often a prediction is wrong at score s, as multiples of 1 - s, for each predicted class.
MADE = {"classes differ": (0.3, 1.4), "classes alike": (0.8, 0.8)}
ROWS, DRAWS, ALPHA = (100, 500, 2_000), 400, 0.05

Floats = NDArray[np.float64]


def models(seed: int) -> dict[str, Any]:
    """Return the models, not fitted."""
    trees = HistGradientBoostingClassifier(random_state=seed)
    line, weighted = (
        LogisticRegression(max_iter=1_000, class_weight=w) for w in (None, "balanced")
    )
    return {
        "boosting": make_pipeline(TabularEncoder(), trees),
        "logistic regression": make_pipeline(TabularEncoder(), StandardScaler(), line),
        # where classes are not alike in number, a score means other risks in each of them
        "classes weighted alike": make_pipeline(TabularEncoder(), StandardScaler(), weighted),
    }


def both_ways(
    selection: tuple[Floats, Any], certification: tuple[Floats, Any], alpha: float, classes: Any
) -> tuple[Any, Any]:
    """Return the certificates of one threshold and of a threshold for each predicted class."""
    one = certified_threshold(*certification, alpha, RHO, classes=classes)
    promise = Promise.overall(alpha)
    several = certified_rule(*certification, promise, RHO, selection=selection, classes=classes)
    return one, several


def on_table(name: str, seed: int) -> list[dict[str, Any]]:
    """Return certified throughput both ways, for each model and budget."""
    records = []
    with quietly():
        folds = load_dataset(name, seed).folds
        for label, model in models(seed).items():
            model.fit(folds.train.X, folds.train.y)
            selection, certification = (
                (model.predict_proba(fold.X), fold.y)
                for fold in (folds.selection, folds.certification)
            )
            for alpha in TABLES[name]:
                found = both_ways(selection, certification, alpha, model.classes_)
                one, several = map(certified_throughput, found)
                records.append(
                    {"model": label, "alpha": alpha, "selection": len(selection[1])}
                    | {"n": len(certification[1]), "one": round(one, 5)}
                    | {"several": round(several, 5)}
                )
    return records


def made(kind: str, rows: int) -> dict[str, Any]:
    """Return mean throughput and false certificates both ways on made rows, with the truth known."""
    random = np.random.default_rng([rows, list(MADE).index(kind)])
    throughput, failures = np.zeros((DRAWS, 2)), np.zeros(2, int)
    with quietly():
        for draw in range(DRAWS):
            found = both_ways(
                _made_rows(kind, rows, random), _made_rows(kind, rows, random), ALPHA, [0, 1]
            )
            for way, certificate in enumerate(found):
                throughput[draw, way], jcw = _truth(kind, _thresholds(certificate))
                failures[way] += jcw > ALPHA
    gain = throughput[:, 1] - throughput[:, 0]
    return {
        "one": round(float(throughput[:, 0].mean()), 5),
        "several": round(float(throughput[:, 1].mean()), 5),
        "standard_error": round(float(gain.std(ddof=1) / np.sqrt(DRAWS)), 5),
        "one_failures": int(failures[0]),
        "several_failures": int(failures[1]),
    }


def _made_rows(kind: str, rows: int, random: np.random.Generator) -> tuple[Floats, NDArray[Any]]:
    score, predicted = random.uniform(0.5, 1.0, rows), random.integers(0, 2, rows)
    wrong = random.random(rows) < np.take(MADE[kind], predicted) * (1.0 - score)
    first = np.where(predicted == 0, score, 1.0 - score)
    return np.column_stack([first, 1.0 - first]), np.where(wrong, 1 - predicted, predicted)


def _thresholds(certificate: Any) -> list[float]:
    """Return the threshold of each predicted class."""
    if not certificate.certified:
        return [np.inf, np.inf]
    if not hasattr(certificate, "rule"):
        return [certificate.threshold] * 2
    found = certificate.rule.thresholds
    return [float(found.get(k, found.get("all", np.inf))) for k in (0, 1)]


def _truth(kind: str, thresholds: list[float]) -> tuple[float, float]:
    """Return P(acted and right) and P(acted and wrong) of a rule: scores are uniform."""
    low = np.clip(thresholds, 0.5, 1.0)
    acted = (1.0 - low).sum()  # each class has half of the rows, at density 2
    jcw = float((np.array(MADE[kind]) * (1.0 - low) ** 2 / 2).sum())
    return float(acted) - jcw, jcw


def blocks() -> list[Block]:
    """Return made rows, then tables and seeds."""
    fixed = {"alpha": ALPHA, "rho": RHO, "draws": DRAWS}
    simulated = [
        Block.once({"made": kind, "rows": rows} | fixed, partial(made, kind, rows))
        for kind in MADE
        for rows in ROWS
    ]
    tables = [
        Block.once({"dataset": name, "seed": seed, "rho": RHO}, partial(on_table, name, seed))
        for name in TABLES
        for seed in SEEDS
    ]
    return simulated + tables


STUDY = Study(
    "default",
    "class_thresholds",
    about="Does one budget go further with a threshold for each predicted class?",
    cost="five minutes; needs the source files",
    blocks=blocks,
)
