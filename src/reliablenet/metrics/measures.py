"""The measures that are more than a count: calibration error, areas under the risk-coverage curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reliablenet._checks import as_array, check_count, check_finite
from reliablenet.errors import InvalidDataError

ECE_BINS = 15


def expected_calibration_error(
    confidence: ArrayLike, right: ArrayLike, bins: int = ECE_BINS
) -> float:
    """Return the mean distance between confidence and accuracy over equal-width bins of (0, 1].

    A confidence on the edge of two bins belongs to the lower one.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Probability of the predicted class, in [0, 1].
    right : array-like of bool of shape (n,)
        Whether the prediction is right.
    bins : int

    Returns
    -------
    float

    Examples
    --------
    >>> from reliablenet.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0.9, 0.9, 0.6], [True, False, True]), 3)
    0.4
    """
    owner = "expected_calibration_error"
    bins = check_count("bins", bins, owner)
    confidences, verdicts = _check_pairs("confidence", confidence, "right", right, owner)
    if confidences.min() < 0.0 or confidences.max() > 1.0:
        raise InvalidDataError(
            f"`confidence` of {owner} must lie in [0, 1]; got values from "
            f"{confidences.min():g} to {confidences.max():g}."
        )
    return calibration_error(confidences, verdicts, bins)


def area_under_risk_coverage(score: ArrayLike, wrong: ArrayLike) -> float:
    """Return the mean over k of the error rate among the k best-scored rows.

    Rows of equal score have no order, so that the error rate is averaged over all their orders:
    within a tie each further row brings the tie's mean error.

    Parameters
    ----------
    score : array-like of shape (n,)
        The higher, the earlier a row is accepted.
    wrong : array-like of bool of shape (n,)
        Whether the prediction is wrong.

    Returns
    -------
    float

    Examples
    --------
    >>> from reliablenet.metrics import area_under_risk_coverage
    >>> area_under_risk_coverage([0.9, 0.8, 0.7, 0.6], [False, False, False, True])
    0.0625
    """
    return ranked_areas(*_rank(score, wrong, "area_under_risk_coverage"))[0]


def excess_area_under_risk_coverage(score: ArrayLike, wrong: ArrayLike) -> float:
    """Return AURC minus the least that as many errors allow: the part that the ranking causes.

    The least is reached where every error is scored below every right row; it is summed row by
    row, not approximated by an integral, so that a perfect ranking has exactly 0.

    Parameters
    ----------
    score, wrong
        As for `area_under_risk_coverage`.

    Returns
    -------
    float
        Never negative.

    Examples
    --------
    >>> from reliablenet.metrics import excess_area_under_risk_coverage
    >>> excess_area_under_risk_coverage([0.9, 0.8, 0.7, 0.6], [False, False, False, True])
    0.0
    >>> excess_area_under_risk_coverage([0.5, 0.5, 0.5, 0.5], [False, False, False, True])
    0.1875
    """
    return ranked_areas(*_rank(score, wrong, "excess_area_under_risk_coverage"))[1]


def calibration_error(
    confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = ECE_BINS
) -> float:
    """Return what `expected_calibration_error` does, for rows that were checked before."""
    place = np.searchsorted(np.arange(1, bins) / bins, confidence, side="left")
    gaps = np.bincount(place, weights=confidence - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))


def falling_order(score: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the places of the rows from the highest score to the lowest."""
    return np.argsort(-score, kind="stable")


def ranked_areas(score: NDArray[np.float64], wrong: NDArray[np.bool_]) -> tuple[float, float]:
    """Return AURC and excess AURC of rows that stand in falling order of their score."""
    n = len(score)
    starts = np.flatnonzero(np.r_[True, score[1:] != score[:-1]])
    sizes = np.diff(np.r_[starts, n])
    errors = np.add.reduceat(wrong, starts, dtype=np.float64)
    area = _mean_risk(np.repeat(errors / sizes, sizes))
    least = _mean_risk(np.arange(n) >= n - np.count_nonzero(wrong))
    return area, area - least


def _mean_risk(errors: NDArray[Any]) -> float:
    """Return the mean over k of the mean of the first k."""
    return float((np.cumsum(errors) / np.arange(1, len(errors) + 1)).mean())


def _rank(
    score: ArrayLike, wrong: ArrayLike, owner: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    scores, verdicts = _check_pairs("score", score, "wrong", wrong, owner)
    order = falling_order(scores)
    return scores[order], verdicts[order]


def _check_pairs(
    name: str, values: ArrayLike, mark: str, marks: ArrayLike, owner: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return finite numbers and one boolean for each, or say what is wrong."""
    numbers, verdicts = as_array(values, name), as_array(marks, mark)
    if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iuf":
        raise InvalidDataError(
            f"`{name}` of {owner} must be a non-empty vector of numbers; got shape "
            f"{numbers.shape} and dtype {numbers.dtype}."
        )
    check_finite(name, numbers, owner)
    if verdicts.dtype != np.bool_:
        raise InvalidDataError(f"`{mark}` of {owner} must hold booleans; got {verdicts.dtype}.")
    if verdicts.shape != numbers.shape:
        raise InvalidDataError(
            f"`{mark}` of {owner} must have one entry for each of the {len(numbers)} rows; "
            f"got shape {verdicts.shape}."
        )
    return numbers.astype(np.float64), verdicts
