"""`Team`: who answers beside a network, each with the weight that held-out rows give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from reliablenet.errors import InvalidDataError
from reliablenet.training.forward import TABLE_CHUNK
from reliablenet.training.growing import Labels, Matrix, RowWeights, grow_boosting, grow_forest

PRIOR_ROWS = 5.0  # held-out rows that each member is granted beforehand
ROUNDS = 200
LEAST_PROBABILITY = 1e-9


class Member(Protocol):
    """What answers beside the network, about encoded rows."""

    @property
    def name(self) -> str:
        """What it is called."""

    def probabilities(self, X: Matrix, n_classes: int) -> NDArray[np.float64]:
        """Return class probabilities, of shape (n, n_classes)."""

    def fit_again(self, X: Matrix, y: Labels, seed: int, weight: RowWeights) -> Member:
        """Return the same member fitted on other rows."""


@dataclass(frozen=True, eq=False)
class OwnMember:
    """A classifier of the user's own, fitted.

    Parameters
    ----------
    estimator : classifier
        With `predict_proba` and `classes_`, which are class indices.
    """

    estimator: Any

    @property
    def name(self) -> str:
        """The class of the classifier."""
        return type(self.estimator).__name__

    @classmethod
    def fit(cls, estimator: Any, X: Matrix, y: Labels, weight: RowWeights) -> OwnMember:
        """Fit a clone of a classifier."""
        fresh = clone(estimator, safe=False)
        weights = {} if weight is None else {"sample_weight": weight}
        return cls(fresh.fit(X, y, **weights))

    def probabilities(self, X: Matrix, n_classes: int) -> NDArray[np.float64]:
        """Return class probabilities; a class that training lacked has 0."""
        found = np.zeros((len(X), n_classes))
        rows = np.zeros((TABLE_CHUNK, X.shape[1]), X.dtype)  # one shape, as for the network
        for start in range(0, len(X), TABLE_CHUNK):
            part = X[start : start + TABLE_CHUNK]
            rows[: len(part)] = part
            said = self.estimator.predict_proba(rows)[: len(part)]
            found[start : start + TABLE_CHUNK, np.asarray(self.estimator.classes_)] = said
        return found

    def fit_again(self, X: Matrix, y: Labels, seed: int, weight: RowWeights) -> OwnMember:
        """Return the same classifier fitted on other rows."""
        return self.fit(self.estimator, X, y, weight)


@dataclass(frozen=True, eq=False)
class Team:
    """Members beside a network; probabilities are averaged by weight.

    Parameters
    ----------
    members : tuple of Member
    weights : tuple of float
        Of the network, then of each member; they sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.training.team import Team
    >>> Team((), (1.0,)).combine(np.array([[0.2, 0.8]]), [])
    array([[0.2, 0.8]])
    """

    members: tuple[Member, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        sound = len(self.weights) == len(self.members) + 1
        if not sound or min(self.weights) < 0.0 or not abs(sum(self.weights) - 1.0) < 1e-9:
            raise InvalidDataError(
                "A team has one weight for the network and one for each member, which sum to 1; got "
                f"{self.weights}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What the members beside the network are called; of one name, the second has a number."""
        given = [member.name for member in self.members]
        return tuple(
            name if name not in given[:place] else f"{name} {1 + given[:place].count(name)}"
            for place, name in enumerate(given)
        )

    def listen(self, X: Matrix, n_classes: int) -> list[NDArray[np.float64]]:
        """Return what each member says about rows: probabilities of shape (n, n_classes)."""
        return [member.probabilities(X, n_classes) for member in self.members]

    def combine(
        self, network: NDArray[np.float64], others: Sequence[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return the average of the network's probabilities and those of the other members."""
        total = self.weights[0] * network
        for weight, said in zip(self.weights[1:], others, strict=True):
            total = total + weight * said
        return np.minimum(total, 1.0)  # rounding may leave a bit above 1

    def fit_again(self, X: Matrix, y: Labels, seed: int, weight: RowWeights = None) -> Team:
        """Return the team with its members fitted on other rows, and the same weights."""
        members = tuple(member.fit_again(X, y, seed, weight) for member in self.members)
        return replace(self, members=members)


def fit_members(
    wanted: Sequence[Any],
    X: Matrix,
    y: Labels,
    held: tuple[Matrix, Labels],
    seed: int,
    weight: RowWeights = None,
) -> tuple[Member, ...]:
    """Fit those who are to answer beside a network.

    Parameters
    ----------
    wanted : sequence of "boosting", "forest" and classifiers
    X, y
        Encoded rows, and their class indices.
    held : pair
        Rows on which boosting is stopped.
    seed : int
    weight : array of shape (n,), optional
        Of each row.
    """
    members: list[Member] = []
    for one in wanted:
        if isinstance(one, str) and one == "boosting":
            members.append(grow_boosting(X, y, seed, held=held, weight=weight))
        elif isinstance(one, str):
            members.append(grow_forest(X, y, seed, weight=weight))
        else:
            members.append(OwnMember.fit(one, X, y, weight))
    return tuple(members)


def weigh(
    said: Sequence[NDArray[np.float64]], y: Labels, counts: RowWeights = None
) -> tuple[float, ...]:
    """Return the weights whose average of probabilities makes held-out labels most likely.

    Each member is granted a few rows beforehand, so that on a small fold all count nearly alike. The
    likelihood is concave, and expectation maximisation raises it in every round.

    Parameters
    ----------
    said : sequence of arrays of shape (n, K)
        Probabilities of each member for held-out rows.
    y : array of shape (n,)
        Class indices.
    counts : array of shape (n,), optional
        How much each row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.training.team import weigh
    >>> y = np.arange(100) % 2
    >>> good, bad = np.eye(2)[y] * 0.8 + 0.1, np.full((100, 2), 0.5)
    >>> [round(weight, 1) for weight in weigh([good, bad], y)]
    [0.9, 0.1]
    """
    truth = np.stack([one[np.arange(len(y)), y] for one in said]).clip(LEAST_PROBABILITY)
    weights = np.full(len(said), 1.0 / len(said))
    each = np.ones(len(y)) if counts is None else counts / counts.mean()
    for _ in range(ROUNDS):
        parts = weights[:, None] * truth
        weights = (parts / parts.sum(0)) @ each + PRIOR_ROWS
        weights /= weights.sum()
    return tuple(weights.tolist())
