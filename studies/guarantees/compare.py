"""How often the certificate of `compare(...).best()` is false, and what it hands out.

Scores are fixed, nothing is trained: the methods of a source differ in how well they rank rows, and
JCW and throughput of each are known in closed form. The same draws are decided in four ways: as in 0.1
(the largest throughput at rho, certified again at rho / M), at rho / M from the start, as now (half of
rho for the favourite of the selection fold), and by the fault: the winner with its single certificate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import reliablenet as rn
from reliablenet.tables import Fold, Folds
from studies.guarantees.validity import certified_thresholds, largest_certifiable
from studies.runner import Block, Study

Array = NDArray[Any]
DRAWS = 20_000
ROWS, SELECTION_ROWS = 300, 150
ALPHA, RHO = 0.05, 0.05
CHUNK = 2_000_000  # rows of all methods in memory
COMPARED = 10  # draws of each source on which `compare` must say the same
SLOPE = 0.6  # of the error rate, from the surest row to the least sure
NEW, FAULT = "half for the favourite", "single certificate"
WAYS = ("as in 0.1", "each at rho / M", NEW, FAULT)


@dataclass(frozen=True)
class Apart:
    """Methods that have nothing in common: wrong with probability slope * (1 - score)."""

    kind: str
    slopes: tuple[float, ...]
    copies: int = 0  # further methods that rank rows as the first does

    @property
    def name(self) -> str:
        twins = f", {self.copies + 1} of one ranking" if self.copies else ""
        return f"independent, {self.kind}{twins}"

    @property
    def methods(self) -> int:
        return len(self.slopes) + self.copies

    def draw(self, random: np.random.Generator, draws: int, n: int) -> tuple[Array, Array]:
        score = random.random((draws, len(self.slopes), n))
        wrong = random.random(score.shape) < np.array(self.slopes)[:, None] * (1 - score)
        return score, wrong

    def jcw(self, method: Array, coverage: Array) -> Array:
        return np.array(self.slopes)[method] * coverage**2 / 2


@dataclass(frozen=True)
class Alike:
    """Methods that predict the same; each knows the difficulty of some rows, and guesses for others."""

    kind: str
    shares: tuple[float, ...]
    copies: int = 0

    @property
    def name(self) -> str:
        return f"alike, {self.kind}"

    @property
    def methods(self) -> int:
        return len(self.shares)

    def draw(self, random: np.random.Generator, draws: int, n: int) -> tuple[Array, Array]:
        ease = random.random((draws, 1, n))
        shape = (draws, len(self.shares), n)
        knows = random.random(shape) < np.array(self.shares)[:, None]
        wrong = random.random(ease.shape) < SLOPE * (1 - ease)
        return np.where(knows, ease, random.random(shape)), np.broadcast_to(wrong, shape)

    def jcw(self, method: Array, coverage: Array) -> Array:
        known = np.array(self.shares)[method]
        return SLOPE / 2 * (known * coverage**2 + (1 - known) * coverage)


SOURCES = (
    Apart("equal", (0.7,) * 3),
    Apart("different", (0.5, 0.7, 0.9)),
    Alike("equal", (0.8,) * 3),
    Alike("different", (0.95, 0.8, 0.6)),
    Apart("equal", (0.7,) * 10),
    Apart("different", tuple(np.linspace(0.5, 0.9, 10).round(3).tolist())),
    Alike("equal", (0.8,) * 10),
    Alike("different", tuple(np.linspace(0.95, 0.6, 10).round(3).tolist())),
    Apart("different", tuple(np.linspace(0.5, 0.9, 7).round(3).tolist()), copies=3),
)


@dataclass(frozen=True)
class Judged:
    """Draws of the certification and the selection fold, as every method sees them."""

    score: Array  # (draws, methods, rows)
    wrong: Array
    selection_score: Array
    selection_wrong: Array
    tried: int

    def threshold(self, rho: float) -> Array:
        """Return the threshold that is certified at a level, for each draw and method."""
        most = largest_certifiable(self.score.shape[2], ALPHA, rho)
        return thresholds(self.score, self.wrong, most)

    def right(self, threshold: Array) -> Array:
        return ((self.score >= threshold[:, :, None]) & ~self.wrong).sum(axis=2)

    @cached_property
    def favourite(self) -> Array:
        """Return what acts rightly on most selection rows where observed JCW is within alpha."""
        n = self.selection_score.shape[2]
        found = thresholds(self.selection_score, self.selection_wrong, math.floor(ALPHA * n))
        acted = self.selection_score >= found[:, :, None]
        return (acted & ~self.selection_wrong).sum(axis=2).argmax(axis=1)

    @cached_property
    def single(self) -> tuple[Array, Array]:
        threshold = self.threshold(RHO)
        return threshold, self.right(threshold)

    def decide(self, way: str) -> tuple[Array, Array]:
        """Return the method and the threshold that a way hands out in each draw."""
        draws, methods, n = self.score.shape
        line = np.arange(draws)
        if way in (WAYS[0], FAULT):
            winner = self.single[1].argmax(axis=1)
            threshold = self.single[0] if way == FAULT else self.threshold(RHO / self.tried)
            return winner, threshold[line, winner]
        if way == NEW:
            # The favourite gets half, or what of it affords as many errors; the rest is shared.
            most, rest = divisors(methods, n)
            preferred = np.arange(methods) == self.favourite[:, None]
            threshold = np.where(preferred, self.threshold(RHO / most), self.threshold(RHO / rest))
        else:
            threshold = self.threshold(RHO / self.tried)
        # Where two are equal, the one with more at rho stands first in the comparison.
        winner = (self.right(threshold) * (n + 1) + self.single[1]).argmax(axis=1)
        return winner, threshold[line, winner]


def divisors(methods: int, n: int) -> tuple[int, int]:
    """Return what rho is divided by for the favourite and for the others, by trying."""
    most = 2
    while largest_certifiable(n, ALPHA, RHO / (most + 1)) == largest_certifiable(n, ALPHA, RHO / 2):
        most += 1
    rest = 1
    while 1 / most + (methods - 1) / rest > 1 + 1e-12:
        rest += 1
    return most, rest


def thresholds(score: Array, wrong: Array, most: int) -> Array:
    """Return what `certified_thresholds` does, for many methods at once."""
    flat = certified_thresholds(
        score.reshape(-1, score.shape[2]), wrong.reshape(-1, score.shape[2]), most
    )
    return flat.reshape(score.shape[:2])


def run_source(source: Any, draws: int) -> list[dict[str, Any]]:
    """Draw folds from a source, decide in every way, and count false certificates."""
    random = np.random.default_rng([source.methods, len(source.name)])
    counts = {way: {"failures": 0, "granted": 0, "throughput": 0.0} for way in WAYS}
    left = draws
    while left > 0:
        part = min(left, max(CHUNK // (source.methods * ROWS), 1))
        score, wrong = source.draw(random, part, ROWS)
        selection_score, selection_wrong = source.draw(random, part, SELECTION_ROWS)
        judged = Judged(score, wrong, selection_score, selection_wrong, source.methods)
        if left == draws:
            compare_with_public(random, source, judged)
        for way, found in counts.items():
            winner, threshold = judged.decide(way)
            granted = threshold < math.inf
            coverage = 1 - np.minimum(threshold, 1.0)
            jcw = source.jcw(winner, coverage)
            found["granted"] += int(granted.sum())
            found["failures"] += int((granted & (jcw > ALPHA)).sum())
            found["throughput"] += float((coverage - jcw).sum())
        left -= part
    return [
        {"way": way} | found | {"throughput": round(found["throughput"] / draws, 5)}
        for way, found in counts.items()
    ]


def blocks(draws: int = DRAWS, sources: Any = SOURCES) -> list[Block]:
    """Return every source; each of its records is of one way to decide."""
    fixed = {"n": ROWS, "alpha": ALPHA, "rho": RHO, "draws": draws}
    return [
        Block.once(
            {"source": source.name, "methods": source.methods} | fixed,
            partial(run_source, source, draws),
        )
        for source in sources
    ]


class Reader:
    """A fitted classifier that reads its confidence and its label from two columns of the rows."""

    classes_ = np.array([0, 1])

    def __init__(self, column: int, power: int = 1) -> None:
        self.column = column
        self.power = power

    def predict_proba(self, X: Array) -> Array:
        top = 0.5 + X[:, self.column] ** self.power / 2
        label = X[:, self.column + 1] == 1
        return np.column_stack([np.where(label, 1 - top, top), np.where(label, top, 1 - top)])


def compare_with_public(random: np.random.Generator, source: Any, judged: Judged) -> None:
    """Raise if `compare` does not say of the first draws what was computed for all at once."""
    methods = {str(number): Reader(2 * number) for number in range(judged.score.shape[1])}
    methods |= {f"copy {number}": Reader(0, power=number + 2) for number in range(source.copies)}
    winners, found = judged.decide(NEW)
    former = judged.decide(WAYS[0])[0]
    for place in range(min(COMPARED, len(winners))):
        chosen = fold_of(random, judged.selection_score[place], judged.selection_wrong[place])
        certified = fold_of(random, judged.score[place], judged.wrong[place])
        comparison = rn.compare(
            folds=Folds(chosen, chosen, certified),
            methods=methods,
            alpha=ALPHA,
            rho=RHO,
            resamples=1,
        )
        best = comparison.best()
        winner, threshold = int(winners[place]), found[place]
        accepted = judged.score[place, winner] >= threshold
        expected = (
            str(winner) if threshold < math.inf else "",
            int(accepted.sum()),
            int((accepted & judged.wrong[place, winner]).sum()),
            str(judged.favourite[place]),
            judged.score.shape[1],
            str(former[place]),
        )
        given = best.certificate
        said = (
            best.name,
            0 if given is None else given.accepted,
            0 if given is None else given.errors,
            comparison.choice.favourite,
            best.chosen_among,
            next(iter(comparison.results)),
        )
        if said != expected:
            raise ArithmeticError(f"{source.name}, draw {place}: {said} is not {expected}.")


def fold_of(random: np.random.Generator, score: Array, wrong: Array) -> Fold:
    """Return rows from which `Reader` reads these scores, and is wrong where it should be."""
    y = np.asarray(random.integers(2, size=score.shape[1]))
    columns = [column for s, w in zip(score, wrong, strict=True) for column in (s, y ^ w)]
    return Fold(np.column_stack(columns), y)


STUDY = Study(
    "guarantees",
    "compare",
    about="How often is the certificate of `compare(...).best()` false?",
    cost="ten minutes",
    blocks=blocks,
    parallel=True,
)
