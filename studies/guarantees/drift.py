"""The source test without labels: false alarms where nothing changed, and what it sees of the paper's shifts.

Made rows have a known source: 12 columns, some of them coarse, and a model that knows its 150 training rows by heart. The
fault compares new rows with the scores of training rows. On the paper's datasets old and new rows of the same source are
divided anew at random, and rows of the shift are drawn from all of them.
"""

from __future__ import annotations

import copy
import warnings
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing

from reliablenet.datasets import load_dataset
from reliablenet.methods import CertifiedThreshold
from reliablenet.monitor.drift import source_test
from reliablenet.monitor.martingale import SourceMonitor
from reliablenet.tables import TabularEncoder
from reliablenet.tables.source import Source, count_rows
from studies.runner import Block, Record, Study

LEVEL = 0.05
DRAWS, FAULT_DRAWS, CHUNK = 2000, 250, 250
STREAM = 100
SHIFTS = {
    "adult": "women",
    "german_credit": "under 30",
    "unsw_nb15": "unseen attacks",
    "synthetic_band": "gamma 0.7",
}
SIZES = (20, 100, 500)
POWER_DRAWS, NULL_DRAWS, STREAMS, LONGEST = 40, 100, 11, 500


def made_rows(n: int, random: np.random.Generator) -> tuple[Any, Any]:
    """Return rows of a known source."""
    X = random.normal(size=(n, 12))
    y = (X[:, 0] + X[:, 1] + random.normal(size=n) > 0).astype(int)
    X[:, 6:8] = np.round(X[:, 6:8])
    X[:, 8:10] = np.maximum(X[:, 8:10] - 1, 0)
    X[:, 10] = np.exp(2 * X[:, 10])
    return X, y


@cache
def made_model() -> tuple[Any, Any]:
    """Return a model of made rows, and the rows that trained it."""
    random = np.random.default_rng(7)
    train, held = made_rows(150, random), made_rows(400, random)
    by_heart = RBFSampler(gamma=0.1, n_components=400, random_state=0)
    inner = make_pipeline(by_heart, LogisticRegression(C=1e3, max_iter=1000)).fit(*train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CertifiedThreshold(inner, alpha=0.2, random_state=0).fit(*held)
    model.source_ = Source.of(made_rows(200, random)[0], held[0])
    return model, train[0]


def certified_on(model: Any, X: Any, scored: Any = None) -> Any:
    """Return the model as if these rows had been its certification rows."""
    other = copy.copy(model)
    outputs = model._outputs(X if scored is None else scored)
    other.evidence_ = SimpleNamespace(
        score=outputs.acceptance(), predicted=outputs.proba.argmax(axis=1)
    )
    other.source_ = Source(model.profile_, count_rows(model.profile_, X))
    return other


def false_alarms(test: str, fault: bool, known: list[Record]) -> list[Record]:
    """Draw certification rows and new rows of the same source, and count alarms."""
    done = known[0] if known else {"draws": 0, "alarms": 0}
    model, train = made_model()
    alarms = 0
    for draw in range(done["draws"], done["draws"] + CHUNK):
        random = np.random.default_rng([11, draw])
        held, new = made_rows(200, random)[0], made_rows(STREAM, random)[0]
        certified = certified_on(model, held, train if fault else None)
        if test == "rows at once":
            alarms += source_test(certified, new[:100], level=LEVEL, random_state=draw).changed
        else:
            alarms += SourceMonitor(certified, LEVEL, draw).update(new).alarm
    count = {"draws": done["draws"] + CHUNK, "alarms": done["alarms"] + alarms}
    return [count | {"rate": round(count["alarms"] / count["draws"], 4)}]


@cache
def paper_model(name: str) -> tuple[Any, Any, Any]:
    """Return a quick model of a dataset, rows of its source that the model has not seen, and the shift."""
    dataset = load_dataset(name, random_state=0)
    folds = dataset.folds
    inner = make_pipeline(TabularEncoder(), LogisticRegression(max_iter=500))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inner.fit(folds.train.X, folds.train.y)
        model = CertifiedThreshold(inner, alpha=0.1, random_state=0)
        model.fit(folds.certification.X, folds.certification.y)
        model.source_ = Source.of(folds.train.X, folds.certification.X)
    parts = (folds.certification.X, folds.selection.X)
    same = pd.concat(parts) if isinstance(parts[0], pd.DataFrame) else np.concatenate(parts)
    return model, same, dataset.shifts[SHIFTS[name]].X


def seen(name: str) -> list[Record]:
    """Return how often the shift of a dataset is seen, by rows, and after how many in a stream."""
    model, same, shifted = paper_model(name)
    n = len(model.evidence_)
    records: list[Record] = []
    for size in SIZES:
        if size > min(len(same) - n, len(shifted)):
            continue
        count: dict[str, int] = {}
        for kind, rows, draws in (("same", same, NULL_DRAWS), ("shift", shifted, POWER_DRAWS)):
            count[kind] = 0
            for draw in range(draws):
                random = np.random.default_rng([13, size, draw])
                order = random.permutation(len(same))
                if kind == "same":
                    new = _safe_indexing(same, order[n : n + size])
                else:
                    new = _safe_indexing(rows, random.permutation(len(rows))[:size])
                certified = certified_on(model, _safe_indexing(same, order[:n]))
                count[kind] += source_test(certified, new, level=LEVEL, random_state=draw).changed
        records.append(
            {
                "new_rows": size,
                "seen": round(count["shift"] / POWER_DRAWS, 3),
                "false_alarms": round(count["same"] / NULL_DRAWS, 3),
            }
        )
    delays, where = [], []
    for draw in range(STREAMS):
        random = np.random.default_rng([17, draw])
        new = _safe_indexing(shifted, random.permutation(len(shifted))[:LONGEST])
        monitor = SourceMonitor(model, LEVEL, draw).update(new)
        delays.append(monitor.alarm_row or LONGEST + 1)
        where.append(monitor.where)
    common = max(sorted(set(where)), key=where.count)
    records.append({"new_rows": "stream", "median_delay": int(np.median(delays)), "where": common})
    return records


def enough(draws: int, known: list[Record]) -> bool:
    """Tell whether there are so many draws."""
    return bool(known) and known[0]["draws"] >= draws


def blocks() -> list[Block]:
    """Return the settings."""
    level = [
        Block(
            {"part": "level", "test": test, "compared_with": scores},
            partial(false_alarms, test, fault),
            partial(enough, FAULT_DRAWS if fault else DRAWS),
        )
        for test in ("rows at once", "stream")
        for scores, fault in (("certification rows", False), ("training rows", True))
    ]
    shifts = [
        Block.once({"part": "shift", "dataset": name, "shift": shift}, partial(seen, name))
        for name, shift in SHIFTS.items()
    ]
    return shifts + level


def complaints(records: list[Record]) -> list[str]:
    """Return false alarms above the level by more than chance, and a fault that goes unseen."""
    found = []
    for one in records:
        if one["part"] != "level":
            continue
        allowed = LEVEL + 3 * (LEVEL * (1 - LEVEL) / one["draws"]) ** 0.5
        fault = one["compared_with"] == "training rows"
        if fault == (one["rate"] <= allowed):
            found.append(f"{one['test']}, compared with {one['compared_with']}: {one['rate']}")
    return found


STUDY = Study(
    "guarantees",
    "drift",
    about="Does the source test keep its level, and which of the paper's shifts does it see?",
    cost="an hour; needs the source files",
    blocks=blocks,
    complaints=complaints,
)
