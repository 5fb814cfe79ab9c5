"""How many rows go to each fold: by the planner, or by shares that a user gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from reliablenet._checks import check_count, is_real, parameter_error
from reliablenet.certificate.planning import (
    certification_rows,
    floor_share,
    largest_certifiable_errors,
    rows_for_errors,
)
from reliablenet.errors import InvalidDataError

FoldSizes = Literal["auto"] | Sequence[float]
PAPER_SHARES = (0.70, 0.15, 0.15)  # of training, selection and certification
SELECTION_SHARE = 0.15


def fold_counts(
    n: int,
    fold_sizes: FoldSizes = "auto",
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    selection: bool = True,
) -> tuple[int, int, int]:
    """Return how many of n rows go to training, selection and certification.

    Parameters
    ----------
    n : int
    fold_sizes : "auto" or three shares that sum to 1
        "auto" gives the certification fold what `certification_rows` says, 20 to 40 % in most
        cases, and the selection fold 15 %. Shares are rounded down for training and selection, and
        certification takes the rest.
    alpha, rho : float
        What the certificate is to promise.
    selection : bool
        False where nothing is chosen on a selection fold: then there is none, and its rows, or its
        share, go to training.

    Returns
    -------
    tuple of three int

    Examples
    --------
    >>> from reliablenet.tables import fold_counts
    >>> fold_counts(629, (0.70, 0.15, 0.15)), fold_counts(629, (0.70, 0.15, 0.15), selection=False)
    ((440, 94, 95), (534, 0, 95))
    >>> fold_counts(569), fold_counts(569, selection=False), fold_counts(50_000)
    ((276, 85, 208), (361, 0, 208), (32518, 7500, 9982))
    """
    n = check_count("n", n, "fold_counts", minimum=0)
    if _is_auto(fold_sizes):
        chosen = floor_share(SELECTION_SHARE, n)
        certified = min(certification_rows(max(n, 1), alpha, rho), n - max(chosen, 1) - 2)
    else:
        shares = _check_shares(fold_sizes)
        chosen = max(floor_share(shares[1], n), 1)
        certified = n - floor_share(shares[0], n) - chosen
    chosen, certified = max(chosen, 1) if selection else 0, max(certified, 1)
    train = n - chosen - certified
    if train < 2:
        raise InvalidDataError(
            f"{'Three' if selection else 'Two'} folds need at least {4 if selection else 3} rows, "
            f"two of them for training; got n_samples = {n}, which leaves {max(train, 0)} for "
            "training. Give more rows or folds of your own."
        )
    return train, chosen, certified


def holdout_counts(
    n: int,
    fold_sizes: FoldSizes = "auto",
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    selection: bool = True,
) -> tuple[int, int, int]:
    """Return how many of n rows go to each fold if there is nothing to train.

    Parameters
    ----------
    n : int
    fold_sizes : "auto" or three shares that sum to 1
        "auto" halves the rows, but leaves to selection what the certification fold does not need
        for the errors that it affords; of three shares, that of training goes to the other two in
        proportion.
    alpha, rho : float
        What the certificate is to promise.
    selection : bool
        False where nothing is chosen on a selection fold: then all rows certify.

    Returns
    -------
    tuple of three int

    Examples
    --------
    >>> from reliablenet.tables.fold_sizes import holdout_counts
    >>> holdout_counts(250), holdout_counts(250, selection=False)
    ((0, 126, 124), (0, 0, 250))
    >>> holdout_counts(1000, (0.4, 0.2, 0.4))
    (0, 333, 667)
    """
    shares = None if _is_auto(fold_sizes) else _check_shares(fold_sizes)
    if not selection and n >= 1:
        return 0, 0, n
    if n < 2:
        raise InvalidDataError(
            f"Two folds, selection and certification, need at least 2 rows; got n_samples = {n}."
        )
    part = 0.5 if shares is None else shares[1] / (shares[1] + shares[2])
    count = n - min(max(floor_share(part, n), 1), n - 1)
    if shares is None:
        affordable = largest_certifiable_errors(count, alpha, rho)
        count = rows_for_errors(affordable, alpha, rho) if affordable >= 0 else count
    return 0, n - count, count


def _is_auto(fold_sizes: Any) -> bool:
    return isinstance(fold_sizes, str) and fold_sizes == "auto"


def _check_shares(fold_sizes: Any) -> list[float]:
    try:
        shares = [] if isinstance(fold_sizes, str) else list(fold_sizes)
    except TypeError:
        shares = []
    fits = len(shares) == 3 and all(is_real(share) and 0 < share < 1 for share in shares)
    if not fits or not math.isclose(sum(shares), 1.0, abs_tol=1e-9):
        raise parameter_error(
            "fold_sizes",
            "fit",
            'be "auto" or three shares in (0, 1) that sum to 1: training, selection, certification',
            fold_sizes,
        )
    return shares
