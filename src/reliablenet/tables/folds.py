"""Folds: the only splitter. Training, selection and certification rows never mix.

Certification rows are drawn first, as a simple random sample; only what is left is stratified
(docs/decisions/0019). The paper's datasets are stratified throughout (`cut_paper_folds`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_random_state

from reliablenet._checks import as_array, check_count, parameter_error
from reliablenet.certificate.groups import check_groups
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.tables.fold_sizes import PAPER_SHARES, FoldSizes, fold_counts


@dataclass(frozen=True)
class Fold:
    """Rows ``X`` (array or data frame), their labels ``y``, and how much each counts in training."""

    X: Any
    y: NDArray[Any]
    weight: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        rows, labels = _rows("X", self.X), _rows("y", self.y)
        if rows != labels:
            raise InvalidDataError(
                "A fold needs one label for each of its rows; "
                f"got {rows} rows and {labels} labels (`X`, `y`)."
            )

    def __len__(self) -> int:
        return len(self.y)

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Refuse to be one array: scikit-learn's searches make one of what is as long as X, and cut it."""
        raise InvalidDataError(
            "A Fold is no array. A search or cross-validation cuts whatever is as long as X by the rows of X: "
            "pass the fold as a pair, certification=(fold.X, fold.y)."
        )


@dataclass(frozen=True)
class Folds:
    """Rows to train on, rows to choose on, and rows to certify on."""

    train: Fold
    selection: Fold
    certification: Fold


def cut_rows(
    y: NDArray[Any], counts: Sequence[int], random_state: Any = None
) -> list[NDArray[np.intp]]:
    """Return the row numbers of each part, of exactly the given sizes, stratified by label.

    Rows are put in order of their label, at random within it, and each part takes every
    (n / count)-th row of what is left, from a random start (systematic sampling). So each cut gives a
    part its share of every class to within one row, every row has the same chance to be in a part,
    and a class with fewer rows than there are parts is no special case.

    Parameters
    ----------
    y : array of shape (n,)
    counts : sequence of int
        Sizes of the parts; they sum to n.
    random_state : int, RandomState or None

    Returns
    -------
    list of arrays of row numbers, each ascending

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables import cut_rows
    >>> y = np.repeat(["a", "b"], [60, 40])
    >>> parts = cut_rows(y, (70, 20, 10), random_state=0)
    >>> [int((y[part] == "a").sum()) for part in parts]
    [42, 12, 6]
    """
    random, y = check_random_state(random_state), _labels(y)
    if _whole_total(counts) != len(y):
        raise parameter_error(
            "counts", "cut_rows", f"be whole numbers that sum to {len(y)}", counts
        )
    remaining = random.permutation(len(y))
    remaining = remaining[np.argsort(y[remaining], kind="stable")]
    parts = []
    for count in counts[:0:-1]:  # the first part keeps what the others leave
        start = random.uniform()
        position = ((np.arange(count) + start) * (len(remaining) / max(count, 1))).astype(np.intp)
        taken = np.zeros(len(remaining), bool)
        taken[position.clip(max=len(remaining) - 1)] = True
        parts.append(np.sort(remaining[taken]))
        remaining = remaining[~taken]
    return [np.sort(remaining), *parts[::-1]]


def cut_groups(
    y: NDArray[Any],
    groups: Any,
    counts: Sequence[int],
    random_state: Any = None,
    *,
    stratified: bool = True,
) -> list[NDArray[np.intp]]:
    """Return the row numbers of each part, no group in two of them; of the last, one row a group.

    Rows of one group are not independent, so that a certificate may not count them all. One row,
    drawn at random from each group, is a draw of "a random row of a random group", and the bound over
    such draws is exact (docs/decisions/0015). The last part is the one to certify on: its groups are
    a simple random sample, drawn first.

    The other groups are cut as `cut_rows` cuts rows, in order of the rarest label that a group holds
    and of how often it does.

    Parameters
    ----------
    y : array of shape (n,)
    groups : array of shape (n,)
        To which person, device or other source each row belongs.
    counts : sequence of int
        How many groups go to each part; they sum to the number of groups.
    random_state : int, RandomState or None
    stratified : bool
        False cuts the other parts at random as well.

    Returns
    -------
    list of arrays of row numbers, each ascending

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables import cut_groups
    >>> y, person = np.arange(600) % 2, np.repeat(np.arange(100), 6)
    >>> parts = cut_groups(y, person, (70, 20, 10), random_state=0)
    >>> [len(part) for part in parts], len(np.unique(person[parts[2]]))
    ([420, 120, 10], 10)
    """
    random, y = check_random_state(random_state), _labels(y)
    groups = check_groups(groups, len(y))
    order = random.permutation(len(y))
    one_row = order[np.unique(groups[order], return_index=True)[1]]  # of each group, at random

    def strata(rest: NDArray[np.intp]) -> NDArray[np.intp]:
        rows = np.isin(groups, rest)  # labels of certification rows decide nothing
        owner, labels = groups[rows], np.unique(y[rows], return_inverse=True)[1]
        rarity = np.argsort(np.argsort(np.bincount(labels), kind="stable"))[labels]
        rarest = np.full(len(one_row), len(y))  # 0 is the rarest label of all
        np.minimum.at(rarest, owner, rarity)
        held = np.bincount(owner[rarity == rarest[owner]], minlength=len(rarest))
        return np.asarray((rarest * len(y) + held)[rest])

    *whole, last = _draw_last_first(
        len(one_row), counts, strata if stratified else np.zeros_like, random, "cut_groups"
    )
    parts = [np.flatnonzero(np.isin(groups, part)) for part in whole]
    return [*parts, np.sort(one_row[last])]


def _draw_last_first(
    n: int,
    counts: Sequence[int],
    strata: Callable[[NDArray[np.intp]], NDArray[Any]],
    random: np.random.RandomState,
    owner: str,
) -> list[NDArray[np.intp]]:
    """Cut 0 to n-1 into parts: the last at random, the others by the strata of what it leaves."""
    if _whole_total(counts) != n or len(counts) == 0:
        raise parameter_error("counts", owner, f"be whole numbers that sum to {n}", counts)
    order = random.permutation(n)
    last, rest = (np.sort(part) for part in np.split(order, list(counts[-1:])))
    others = counts[:-1]
    cut = cut_rows(strata(rest), others, random)[: len(others)]
    return [*(rest[part] for part in cut), last]


def cut_parts(
    y: NDArray[Any],
    groups: Any,
    counts_of: Callable[[int], Sequence[int]],
    random_state: Any = None,
    *,
    stratified: bool = True,
) -> list[NDArray[np.intp]]:
    """Cut rows, or groups of rows if there are any, into as many as a function of their number says.

    The last part, to certify on, is a simple random sample and drawn first, so that its rows are
    independent of whatever is learned from the others. Those are cut by `cut_rows`, or at random
    too where ``stratified`` is False.
    """
    if groups is None:
        labels = _labels(y)
        return _draw_last_first(
            len(labels),
            counts_of(len(labels)),
            labels.__getitem__ if stratified else np.zeros_like,
            check_random_state(random_state),
            "cut_parts",
        )
    n = int(check_groups(groups, len(y)).max()) + 1
    try:
        counts = counts_of(n)
    except InvalidDataError as error:
        raise InvalidDataError(
            f"`groups` names {n} group{'s' * (n != 1)}, too few to cut folds from: a group counts "
            f"like a row. {error}"
        ) from None
    return cut_groups(y, groups, counts, random_state, stratified=stratified)


def cut_folds(
    X: Any,
    y: NDArray[Any],
    *,
    groups: Any = None,
    fold_sizes: FoldSizes = "auto",
    alpha: float = 0.05,
    rho: float = 0.05,
    random_state: Any = None,
    stratified: bool = True,
) -> Folds:
    """Cut rows into training, selection and certification folds.

    The certification fold is a simple random sample, drawn first: given whatever is learned from
    the others, each of its rows is a fresh draw, which is what a certificate counts on.

    Parameters
    ----------
    X : array or data frame of n rows
    y : array of shape (n,)
    groups : array-like of shape (n,), optional
        Keeps the rows of a group in one fold, as `cut_groups` does; sizes then count groups.
    fold_sizes, alpha, rho
        As for `fold_counts`.
    random_state : int, RandomState or None
    stratified : bool
        Whether training and selection fold get the same shares of every class. False draws the
        selection fold at random, too: for a rule whose promise is about that fold, as that of
        `ConformalRiskControl` is.

    Returns
    -------
    Folds

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables import cut_folds
    >>> folds = cut_folds(np.zeros((1000, 2)), np.arange(1000) % 2, random_state=0)
    >>> len(folds.train), len(folds.selection), len(folds.certification)
    (464, 150, 386)
    """
    rows = Fold(X if hasattr(X, "iloc") else as_array(X), _labels(y))
    parts = cut_parts(
        rows.y,
        groups,
        lambda n: fold_counts(n, fold_sizes, alpha, rho),
        random_state,
        stratified=stratified,
    )
    return _take(rows, parts)


def cut_paper_folds(X: Any, y: NDArray[Any], random_state: Any = None) -> Folds:
    """Cut rows as the paper does: 70, 15 and 15 %, each fold stratified by label.

    For the datasets of its study alone. A stratified certification fold has the class shares of the
    table that the model was trained on, so that its certificate is not exact (docs/decisions/0019).

    Parameters
    ----------
    X : array or data frame of n rows
    y : array of shape (n,)
    random_state : int, RandomState or None

    Returns
    -------
    Folds

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables import cut_paper_folds
    >>> folds = cut_paper_folds(np.zeros((1000, 2)), np.arange(1000) % 2, random_state=0)
    >>> len(folds.train), len(folds.selection), folds.certification.y.mean()
    (700, 150, np.float64(0.5))
    """
    rows = Fold(X if hasattr(X, "iloc") else as_array(X), _labels(y))
    return _take(rows, cut_rows(rows.y, fold_counts(len(rows), PAPER_SHARES), random_state))


def _take(rows: Fold, parts: Sequence[NDArray[np.intp]]) -> Folds:
    return Folds(*(Fold(_safe_indexing(rows.X, part), rows.y[part]) for part in parts))


def _rows(name: str, values: Any) -> int:
    try:
        return int(values.shape[0]) if hasattr(values, "shape") else len(values)
    except (TypeError, IndexError):
        raise InvalidDataError(
            f"`{name}` of a fold must hold rows; got {type(values).__name__}."
        ) from None


def _labels(y: Any) -> NDArray[Any]:
    """Return labels as a vector that can be put in order."""
    labels = as_array(y, "y")
    if labels.ndim != 1:
        raise InvalidDataError(f"`y` must be a vector of labels; got shape {labels.shape}.")
    if labels.dtype.kind == "O" and len({type(label) for label in labels.tolist()}) > 1:
        raise InvalidDataError(
            f"`y` must hold labels of one type; got such as {labels[0]!r} of "
            f"{sorted({type(label).__name__ for label in labels.tolist()})}."
        )
    return labels


def _whole_total(counts: Any) -> int:
    """Return the sum of counts, -1 if they are none."""
    try:
        return sum(check_count("counts", count, "cut_rows", minimum=0) for count in counts)
    except (TypeError, InvalidParameterError):
        return -1
