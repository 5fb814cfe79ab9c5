"""Rules and labelled rows: certificates of a fixed threshold, and thresholds that rows allow."""

from __future__ import annotations

import math
from typing import Any

from reliablenet._checks import check_fraction, check_seed, parameter_error
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.judgement import (
    check_threshold_value,
    first_excess_error,
    judge,
    midway,
    warn_of_labels,
)
from reliablenet.certificate.partitions import any_dask, certify_dask
from reliablenet.certificate.record import Certificate, Unit
from reliablenet.certificate.scored import ScoredRows, score_rows


def certify(
    proba: Any = None,
    y: Any = None,
    threshold: float | None = None,
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
    groups: Any = None,
    random_state: int = 0,
) -> Certificate:
    """Certify a rule that was fixed before these rows were seen.

    The rows must be independent draws from the source that the rule will meet, used neither in
    training nor in the choice of the threshold.

    Parameters
    ----------
    proba : array-like of shape (n, K), optional
        Class probabilities; the largest is the score, its column the prediction.
    y : array-like of shape (n,), optional
        True labels: column numbers, or members of ``classes``. A label that is none of ``classes``
        counts as wrong, and a warning says how many there are.
    threshold : float
        The rule accepts a row whose score is at or above it. Must be given.
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability.
    score : array-like of shape (n,), optional
        Acceptance score where it is not the top probability; larger means surer. A score for
        which less is better is given with its sign turned.
    predicted : array-like of shape (n,), optional
        Predicted labels, without ``proba``.
    correct : array-like of shape (n,), optional
        Which answers are right, true or false (1 or 0), with ``score`` alone: for whatever can be
        judged right or wrong, such as texts of a language model, rankings or people's answers.
    classes : array-like of shape (K,), optional
        Labels of the columns of ``proba``.
    groups : array-like of shape (n,), optional
        Whose row each is, such as a person's. Rows of one group are not independent: one row of
        each, drawn at random, counts, and the certificate is about a random row of a new group.
    random_state : int
        For that draw. The same rows give the same certificate.

    Returns
    -------
    Certificate
        Of kind "fixed".

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet import certify
    >>> proba = np.tile([0.05, 0.95], (100, 1))
    >>> c = certify(proba, np.arange(100) > 0, threshold=0.9, alpha=0.05, classes=[False, True])
    >>> c.certified, c.errors, c.n
    (True, 1, 100)

    Any answers that are right or wrong:

    >>> c = certify(score=np.linspace(-9, 0, 100), correct=np.arange(100) > 0, threshold=-5)
    >>> c.certified, c.errors, c.accepted
    (True, 0, 56)
    """
    owner = "certify"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    given: dict[str, Any] = {"score": score, "predicted": predicted, "correct": correct}
    parts = {"proba": proba, "y": y, "groups": groups, **given}
    if any_dask(parts):
        at = _check_reachable(threshold, 0.0 if score is None else -math.inf, owner)
        more = {"classes": classes, "random_state": random_state}
        found: Certificate = certify_dask(parts, alpha, rho, owner=owner, fixed=at, **more)
        return found
    rows = score_rows(proba, y, classes=classes, owner=owner, **given)
    threshold = _check_reachable(threshold, rows.lowest, owner)
    rows, unit = _drawn(rows, groups, random_state, owner)
    warn_of_labels(rows)
    return judge(rows, alpha, rho, threshold, unit=unit)


def certified_threshold(
    proba: Any = None,
    y: Any = None,
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
    groups: Any = None,
    random_state: int = 0,
) -> Certificate:
    """Choose the smallest threshold whose bound holds there and at every threshold above it.

    Because JCW falls as the threshold rises, the choice on the certification fold itself needs no
    correction (Bates et al. 2021, risk-controlling prediction sets): with probability at least
    1 - rho, JCW at the returned threshold is at most alpha. The model must not have seen the fold.

    Parameters
    ----------
    proba, y, score, predicted, correct, classes, groups, random_state
        As for `certify`.
    alpha, rho : float in (0, 1)

    Returns
    -------
    Certificate
        Of kind "monotone". Its threshold lies midway between two observed scores; it is the lowest
        possible one where every row may be accepted, and ``inf`` where none can be certified.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet import certified_threshold
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 2000)
    >>> y = (rng.random(2000) > p).astype(int)       # calibrated: wrong with probability 1 - p
    >>> c = certified_threshold(np.column_stack([p, 1 - p]), y, alpha=0.05)
    >>> c.certified, c.errors, round(c.threshold, 3), round(c.coverage, 3)
    (True, 83, 0.795, 0.405)
    """
    owner = "certified_threshold"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    given: dict[str, Any] = {"score": score, "predicted": predicted, "correct": correct}
    parts = {"proba": proba, "y": y, "groups": groups, **given}
    if any_dask(parts):
        more = {"classes": classes, "random_state": random_state}
        found: Certificate = certify_dask(parts, alpha, rho, owner=owner, **more)
        return found
    rows = score_rows(proba, y, classes=classes, owner=owner, **given)
    rows, unit = _drawn(rows, groups, random_state, owner)
    warn_of_labels(rows)
    return judge(rows, alpha, rho, unit=unit)


def _check_reachable(threshold: Any, lowest: float, owner: str) -> float:
    """Return a threshold as a float if some score can reach it and some cannot."""
    value = check_threshold_value(threshold, owner)
    if lowest == 0.0 and not (0.0 <= value <= 1.0 or value == math.inf):
        raise parameter_error(
            "threshold", owner, "lie in [0, 1], as the score is a probability", value
        )
    return value


def _drawn(rows: ScoredRows, groups: Any, seed: int, owner: str) -> tuple[ScoredRows, Unit]:
    """Return the rows that count, one of each group if there are any, and what a row stands for."""
    if groups is None:
        return rows, "row"
    places = draw_places(groups, rows.n, check_seed("random_state", seed, owner))
    return rows.take(places), "group"


def jcw_threshold(
    proba: Any = None,
    y: Any = None,
    alpha: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
) -> float:
    """Return the most permissive threshold whose observed JCW is at most alpha; no certificate.

    Parameters
    ----------
    proba, y, score, predicted, correct, classes
        As for `certify`; rows of a selection fold.
    alpha : float in (0, 1)

    Returns
    -------
    float
        To be used with "at or above"; ``inf`` where no threshold keeps the budget.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet import jcw_threshold
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> round(jcw_threshold(proba, [0, 0, 1, 0], alpha=0.2), 3)
    0.75
    """
    alpha = check_fraction("alpha", alpha, "jcw_threshold")
    rows = score_rows(
        proba,
        y,
        score=score,
        predicted=predicted,
        correct=correct,
        classes=classes,
        owner="jcw_threshold",
    )
    return midway(rows, _largest_count(alpha, rows.n))


def conformal_threshold(
    proba: Any = None,
    y: Any = None,
    alpha: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
) -> float:
    """Return the conformal risk control threshold: the expectation of JCW is at most alpha.

    With e the smallest number such that n/(n+1) R(e) + 1/(n+1) <= alpha, where R(e) is the share of
    rows that are wrong and score more than e (Angelopoulos et al. 2024, B = 1), this is the next
    number above e.

    Parameters
    ----------
    proba, y, score, predicted, correct, classes
        As for `certify`.
    alpha : float in (0, 1)

    Returns
    -------
    float
        To be used with "at or above"; ``inf`` where n < 1/alpha - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet import conformal_threshold
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> threshold = conformal_threshold(proba, [0, 0, 1, 0], alpha=0.2)
    >>> (proba.max(axis=1) >= threshold).tolist()
    [True, True, False, False]
    """
    alpha = check_fraction("alpha", alpha, "conformal_threshold")
    rows = score_rows(
        proba,
        y,
        score=score,
        predicted=predicted,
        correct=correct,
        classes=classes,
        owner="conformal_threshold",
    )
    most = _largest_count(alpha, rows.n + 1) - 1  # (K + 1) / (n + 1) <= alpha
    if most < 0:
        return math.inf
    excess = first_excess_error(rows, most)
    if excess == rows.lowest:
        return rows.lowest
    nothing_above = rows.lowest == 0.0 and excess >= 1.0  # no probability is larger
    return math.inf if nothing_above else math.nextafter(excess, math.inf)


def _largest_count(alpha: float, n: int) -> int:
    """Return the largest k with k / n <= alpha, exactly as a reader would check it."""
    k = math.floor(alpha * n) + 1
    while k / n > alpha:  # the product may round up or down, the quotient decides
        k -= 1
    return k
