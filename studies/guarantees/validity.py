"""How often `certify` and `certified_threshold` grant what is not true, and how often what is."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import reliablenet as rn
from studies.guarantees.curves import EXCESS, predictions, sources
from studies.runner import Block, Study

Array = NDArray[Any]
DRAWS = 20_000
CHUNK = 2_000_000  # rows in memory
COMPARED = 25  # draws of each setting on which the public functions must say the same
# n, alpha, rho
SETTINGS = (
    (10, 0.05, 0.05),
    (10, 0.3, 0.05),
    (10, 0.3, 0.2),
    (100, 0.05, 0.05),
    (100, 0.3, 0.01),
    (1000, 0.01, 0.05),
    (1000, 0.05, 0.01),
    (1000, 0.05, 0.05),
    (1000, 0.1, 0.2),
    (10_000, 0.001, 0.05),
    (10_000, 0.05, 0.05),
    (10_000, 0.3, 0.01),
)


def certified_thresholds(score: Array, wrong: Array, most: int) -> Array:
    """Return what `certified_threshold` finds in each row of scores, if so many errors are allowed."""
    draws, n = score.shape
    if most < 0:
        return np.full(draws, math.inf)
    if most >= n:
        return np.zeros(draws)
    errors = np.where(wrong, score, 0.0)
    excess = np.partition(errors, n - 1 - most, axis=1)[:, n - 1 - most]
    above = np.where(score > excess[:, None], score, math.inf).min(axis=1)
    middle = excess / 2 + above / 2
    chosen = np.where((excess < middle) & (middle <= above), middle, above)
    return np.where(excess == 0.0, 0.0, chosen)


@cache
def largest_certifiable(n: int, alpha: float, rho: float) -> int:
    """Return the most errors that a certificate allows, by trying every number."""
    allowed = np.asarray(rn.clopper_pearson_upper(np.arange(n + 1), n, rho)) <= alpha
    return int(allowed.sum()) - 1


def run_setting(source: Any, n: int, alpha: float, rho: float, draws: int) -> dict[str, int]:
    """Draw folds from a source and count what is granted there, and what of it is false."""
    random = np.random.default_rng([n, round(alpha * 1e6), round(rho * 1e6), source.classes])
    most = largest_certifiable(n, alpha, rho)
    hard, easy = source.threshold(EXCESS * alpha), source.threshold(alpha / 2)
    # One hair below a score accepts it for certain; two sides of a formula may differ by one bit.
    hard, easy = np.nextafter(hard, 0.0), np.nextafter(easy, 0.0)
    if not source.jcw(hard) > alpha:
        raise ArithmeticError(
            f"{source.name}: the hardest rule must be over its budget of {alpha}."
        )
    counts = dict.fromkeys(
        ("chosen_failures", "chosen_granted", "fixed_failures", "fixed_granted"), 0
    )
    left = draws
    while left > 0:
        part = min(left, max(CHUNK // n, 1))
        score, wrong = source.draw(random, (part, n))
        chosen = certified_thresholds(score, wrong, most)
        errors = [((score >= fixed) & wrong).sum(axis=1) for fixed in (hard, easy)]
        if left == draws:
            _compare(random, source, score, wrong, chosen, (hard, errors[0], most), alpha, rho)
        counts["chosen_granted"] += int((chosen < math.inf).sum())
        counts["chosen_failures"] += int(((chosen < math.inf) & (source.jcw(chosen) > alpha)).sum())
        counts["fixed_failures"] += int((errors[0] <= most).sum())
        counts["fixed_granted"] += int((errors[1] <= most).sum())
        left -= part
    possible = bool(source.jcw(easy) <= alpha)
    if not possible:  # one score for all: no rule of it is within the budget
        del counts["fixed_granted"]
    return counts


def blocks(draws: int = DRAWS, settings: Any = SETTINGS) -> list[Block]:
    """Return every setting on every source where its budget can be broken."""
    return [
        Block.once(
            {"source": source.name, "n": n, "alpha": alpha, "rho": rho, "draws": draws},
            partial(run_setting, source, n, alpha, rho, draws),
        )
        for n, alpha, rho in settings
        for source in sources(alpha)
    ]


def _compare(
    random: np.random.Generator,
    source: Any,
    score: Array,
    wrong: Array,
    chosen: Array,
    fixed: tuple[float, Array, int],
    alpha: float,
    rho: float,
) -> None:
    """Raise if the public functions do not say of the first draws what was computed at once."""
    threshold, errors, most = fixed
    for place in range(min(COMPARED, len(score))):
        proba, y = predictions(random, score[place], wrong[place], source.classes)
        found = rn.certified_threshold(proba, y, alpha, rho)
        given = rn.certify(proba, y, float(threshold), alpha, rho)
        said = (found.threshold, found.certified, given.errors, given.certified)
        counted = int(errors[place])
        expected = (chosen[place], chosen[place] < math.inf, counted, counted <= most)
        if said != expected:
            raise ArithmeticError(f"{source.name}, draw {place}: {said} is not {expected}.")


STUDY = Study(
    "guarantees",
    "validity",
    about="How often do `certify` and `certified_threshold` grant what is not true?",
    cost="half an hour",
    blocks=blocks,
    parallel=True,
)
