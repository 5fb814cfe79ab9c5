"""Paths: a nested family of rules, fixed before the certification fold is opened, as one score.

Each row has a place on the path, and the rules accept the rows at or above a place. A certificate
may then choose the place on the certification fold, as it chooses a threshold, at no cost. The path
decides what such a rule is worth, never whether its certificate is valid.

Without a selection fold the place is the score itself. With one, each predicted class gets its own
scale, so that classes in which the same score means different risks get different thresholds: the place
falls with the expected spending of budget at this score, an isotonic regression, so that the budget goes
where it buys most rows. That is the best order there is (Neyman-Pearson) if the regression is right.
"""

from __future__ import annotations

import math
import struct
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

SLOPE = 1e-6  # lets a higher score count where the fitted scale is flat
SHRINK = 30.0  # rows of the whole fold that each class is fitted with, so that few rows say little
POINTS = 64  # at which those rows stand
LEAST_ROWS = 50  # of a selection fold; fewer teach nothing about classes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path:
    """Places of rows on a path, for each predicted class a rising function of the score.

    Attributes
    ----------
    scales : dict
        For each predicted class, scores in rising order and the place of each; empty where the place is
        the score itself. A class that is not there has none: its rows come last.
    lowest : float
        A score at which every row is accepted.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.path import Path
    >>> path = Path({"cat": (np.array([0.5, 1.0]), np.array([-1.0, 0.0]))}, lowest=0.0)
    >>> path.places(np.array([0.75, 1.0]), np.array(["cat", "cat"])).round(3)
    array([-0.5,  0. ])
    >>> round(path.thresholds(-0.5)["cat"], 3)
    0.75
    """

    scales: dict[Any, tuple[Floats, Floats]]
    lowest: float

    def places(self, score: Floats, predicted: NDArray[Any] | None) -> Floats:
        """Return the place of each row."""
        if not self.scales:
            return score
        found = np.full(len(score), -np.inf)
        for label, scale in self.scales.items():
            own = np.asarray(predicted) == label
            found[own] = _place(score[own], scale)
        return found

    def thresholds(self, place: float) -> dict[Any, float]:
        """Return the smallest score of each predicted class whose place is at or above this one."""
        return {label: _smallest(scale, place, self.lowest) for label, scale in self.scales.items()}


def learn_path(score: Floats, predicted: NDArray[Any], spending: Floats, lowest: float) -> Path:
    """Learn a path on which the rows that spend least of the budgets come first.

    Parameters
    ----------
    score, predicted, spending : arrays of shape (n,)
        Rows of the selection fold; what acting on each would spend, at least 0.
    lowest : float

    Returns
    -------
    Path
    """
    labels = _distinct(predicted)
    if len(labels) < 2 or len(score) < LEAST_ROWS or not spending.any():
        return Path({}, lowest)
    spending = spending / spending.max()
    pooled = _falling(score, spending, np.ones(len(score)))
    points = np.quantile(score, np.linspace(0.0, 1.0, POINTS))
    prior = np.interp(points, *pooled)
    scales = {}
    for label in labels:
        own = predicted == label
        x = np.concatenate([score[own], points])
        y = np.concatenate([spending[own], prior])
        weight = np.concatenate([np.ones(int(own.sum())), np.full(POINTS, SHRINK / POINTS)])
        knots, level = _falling(x, y, weight)
        scales[label] = (knots, -level)
    return Path(scales, lowest)


def _place(score: Floats, scale: tuple[Floats, Floats]) -> Floats:
    bounded = score / (1.0 + np.abs(score))
    return np.asarray(np.interp(score, *scale) + SLOPE * bounded)


def _falling(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return knots of the best falling fit of y on x: the middle and the level of each flat piece."""
    x, whose = np.unique(x, return_inverse=True)  # rows of one score have one place, in any order
    mass, total = np.bincount(whose, weight), np.bincount(whose, weight * y)
    fit = isotonic_regression(total / mass, weights=mass, increasing=False)
    starts = fit.blocks[:-1]
    middle = np.add.reduceat(mass * x, starts) / np.add.reduceat(mass, starts)
    return middle, np.asarray(fit.x)[starts]


def _distinct(labels: NDArray[Any]) -> list[Any]:
    return list(dict.fromkeys(labels.tolist()))


def _smallest(scale: tuple[Floats, Floats], wanted: float, lowest: float) -> float:
    """Return the smallest score that a scale puts at or above a place; inf if there is none."""

    def reaches(rank: int) -> bool:
        return bool(_place(np.array([_float(rank)]), scale)[0] >= wanted)

    low, high = _rank(max(lowest, -sys.float_info.max)), _rank(sys.float_info.max)
    if reaches(low):
        return lowest
    if not reaches(high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    return _float(high)


def _rank(value: float) -> int:
    """Return the place of a float among all floats, as an integer."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits) if bits >= 0 else -(bits & (2**63 - 1))


def _float(rank: int) -> float:
    bits = struct.unpack("<d", struct.pack("<q", abs(rank)))[0]
    return float(bits) if rank >= 0 else -float(bits)
