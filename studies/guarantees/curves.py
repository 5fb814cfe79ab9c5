"""Sources whose JCW is known in closed form at every threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EXCESS = 1.001  # the hardest rule is hardly over its budget


@dataclass(frozen=True)
class Calibrated:
    """Uniform confidence, wrong with the probability that it leaves open."""

    classes: int

    @property
    def name(self) -> str:
        return f"calibrated, {self.classes} classes"

    def draw(self, random: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
        score = random.uniform(1 / self.classes, 1.0, shape)
        return score, random.random(shape) >= score

    def jcw(self, threshold: Any) -> Array:
        low = 1 / self.classes
        return (1 - np.clip(threshold, low, 1)) ** 2 / (2 * (1 - low))

    def threshold(self, jcw: float) -> float:
        return 1 - float(np.sqrt(2 * (1 - 1 / self.classes) * jcw))


@dataclass(frozen=True)
class Overconfident:
    """Wrong in 35 % of rows, whatever the confidence says."""

    name: str = "overconfident, 2 classes"
    classes: int = 2
    rate: float = 0.35

    def draw(self, random: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
        return random.uniform(0.5, 1.0, shape), random.random(shape) < self.rate

    def jcw(self, threshold: Any) -> Array:
        return self.rate * 2 * (1 - np.clip(threshold, 0.5, 1))

    def threshold(self, jcw: float) -> float:
        return 1 - jcw / (2 * self.rate)


@dataclass(frozen=True)
class Rare:
    """One row in 250 is positive, and never found; the model is a little less sure of those."""

    name: str = "imbalance 1 to 249"
    classes: int = 2
    rate: float = 0.004

    def draw(self, random: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
        wrong, place = random.random(shape) < self.rate, random.random(shape)
        return 0.5 + 0.5 * np.where(wrong, place**2, place), wrong

    def jcw(self, threshold: Any) -> Array:
        return self.rate * (1 - np.sqrt(2 * np.clip(threshold, 0.5, 1) - 1))

    def threshold(self, jcw: float) -> float:
        return 0.5 + 0.5 * (1 - jcw / self.rate) ** 2


@dataclass(frozen=True)
class Atoms:
    """A few confidences, each of many rows, as of a tree: at 0.7 JCW is hardly over the budget."""

    alpha: float
    classes: int = 3
    scores: tuple[float, ...] = (0.95, 0.9, 0.8, 0.7, 0.6)
    shares: tuple[float, ...] = (0.2, 0.5, 0.8, EXCESS, 1.6)  # JCW from this score on, over alpha

    @property
    def name(self) -> str:
        return "one score for all" if len(self.scores) == 1 else f"{len(self.scores)} scores"

    def draw(self, random: np.random.Generator, shape: tuple[int, int]) -> tuple[Array, Array]:
        place = random.integers(0, len(self.scores), shape)
        rate = np.diff(self.shares, prepend=0.0) * self.alpha * len(self.scores)
        return np.array(self.scores)[place], random.random(shape) < rate[place]

    def jcw(self, threshold: Any) -> Array:
        accepted = np.searchsorted(-np.array(self.scores), -np.asarray(threshold), side="right")
        return self.alpha * np.array([0.0, *self.shares])[accepted]

    def threshold(self, jcw: float) -> float:
        """Return the score from which on JCW is nearest to what is asked for."""
        return self.scores[int(np.abs(np.array(self.shares) * self.alpha - jcw).argmin())]


def sources(alpha: float) -> list[Any]:
    """Return the sources on which a budget can be broken at all."""
    known: list[Any] = [
        Calibrated(2),
        Calibrated(10),
        Overconfident(),
        Rare(),
        Atoms(alpha),
        Atoms(alpha, scores=(0.9,), shares=(EXCESS,)),
    ]
    return [source for source in known if source.jcw(0.0) > EXCESS * alpha * 0.999999]


def predictions(
    random: np.random.Generator, score: Array, wrong: Array, classes: int
) -> tuple[Array, Array]:
    """Return probabilities and labels of one draw: a random class predicted, the rest shared out."""
    n = len(score)
    proba = np.repeat(((1 - score) / (classes - 1))[:, None], classes, axis=1)
    predicted = random.integers(0, classes, n)
    proba[np.arange(n), predicted] = score
    return proba, (predicted + wrong * random.integers(1, classes, n)) % classes
