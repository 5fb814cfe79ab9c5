"""A bound of JCW that may be looked at after every row: it holds at all times at once.

For a stake c in (0, 1) the product of (1 - c X_i) / (1 - c JCW_i), where X_i is 1 if row i was acted on
wrongly, has the mean 1 whatever the past was: it is a fair game. A logarithm is concave, so that
dividing by (1 - c m)^n, with m the mean of JCW over the n rows, only makes it smaller. By Ville's
inequality the mixture over fixed stakes stays below 1 / rho for ever with probability 1 - rho; the
bound is the largest m that does not push it beyond. Nothing here asks JCW to stay the same: the bound
is of its mean over the rows so far (docs/decisions/0028).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reliablenet._checks import as_array, check_count, check_fraction, parameter_error

# Fixed once for all: large stakes see a rule that errs rarely after few rows, small ones make the bound
# tight after many. A quarter of the stakes is kept for the small ones.
_LARGE, _SMALL = (np.arange(16) + 0.5) / 16, np.geomspace(1e-4, 0.03, 16)
STAKES = np.concatenate([_SMALL, _LARGE])
LOG_WEIGHTS = np.log(np.repeat([0.25 / 16, 0.75 / 16], 16))
STEPS = 60  # of a bisection: to the last bits of a float


def log_evidence_below(errors: ArrayLike, n: ArrayLike, mean: float) -> Any:
    """Return the logarithm of the evidence that JCW is below ``mean``, after any number of looks.

    Under a JCW of ``mean`` or more, in the mean over the rows so far, it ever reaches log(1 / rho)
    with probability at most rho.

    Parameters
    ----------
    errors, n : array-like of int
        Rows acted on wrongly among n rows; any shapes that broadcast.
    mean : float in (0, 1)

    Returns
    -------
    float, or array of the broadcast shape

    Examples
    --------
    >>> import math
    >>> from reliablenet.certificate.anytime import log_evidence_below
    >>> log_evidence_below(0, 59, 0.05) < math.log(20) < log_evidence_below(0, 100, 0.05)
    True
    """
    owner = "log_evidence_below"
    mean = check_fraction("mean", mean, owner)
    k, rows = np.broadcast_arrays(as_array(errors, "errors"), as_array(n, "n"))
    if k.dtype.kind not in "iu" or rows.dtype.kind not in "iu" or np.any(k < 0) or np.any(k > rows):
        raise parameter_error("errors", owner, "hold whole numbers from 0 to n", errors)
    found = log_mixture(k[..., None] * np.log1p(-STAKES), rows, mean)
    return float(found) if found.ndim == 0 else found


def anytime_upper(errors: int, n: int, rho: float = 0.05) -> float:
    """Return an upper bound of JCW that may be asked for after every row.

    With probability at least 1 - rho it is, at all times at once, at least the mean of JCW over the
    rows so far: a confidence sequence. The Clopper-Pearson bound is smaller and holds only at a number
    of rows that was fixed beforehand.

    Parameters
    ----------
    errors : int
        Rows acted on wrongly.
    n : int
        All rows so far, deferred ones included.
    rho : float in (0, 1)

    Returns
    -------
    float

    Examples
    --------
    >>> from reliablenet import clopper_pearson_upper
    >>> from reliablenet.certificate import anytime_upper
    >>> round(clopper_pearson_upper(10, 1000, 0.05), 4), round(anytime_upper(10, 1000), 4)
    (0.0169, 0.0222)
    >>> anytime_upper(0, 0)
    1.0
    """
    owner = "anytime_upper"
    n = check_count("n", n, owner, minimum=0)
    errors = check_count("errors", errors, owner, minimum=0)
    if errors > n:
        raise parameter_error("errors", owner, f"be at most n = {n}", errors)
    return solve_upper(errors * np.log1p(-STAKES), n, check_fraction("rho", rho, owner))


def log_mixture(
    log_kept: NDArray[np.float64], n: ArrayLike, mean: float, scale: float = 1.0
) -> NDArray[np.float64]:
    """Return the logarithm of the mixture over stakes.

    Parameters
    ----------
    log_kept : array of shape (..., stakes)
        Sum of log(1 - scale c X_i) for each stake c.
    n : array-like of int
        Rows.
    mean : float
        The JCW in question.
    scale : float
        Factor of all stakes: where wrong rows are weighted by 1 / pi, the smallest pi.
    """
    rows = np.asarray(n)[..., None]
    each = LOG_WEIGHTS + log_kept - rows * np.log1p(-scale * STAKES * mean)
    return log_sum(each)


def log_sum(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of sums along the last axis; a tenth of the time of scipy's for short ones.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.anytime import log_sum
    >>> np.exp(log_sum(np.log([[1.0, 2.0], [3.0, 4.0]]))).round(9).tolist()
    [3.0, 7.0]
    """
    top = logs.max(axis=-1)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):  # of nothing at all
        return np.asarray(top + np.log(np.exp(logs - top[..., None]).sum(axis=-1)))


def solve_upper(log_kept: NDArray[np.float64], n: int, rho: float, scale: float = 1.0) -> float:
    """Return the largest mean whose evidence against it is below 1 / rho, never below it."""
    limit = -np.log(rho)
    low, high = 0.0, 1.0  # which is the bound where no mean is refuted
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if log_mixture(log_kept, n, middle, scale) < limit:
            low = middle
        else:
            high = middle
    return float(high)
