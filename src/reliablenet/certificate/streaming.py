"""Certificates of rows that come in batches: the same as in memory, to the bit, for files of any size.

A fixed rule needs three counts. The monotone threshold needs two passes: the first keeps the scores
of the wrong rows (8 bytes each, so the memory is bounded by the errors of the model and not by its
rows), the second counts what lies above the first error that cannot be afforded.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable

import numpy as np

from reliablenet._checks import check_fraction, is_real, parameter_error
from reliablenet.certificate.certify import Certificate
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.threshold import _first_excess_error, _midway
from reliablenet.errors import InvalidDataError


def certify_batches(
    batches: Iterable[ScoredRows], threshold: float, alpha: float = 0.05, rho: float = 0.05
) -> Certificate:
    """Do what `certify` does, for rows that come in batches.

    Parameters
    ----------
    batches : iterable of ScoredRows
        As `score_rows` returns them; looked at once.
    threshold : float
        The rule accepts a row whose score is at or above it.
    alpha, rho : float in (0, 1)

    Returns
    -------
    Certificate
        Of kind "fixed".

    Examples
    --------
    >>> half = ScoredRows(np.full(50, 0.95), np.zeros(50, bool), lowest=0.0)
    >>> certify_batches([half, half], threshold=0.9).reason
    '0 errors in 100 rows bound JCW by 0.0296, within alpha 0.05'
    """
    owner = "certify_batches"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    if not is_real(threshold) or math.isnan(threshold):
        raise parameter_error("threshold", owner, "be a number", threshold)
    n = accepted = errors = 0
    for rows in batches:
        accept = rows.score >= threshold
        n += rows.n
        accepted += int(np.count_nonzero(accept))
        errors += int(np.count_nonzero(accept & rows.wrong))
    _check_any(n, owner)
    return Certificate(errors, accepted, n, alpha, rho, float(threshold), "fixed")


def certified_threshold_batches(
    read: Callable[[], Iterable[ScoredRows]], alpha: float = 0.05, rho: float = 0.05
) -> Certificate:
    """Do what `certified_threshold` does, for rows that come in batches.

    Parameters
    ----------
    read : callable
        Returns the batches, the same rows whenever it is called; it is called at most twice.
    alpha, rho : float in (0, 1)

    Returns
    -------
    Certificate
        Of kind "monotone".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 2000)
    >>> rows = ScoredRows(p, rng.random(2000) > p, lowest=0.0)
    >>> parts = [ScoredRows(rows.score[i:i + 300], rows.wrong[i:i + 300], 0.0)
    ...          for i in range(0, 2000, 300)]
    >>> c = certified_threshold_batches(lambda: parts, alpha=0.05)
    >>> c.certified, c.errors, round(c.threshold, 3), round(c.coverage, 3)
    (True, 83, 0.795, 0.405)
    """
    owner = "certified_threshold_batches"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    n, lowest, kept = 0, -math.inf, array("d")  # grows in place; a list of arrays would be copied
    for rows in read():
        n, lowest = n + rows.n, rows.lowest
        kept.frombytes(rows.score[rows.wrong].tobytes())
    _check_any(n, owner)
    wrong = np.frombuffer(kept)
    most = largest_certifiable_errors(n, alpha, rho)
    if most < 0:
        return Certificate(0, 0, n, alpha, rho, math.inf, "monotone")
    excess = _first_excess_error(ScoredRows(wrong, np.ones(len(wrong), bool), lowest), most)
    if excess == lowest:
        return Certificate(len(wrong), n, n, alpha, rho, lowest, "monotone")
    # The threshold will lie between the excess error and the next higher score, so that these
    # counts hold wherever it lies.
    accepted, again, nearest = 0, 0, math.inf
    for rows in read():
        above = rows.score[rows.score > excess]
        again += rows.n
        accepted += len(above)
        nearest = min(nearest, float(above.min(initial=math.inf)))
    if again != n:
        raise InvalidDataError(
            f"The rows changed while they were certified: {n} at first, {again} on the second "
            "look. Certify a file that nobody writes to."
        )
    errors = int(np.count_nonzero(wrong > excess))
    # The highest wrong scores and the nearest accepted one decide the threshold as all rows would.
    decisive = np.append(wrong[wrong >= excess], [nearest] * (accepted > 0))
    is_wrong = np.ones(len(decisive), bool)
    is_wrong[len(decisive) - (accepted > 0) :] = False
    threshold = _midway(ScoredRows(decisive, is_wrong, lowest), most)
    return Certificate(errors, accepted, n, alpha, rho, threshold, "monotone")


def _check_any(n: int, owner: str) -> None:
    if n == 0:
        raise InvalidDataError(f"{owner} needs rows; got 0.")
