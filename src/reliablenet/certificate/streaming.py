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
from reliablenet.certificate.judgement import (
    Count,
    check_threshold_value,
    first_excess,
    midway,
)
from reliablenet.certificate.merging import count_all, in_one
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.record import Certificate, Kind, Provenance
from reliablenet.certificate.scored import ScoredRows


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
    budget = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    value = check_threshold_value(threshold, owner)
    found = count_all(in_one(lambda: batches), lambda _: ThresholdCounts(*budget, value), owner)
    return found.certificate(provenance)


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
    budget = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    found = count_all(in_one(read), lambda _: ThresholdCounts(*budget), owner)
    return found.certificate(provenance)


class ThresholdCounts:
    """What is counted for one threshold: fixed beforehand, or the lowest that the rows allow.

    Parameters
    ----------
    alpha, rho : float
    threshold : float, optional
        None for the lowest.
    """

    def __init__(self, alpha: float, rho: float, threshold: float | None = None) -> None:
        self._budget, self._fixed = (alpha, rho), threshold
        self.count = Count()
        self._lowest = -math.inf
        self._wrong = array("d")  # grows in place; a list of arrays would be copied
        self._excess: float | None = None  # the best-scored error that cannot be afforded
        self._nearest = math.inf  # the lowest score above it
        self._found = math.inf if threshold is None else threshold

    def blank(self) -> ThresholdCounts:
        """Return the same with nothing counted."""
        empty = ThresholdCounts(*self._budget, self._fixed)
        empty.count.unit, empty._excess = self.count.unit, self._excess
        return empty

    def add(self, rows: ScoredRows) -> None:
        """Take in rows."""
        count = self.count
        if self._excess is not None:
            above = rows.score[rows.score > self._excess]
            count.accepted += len(above)
            self._nearest = min(self._nearest, float(above.min(initial=math.inf)))
            return
        self._lowest = rows.lowest
        count.n += rows.n
        count.look(rows)
        if self._fixed is None:
            self._wrong.frombytes(rows.score[rows.wrong].tobytes())
        else:
            accept = rows.score >= self._fixed
            count.accepted += int(np.count_nonzero(accept))
            count.errors += int(np.count_nonzero(accept & rows.wrong))

    def merge(self, later: ThresholdCounts) -> None:
        """Take in what was counted of later rows."""
        self._lowest = max(self._lowest, later._lowest)
        self._nearest = min(self._nearest, later._nearest)
        self._wrong.extend(later._wrong)
        self.count.merge(later.count)

    def look_again(self) -> bool:
        """Find the threshold, with a second look at what lies above the first error too many."""
        count, wrong = self.count, np.frombuffer(self._wrong)
        if self._fixed is not None:
            count.warn_of_labels()
            return False
        most = largest_certifiable_errors(count.n, *self._budget)
        if self._excess is None:
            count.warn_of_labels()
            if most < 0:
                return False
            excess = first_excess(wrong, most, self._lowest)
            if excess == self._lowest:
                count.errors, count.accepted, self._found = len(wrong), count.n, self._lowest
                return False
            # The threshold will lie between the excess error and the next higher score, so that
            # the counts of what is above hold wherever it lies.
            self._excess = excess
            return True
        count.errors = int(np.count_nonzero(wrong > self._excess))
        # The highest wrong scores and the nearest accepted one decide the threshold as all rows would.
        some = count.accepted > 0
        decisive = np.append(wrong[wrong >= self._excess], [self._nearest] * some)
        is_wrong = np.ones(len(decisive), bool)
        is_wrong[len(decisive) - some :] = False
        self._found = midway(ScoredRows(decisive, is_wrong, self._lowest), most)
        return False

    def certificate(self, provenance: Provenance | None = None) -> Certificate:
        """Put the counts into a certificate."""
        kind: Kind = "monotone" if self._fixed is None else "fixed"
        return self.count.certificate(*self._budget, self._found, kind, provenance)
