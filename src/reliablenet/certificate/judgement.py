"""Scored rows judged: what they prove about a fixed threshold, or about the lowest that they allow.

Every threshold is the same question: which is the smallest that leaves at most ``most`` errors
accepted? The errors that are still affordable are decided once, and one selection over the wrong rows
answers it; no bound is computed per row.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from reliablenet._checks import is_real, parameter_error
from reliablenet._warn import warn_user
from reliablenet.certificate.bounds import coin_divergence
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.record import Certificate, Kind, Provenance, Unit
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import LabelWarning

IMPLAUSIBLE = 1e-9  # a chance at which bad luck is no explanation


def judge(
    rows: ScoredRows,
    alpha: float,
    rho: float,
    threshold: float | None = None,
    *,
    unit: Unit = "row",
    provenance: Provenance | None = None,
) -> Certificate:
    """Return what scored rows prove about a fixed threshold, or about the lowest that they allow.

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
    >>> from reliablenet.certificate.judgement import judge
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

    def merge(self, other: Count) -> None:
        """Take in what was counted of other rows."""
        for name in ("n", "accepted", "errors", "right", "unknown"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        known = self.labels is not None and other.labels is not None
        self.labels = self.labels + other.labels if known else None  # type: ignore[operator]
        self.mark.merge(other.mark)

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
        """Put the counts into a certificate; warn where the score looks inverted."""
        self._warn_of_ranking()
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

    def _warn_of_ranking(self) -> None:
        """Warn where rows acted on are wrong more often than all rows, beyond any bad luck."""
        wrong = self.n - self.right
        if self.errors * self.n <= wrong * self.accepted:
            return
        acted, among_all = self.errors / self.accepted, wrong / self.n
        # Hoeffding's bound of a sample without replacement; a threshold is one of at most n.
        chance = self.n * math.exp(-self.accepted * coin_divergence(acted, among_all))
        if chance < IMPLAUSIBLE:
            warn_user(
                f"Rows acted on are wrong more often ({acted:.1%}) than all rows ({among_all:.1%}): the "
                "higher the score, the more mistakes. If the score is yours and a low one means a sure answer, "
                "turn its sign.",
                LabelWarning,
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


def check_threshold_value(threshold: Any, owner: str) -> float:
    """Return a threshold as a float if scores can be compared with it."""
    if not is_real(threshold) or math.isnan(threshold):
        raise parameter_error("threshold", owner, "be a number", threshold)
    return float(threshold)


def first_excess_error(rows: ScoredRows, most: int) -> float:
    """Return the score of the best-scored error that can no longer be afforded."""
    scores = np.compress(rows.wrong, rows.score)  # a third of the time of indexing by booleans
    return first_excess(scores, most, rows.lowest)


def first_excess(scores: NDArray[np.float64], most: int, lowest: float) -> float:
    """Return the highest of the scores of errors that can no longer be afforded, or ``lowest``.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.judgement import first_excess
    >>> scores = np.array([0.7, 0.9, 0.8])
    >>> first_excess(scores, 1, 0.0), first_excess(scores, 3, 0.0)
    (0.8, 0.0)
    """
    if len(scores) <= most:
        return lowest
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
