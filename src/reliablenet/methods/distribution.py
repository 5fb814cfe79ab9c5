"""A distribution for a number: classes of a network are bins of `y`, each with its training values.

A network that tells K bins apart gives every row a probability for each of them. Within a bin the values
of training rows say how `y` is spread, so that the distribution of a row is one of weights on at most
`POINTS` points. Whole numbers, rounded ones and values that many rows share need no special care.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reliablenet.errors import InvalidDataError
from reliablenet.tables.tolerance import Margin, Values

POINTS = 256  # at which the distribution of y is kept
CHUNK = 2**20  # weights in memory at once


@dataclass(frozen=True, eq=False)
class ValueBins:
    """Bins of `y` with about equally many training rows, and the points that stand for each.

    Attributes
    ----------
    points : array of shape (M,)
        Values of training rows, ascending and different.
    weights : array of shape (M,)
        The share of each point in its bin.
    bins : integer array of shape (M,)
        The bin of each point, ascending from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.distribution import ValueBins
    >>> from reliablenet.tables.tolerance import Margin
    >>> bins = ValueBins.of(np.array([1.0, 2.0, 3.0, 40.0, 40.0, 40.0]), 3)
    >>> bins.bins.tolist(), bins.places(np.array([0.0, 2.0, 41.0])).tolist()
    ([0, 0, 1, 2], [0, 0, 2])
    >>> value, chance = bins.answer(np.array([[0.5, 0.3, 0.2]]), Margin(0.5))
    >>> value.tolist(), chance.round(3).tolist()
    ([2.5], [0.55])
    """

    points: Values
    weights: Values
    bins: NDArray[np.int64]

    def __post_init__(self) -> None:
        points, weights, bins = self.points, self.weights, self.bins
        fits = points.ndim == 1 and points.shape == weights.shape == bins.shape and len(points) > 1
        steps = np.diff(bins) if fits else np.zeros(1)
        if (
            not fits
            or not np.all(np.isfinite(points))
            or np.any(np.diff(points) <= 0)
            or np.any((steps != 0) & (steps != 1))
            or bins[0] != 0
            or not np.all((weights > 0) & (weights <= 1))
            or not np.allclose(np.bincount(bins, weights), 1.0)
        ):
            raise InvalidDataError("Bins of values must be ascending points with their shares.")

    @classmethod
    def of(cls, y: Values, n_bins: int) -> Self:
        """Learn bins from training values; one that many rows share has a bin of its own."""
        points, counts = np.unique(_thinned(y), return_counts=True)
        share = counts / counts.sum()
        middle = np.cumsum(share) - share / 2
        wanted = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
        heavy = share >= 1.0 / n_bins
        changes = (np.diff(wanted) > 0) | heavy[1:] | heavy[:-1]
        bins = np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)
        return cls(points, share / np.bincount(bins, share)[bins], bins)

    def __len__(self) -> int:
        return int(self.bins[-1]) + 1

    def places(self, y: Values) -> NDArray[np.int64]:
        """Return the bin of each value: that of the nearest points."""
        last = np.flatnonzero(np.diff(self.bins))  # of each bin but the highest
        borders = self.points[last] / 2 + self.points[last + 1] / 2
        return np.searchsorted(borders, y, side="left").astype(np.int64)

    def answer(self, proba: Values, margin: Margin) -> tuple[Values, Values]:
        """Return for each row the value that is most probably right, and that probability.

        The value is right for all points from the j-th to the last that it may be off by; of these
        windows, one for each j, the one with the largest weight is taken, and its centre.

        Parameters
        ----------
        proba : array of shape (n, K)
            The probability of each bin.
        margin : Margin
            Of the same rows.
        """
        value, chance = np.empty(len(proba)), np.empty(len(proba))
        size = max(CHUNK // len(self.points), 1)
        for start in range(0, len(proba), size):
            rows = slice(start, start + size)
            value[rows], chance[rows] = self._answer(proba[rows], margin.take(rows))
        return value, chance

    def _answer(self, proba: Values, margin: Margin) -> tuple[Values, Values]:
        weights = proba[:, self.bins] * self.weights
        below = np.zeros((len(proba), len(self.points) + 1))
        np.cumsum(weights, axis=1, out=below[:, 1:])  # row by row: no sum depends on other rows
        reach = margin.of_all(self.points)  # of all rows, or of each
        lowest, highest = self.points - reach, self.points + reach
        end = _ends(lowest, highest)  # of the window that begins at each point
        if end.ndim == 1:
            inside = below[:, end] - below[:, :-1]
        else:
            inside = np.take_along_axis(below, end, axis=1) - below[:, :-1]
        first = inside.argmax(axis=1)
        rows = np.arange(len(proba))
        last = (end[first] if end.ndim == 1 else end[rows, first]) - 1
        low, high = (
            edge[place] if edge.ndim == 1 else edge[rows, place]
            for edge, place in ((lowest, last), (highest, first))
        )
        return low / 2 + high / 2, np.clip(inside[rows, first] / below[:, -1], 0.0, 1.0)

    def to_plain(self) -> dict[str, Any]:
        """Return the bins as JSON can hold them."""
        return {name: values.tolist() for name, values in vars(self).items()}

    @classmethod
    def from_plain(cls, stored: dict[str, Any]) -> Self:
        """Read what `to_plain` returned."""
        return cls(
            np.array(stored["points"], np.float64),
            np.array(stored["weights"], np.float64),
            np.array(stored["bins"], np.int64),
        )


def _thinned(y: Values) -> Values:
    """Return at most `POINTS` quantiles of many different values, each one of them."""
    if len(np.unique(y)) <= POINTS:
        return y
    shares = (np.arange(POINTS) + 0.5) / POINTS
    return np.asarray(np.quantile(y, shares, method="inverted_cdf"))


def _ends(lowest: Values, highest: Values) -> NDArray[np.intp]:
    """Return the end of the window that begins at each point: the first that its reach misses."""
    if lowest.ndim == 1:
        return np.searchsorted(lowest, highest, side="right")
    return np.stack(
        [
            np.searchsorted(low, high, side="right")
            for low, high in zip(lowest, highest, strict=True)
        ]
    )
