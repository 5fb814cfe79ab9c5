"""How to count rows that hang together: four ways, their false certificates and their true ones.

153 persons have 1 to 19 rows each. A person errs with a rate of their own, drawn from a beta
distribution: with a likeness of 0 all have the same, with 1 all rows of a person are right or all wrong.
The truth is the chance that a random row of a random new person is wrong. Half of the sources let
persons with many rows err more (``sizes`` is "tied"), which no rate of likeness tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.guarantees.curves import EXCESS
from studies.guarantees.validity import largest_certifiable
from studies.runner import Block, Study

Array = NDArray[Any]
ALPHA, RHO, PERSONS, MOST_ROWS = 0.05, 0.05, 153, 19
DRAWS, CHUNK = 20_000, 1000
LIKENESS = (0.0, 0.1, 0.5, 1.0)


def draw(
    random: np.random.Generator, draws: int, jcw: float, likeness: float, tied: bool
) -> tuple[Array, Array]:
    """Return rows and errors of each person in each draw."""
    shape = (draws, PERSONS)
    size = random.integers(1, MOST_ROWS + 1, shape)
    mean = jcw * size / ((1 + MOST_ROWS) / 2) if tied else np.full(shape, jcw)
    if likeness == 0.0:
        rate = mean
    elif likeness == 1.0:
        rate = (random.random(shape) < mean).astype(float)
    else:
        weight = (1 - likeness) / likeness
        rate = random.beta(mean * weight, (1 - mean) * weight)
    return size, random.binomial(size, rate)


def every_row(random: np.random.Generator, size: Array, errors: Array) -> Array:
    """Count all rows, as if they were independent."""
    limits = [largest_certifiable(n, ALPHA, RHO) for n in size.sum(axis=1).tolist()]
    return errors.sum(axis=1) <= np.array(limits)


def one_row(random: np.random.Generator, size: Array, errors: Array) -> Array:
    """Count one row of each person, drawn at random: what ``groups=`` does."""
    wrong = random.random(size.shape) * size < errors
    return wrong.sum(axis=1) <= largest_certifiable(PERSONS, ALPHA, RHO)


def any_row(random: np.random.Generator, size: Array, errors: Array) -> Array:
    """Count persons with an error anywhere."""
    return (errors > 0).sum(axis=1) <= largest_certifiable(PERSONS, ALPHA, RHO)


def bet(random: np.random.Generator, size: Array, errors: Array) -> Array:
    """Bet on the mean of persons' shares of errors (Waudby-Smith and Ramdas, 2024)."""
    share = errors / size
    seen = np.cumsum(share, axis=1) + 0.5 * ALPHA
    number = np.arange(1, PERSONS + 1)
    mean = np.concatenate([np.full((len(size), 1), 0.5 * ALPHA), seen / (number + 1)], 1)[:, :-1]
    spread = np.cumsum((share - mean) ** 2, axis=1) + ALPHA * (1 - ALPHA)
    before = np.concatenate(
        [np.full((len(size), 1), ALPHA * (1 - ALPHA)), spread / (number + 1)], 1
    )[:, :-1]
    stake = np.minimum(np.sqrt(2 * np.log(1 / RHO) / (PERSONS * before)), 0.9 / (1 - ALPHA))
    capital = np.cumsum(np.log1p(stake * (ALPHA - share)), axis=1)
    return capital.max(axis=1) >= np.log(1 / RHO)


WAYS = {
    "every row counts": every_row,
    "one row a person": one_row,
    "any error of a person": any_row,
    "bets on persons' shares": bet,
}


def run_setting(likeness: float, tied: bool, draws: int) -> list[dict[str, Any]]:
    """Count certificates where JCW is over the budget, and where it is a fifth of it."""
    counts = {way: {"failures": 0, "granted": 0} for way in WAYS}
    random = np.random.default_rng([round(likeness * 100), tied])
    for start in range(0, draws, CHUNK):
        part = min(CHUNK, draws - start)
        for name, jcw in (("failures", EXCESS * ALPHA), ("granted", ALPHA / 5)):
            size, errors = draw(random, part, jcw, likeness, tied)
            for way, decide in WAYS.items():
                counts[way][name] += int(decide(random, size, errors).sum())
    return [{"way": way} | found for way, found in counts.items()]


def blocks(draws: int = DRAWS, likenesses: Sequence[float] = LIKENESS) -> list[Block]:
    """Return every source; each of its records is of one way of counting."""
    fixed = {"persons": PERSONS, "most_rows": MOST_ROWS, "alpha": ALPHA, "rho": RHO, "draws": draws}
    return [
        Block.once(
            {"likeness": likeness, "sizes": "tied" if tied else "free"} | fixed,
            partial(run_setting, likeness, tied, draws),
        )
        for tied in (False, True)
        for likeness in likenesses
    ]


STUDY = Study(
    "guarantees",
    "groups",
    about="How should rows that hang together be counted?",
    cost="ten minutes",
    blocks=blocks,
    parallel=True,
)
