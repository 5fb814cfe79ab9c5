"""Synthetic Band: a linear boundary with a band of pure noise around it, whose optimum is known.

Rows are x ~ N(0, scale² I); the label is 1[w·x > 0], flipped with probability 1/2 where
|w·x| <= gamma. The paper leaves the scale open; 1.17 gives its accuracy of 0.835.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import erf, sqrt

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_count, check_fraction, check_positive
from reliablenet.data.folds import Fold, Folds

TRAIN_ROWS, SELECTION_ROWS, CERTIFICATION_ROWS = 5000, 1500, 3000


@dataclass
class SyntheticBand:
    """The paper's generator.

    Parameters
    ----------
    seed : int
        Decides the direction w and all rows drawn.
    dimension : int
    scale : float
        Standard deviation of every feature.
    gamma : float
        Half-width of the band.

    Attributes
    ----------
    direction : array of shape (dimension,)
        The unit vector w.

    Examples
    --------
    >>> band = SyntheticBand(seed=0)
    >>> folds = band.folds()
    >>> len(folds.train), len(folds.selection), len(folds.certification)
    (5000, 1500, 3000)
    >>> round(band.best_throughput(alpha=0.05), 3)
    0.719
    """

    seed: int = 0
    dimension: int = 10
    scale: float = 1.17
    gamma: float = 0.5
    direction: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_count("dimension", self.dimension, "SyntheticBand")
        check_positive("scale", self.scale, "SyntheticBand")
        check_positive("gamma", self.gamma, "SyntheticBand", zero=True)
        self._random = np.random.RandomState(self.seed)
        direction = self._random.standard_normal(self.dimension)
        self.direction = direction / np.linalg.norm(direction)

    def sample(self, n: int, gamma: float | None = None) -> Fold:
        """Draw n new rows, by default with the band's own gamma."""
        half_width = self.gamma if gamma is None else gamma
        X = self.scale * self._random.standard_normal((n, self.dimension))
        distance = X @ self.direction
        flipped = (np.abs(distance) <= half_width) & (self._random.uniform(size=n) < 0.5)
        return Fold(X, ((distance > 0) ^ flipped).astype(np.intp))

    def folds(self) -> Folds:
        """Draw the paper's 5,000 training, 1,500 selection and 3,000 certification rows."""
        return Folds(*(self.sample(n) for n in (TRAIN_ROWS, SELECTION_ROWS, CERTIFICATION_ROWS)))

    def in_band(self, gamma: float | None = None) -> float:
        """Return P(|w·x| <= gamma), the share of rows whose label is a coin toss."""
        half_width = self.gamma if gamma is None else gamma
        return erf(half_width / (self.scale * sqrt(2.0)))

    def best_throughput(self, alpha: float = 0.05, gamma: float | None = None) -> float:
        """Return the largest P(accepted and right) of any rule with JCW <= alpha.

        All rows outside the band, and band rows until their coin tosses have used up the budget.
        """
        check_fraction("alpha", alpha, "best_throughput")
        noise = self.in_band(gamma)
        return 1.0 - noise + min(alpha, noise / 2.0)
