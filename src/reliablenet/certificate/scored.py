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
    labels = as_array(y, "y")
    if labels.ndim != 1 or len(labels) == 0:
        raise InvalidDataError(
            f"`y` of {owner} must be a non-empty vector; got shape {labels.shape}."
        )
    if proba is None:
        if score is None or predicted is None:
            raise InvalidParameterError(
                f"{owner} needs `proba`, or `score` and `predicted` with proba=None."
            )
        answers = as_array(predicted, "predicted")
        check_length("predicted", answers, len(labels), owner)
        if classes is not None:
            class_indices(labels, classes, owner)
            class_indices(answers, classes, owner, "predicted")
        elif (answers.dtype.kind in "OU") != (labels.dtype.kind in "OU"):
            raise InvalidDataError(
                f"`predicted` of {owner} must hold labels as `y` does; got {answers[0]!r} where "
                f"`y` has {labels[0]!r}. Translate column numbers into labels first."
            )
    else:
        if predicted is not None:
            raise InvalidParameterError(
                f"{owner} takes `predicted` only with proba=None: `proba` already decides it."
            )
        table = check_proba(proba, owner)
        check_length("proba", table[:, 0], len(labels), owner)
        confidence, answers = top_entries(table)
        labels = column_indices(labels, classes, table.shape[1], owner)
    if score is None:
        scores = confidence
    else:
        scores = as_array(score, "score")
        check_length("score", scores, len(labels), owner)
        if scores.dtype.kind not in "biuf":
            raise InvalidDataError(f"`score` of {owner} must hold numbers; got {scores.dtype}.")
        scores = scores.astype(np.float64)
    check_finite("score", scores, owner)
    return ScoredRows(scores, answers != labels, 0.0 if score is None else -np.inf)


def check_proba(proba: Any, owner: str) -> NDArray[np.float64]:
    """Return class probabilities as a float64 table of shape (n, K), or say what is wrong."""
    table = as_array(proba, "proba")
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidDataError(
            f"`proba` of {owner} must have shape (n, K) with K >= 2; got {table.shape}. "
            "For a vector p of P(class 1), pass np.column_stack([1 - p, p])."
        )
    if table.dtype.kind not in "fiu":
        raise InvalidDataError(f"`proba` of {owner} must hold numbers; got dtype {table.dtype}.")
    table = table.astype(np.float64, copy=False)
    sums = np.einsum("ij->i", table)  # a third of the time of a sum along short rows
    # NaN and infinities spoil the sum. Only a bad table is looked at closely.
    low, high = sums.min(initial=1.0), sums.max(initial=1.0)
    if 1.0 - SUM_TOLERANCE <= low <= high <= 1.0 + SUM_TOLERANCE and table.min(initial=0.0) >= 0.0:
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


def top_entries(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the largest entry of each row and the first column that holds it."""
    if table.shape[1] == 2:  # numpy goes along a row step by step, however short it is
        first, second = table.T
        return np.maximum(first, second), (second > first).astype(np.intp)
    column = table.argmax(axis=1)
    return table[np.arange(len(table)), column], column


def check_length(name: str, values: NDArray[Any], n: int, owner: str) -> None:
    """Raise unless the values are a vector with one entry for each label."""
    if values.shape != (n,):
        raise InvalidDataError(
            f"`{name}` of {owner} must have one entry for each of the {n} labels; "
            f"got shape {values.shape}."
        )


def column_indices(
    labels: NDArray[Any], classes: Any, n_columns: int, owner: str
) -> NDArray[np.intp]:
    """Return the column of each label; without ``classes`` a label is the number of its column."""
    numbers = classes is None and labels.dtype.kind in "iu"
    if numbers and labels.min() >= 0 and labels.max() < n_columns:
        return labels.astype(np.intp, copy=False)
    names = np.arange(n_columns) if classes is None else as_array(classes, "classes")
    if names.shape != (n_columns,):
        raise InvalidDataError(
            f"`classes` of {owner} must name the {n_columns} columns of `proba`; "
            f"got {names.size} names."
        )
    return class_indices(labels, names, owner)


def class_indices(
    labels: NDArray[Any], classes: Any, owner: str, name: str = "y"
) -> NDArray[np.intp]:
    """Return the position of each label among ``classes``, or name the labels that are not there."""
    names = as_array(classes, "classes")
    if names.ndim != 1 or len(set(names.tolist())) != len(names):
        raise InvalidDataError(
            f"`classes` of {owner} must be distinct labels; got {names.tolist()}."
        )
    index = _positions(labels, names)
    unknown = index < 0
    if unknown.any():
        strangers = list(dict.fromkeys(labels[unknown].tolist()))[:5]
        raise InvalidDataError(
            f"`{name}` of {owner} holds labels that are not among the {len(names)} known classes: "
            f"{strangers}. Known: {names.tolist()[:10]}. Give the column order with `classes=`, "
            "or leave those rows out."
        )
    return index


def _positions(labels: NDArray[Any], names: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of each label among the names, -1 where it is not there."""
    if labels.dtype.kind == names.dtype.kind and labels.dtype.kind in "iufU":
        order = np.argsort(names)
        place = np.searchsorted(names, labels, sorter=order).clip(max=len(names) - 1)
        found = order[place]
        return np.where(names[found] == labels, found, -1).astype(np.intp)
    lookup = {name: position for position, name in enumerate(names.tolist())}
    return np.array([lookup.get(label, -1) for label in labels.tolist()], dtype=np.intp)
