"""Folds: the only splitter. Training, selection and certification rows never mix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_random_state

from reliablenet._checks import is_real, parameter_error
from reliablenet.certificate.planning import rows_for_errors
from reliablenet.errors import InvalidDataError

FoldSizes = Literal["auto"] | Sequence[float]
SELECTION_SHARE = 0.15
CERTIFICATION_SHARE = 0.15
CERTIFICATION_LIMIT = 0.40
AFFORDED_ERRORS = 3  # "auto" makes the certification fold large enough to afford these


@dataclass(frozen=True)
class Fold:
    """Rows ``X`` (array or data frame) and their labels ``y``."""

    X: Any
    y: NDArray[Any]

    def __post_init__(self) -> None:
        rows = self.X.shape[0] if hasattr(self.X, "shape") else len(self.X)
        if rows != len(self.y):
            raise InvalidDataError(
                "A fold needs one label for each of its rows; "
                f"got {rows} rows and {len(self.y)} labels."
            )

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Folds:
    """Rows to train on, rows to choose on, and rows to certify on."""

    train: Fold
    selection: Fold
    certification: Fold


def fold_counts(
    n: int, fold_sizes: FoldSizes = "auto", alpha: float = 0.05, rho: float = 0.05
) -> tuple[int, int, int]:
    """Return how many of n rows go to training, selection and certification.

    Parameters
    ----------
    n : int
    fold_sizes : "auto" or three shares that sum to 1
        "auto" gives the certification fold 15 %, or as many rows as a certificate with three
        errors needs, but at most 40 %; and the selection fold 15 %. Shares are rounded down for
        training and selection, and certification takes the rest.
    alpha, rho : float
        What the certificate is to promise.

    Returns
    -------
    tuple of three int

    Examples
    --------
    >>> fold_counts(629, (0.70, 0.15, 0.15))
    (440, 94, 95)
    >>> fold_counts(569), fold_counts(100), fold_counts(50_000)
    ((331, 85, 153), (45, 15, 40), (35000, 7500, 7500))
    """
    if _is_auto(fold_sizes):
        selection = _floor(SELECTION_SHARE * n)
        wanted = max(_floor(CERTIFICATION_SHARE * n), rows_for_errors(AFFORDED_ERRORS, alpha, rho))
        certification = min(wanted, _floor(CERTIFICATION_LIMIT * n))
    else:
        shares = _check_shares(fold_sizes)
        selection = max(_floor(shares[1] * n), 1)
        certification = n - _floor(shares[0] * n) - selection
    selection, certification = max(selection, 1), max(certification, 1)
    train = n - selection - certification
    if train < 2:
        raise InvalidDataError(
            "Three folds need at least 4 rows, two of them for training; got n_samples = "
            f"{n}, which leaves {max(train, 0)} for training. Give more rows or folds of your own."
        )
    return train, selection, certification


def holdout_counts(n: int, fold_sizes: FoldSizes = "auto") -> tuple[int, int, int]:
    """Return how many of n rows go to each fold if there is nothing to train.

    Parameters
    ----------
    n : int
    fold_sizes : "auto" or three shares that sum to 1
        "auto" halves the rows; of three shares, that of training goes to the other two in
        proportion.

    Returns
    -------
    tuple of three int

    Examples
    --------
    >>> holdout_counts(101), holdout_counts(1000, (0.4, 0.2, 0.4))
    ((0, 50, 51), (0, 333, 667))
    """
    if n < 2:
        raise InvalidDataError(
            f"Two folds, selection and certification, need at least 2 rows; got n_samples = {n}."
        )
    part = 0.5
    if not _is_auto(fold_sizes):
        _, selection, certification = _check_shares(fold_sizes)
        part = selection / (selection + certification)
    count = min(max(_floor(part * n), 1), n - 1)
    return 0, count, n - count


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
    >>> y = np.repeat(["a", "b"], [60, 40])
    >>> parts = cut_rows(y, (70, 20, 10), random_state=0)
    >>> [int((y[part] == "a").sum()) for part in parts]
    [42, 12, 6]
    """
    random = check_random_state(random_state)
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


def cut_folds(
    X: Any,
    y: NDArray[Any],
    *,
    fold_sizes: FoldSizes = "auto",
    alpha: float = 0.05,
    rho: float = 0.05,
    random_state: Any = None,
) -> Folds:
    """Cut rows into training, selection and certification folds.

    Parameters
    ----------
    X : array or data frame of n rows
    y : array of shape (n,)
    fold_sizes, alpha, rho
        As for `fold_counts`.
    random_state : int, RandomState or None

    Returns
    -------
    Folds

    Examples
    --------
    >>> folds = cut_folds(np.zeros((1000, 2)), np.arange(1000) % 2, random_state=0)
    >>> len(folds.train), len(folds.selection), len(folds.certification)
    (697, 150, 153)
    """
    counts = fold_counts(len(y), fold_sizes, alpha, rho)
    parts = cut_rows(y, counts, random_state)
    return Folds(*(Fold(_safe_indexing(X, part), y[part]) for part in parts))


def _floor(value: float) -> int:
    return math.floor(value + 1e-9)  # 0.15 * 20 is 3 rows, whatever the last bit says


def _is_auto(fold_sizes: Any) -> bool:
    return isinstance(fold_sizes, str) and fold_sizes == "auto"


def _check_shares(fold_sizes: Any) -> list[float]:
    listed = isinstance(fold_sizes, Iterable) and not isinstance(fold_sizes, str)
    shares = list(fold_sizes) if listed else []
    fits = len(shares) == 3 and all(is_real(share) and 0 < share < 1 for share in shares)
    if not fits or not math.isclose(sum(shares), 1.0, abs_tol=1e-9):
        raise parameter_error(
            "fold_sizes",
            "fit",
            'be "auto" or three shares in (0, 1) that sum to 1: training, selection, certification',
            fold_sizes,
        )
    return shares
