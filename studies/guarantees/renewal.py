"""May one look at fresh rows every month until a certificate is granted? Two ways, of which one may.

Scores are uniform, and a row with the score s is wrong with probability 2 b (1 - s), so that a threshold t has
JCW(t) = b (1 - t)^2. The lowest threshold within alpha is known. A look every 50 rows, up to 5,000; a
certificate at any look is kept, and false if its JCW exceeds alpha.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate.anytime import log_evidence_below
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.sequential import lowest_certified, threshold_grid
from studies.guarantees.curves import EXCESS
from studies.runner import Block, Study

Array = NDArray[Any]
ALPHA, RHO, ROWS, STEP, STREAMS = 0.05, 0.05, 5000, 50, 1000
GRID = threshold_grid(np.linspace(0.0, 1.0, 2001)[:-1])
# JCW of acting on every row, as a multiple of alpha: within it, or such that a threshold of the grid, which accepts
# all, three quarters or half of the rows, exceeds it by a thousandth.
FACTORS = (0.5, EXCESS, EXCESS / 0.75**2, EXCESS / 0.5**2)


def counts(random: np.random.Generator, jcw: float) -> Array:
    """Return the errors at each look and threshold."""
    score = random.random(ROWS)
    wrong = random.random(ROWS) < np.minimum(2 * jcw * (1 - score), 1.0)
    hits = wrong[:, None] & (score[:, None] >= GRID)
    return np.cumsum(hits, axis=0)[STEP - 1 :: STEP]


def sequential(errors: Array, jcw: float) -> tuple[float | None, bool, int | None]:
    """Look each time, certify by evidence; return the first coverage, whether ever false, and when all is certified."""
    looks = np.arange(STEP, ROWS + 1, STEP)
    truth = jcw * (1 - GRID) ** 2
    false, first, every = False, None, None
    for look, row in zip(looks, errors, strict=True):
        place = lowest_certified(row, int(look), ALPHA, RHO)
        if place >= 0 and first is None:
            first = float(1 - GRID[place])
        false |= place >= 0 and bool(truth[place] > ALPHA)
        if place == len(GRID) - 1 and every is None:
            every = int(look)
    return first, false, every


@cache
def most_errors() -> Array:
    """Return how many errors the plan for one look allows, at each look."""
    looks = range(STEP, ROWS + 1, STEP)
    return np.array([largest_certifiable_errors(look, ALPHA, RHO) for look in looks])


def fixed_again(errors: Array, jcw: float) -> tuple[float | None, bool, int | None]:
    """Look each time by the plan for one look: the fault."""
    looks = np.arange(STEP, ROWS + 1, STEP)
    truth = jcw * (1 - GRID) ** 2
    granted = errors <= most_errors()[:, None]
    places = np.where(granted.all(axis=1), len(GRID), granted.argmin(axis=1)) - 1
    first = next((float(1 - GRID[p]) for p in places if p >= 0), None)
    every = next((int(n) for n, p in zip(looks, places, strict=True) if p == len(GRID) - 1), None)
    return first, bool(np.any((places >= 0) & (truth[places] > ALPHA))), every


WAYS = {"evidence": sequential, "fixed plan, again and again": fixed_again}


def run_setting(way: str, factor: float, streams: int) -> dict[str, Any]:
    """Count streams with a false certificate at any look."""
    jcw = factor * ALPHA
    found = [
        WAYS[way](counts(np.random.default_rng([stream, round(1000 * factor)]), jcw), jcw)
        for stream in range(streams)
    ]
    times = np.array([np.inf if every is None else every for _, _, every in found])
    quantiles = np.quantile(times, [0.5, 0.9], method="inverted_cdf")
    return {
        "false": sum(false for _, false, _ in found),
        "granted": sum(first is not None for first, _, _ in found),
        "rows_until_all": [None if np.isinf(q) else int(q) for q in quantiles],
    }


def run_edge(streams: int) -> dict[str, Any]:
    """Count false certificates of a rule whose JCW is alpha, looked at after every row."""
    looks = np.arange(1, 10 * ROWS + 1)
    false = 0
    for stream in range(streams):
        random = np.random.default_rng([stream, 77])
        wrong = np.flatnonzero(random.random(len(looks)) < ALPHA)
        # evidence is highest right before a wrong row, and at the end
        ends = np.append(wrong, len(looks))
        values = np.asarray(log_evidence_below(np.arange(len(ends)), ends, ALPHA))
        false += bool((values >= -np.log(RHO)).any())
    return {"false": false, "granted": false, "rows_until_all": [None, None]}


def blocks(streams: int = STREAMS) -> list[Block]:
    """Return every way on every source, and one rule at the edge."""
    fixed = {"alpha": ALPHA, "rho": RHO, "rows": ROWS, "look_every": STEP, "streams": streams}
    made = [
        Block.once(
            {"way": way, "jcw_of_all": factor * ALPHA} | fixed,
            partial(run_setting, way, factor, streams),
        )
        for way in WAYS
        for factor in FACTORS
    ]
    edge = {"way": "evidence, one threshold", "jcw_of_all": ALPHA} | fixed
    edge |= {"rows": 10 * ROWS, "look_every": 1}
    return [*made, Block.once(edge, partial(run_edge, streams))]


STUDY = Study(
    "guarantees",
    "renewal",
    about="May one look every month until a certificate is granted?",
    cost="ten minutes",
    blocks=blocks,
)
