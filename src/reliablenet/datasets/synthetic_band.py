"""Synthetic Band: a linear boundary with a band of pure noise around it, whose optimum is known.

Rows are x ~ N(0, scale² I); the label is 1[w·x > 0], flipped with probability 1/2 where
|w·x| <= gamma. The paper leaves the scale open; 1.17 gives its accuracy of 0.835.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import erf, sqrt

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_count, check_fraction, check_positive, check_seed
from reliablenet._renamed import renamed_setting
from reliablenet.datasets.dataset import Dataset
from reliablenet.tables.folds import Fold, Folds

TRAIN_ROWS, SELECTION_ROWS, CERTIFICATION_ROWS = 5000, 1500, 3000
LEVEL_ROWS = 3000
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3)


@renamed_setting("seed", "random_state")
@dataclass
class SyntheticBand:
    """The paper's generator.

    Parameters
    ----------
    random_state : int
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
    >>> from reliablenet.datasets import SyntheticBand
    >>> band = SyntheticBand(random_state=0)
    >>> folds = band.folds()
    >>> len(folds.train), len(folds.selection), len(folds.certification)
    (5000, 1500, 3000)
    >>> round(band.best_throughput(alpha=0.05), 3)
    0.719
    """

    random_state: int = 0
    dimension: int = 10
    scale: float = 1.17
    gamma: float = 0.5
    direction: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_seed("random_state", self.random_state, "SyntheticBand")
        check_count("dimension", self.dimension, "SyntheticBand")
        check_positive("scale", self.scale, "SyntheticBand")
        check_positive("gamma", self.gamma, "SyntheticBand", zero=True)
        self._random = np.random.RandomState(self.random_state)
        direction = self._random.standard_normal(self.dimension)
        self.direction = direction / np.linalg.norm(direction)

    def sample(self, n: int, gamma: float | None = None) -> Fold:
        """Draw n new rows, by default with the band's own gamma."""
        half_width = self.gamma if gamma is None else gamma
        X = self.scale * self._random.standard_normal((n, self.dimension))
        distance = X @ self.direction
        flipped = (np.abs(distance) <= half_width) & (self._random.uniform(size=n) < 0.5)
        return Fold(X, ((distance > 0) ^ flipped).astype(np.intp))

    def level(self, gamma: float) -> Fold:
        """Draw the 3,000 rows of a level of the sweep: the same ones whatever was drawn before."""
        band = replace(self, gamma=gamma)  # the same direction, for it depends on the seed alone
        bits = int(np.float64(gamma).view(np.uint64))
        sequence = np.random.SeedSequence([self.random_state, bits])
        band._random = np.random.RandomState(np.random.MT19937(sequence))
        return band.sample(LEVEL_ROWS)

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


def load(
    random_state: int = 0,
    gamma: float = 0.5,
    shift_gamma: float = 0.7,
    dimension: int = 10,
    scale: float = 1.17,
) -> Dataset:
    """Draw the paper's Synthetic Band: its folds, a shift to a wider band, and a sweep of widths.

    The rows of the shift and of each level of the sweep are drawn anew, each from a seed of its own
    that depends on ``random_state`` and its gamma alone; the direction w is that of the folds. The shift is
    therefore the level of its gamma. All have the features' distribution in common; only that of
    the labels changes.

    Parameters
    ----------
    random_state : int
        Decides the direction and all rows.
    gamma : float
        Half-width of the band in the folds.
    shift_gamma : float
        And in the shifted rows.
    dimension : int
        10 in the paper, 2 in its figure (with ``gamma=0.9``).
    scale : float
        Standard deviation of every feature.

    Returns
    -------
    Dataset
        Its ``info`` holds the settings of the generator, and the best throughput of any rule with
        JCW <= 0.05 on the folds.

    Examples
    --------
    >>> from reliablenet.datasets.synthetic_band import load
    >>> from reliablenet.datasets import SyntheticBand
    >>> plane = load(random_state=0, dimension=2, gamma=0.9)
    >>> plane.folds.train.X.shape, plane.shifts["gamma 0.7"].X.shape
    ((5000, 2), (3000, 2))
    >>> SyntheticBand(**plane.info["generator"]).direction.shape
    (2,)
    """
    band = SyntheticBand(random_state, dimension, scale, gamma)
    check_positive("shift_gamma", shift_gamma, "synthetic_band", zero=True)
    settings = {
        "random_state": random_state,
        "dimension": dimension,
        "scale": scale,
        "gamma": gamma,
    }
    return Dataset(
        name="synthetic_band",
        folds=band.folds(),
        shifts={f"gamma {shift_gamma:g}": band.level(shift_gamma)},
        sweeps={level: band.level(level) for level in LEVELS},
        info={"generator": settings, "best_throughput": band.best_throughput(alpha=0.05)},
    )
