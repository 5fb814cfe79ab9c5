"""How good a rule is: scalar metrics of predictions, acceptances and confidences."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import as_array
from reliablenet.certificate.scored import check_length, score_rows
from reliablenet.errors import InvalidDataError

ECE_BINS = 15


@dataclass(frozen=True)
class Evaluation:
    """All metrics of one rule on one set of rows.

    Attributes
    ----------
    n, accepted, errors : int
        Rows, accepted rows, accepted and wrong rows (K).
    accuracy : float
        Share of right predictions, accepted or not.
    coverage, jcw, throughput : float
        Share of rows accepted; accepted and wrong; accepted and right.
    accuracy_accepted : float
        Share of right predictions among the accepted; NaN if none is accepted.
    ece : float
        Expected calibration error of the top probability, 15 equal-width bins.
    wce_accepted : float
        Coverage times the distance between mean confidence and accuracy of accepted rows.
    aurc : float
        Area under the risk-coverage curve of the acceptance score, ties averaged.
    """

    n: int
    accepted: int
    errors: int
    accuracy: float
    coverage: float
    accuracy_accepted: float
    jcw: float
    throughput: float
    ece: float
    wce_accepted: float
    aurc: float

    def to_dict(self) -> dict[str, float]:
        """Return the metrics by name."""
        return asdict(self)


def evaluate(
    proba: Any, y: Any, *, accepted: Any, score: Any = None, classes: Any = None
) -> Evaluation:
    """Measure a rule that accepts the rows marked in ``accepted``.

    Parameters
    ----------
    proba : array-like of shape (n, K)
    y : array-like of shape (n,)
        Column numbers, or members of ``classes``.
    accepted : array-like of bool of shape (n,)
    score : array-like of shape (n,), optional
        Acceptance score, for AURC; by default the top probability.
    classes : array-like of shape (K,), optional

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    >>> e = evaluate(proba, [0, 1, 1], accepted=[True, True, False])
    >>> e.errors, e.accepted, round(e.jcw, 3), round(e.aurc, 3)
    (1, 2, 0.333, 0.278)
    """
    rows = score_rows(proba, y, score=score, classes=classes, owner="evaluate")
    confidence = as_array(proba).max(axis=1).astype(np.float64)
    wrong, chosen = rows.wrong, as_array(accepted)
    check_length("accepted", chosen, rows.n, "evaluate")
    if chosen.dtype != np.bool_:
        raise InvalidDataError(
            f"`accepted` of evaluate must hold booleans; got {chosen.dtype}. Compare the score "
            "with the threshold first."
        )
    n, taken, errors = rows.n, int(chosen.sum()), int((chosen & wrong).sum())
    right_share = (taken - errors) / taken if taken else np.nan
    mean_confidence = float(confidence[chosen].mean()) if taken else np.nan
    return Evaluation(
        n=n,
        accepted=taken,
        errors=errors,
        accuracy=1.0 - float(wrong.mean()),
        coverage=taken / n,
        accuracy_accepted=right_share,
        jcw=errors / n,
        throughput=(taken - errors) / n,
        ece=expected_calibration_error(confidence, ~wrong),
        wce_accepted=taken / n * abs(mean_confidence - right_share) if taken else 0.0,
        aurc=area_under_risk_coverage(rows.score, wrong),
    )


def expected_calibration_error(
    confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = ECE_BINS
) -> float:
    """Return the mean distance between confidence and accuracy over equal-width bins of (0, 1].

    A confidence on the edge of two bins belongs to the lower one.
    """
    edges = np.arange(1, bins) / bins
    place = np.searchsorted(edges, confidence, side="left")
    gaps = np.bincount(place, weights=confidence - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def area_under_risk_coverage(score: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float:
    """Return the mean over k of the error rate among the k best-scored rows.

    Rows of equal score have no order, so that the error rate is averaged over all their orders:
    within a tie each further row brings the tie's mean error.
    """
    order = np.argsort(-score, kind="stable")
    ordered, errors = score[order], wrong[order].astype(np.float64)
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, len(ordered)])
    expected = np.repeat(np.add.reduceat(errors, starts) / sizes, sizes)
    return float((np.cumsum(expected) / np.arange(1, len(ordered) + 1)).mean())
