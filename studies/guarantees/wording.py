"""How often `best` calls one of two equal methods "clearly" or "probably" better, and a better one so.

Two methods are equal here if their expected certified throughput is: they may rank rows independently,
alike, with ties, or well in different places. The one that is ahead on the certification fold is the
winner, as in `best`; what is said of it is counted. The rule that was used before (95 % and 80 % of the
resamples) is counted on the same draws: it is the fault that this simulation must show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reliablenet.certificate import largest_certifiable_errors
from reliablenet.certificate.scored import ScoredRows
from reliablenet.metrics.paired import CLEAR, LIKELY, hold_contest
from studies.runner import Block, Study

Array = NDArray[Any]
Rows = tuple[ScoredRows, ScoredRows]
DRAWS = 1000
POWER_DRAWS = 300
RHO = 0.05
LEVEL = RHO / 2  # two methods have half each
CLEARLY, SAID = 0.05, 0.15  # what is promised of two equal methods
FORMER = (0.95, 0.8)
SETTINGS = tuple((n, alpha) for n in (150, 500, 3000) for alpha in (0.05, 0.1))
SLOPE = 0.6  # of the error rate, from the surest row to the least sure


@dataclass(frozen=True)
class Pair:
    """Two methods on the same rows; the first is at least as good as the second."""

    name: str
    equal: bool
    draw: Callable[[np.random.Generator, int], Rows]


def _rows(place: Array, wrong: Array) -> ScoredRows:
    """Return rows by their place from the surest, in (0, 1), to the least sure."""
    return ScoredRows(1.0 - place, wrong, 0.0)


def apart(slopes: tuple[float, float], powers: tuple[float, float] = (1.0, 1.0)) -> Any:
    """Return methods that have nothing in common; the error rate is slope * place ** power."""

    def draw(random: np.random.Generator, n: int) -> Rows:
        first, second = (
            _rows(place := random.random(n), random.random(n) < slope * place**power)
            for slope, power in zip(slopes, powers, strict=True)
        )
        return first, second

    return draw


def alike(noises: tuple[float, float]) -> Any:
    """Return methods that predict the same and see the same difficulty, each with noise of its own."""

    def draw(random: np.random.Generator, n: int) -> Rows:
        difficulty = random.normal(size=n)
        wrong = random.random(n) < SLOPE * ndtr(difficulty)
        first, second = (
            _rows(ndtr((difficulty + noise * random.normal(size=n)) / np.hypot(1.0, noise)), wrong)
            for noise in noises
        )
        return first, second

    return draw


def tied(random: np.random.Generator, n: int) -> Rows:
    """Return methods that have nothing in common and know six scores."""
    first, second = (
        replace(rows, score=np.ceil(6 * rows.score) / 6)
        for rows in apart((SLOPE, SLOPE))(random, n)
    )
    return first, second


def shapes(n: int, alpha: float) -> Any:
    """Return a steep and a flat error rate that are worth the same on n rows."""
    aim = expected_throughput(SLOPE, 1.0, n, alpha)
    low, high = 0.01, 100.0
    for _ in range(20):
        slope = float(np.sqrt(low * high))
        if expected_throughput(slope, 4.0, n, alpha) > aim:
            low = slope
        else:
            high = slope
    return apart((SLOPE, slope), (1.0, 4.0))


def expected_throughput(slope: float, power: float, n: int, alpha: float) -> float:
    """Return the mean certified throughput of a method in many draws, the same for every slope."""
    random = np.random.default_rng(0)
    most = largest_certifiable_errors(n, alpha, LEVEL)
    place = np.sort(random.random((600_000 // n, n)), axis=1)
    wrong = random.random(place.shape) < slope * place**power
    return float(((np.cumsum(wrong, axis=1) <= most) & ~wrong).mean())


def pairs(n: int, alpha: float) -> list[Pair]:
    """Return equal methods, and two pairs of which the first is better."""
    return [
        Pair("independent", True, apart((SLOPE, SLOPE))),
        Pair("alike", True, alike((0.4, 0.4))),
        Pair("six scores", True, tied),
        Pair("other shapes", True, shapes(n, alpha)),
        Pair("better, independent", False, apart((SLOPE, 2 * SLOPE))),
        Pair("better, alike", False, alike((0.2, 0.8))),
    ]


def run_pair(pair: Pair, n: int, alpha: float, draws: int) -> dict[str, int]:
    """Count what is said of the winner of each draw, by the rule and by the one before it."""
    random = np.random.default_rng([n, round(alpha * 1e6)])
    sureness = np.zeros(draws)  # that the first is better; 0 where it is not the winner
    for number in range(draws):
        rules = dict(zip(("first", "second"), pair.draw(random, n), strict=True))
        contest = hold_contest("first", rules, alpha, LEVEL)
        first, second = contest.throughput.values()
        if pair.equal and second > first:
            sureness[number] = replace(contest, winner="second").sureness("first")
        elif first >= second:
            sureness[number] = contest.sureness("second")
    levels = {
        "clearly": CLEAR,
        "said": LIKELY,
        "former_clearly": FORMER[0],
        "former_said": FORMER[1],
    }
    return {name: int((sureness >= share).sum()) for name, share in levels.items()}


def blocks(
    draws: int = DRAWS, power_draws: int = POWER_DRAWS, settings: Any = SETTINGS
) -> list[Block]:
    """Return every pair in every setting."""
    return [
        Block.once(
            {"pair": pair.name, "equal": pair.equal, "n": n, "alpha": alpha, "draws": times},
            partial(run_pair, pair, n, alpha, times),
        )
        for n, alpha in settings
        for pair in pairs(n, alpha)
        for times in [draws if pair.equal else power_draws]
    ]


STUDY = Study(
    "guarantees",
    "wording",
    about="How often is one of two equal methods called better?",
    cost="half an hour",
    blocks=blocks,
    parallel=True,
)
