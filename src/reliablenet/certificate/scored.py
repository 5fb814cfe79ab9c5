"""What every certificate and threshold is computed from: a score and a verdict for each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import as_array, check_finite
from reliablenet.errors import InvalidDataError, InvalidParameterError

SUM_TOLERANCE = 1e-3  # float16 probabilities of many classes are off by a few 1e-4


@dataclass(frozen=True)
class ScoredRows:
    """Rows reduced to their acceptance score (float64) and whether the prediction is wrong.

    ``lowest`` is a threshold that accepts every possible row: 0 for probabilities, else -inf.
    """

    score: NDArray[np.float64]
    wrong: NDArray[np.bool_]
    lowest: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.score)


def score_rows(
    proba: Any,
    y: Any,
    *,
    score: Any = None,
    predicted: Any = None,
    classes: Any = None,
    owner: str,
) -> ScoredRows:
    """Check predictions and labels, and reduce them to scores and verdicts.

    Either ``proba`` (its top entry is the score, its argmax the prediction), or ``proba=None``
    with ``score`` and ``predicted``. A ``score`` beside ``proba`` replaces the top entry only.
    """
    labels = as_array(y)
    if labels.ndim != 1 or len(labels) == 0:
        raise InvalidDataError(
            f"`y` of {owner} must be a non-empty vector; got shape {labels.shape}."
        )
    if proba is None:
        if score is None or predicted is None:
            raise InvalidParameterError(
                f"{owner} needs `proba`, or `score` and `predicted` with proba=None."
            )
        answers = as_array(predicted)
        if classes is not None:
            class_indices(labels, classes, owner)
    else:
        if predicted is not None:
            raise InvalidParameterError(
                f"{owner} takes `predicted` only with proba=None: `proba` already decides it."
            )
        table = check_proba(proba, owner)
        answers = table.argmax(axis=1)
        labels = class_indices(
            labels, np.arange(table.shape[1]) if classes is None else classes, owner
        )
        if classes is not None and len(as_array(classes)) != table.shape[1]:
            raise InvalidDataError(
                f"`classes` of {owner} must name the {table.shape[1]} columns of `proba`; "
                f"got {len(as_array(classes))} names."
            )
    if score is None:  # picking beats a second pass: a row-wise max costs three times as much
        scores = table[np.arange(len(table)), answers]
    else:
        scores = as_array(score).astype(np.float64)
    for name, values in (("score", scores), ("predicted", answers)):
        if values.shape != labels.shape:
            raise InvalidDataError(
                f"`{name if proba is None or name == 'score' else 'proba'}` of {owner} must have "
                f"one entry for each of the {len(labels)} labels; got shape {values.shape}."
            )
    check_finite("score", scores, owner)
    return ScoredRows(scores, answers != labels, 0.0 if score is None else -np.inf)


def check_proba(proba: Any, owner: str) -> NDArray[np.float64]:
    """Return class probabilities as a float64 table of shape (n, K), or say what is wrong."""
    table = as_array(proba)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidDataError(
            f"`proba` of {owner} must have shape (n, K) with K >= 2; got {table.shape}. "
            "For a vector p of P(class 1), pass np.column_stack([1 - p, p])."
        )
    if table.dtype.kind not in "fiu":
        raise InvalidDataError(f"`proba` of {owner} must hold numbers; got dtype {table.dtype}.")
    table = table.astype(np.float64, copy=False)
    sums = table.sum(axis=1)
    # One pass decides; NaN and infinities spoil the sum. Only a bad table is looked at closely.
    if np.all(np.abs(sums - 1.0) <= SUM_TOLERANCE) and table.min(initial=0.0) >= 0.0:
        return table
    check_finite("proba", table, owner)
    if table.min() < 0.0 or table.max() > 1.0:
        raise InvalidDataError(
            f"`proba` of {owner} must lie in [0, 1]; got values from {table.min():g} to "
            f"{table.max():g}. If these are logits, apply a softmax first."
        )
    row = int(np.abs(sums - 1.0).argmax())
    raise InvalidDataError(
        f"Each row of `proba` of {owner} must sum to 1; row {row} sums to {sums[row]:g}. "
        "Normalise the rows, or pass `score` and `predicted`."
    )


def class_indices(labels: NDArray[Any], classes: Any, owner: str) -> NDArray[np.intp]:
    """Return the position of each label among ``classes``, or name the labels that are not there."""
    names = as_array(classes)
    if names.ndim != 1 or len(set(names.tolist())) != len(names):
        raise InvalidDataError(f"`classes` of {owner} must be distinct labels; got {classes!r}.")
    order = np.argsort(names, kind="stable")
    try:
        place = np.searchsorted(names, labels, sorter=order).clip(max=len(names) - 1)
        index = order[place]
        unknown = names[index] != labels
    except (TypeError, np.exceptions.DTypePromotionError):
        unknown = np.ones(len(labels), bool)
    if np.any(unknown):
        strangers = list(dict.fromkeys(labels[unknown].tolist()))[:5]
        raise InvalidDataError(
            f"`y` of {owner} holds labels that are not among the {len(names)} known classes: "
            f"{strangers}. Known: {names.tolist()[:10]}. Give the column order with `classes=`, "
            "or leave those rows out."
        )
    return np.asarray(index, dtype=np.intp)
