"""Does the monitor keep its level, and how soon does it see a breach? Streams of known truth, and MAPIE's beside.

A row is accepted with probability 0.8 and wrong so often that JCW is what a setting says. Wrong rows have a
lower confidence than right ones, which matters to an auditor who looks at doubtful rows first. Each setting is run with
the class `Monitor` itself, MAPIE's monitor at the same level. Faults are ways of feeding it that void its promise; the false alarms they raise are counted too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reliablenet.monitor import Monitor
from studies.runner import Block, Study

Array = NDArray[Any]
LEVEL, COVERAGE, STREAMS, ROWS = 0.05, 0.8, 2000, 20_000
LATE_CHANGE = 10_000


class Rows(NamedTuple):
    """A stream: who was accepted, who is wrong, and a confidence that tells something of that."""

    accepted: Array
    wrong: Array
    confidence: Array


def draw(random: np.random.Generator, rows: int, jcw: Array | float) -> Rows:
    """Return a stream whose row t is accepted and wrong with probability jcw[t]."""
    accepted = random.random(rows) < COVERAGE
    wrong = random.random(rows) < np.asarray(jcw) / COVERAGE
    confidence = random.random(rows) ** np.where(wrong, 2.0, 0.5)
    return Rows(accepted, wrong, confidence)


def every_label(random: np.random.Generator, rows: Rows, alpha: float) -> Monitor:
    """Give every outcome at once."""
    monitor = Monitor(alpha, LEVEL)
    monitor.update(rows.accepted, rows.wrong)
    return monitor


def coin(share: float, random: np.random.Generator, rows: Rows, alpha: float) -> Monitor:
    """Audit by a coin that knows nothing of the row."""
    monitor = Monitor(alpha, LEVEL, audit=share)
    monitor.update(rows.accepted, rows.wrong, random.random(len(rows.wrong)) < share)
    return monitor


def late(mistakes: bool, random: np.random.Generator, rows: Rows, alpha: float) -> Monitor:
    """Give some outcomes 2,000 to 6,000 rows late, because of what they are: the mistakes, or what was right."""
    monitor, step = Monitor(alpha, LEVEL), 2000
    due = np.zeros(len(rows.wrong) // step + 4, int)
    for place, start in enumerate(range(0, len(rows.wrong), step)):
        part = slice(start, start + step)
        pending = (rows.wrong[part] == mistakes) & rows.accepted[part]
        monitor.update(rows.accepted[part], rows.wrong[part], pending=pending)
        due[place + 1 : place + 4] += np.bincount(random.integers(0, 3, pending.sum()), minlength=3)
        monitor.resolve(np.full(due[place], mistakes))
    return monitor


def doubtful(weighted: bool, random: np.random.Generator, rows: Rows, alpha: float) -> Monitor:
    """Audit doubtful rows four times as often; with the weights that belong to it, or without."""
    share = np.where(rows.confidence < 0.5, 0.4, 0.1)
    audited = random.random(len(share)) < share
    least = 0.1 if weighted else float(share.mean())
    monitor = Monitor(alpha, LEVEL, audit=least)
    known = share if weighted else None
    monitor.update(rows.accepted, rows.wrong, audited, probability=known)
    return monitor


def accepted_alone(random: np.random.Generator, rows: Rows, alpha: float) -> Monitor:
    """Leave deferred rows out, though the budget is of all rows."""
    monitor = Monitor(alpha, LEVEL)
    monitor.update(rows.accepted[rows.accepted], rows.wrong[rows.accepted])
    return monitor


def mapie(random: np.random.Generator, rows: Rows, alpha: float) -> int | None:
    """Return the row at which MAPIE's monitor raises its alarm, at the same level."""
    from mapie.exchangeability_testing import RiskMonitoring

    peer = RiskMonitoring(risk="accuracy", test_level=2 * LEVEL, threshold=alpha, warn=False)
    error = (rows.accepted & rows.wrong).astype(int)
    with warnings.catch_warnings(action="ignore"):
        peer.update(np.zeros(len(error), int), error)
    over = np.flatnonzero(peer.online_risk_lower_bound_sequence_history > alpha)
    return int(over[0]) + 1 if len(over) else None


WAYS: dict[str, Callable[..., Any]] = {
    "every label": every_label,
    "coin 0.3": partial(coin, 0.3),
    "coin 0.1": partial(coin, 0.1),
    "right ones late": partial(late, False),
    "mistakes late": partial(late, True),
    "doubtful rows, weighted": partial(doubtful, True),
    "doubtful rows, unweighted": partial(doubtful, False),
    "deferred rows left out": accepted_alone,
    "mapie": mapie,
}
FAULTS = ("doubtful rows, unweighted", "deferred rows left out")


def path(alpha: float, truth: str, rows: int) -> Array:
    """Return JCW of each row: constant, or changed after a long good time."""
    if truth == "late change":
        return np.where(np.arange(rows) < LATE_CHANGE, alpha / 2, 2 * alpha)
    return np.full(rows, float(truth.split()[0]) * alpha)


def run_setting(way: str, alpha: float, truth: str, streams: int, rows: int) -> dict[str, Any]:
    """Count alarms and the row of each; with every label also how often the bound ever failed."""
    jcw = path(alpha, truth, rows)
    alarms: list[int] = []
    missed = 0
    for stream in range(streams):
        random = np.random.default_rng([stream, round(1 / alpha), len(truth)])
        found = WAYS[way](random, draw(random, rows, jcw), alpha)
        row = found if way == "mapie" else next(iter(found.parts.values())).alarm_row
        if row is not None:
            alarms.append(int(row))
        if way != "mapie" and way not in FAULTS:
            (part,) = found.parts.values()
            missed += part.log_evidence_below(float(jcw.mean())) >= -np.log(LEVEL)
    before = sum(row <= LATE_CHANGE for row in alarms) if truth == "late change" else None
    start = LATE_CHANGE if truth == "late change" else 0
    waits = np.full(streams, np.inf)
    seen = [row - start for row in alarms if row > start]
    waits[: len(seen)] = seen
    quantiles = np.quantile(waits, [0.1, 0.5, 0.9], method="inverted_cdf")
    return {
        "alarms": len(alarms),
        "alarms_before": before,
        "bound_failed": None if way == "mapie" or way in FAULTS else int(missed),
        "delay": [None if np.isinf(q) else int(q) for q in quantiles],
    }


def settings(streams: int = STREAMS, rows: int = ROWS) -> list[tuple[str, float, str, int, int]]:
    """Return way, alpha, truth, streams and rows of each block; MAPIE's takes seconds a stream."""
    part = streams // 10
    kept = [
        (way, 0.05, "1 x alpha", streams, rows) for way in WAYS if way not in (*FAULTS, "mapie")
    ]
    return [
        ("every label", 0.05, "2 x alpha", streams, 3000),
        *((way, 0.05, "1 x alpha", part, rows) for way in FAULTS),
        ("mapie", 0.05, "2 x alpha", part // 4, 2500),
        ("every label", 0.05, "late change", part, rows),
        ("coin 0.3", 0.05, "2 x alpha", part, 4000),
        ("coin 0.1", 0.05, "2 x alpha", part, 9000),
        ("every label", 0.05, "1.5 x alpha", part, 6000),
        *kept,
        ("every label", 0.01, "1 x alpha", streams, rows),
    ]


def blocks(chosen: Sequence[tuple[str, float, str, int, int]] | None = None) -> list[Block]:
    """Return a block for each setting."""
    return [
        Block.once(
            {"way": way, "alpha": alpha, "truth": truth, "level": LEVEL}
            | {"streams": streams, "rows": rows},
            partial(run_setting, way, alpha, truth, streams, rows),
        )
        for way, alpha, truth, streams, rows in (settings() if chosen is None else chosen)
    ]


STUDY = Study(
    "guarantees",
    "monitor",
    about="Does the monitor keep its level, and how soon does it see a breach?",
    cost="half an hour",
    blocks=blocks,
)
