"""By which number should rows be ranked: the highest probability, or another reading of the same probabilities?

On tables of more than two classes; with two, all of these rank rows alike. Certified throughput and the area under the risk-coverage curve
are those of fresh rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import reliablenet as rn
from reliablenet.metrics import area_under_risk_coverage
from studies.default.fitting import quietly
from studies.default.team import Draw, Probabilities
from studies.default.unseen_tables import DEVELOPMENT, REPORTING, Table
from studies.runner import Block, Study

SEEDS = range(3)
LEAST = 1e-12
TABLES = ("flows_web", "pixels", "digits", "wines", "flows_files")  # of more than two classes


def top(proba: Probabilities) -> Probabilities:
    """Return the highest probability: what the default goes by."""
    return np.asarray(proba.max(1))


def margin(proba: Probabilities) -> Probabilities:
    """Return by how much the highest probability exceeds the second."""
    ordered = np.partition(proba, -2, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def certainty(proba: Probabilities) -> Probabilities:
    """Return the negative entropy."""
    return np.asarray((proba * np.log(proba.clip(LEAST))).sum(1))


def p_norm(proba: Probabilities, p: float) -> Probabilities:
    """Return the highest logit, centred and divided by the p-norm of all (Cattelan and Silva, 2024)."""
    logits = np.log(proba.clip(LEAST))
    logits = logits - logits.mean(1, keepdims=True)
    size = (np.abs(logits) ** p).sum(1) ** (1.0 / p)
    return np.asarray(logits.max(1) / np.maximum(size, LEAST))


SCORES: dict[str, Callable[[Probabilities], Probabilities]] = {
    "highest probability": top,
    "margin": margin,
    "negative entropy": certainty,
    **{f"logit by {p}-norm": partial(p_norm, p=float(p)) for p in (2, 4, 6)},
}


def measure(table: Table, seed: int) -> dict[str, Any]:
    """Return certified throughput and AURC on fresh rows by each score."""
    draw = Draw(table, seed)
    folds = draw.folds
    with quietly():
        ours = rn.ReliableClassifier(table.alpha, random_state=seed, verbose=False).fit(
            folds.train.X,
            folds.train.y,
            selection=folds.selection,
            certification=folds.certification,
        )
        held, fresh = (ours.predict_proba(X) for X in (folds.certification.X, draw.fresh))
    found = {}
    for name, score in SCORES.items():
        rule = rn.certified_threshold(
            held, folds.certification.y, table.alpha, classes=ours.classes_, score=score(held)
        )
        ranked, wrong = score(fresh), ours.classes_[fresh.argmax(1)] != draw.truth
        right = rule.certified & (ranked >= rule.threshold) & ~wrong
        area = area_under_risk_coverage(ranked, wrong)
        found[name] = [round(float(right.mean()), 4), round(area, 5)]
    return {"found": found}


def blocks() -> list[Block]:
    """Return the draws: the tables on which it may be decided first."""
    halves = {"development": DEVELOPMENT, "reporting": REPORTING}
    return [
        Block.once(
            {"half": half, "table": name, "alpha": tables[name].alpha, "seed": seed},
            partial(measure, tables[name], seed),
        )
        for half, tables in halves.items()
        for name in TABLES
        if name in tables
        for seed in SEEDS
    ]


STUDY = Study(
    "default",
    "scores",
    about="Would another score than the highest probability rank the rows of our default better?",
    cost="half an hour; needs the source files",
    blocks=blocks,
)
