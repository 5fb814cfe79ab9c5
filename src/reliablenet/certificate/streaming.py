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

from reliablenet._checks import check_fraction
from reliablenet.certificate.groups import OneRowEach
from reliablenet.certificate.judgement import (
    Count,
    first_excess_error,
    judge,
    midway,
    warn_of_labels,
)
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.record import Certificate, Provenance
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.threshold import check_threshold_value
from reliablenet.errors import InvalidDataError


def certify_batches(
    batches: Iterable[ScoredRows],
    threshold: float,
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    provenance: Provenance | None = None,
) -> Certificate:
    """Do what `certify` does, for rows that come in batches.

    Parameters
    ----------
    batches : iterable of ScoredRows
        As `score_rows` returns them; looked at once. Where they have groups, one row of each counts
        and is kept in memory.
    threshold : float
        The rule accepts a row whose score is at or above it.
    alpha, rho : float in (0, 1)
    provenance : Provenance, optional
        What is known of the rows and the model, to be kept in the certificate.

    Returns
    -------
    Certificate
        Of kind "fixed".

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> from reliablenet.certificate.streaming import certify_batches
    >>> half = ScoredRows(np.full(50, 0.95), np.zeros(50, bool), lowest=0.0)
    >>> certify_batches([half, half], threshold=0.9).reason
    '0 confident mistakes in 100 rows: at most 2.96 % of all rows will be acted on wrongly (95 % confidence)'
    """
    owner = "certify_batches"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    threshold = check_threshold_value(threshold, owner)
    count, draw = Count(), OneRowEach()
    for rows in batches:
        if rows.group is not None:
            draw.add(rows)
            continue
        accept = rows.score >= threshold
        count.n += rows.n
        count.accepted += int(np.count_nonzero(accept))
        count.errors += int(np.count_nonzero(accept & rows.wrong))
        count.look(rows)
    if draw.any():
        warn_of_labels(draw.rows())
        return judge(draw.rows(), alpha, rho, threshold, unit="group", provenance=provenance)
    _check_any(count.n, owner)
    count.warn_of_labels()
    return count.certificate(alpha, rho, threshold, "fixed", provenance)


def certified_threshold_batches(
    read: Callable[[], Iterable[ScoredRows]],
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    provenance: Provenance | None = None,
) -> Certificate:
    """Do what `certified_threshold` does, for rows that come in batches.

    Parameters
    ----------
    read : callable
        Returns the batches, the same rows whenever it is called; it is called at most twice.
    alpha, rho : float in (0, 1)
    provenance : Provenance, optional
        What is known of the rows and the model, to be kept in the certificate.

    Returns
    -------
    Certificate
        Of kind "monotone".

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> from reliablenet.certificate.streaming import certified_threshold_batches
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
    lowest, kept = -math.inf, array("d")  # grows in place; a list of arrays would be copied
    count, draw = Count(), OneRowEach()
    for rows in read():
        if rows.group is not None:
            draw.add(rows)
            continue
        lowest = rows.lowest
        count.n += rows.n
        count.look(rows)
        kept.frombytes(rows.score[rows.wrong].tobytes())
    if draw.any():
        warn_of_labels(draw.rows())
        return judge(draw.rows(), alpha, rho, unit="group", provenance=provenance)
    _check_any(count.n, owner)
    count.warn_of_labels()
    wrong = np.frombuffer(kept)
    most = largest_certifiable_errors(count.n, alpha, rho)
    if most < 0:
        return count.certificate(alpha, rho, math.inf, "monotone", provenance)
    excess = first_excess_error(ScoredRows(wrong, np.ones(len(wrong), bool), lowest), most)
    if excess == lowest:
        count.errors, count.accepted = len(wrong), count.n
        return count.certificate(alpha, rho, lowest, "monotone", provenance)
    # The threshold will lie between the excess error and the next higher score, so that these
    # counts hold wherever it lies.
    again, nearest = 0, math.inf
    for rows in read():
        above = rows.score[rows.score > excess]
        again += rows.n
        count.accepted += len(above)
        nearest = min(nearest, float(above.min(initial=math.inf)))
    if again != count.n:
        raise InvalidDataError(
            f"The rows changed while they were certified: {count.n} at first, {again} on the second "
            "look. Certify a file that nobody writes to."
        )
    count.errors = int(np.count_nonzero(wrong > excess))
    # The highest wrong scores and the nearest accepted one decide the threshold as all rows would.
    decisive = np.append(wrong[wrong >= excess], [nearest] * (count.accepted > 0))
    is_wrong = np.ones(len(decisive), bool)
    is_wrong[len(decisive) - (count.accepted > 0) :] = False
    threshold = midway(ScoredRows(decisive, is_wrong, lowest), most)
    return count.certificate(alpha, rho, threshold, "monotone", provenance)


def _check_any(n: int, owner: str) -> None:
    if n == 0:
        raise InvalidDataError(f"{owner} needs rows; got 0.")
