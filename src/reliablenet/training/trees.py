"""`Trees`: decision trees as plain arrays, which a file can hold, and what they say about rows.

Leaves add up in whole numbers, so that a row's score does not depend on the order of the sum, and with it not
on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reliablenet.errors import InvalidDataError

FINE, FINEST = 44, 52  # numbers in leaves are whole multiples of 2**-44, or coarser ones
LARGEST_SUM = 2**62
DEEPEST = 256
AT_ONCE = 2**17  # pairs of a row and a tree that are walked through together
# Now and then those that have reached a leaf are left behind, if that leaves much less to do.
LOOK_EVERY, FEW, STILL_MANY = 3, 4096, 0.75
_KINDS: dict[str, Any] = {"threshold": np.float64, "values": np.int64, "start": np.int64}


@dataclass(frozen=True, eq=False)
class Trees:
    """Decision trees whose leaves add up to the scores of a row.

    A row goes left in a node where its number in the column ``feature`` is at most ``threshold``. A leaf is
    a node that is its own child. The trees come in rounds: each adds to all scores.

    Parameters
    ----------
    columns : array of one int
        Columns of the matrix that the trees were grown on.
    roots : int array of shape (rounds, trees of a round)
    feature : int array of shape (nodes,)
    threshold : float array of shape (nodes,)
    children : int array of shape (nodes, 2)
        Where a row goes whose number is larger, and where if it is not.
    leaf : int array of shape (nodes,)
        Row of ``values``; 0 in inner nodes.
    values : int array of shape (leaves, scores of a tree)
        In units of two to the power of minus ``digits``.
    start : int array of shape (scores,)
        What all rows begin with, in the same units.
    digits : array of one int

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.training.trees import Trees, in_units
    >>> tree = Trees(
    ...     columns=np.array([1]),
    ...     roots=np.array([[0]]),
    ...     feature=np.array([0, 0, 0]),
    ...     threshold=np.array([2.5, 0.0, 0.0]),
    ...     children=np.array([[2, 1], [1, 1], [2, 2]]),
    ...     leaf=np.array([0, 0, 1]),
    ...     values=in_units([[-1.0], [1.0]]),
    ...     start=in_units([0.25]),
    ...     digits=np.array([44]),
    ... )
    >>> tree.scores(np.array([[2.0], [3.0]], np.float32))
    array([[-0.75],
           [ 1.25]])
    """

    columns: NDArray[np.int32]
    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    children: NDArray[np.int32]
    leaf: NDArray[np.int32]
    values: NDArray[np.int64] | NDArray[np.int16]
    start: NDArray[np.int64]
    digits: NDArray[np.int32]
    _is_leaf: NDArray[np.bool_] = field(init=False, repr=False)
    _depth: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for entry in _arrays():
            array = np.asarray(getattr(self, entry.name))
            wanted = _KINDS.get(entry.name, np.int32)
            if entry.name == "values" and array.dtype == np.int16:
                wanted = np.int16
            if not np.can_cast(array.dtype, wanted, "same_kind"):
                raise InvalidDataError(
                    f"{entry.name} of trees must hold {np.dtype(wanted).name}; got {array.dtype}."
                )
            object.__setattr__(self, entry.name, np.ascontiguousarray(array, wanted))
        self._check_shapes()
        own = np.arange(len(self.feature))
        object.__setattr__(self, "_is_leaf", (self.children == own[:, None]).all(1))
        object.__setattr__(self, "_depth", self._check_paths())

    def _check_shapes(self) -> None:
        nodes = len(self.feature)
        sound = (
            self.columns.shape == self.digits.shape == (1,)
            and 0 <= self.digits[0] <= FINEST
            and self.columns[0] > 0
            and self.feature.shape == self.threshold.shape == self.leaf.shape == (nodes,)
            and self.children.shape == (nodes, 2)
            and self.roots.ndim == self.values.ndim == 2
            and 0 < self.roots.size <= nodes
            and len(self.values) > 0
            and self.start.shape == (self.roots.shape[1] * self.values.shape[1],)
        )
        if not sound:
            raise InvalidDataError("The arrays of trees do not fit together.")

    def _check_paths(self) -> int:
        """Return the longest way from a root to a leaf; refuse trees that lead out of themselves."""
        nodes, own = len(self.feature), np.arange(len(self.feature))
        is_leaf = self._is_leaf
        inner = self.children[~is_leaf]
        sound = (
            bool(((inner > own[~is_leaf, None]) & (inner < nodes)).all())
            and bool(((self.roots >= 0) & (self.roots < nodes)).all())
            and bool(((self.feature >= 0) & (self.feature < self.columns[0])).all())
            and bool(((self.leaf >= 0) & (self.leaf < len(self.values))).all())
            and not np.isnan(self.threshold).any()
        )
        if not sound:
            raise InvalidDataError(
                "A node of a tree has a child, column or leaf that is not there."
            )
        if _largest(self.values) * len(self.roots) + _largest(self.start) > LARGEST_SUM:
            raise InvalidDataError("The leaves of trees hold numbers that are too large to add up.")
        depth, here = 0, np.unique(self.roots)
        while len(here := here[~is_leaf[here]]):
            depth, here = depth + 1, np.unique(self.children[here])
            if depth > DEEPEST:
                raise InvalidDataError(f"A tree is deeper than {DEEPEST} nodes.")
        return depth

    def scores(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sums of the leaves that rows reach, of shape (n, scores)."""
        if X.ndim != 2 or X.shape[1] != self.columns[0]:
            raise InvalidDataError(
                f"Trees were grown on {self.columns[0]} columns; got rows of shape {X.shape[1:]}."
            )
        rounds = len(self.roots)
        sums = np.empty((len(X), len(self.start)), np.int64)
        step = max(1, AT_ONCE // self.roots.size)
        for first in range(0, len(X), step):
            reached = self._walk(np.ascontiguousarray(X[first : first + step]))
            found = self.values[reached]
            sums[first : first + step] = found.reshape(len(reached), rounds, -1).sum(
                1, dtype=np.int64
            )
        return np.ldexp((sums + self.start).astype(np.float64), -int(self.digits[0]))

    def _walk(self, X: NDArray[Any]) -> NDArray[np.int32]:
        """Return the number of the leaf that each row reaches in each tree."""
        numbers, children = X.ravel(), self.children.ravel()
        begins = np.repeat(np.arange(len(X)) * X.shape[1], self.roots.size)
        node = end = np.tile(self.roots.ravel(), len(X))
        pairs: slice | NDArray[np.intp] = slice(None)  # of a row and a tree, that are on their way
        for step in range(1, self._depth + 1):
            number = numbers.take(begins + self.feature.take(node))
            node = children.take(2 * node + (number <= self.threshold.take(node)))
            if step % LOOK_EVERY == 0 and len(node) > FEW:
                going = ~self._is_leaf.take(node)
                if going.mean() < STILL_MANY:
                    end[pairs] = node
                    pairs = np.flatnonzero(going) if isinstance(pairs, slice) else pairs[going]
                    node, begins = node[going], begins[going]
        end[pairs] = node
        reached: NDArray[np.int32] = self.leaf.take(end).reshape(len(X), -1)
        return reached

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return {entry.name: getattr(self, entry.name) for entry in _arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the trees that `to_arrays` described; refuse what no tree can be."""
        names = {entry.name for entry in _arrays()}
        if set(arrays) != names:
            raise InvalidDataError(f"Trees have the arrays {sorted(names)}; got {sorted(arrays)}.")
        return cls(**arrays)


def _arrays() -> list[Field[Any]]:
    """Return the fields that are given."""
    return [entry for entry in fields(Trees) if entry.init]


def _largest(numbers: NDArray[Any]) -> int:
    """Return the largest size of whole numbers, as one of Python's, which does not overflow."""
    return max(-int(numbers.min()), int(numbers.max()))


def in_units(numbers: Any, digits: int = FINE) -> NDArray[np.int64]:
    """Return numbers as whole multiples of two to the power of minus ``digits``."""
    units: NDArray[np.int64] = np.rint(np.ldexp(np.asarray(numbers, np.float64), digits)).astype(
        np.int64
    )
    return units
