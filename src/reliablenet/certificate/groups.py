"""Rows that belong together, such as those of one person: one row of each group counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import as_array
from reliablenet.certificate.fingerprint import mix
from reliablenet.certificate.scored import ScoredRows, join_rows
from reliablenet.errors import InvalidDataError


def check_groups(groups: Any, n: int) -> NDArray[np.intp]:
    """Return the number of each row's group, from 0 on, or say what is wrong with the groups.

    Examples
    --------
    >>> from reliablenet.certificate.groups import check_groups
    >>> check_groups(["ann", "bob", "ann"], 3)
    array([0, 1, 0])
    """
    import pandas as pd  # half a second

    names = _as_names(groups)
    if names.shape != (n,):
        raise InvalidDataError(
            f"`groups` must hold one label for each of the {n} rows; got shape {names.shape}."
        )
    # pandas takes numbers in the order of this machine's bytes alone
    numbers = pd.factorize(names.astype(names.dtype.newbyteorder("=")))[0]
    missing = numbers < 0
    if missing.any():
        raise InvalidDataError(
            f"`groups` must name a group for every row; it is missing in row {missing.argmax()} "
            f"({missing.sum()} in all). Give each such row a group of its own if it has none."
        )
    return numbers


class OneRowEach:
    """Draws one row of each group at random from rows that come in batches.

    Every row gets a random number from the seed and its place, and the row with the smallest stands for
    its group: so that the same rows give the same draw, in one batch or in many.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.groups import OneRowEach
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> rows = ScoredRows(np.arange(6.0), np.zeros(6, bool), 0.0, group=np.array(list("aabbbc")))
    >>> whole, parts = OneRowEach(), OneRowEach()
    >>> whole.add(rows)
    >>> for part in (slice(0, 3), slice(3, 6)):
    ...     parts.add(rows.take(part))
    >>> whole.rows().n, np.array_equal(whole.rows().score, parts.rows().score)
    (3, True)
    """

    def __init__(self, seed: int = 0, start: int = 0) -> None:
        self._seed = seed
        self._seen = start  # rows that come before
        self._kept: ScoredRows | None = None
        self._priority = np.empty(0, np.uint64)

    def add(self, rows: ScoredRows) -> None:
        """Take in rows with their groups."""
        self._keep(rows, _priorities(self._seen, rows.n, self._seed))
        self._seen += rows.n

    def merge(self, later: OneRowEach) -> None:
        """Add what was drawn from later rows; that draw must know how many rows come before it."""
        if later._kept is not None:
            self._keep(later._kept, later._priority)

    def _keep(self, rows: ScoredRows, fresh: NDArray[np.uint64]) -> None:
        priority = np.concatenate([self._priority, fresh])
        both = rows if self._kept is None else join_rows([self._kept, rows])
        drawn = _smallest(check_groups(both.group, both.n), priority)
        self._kept, self._priority = both.take(drawn), priority[drawn]

    def rows(self) -> ScoredRows:
        """Return the rows drawn, in the order in which their groups came first."""
        if self._kept is None:
            raise InvalidDataError("Groups need rows; got 0.")
        return self._kept


def draw_places(groups: Any, n: int, seed: int = 0) -> NDArray[np.intp]:
    """Return the place of one row of each group, drawn at random, ascending.

    Examples
    --------
    >>> from reliablenet.certificate.groups import draw_places
    >>> len(draw_places(["ann", "bob", "ann", "ann"], 4))
    2
    """
    return np.sort(_smallest(check_groups(groups, n), _priorities(0, n, seed)))


def _priorities(start: int, n: int, seed: int) -> NDArray[np.uint64]:
    """Return a random number for each of n rows, a function of the seed and the row's place."""
    return mix(np.arange(start, start + n, dtype=np.uint64) ^ mix(np.array([seed], np.uint64)))


def _smallest(numbers: NDArray[np.intp], priority: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the place of the smallest priority of each group, in the order of their numbers."""
    order = np.lexsort((priority, numbers))
    drawn: NDArray[np.intp] = order[np.unique(numbers[order], return_index=True)[1]]
    return drawn


def _as_names(groups: Any) -> NDArray[Any]:
    # numpy would write NaN among texts as the text "nan"
    return (
        as_array(groups, "groups") if hasattr(groups, "shape") else np.array(groups, dtype=object)
    )
