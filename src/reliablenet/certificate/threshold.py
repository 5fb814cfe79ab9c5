"""Rules and labelled rows: certificates of a fixed threshold, and thresholds that rows allow.

All three are the same question: which is the smallest threshold that leaves at most ``most`` errors
accepted? They differ in ``most`` alone, so the errors that are still affordable are decided once,
and one selection over the wrong rows answers it; no bound is computed per row.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import bdtr

from reliablenet._checks import check_fraction, check_seed, is_real, parameter_error
from reliablenet._warn import warn_user
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.record import Certificate, Kind, Provenance, Unit
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import LabelWarning

IMPLAUSIBLE = 1e-9  # a chance at which bad luck is no explanation


def certify(
    proba: Any,
    y: Any,
    threshold: float,
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    classes: Any = None,
    groups: Any = None,
    random_state: int = 0,
) -> Certificate:
    """Certify a rule that was fixed before these rows were seen.

    The rows must be independent draws from the source that the rule will meet, used neither in
    training nor in the choice of the threshold.

    Parameters
    ----------
    proba : array-like of shape (n, K), or None
        Class probabilities; the largest is the score, its column the prediction.
    y : array-like of shape (n,)
        True labels: column numbers, or members of ``classes``. A label that is none of ``classes``
        counts as wrong, and a warning says how many there are.
    threshold : float
        The rule accepts a row whose score is at or above it.
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability.
    score : array-like of shape (n,), optional
        Acceptance score where it is not the top probability.
    predicted : array-like of shape (n,), optional
        Predicted labels, with ``proba=None``.
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
    """
    owner = "certify"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    rows = score_rows(proba, y, score=score, predicted=predicted, classes=classes, owner=owner)
    check_threshold_value(threshold, owner)
    if score is None and not (0.0 <= threshold <= 1.0 or threshold == math.inf):
        raise parameter_error(
            "threshold", owner, "lie in [0, 1], as the score is a probability", threshold
        )
    rows, unit = _drawn(rows, groups, random_state, owner)
    warn_of_labels(rows)
    return judge(rows, alpha, rho, float(threshold), unit=unit)


def certified_threshold(
    proba: Any,
    y: Any,
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
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
    proba, y, score, predicted, classes, groups, random_state
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
    rows = score_rows(proba, y, score=score, predicted=predicted, classes=classes, owner=owner)
    rows, unit = _drawn(rows, groups, random_state, owner)
    warn_of_labels(rows)
    return judge(rows, alpha, rho, unit=unit)


def judge(
    rows: ScoredRows,
    alpha: float,
    rho: float,
    threshold: float | None = None,
    *,
    unit: Unit = "row",
    provenance: Provenance | None = None,
) -> Certificate:
    """Return what scored rows prove: of a threshold fixed beforehand, or of the lowest that they allow.

    This is the one place in which a certification fold is opened and a rule judged by it.

    Parameters
    ----------
    rows : ScoredRows
        Of the certification fold; with groups, one row of each.
    alpha, rho : float in (0, 1)
    threshold : float, optional
        None for the lowest threshold that can be certified.
    unit : {"row", "group"}
    provenance : Provenance, optional
        What is known of model and rows; the fingerprint of scores and verdicts is added here.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> from reliablenet.certificate.threshold import judge
    >>> rows = ScoredRows(np.linspace(0.5, 1.0, 100), np.arange(100) < 20, lowest=0.0)
    >>> judge(rows, 0.05, 0.05, threshold=0.8).accepted, judge(rows, 0.05, 0.05).accepted
    (40, 81)
    """
    kind: Kind = "monotone" if threshold is None else "fixed"
    if threshold is None:
        threshold = midway(rows, largest_certifiable_errors(rows.n, alpha, rho))
    accepted = rows.score >= threshold
    count = Count(
        n=rows.n,
        accepted=int(np.count_nonzero(accepted)),
        errors=int(np.count_nonzero(accepted & rows.wrong)),
        unit=unit,
    )
    count.look(rows)
    return count.certificate(alpha, rho, threshold, kind, provenance)


@dataclass
class Count:
    """What is counted of certification rows, at once or batch by batch."""

    n: int = 0
    accepted: int = 0
    errors: int = 0
    right: int = 0
    unknown: int = 0
    unit: Unit = "row"
    labels: Counter[Any] | None = field(default_factory=Counter)
    mark: Fingerprint = field(default_factory=Fingerprint)

    def look(self, rows: ScoredRows) -> None:
        """Take in what does not depend on the threshold."""
        found = rows.label_counts()
        self.labels = None if self.labels is None or found is None else self.labels + found
        self.right += int(np.count_nonzero(~rows.wrong))
        self.unknown += rows.n_unknown
        # the last bits of a score depend on the order of rows and on the machine; a model does not
        with np.errstate(over="ignore"):
            self.mark.add(rows.score.astype(np.float32), rows.wrong)

    def warn_of_labels(self) -> None:
        """Warn where labels look mistaken."""
        _warn_of_labels(self.right, self.n, self.labels)

    def certificate(
        self,
        alpha: float,
        rho: float,
        threshold: float,
        kind: Kind,
        provenance: Provenance | None = None,
    ) -> Certificate:
        """Put the counts into a certificate."""
        return Certificate(
            errors=self.errors,
            accepted=self.accepted,
            n=self.n,
            alpha=alpha,
            rho=rho,
            threshold=float(threshold),
            kind=kind,
            unit=self.unit,
            commonest=None if self.labels is None else max(self.labels.values(), default=0),
            unknown=self.unknown,
            provenance=replace(provenance or Provenance(), model=self.mark.text()),
        )


def warn_of_labels(rows: ScoredRows) -> None:
    """Warn where fewer predictions are right than guesses would be: labels look mistaken."""
    _warn_of_labels(int(np.count_nonzero(~rows.wrong)), rows.n, rows.label_counts())


def _warn_of_labels(right: int, n: int, labels: Counter[Any] | None) -> None:
    classes = len(labels or ())
    if classes > 1 and bdtr(right, n, 1.0 / classes) < IMPLAUSIBLE:
        warn_user(
            f"Only {right:,} of {n:,} predictions are right, fewer than guessing among {classes} labels "
            "would get. Are probability columns or labels swapped?",
            LabelWarning,
        )


def check_threshold_value(threshold: Any, owner: str) -> None:
    """Raise unless a threshold is a number that scores can be compared with."""
    if not is_real(threshold) or math.isnan(threshold):
        raise parameter_error("threshold", owner, "be a number", threshold)


def _drawn(rows: ScoredRows, groups: Any, seed: int, owner: str) -> tuple[ScoredRows, Unit]:
    """Return the rows that count, one of each group if there are any, and what a row stands for."""
    if groups is None:
        return rows, "row"
    places = draw_places(groups, rows.n, check_seed("random_state", seed, owner))
    return rows.take(places), "group"


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
    >>> import numpy as np
    >>> from reliablenet import jcw_threshold
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> round(jcw_threshold(proba, [0, 0, 1, 0], alpha=0.2), 3)
    0.75
    """
    alpha = check_fraction("alpha", alpha, "jcw_threshold")
    rows = score_rows(
        proba, y, score=score, predicted=predicted, classes=classes, owner="jcw_threshold"
    )
    return midway(rows, _largest_count(alpha, rows.n))


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

    With e the smallest number such that n/(n+1) R(e) + 1/(n+1) <= alpha, where R(e) is the share of
    rows that are wrong and score more than e (Angelopoulos et al. 2024, B = 1), this is the next
    number above e.

    Parameters
    ----------
    proba, y, score, predicted, classes
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
        proba, y, score=score, predicted=predicted, classes=classes, owner="conformal_threshold"
    )
    most = _largest_count(alpha, rows.n + 1) - 1  # (K + 1) / (n + 1) <= alpha
    if most < 0:
        return math.inf
    excess = first_excess_error(rows, most)
    if excess == rows.lowest:
        return rows.lowest
    nothing_above = rows.lowest == 0.0 and excess >= 1.0  # no probability is larger
    return math.inf if nothing_above else math.nextafter(excess, math.inf)


def first_excess_error(rows: ScoredRows, most: int) -> float:
    """Return the score of the best-scored error that can no longer be afforded."""
    scores = np.compress(rows.wrong, rows.score)  # a third of the time of indexing by booleans
    if len(scores) <= most:
        return rows.lowest
    place = len(scores) - 1 - most
    return float(np.partition(scores, place)[place])


def midway(rows: ScoredRows, most: int) -> float:
    """Return the smallest threshold, for "at or above", that accepts at most ``most`` errors."""
    if most < 0:
        return math.inf
    excess = first_excess_error(rows, most)
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
