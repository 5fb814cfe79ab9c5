"""How many rows a certificate needs, how many errors it affords, and how likely it is to be granted."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrik, betaincc, betainccinv

from reliablenet._checks import as_array, check_count, check_fraction, is_real, parameter_error
from reliablenet.certificate.bounds import broadcast, clopper_pearson_upper, numbers

MOST_ROWS = 2**50  # beyond, float64 no longer counts exactly what is searched here
# How many of all rows certify, if the others train; studies/default/fold_shares.py tries others.
ENOUGH_ERRORS = 50  # to afford these spends about four fifths of alpha, and more rows add little
LEAST_SHARE, MOST_SHARE = 0.20, 0.40
MOST_SHARE_FOR_NONE = 0.60  # where the share above affords no error, and so no certificate


def largest_certifiable_errors(n: int, alpha: float, rho: float = 0.05) -> int:
    """Return the largest error count whose bound in n rows is within alpha, -1 if none is.

    Parameters
    ----------
    n : int
        Rows of the certification fold.
    alpha, rho : float in (0, 1)

    Returns
    -------
    int

    Examples
    --------
    >>> from reliablenet.certificate import largest_certifiable_errors
    >>> largest_certifiable_errors(58, 0.05), largest_certifiable_errors(59, 0.05)
    (-1, 0)
    """
    owner = "largest_certifiable_errors"
    n = check_count("n", n, owner)
    return _largest(n, check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner))


@lru_cache(maxsize=4096)  # a rule asks again for each population, its level and its certificate
def _largest(n: int, alpha: float, rho: float) -> int:
    granted, refused = -1, n  # n errors in n rows bound JCW by 1 > alpha
    # The count at which the binomial tail is rho, near enough to save most of the search.
    guess = float(bdtrik(rho, n, alpha))
    for near in () if math.isnan(guess) else (math.floor(guess) - 1, math.floor(guess) + 1):
        if granted < near < refused:
            if clopper_pearson_upper(near, n, rho) <= alpha:
                granted = near
            else:
                refused = near
    while refused - granted > 1:
        middle = (granted + refused) // 2
        if clopper_pearson_upper(middle, n, rho) <= alpha:
            granted = middle
        else:
            refused = middle
    return granted


def rows_for_errors(errors: ArrayLike, alpha: float, rho: float = 0.05) -> Any:
    """Return the fewest rows in which this many errors are still certified.

    Parameters
    ----------
    errors : array-like of int
    alpha, rho : float in (0, 1)

    Returns
    -------
    int, or array of the shape of ``errors``

    Examples
    --------
    >>> from reliablenet.certificate import rows_for_errors
    >>> rows_for_errors([0, 1, 3], 0.05)
    array([ 59,  93, 153])
    """
    owner = "rows_for_errors"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    k = as_array(errors, "errors")
    if k.dtype.kind not in "iu" or np.any(k < 0):
        raise parameter_error("errors", owner, "hold whole numbers of at least 0", errors)
    if alpha < 1.0 / MOST_ROWS:
        raise parameter_error("alpha", owner, f"be at least {1.0 / MOST_ROWS:.2g}", alpha)
    if np.any(k > alpha * MOST_ROWS):  # the answer is about k / alpha
        expected = f"be at most {alpha * MOST_ROWS:.2g} where alpha is {alpha:g}"
        raise parameter_error("errors", owner, expected, errors)
    k = k.astype(np.int64)  # a small type would overflow below
    refused, granted = k, 2 * k + 1
    while np.any(wanting := binomial_cdf(k, granted, alpha) > rho):
        granted = np.where(wanting, 2 * granted, granted)
    while np.any(granted - refused > 1):
        middle = (granted + refused) // 2
        enough = binomial_cdf(k, middle, alpha) <= rho
        refused, granted = np.where(enough, refused, middle), np.where(enough, middle, granted)
    # Where the tail equals rho, rounding decides; then the certificate's own comparison has the word.
    granted += clopper_pearson_upper(k, granted, rho) > alpha
    fewer = np.maximum(granted - 1, k + 1)
    granted = np.where(clopper_pearson_upper(k, fewer, rho) <= alpha, fewer, granted)
    return int(granted) if granted.ndim == 0 else granted


def certification_rows(n: int, alpha: float, rho: float = 0.05) -> int:
    """Return how many of n rows to certify on, if the others train.

    A fold that affords k errors lets a rule spend k / rows of its budget alpha: of a small alpha about
    two fifths with 3 errors, three fifths with 10, four fifths with 50 and 85 % with 100; of a larger
    one more. Beyond 50 each further row buys little (docs/explanations/default.md compares). So the answer
    is as many as 50 errors need, but at least 20 and at most 40 % of the rows; up to 60 % where
    40 % afford no certificate at all. And never more than the errors that it affords need:
    the rows beyond would prove nothing, and can train.

    Parameters
    ----------
    n : int
        All rows, or groups.
    alpha, rho : float in (0, 1)

    Returns
    -------
    int

    Examples
    --------
    >>> from reliablenet.certificate import certification_rows
    >>> [certification_rows(n, 0.05) for n in (100, 382, 1000, 5000, 50_000)]
    [59, 124, 386, 1260, 9982]
    """
    owner = "certification_rows"
    n = check_count("n", n, owner)
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    most = max(floor_share(MOST_SHARE, n), 1)
    affordable = largest_certifiable_errors(most, alpha, rho)
    if affordable < 0:
        least = largest_certifiable_errors(floor_share(MOST_SHARE_FOR_NONE, n) or 1, alpha, rho)
        return most if least < 0 else int(rows_for_errors(0, alpha, rho))
    if affordable > ENOUGH_ERRORS:
        enough = int(rows_for_errors(ENOUGH_ERRORS, alpha, rho))
        wanted = max(enough, floor_share(LEAST_SHARE, n))
        affordable = largest_certifiable_errors(wanted, alpha, rho)
    return int(rows_for_errors(affordable, alpha, rho))


def floor_share(share: float, n: int) -> int:
    """Return a share of n rows, rounded down; 0.15 of 20 is 3, whatever the last bit says."""
    return math.floor(share * n + 1e-9)


def binomial_cdf(k: NDArray[Any], n: NDArray[Any], p: ArrayLike) -> Any:
    """Return P(Binomial(n, p) <= k) for 0 <= k < n.

    The bound of k errors in n rows is within alpha exactly where this is at most rho at p = alpha.
    """
    return betaincc(k + 1.0, n - k, p)


def certification_power(
    n: ArrayLike, alpha: float, rho: float = 0.05, expected_jcw: ArrayLike = 0.0
) -> Any:
    """Return the probability that n rows certify a rule whose true JCW is ``expected_jcw``.

    Parameters
    ----------
    n : array-like of int
        Rows of the certification fold.
    alpha, rho : float in (0, 1)
    expected_jcw : array-like of float in [0, 1]

    Returns
    -------
    float, or array of the broadcast shape

    Examples
    --------
    >>> from reliablenet.certificate import certification_power
    >>> round(certification_power(95, 0.05, expected_jcw=0.01), 3)
    0.754
    """
    owner = "certification_power"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    truth = numbers("expected_jcw", expected_jcw, owner)
    rows, truth = broadcast(owner, n=as_array(n, "n"), expected_jcw=truth)
    if rows.dtype.kind not in "iu" or np.any(rows < 1):
        raise parameter_error("n", owner, "hold whole numbers of at least 1", n)
    if not np.all((truth >= 0) & (truth <= 1)):
        raise parameter_error("expected_jcw", owner, "lie in [0, 1]", expected_jcw)
    sizes, where = np.unique(rows, return_inverse=True)
    most = np.array([largest_certifiable_errors(int(size), alpha, rho) for size in sizes])
    affordable = most[where].reshape(rows.shape)
    chance = np.where(affordable < 0, 0.0, binomial_cdf(affordable.clip(min=0), rows, truth))
    return float(chance) if chance.ndim == 0 else chance


def rows_needed(
    alpha: float,
    rho: float = 0.05,
    expected_jcw: float = 0.0,
    power: float = 0.9,
    *,
    groups: int = 1,
    shares: ArrayLike | None = None,
) -> int:
    """Return the fewest certification rows that grant a certificate with probability ``power``.

    What is counted are the rows of which a promise speaks: all of them, those of a group or of a true
    class, or those acted on where the share of mistakes among them is promised.

    Power rises in a saw-tooth: just before one more error becomes affordable it dips a little, so
    a fold slightly larger than the answer can fall slightly short. `certification_power` tells.

    Parameters
    ----------
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability.
    expected_jcw : float in [0, alpha)
        The JCW that the rule is expected to have in truth.
    power : float in (0, 1)
        Wanted probability of being certified; with groups, that of each.
    groups : int
        Groups or classes with thresholds of their own: they share rho, and the answer is what each needs.
        1 where all share one threshold, which costs nothing.
    shares : array-like of float, optional
        Share of each group in all rows: the answer is then how many rows in all give the smallest
        group what it needs, on average.

    Returns
    -------
    int

    Examples
    --------
    >>> from reliablenet import rows_needed
    >>> [rows_needed(alpha) for alpha in (0.05, 0.03, 0.01)]
    [59, 99, 299]
    >>> rows_needed(0.05, expected_jcw=0.02)
    311
    >>> rows_needed(0.05, groups=5), rows_needed(0.05, groups=5, shares=[0.4, 0.3, 0.15, 0.1, 0.05])
    (90, 1800)
    """
    owner = "rows_needed"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    power = check_fraction("power", power, owner)
    groups = check_count("groups", groups, owner)
    if not is_real(expected_jcw) or not 0.0 <= expected_jcw < alpha:
        raise parameter_error(
            "expected_jcw",
            owner,
            f"lie in [0, alpha) = [0, {alpha:g})",
            expected_jcw,
            "No number of rows certifies a rule that does not keep its budget.",
        )
    each = _fewest_rows(alpha, rho / groups, float(expected_jcw), power)
    return each if shares is None else math.ceil(each / _smallest_share(shares, owner) - 1e-9)


def _fewest_rows(alpha: float, rho: float, expected_jcw: float, power: float) -> int:
    # While k errors are the most affordable, power only falls with n: the best n is the first. So
    # only those first sizes are candidates; they are searched in blocks that double.
    start, length = 0, 64
    while True:
        errors = np.arange(start, start + length)
        rows = rows_for_errors(errors, alpha, rho)
        sufficient = np.flatnonzero(binomial_cdf(errors, rows, expected_jcw) >= power)
        if len(sufficient):
            return int(rows[sufficient[0]])
        start, length = start + length, 2 * length


def _smallest_share(shares: ArrayLike, owner: str) -> float:
    parts = numbers("shares", shares, owner)
    whole = math.isclose(parts.sum(), 1.0, abs_tol=1e-6)
    if parts.ndim != 1 or np.any(parts <= 0.0) or not whole:
        raise parameter_error("shares", owner, "be positive and have the sum 1", shares)
    return float(parts.min())


def certifiable_jcw(n: int, alpha: float, rho: float = 0.05, power: float = 0.9) -> float:
    """Return the largest JCW that n rows certify with probability ``power``; 0 if they never can.

    What training should aim at: a rule whose true JCW is alpha itself is certified in a share rho
    of the draws only.

    Parameters
    ----------
    n : int
        Rows of the certification fold.
    alpha, rho, power : float in (0, 1)

    Returns
    -------
    float

    Examples
    --------
    >>> from reliablenet.certificate.planning import certifiable_jcw
    >>> round(certifiable_jcw(95, 0.05), 4), round(certifiable_jcw(4900, 0.05), 4)
    (0.0056, 0.0411)
    """
    owner = "certifiable_jcw"
    power = check_fraction("power", power, owner)
    most = largest_certifiable_errors(n, alpha, rho)
    # P(Binomial(n, p) <= most) = power, solved for p
    return 0.0 if most < 0 else float(betainccinv(most + 1.0, n - most, power))
