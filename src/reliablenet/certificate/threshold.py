"""Thresholds from labelled rows: certified, empirical, conformal.

All three are the same question: which is the smallest threshold that leaves at most ``most`` errors
accepted? They differ in ``most`` alone, so the errors that are still affordable are decided once,
and one selection over the wrong rows answers it; no bound is computed per row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reliablenet._checks import check_fraction
from reliablenet.certificate.certify import Certificate, count_rows
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.scored import ScoredRows, score_rows


def certified_threshold(
    proba: Any,
    y: Any,
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    classes: Any = None,
) -> Certificate:
    """Choose the smallest threshold whose bound holds there and at every threshold above it.

    Because JCW falls as the threshold rises, the choice on the certification fold itself needs no
    correction (Bates et al. 2021, risk-controlling prediction sets): with probability at least
    1 - rho, JCW at the returned threshold is at most alpha. The model must not have seen the fold.

    Parameters
    ----------
    proba, y, score, predicted, classes
        As for `certify`.
    alpha, rho : float in (0, 1)

    Returns
    -------
    Certificate
        Of kind "monotone". Its threshold lies midway between two observed scores; it is the lowest
        possible one where every row may be accepted, and ``inf`` where none can be certified.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 2000)
    >>> y = (rng.random(2000) > p).astype(int)       # calibrated: wrong with probability 1 - p
    >>> c = certified_threshold(np.column_stack([p, 1 - p]), y, alpha=0.05)
    >>> c.certified, c.errors, round(c.threshold, 3), round(c.coverage, 3)
    (True, 83, 0.795, 0.405)
    """
    owner = "certified_threshold"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    rows = score_rows(proba, y, score=score, predicted=predicted, classes=classes, owner=owner)
    return certify_monotone(rows, alpha, rho)


def certify_monotone(rows: ScoredRows, alpha: float, rho: float) -> Certificate:
    """Do what `certified_threshold` does, for rows that were checked and scored before."""
    most = largest_certifiable_errors(rows.n, alpha, rho)
    return count_rows(rows, _midway(rows, most), alpha, rho, "monotone")


def jcw_threshold(
    proba: Any,
    y: Any,
    alpha: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    classes: Any = None,
) -> float:
    """Return the most permissive threshold whose observed JCW is at most alpha; no certificate.

    Parameters
    ----------
    proba, y, score, predicted, classes
        As for `certify`; rows of a selection fold.
    alpha : float in (0, 1)

    Returns
    -------
    float
        To be used with "at or above"; ``inf`` where no threshold keeps the budget.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> round(jcw_threshold(proba, [0, 0, 1, 0], alpha=0.2), 3)
    0.75
    """
    alpha = check_fraction("alpha", alpha, "jcw_threshold")
    rows = score_rows(
        proba, y, score=score, predicted=predicted, classes=classes, owner="jcw_threshold"
    )
    return _midway(rows, _largest_count(alpha, rows.n))


def conformal_threshold(
    proba: Any,
    y: Any,
    alpha: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    classes: Any = None,
) -> float:
    """Return the conformal risk control threshold: the expectation of JCW is at most alpha.

    The smallest e with n/(n+1) R(e) + 1/(n+1) <= alpha, where R(e) is the share of rows with a
    score strictly above e that are wrong (Angelopoulos et al. 2024, B = 1).

    Parameters
    ----------
    proba, y, score, predicted, classes
        As for `certify`.
    alpha : float in (0, 1)

    Returns
    -------
    float
        To be used with "strictly above"; ``inf`` where n < 1/alpha - 1.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> conformal_threshold(proba, [0, 0, 1, 0], alpha=0.2)
    0.7
    """
    alpha = check_fraction("alpha", alpha, "conformal_threshold")
    rows = score_rows(
        proba, y, score=score, predicted=predicted, classes=classes, owner="conformal_threshold"
    )
    most = _largest_count(alpha, rows.n + 1) - 1  # (K + 1) / (n + 1) <= alpha
    return math.inf if most < 0 else _first_excess_error(rows, most)


def _first_excess_error(rows: ScoredRows, most: int) -> float:
    """Return the score of the best-scored error that can no longer be afforded."""
    scores = np.compress(rows.wrong, rows.score)  # a third of the time of indexing by booleans
    if len(scores) <= most:
        return rows.lowest
    place = len(scores) - 1 - most
    return float(np.partition(scores, place)[place])


def _midway(rows: ScoredRows, most: int) -> float:
    """Return the smallest threshold, for "at or above", that accepts at most ``most`` errors."""
    if most < 0:
        return math.inf
    excess = _first_excess_error(rows, most)
    if excess == rows.lowest:
        return rows.lowest
    above = np.compress(rows.score > excess, rows.score)
    if len(above) == 0:
        return math.inf
    lowest_accepted = float(above.min())
    middle = excess / 2 + lowest_accepted / 2
    # Neighbouring floats have no middle.
    return middle if middle > excess else lowest_accepted


def _largest_count(alpha: float, n: int) -> int:
    """Return the largest k with k / n <= alpha, exactly as a reader would check it."""
    k = math.floor(alpha * n) + 1
    while k / n > alpha:  # the product may round up or down, the quotient decides
        k -= 1
    return k
