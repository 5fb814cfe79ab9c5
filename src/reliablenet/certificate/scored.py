"""What every certificate and threshold is computed from: a score and a verdict for each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import as_array, check_finite, is_flag
from reliablenet.certificate.labels import (
    LabelsSeen,
    check_spelling,
    class_indices,
    column_indices,
    known_indices,
)
from reliablenet.errors import InvalidDataError, InvalidParameterError

SUM_TOLERANCE = 1e-3  # float16 probabilities of many classes are off by a few 1e-4


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows as certificates, metrics and curves see them: a score and a verdict each.

    Attributes
    ----------
    score : array of shape (n,)
        What is compared with a threshold, float64.
    wrong : boolean array of shape (n,)
        Whether the prediction is wrong.
    lowest : float
        A threshold that accepts every possible row: 0 for probabilities, else -inf.
    top_probability : array of shape (n,), optional
        Probability of the predicted class, where there are probabilities.
    truth, predicted : array of shape (n,), optional
        Labels, or their places among the classes; numbers where there is a tolerance.
    unknown : boolean array of shape (n,), optional
        Whose class the model does not know; None if it knows all.
    group : array of shape (n,), optional
        Whose row each is, where several may belong together.
    by : dict of arrays of shape (n,), optional
        Columns whose values make the groups of a promise.
    tolerance : array of shape (n,), optional
        How far the predicted number may be off in each row, where numbers are predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> rows = ScoredRows(np.array([0.9, 0.8]), np.array([False, True]), lowest=0.0)
    >>> rows.n, rows.take([1]).wrong.tolist(), rows.label_counts()
    (2, [True], None)
    """

    score: NDArray[np.float64]
    wrong: NDArray[np.bool_]
    lowest: float
    top_probability: NDArray[np.float64] | None = None
    truth: NDArray[Any] | None = None
    predicted: NDArray[Any] | None = None
    unknown: NDArray[np.bool_] | None = None
    group: NDArray[Any] | None = None
    by: dict[str, NDArray[Any]] | None = None
    tolerance: NDArray[np.float64] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.score)

    @property
    def n_unknown(self) -> int:
        """Rows of a class that the model does not know."""
        return 0 if self.unknown is None else int(np.count_nonzero(self.unknown))

    def take(self, places: Any) -> ScoredRows:
        """Return some of the rows."""
        names = ("top_probability", "truth", "predicted", "unknown", "group", "tolerance")
        parts = {name: getattr(self, name) for name in names}
        taken = {name: None if part is None else part[places] for name, part in parts.items()}
        by = None if self.by is None else {name: part[places] for name, part in self.by.items()}
        return ScoredRows(self.score[places], self.wrong[places], self.lowest, **taken, by=by)

    def label_counts(self) -> Counter[Any] | None:
        """Return how often each true label occurs among the rows of known classes, if it is known."""
        if self.truth is None or self.tolerance is not None:
            return None
        truth = self.truth if self.unknown is None else self.truth[~self.unknown]
        if truth.dtype.kind not in "iu":
            return Counter(truth.tolist())
        if len(truth) and truth.min() >= 0 and truth.max() <= len(truth):  # a tenth of sorting
            every = np.bincount(truth)
            labels = np.flatnonzero(every)
            counts = every[labels]
        else:
            labels, counts = np.unique(truth, return_counts=True)
        return Counter(dict(zip(labels.tolist(), counts.tolist(), strict=True)))


def join_rows(parts: Sequence[ScoredRows]) -> ScoredRows:
    """Return rows of several batches as one; what one batch lacks, the whole lacks.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows, join_rows
    >>> half = ScoredRows(np.array([0.9]), np.array([False]), lowest=0.0)
    >>> join_rows([half, half]).score.tolist()
    [0.9, 0.9]
    """
    names = ("score", "wrong", "top_probability", "truth", "predicted", "group", "tolerance")
    columns = ([getattr(part, name) for part in parts] for name in names)
    joined: list[Any] = [
        None if any(v is None for v in column) else np.concatenate(column) for column in columns
    ]
    score, wrong, top_probability, truth, predicted, group, tolerance = joined
    unknown = np.concatenate(
        [np.zeros(part.n, bool) if part.unknown is None else part.unknown for part in parts]
    )
    known = None if not unknown.any() else unknown
    by = None
    if all(part.by is not None for part in parts):
        by = {name: np.concatenate([part.by[name] for part in parts]) for name in parts[0].by or {}}  # type: ignore[index]
    return ScoredRows(
        *(score, wrong, parts[0].lowest, top_probability, truth),
        *(predicted, known, group, by, tolerance),
    )


def score_rows(
    proba: Any,
    y: Any = None,
    *,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
    owner: str,
    seen: LabelsSeen | None = None,
) -> ScoredRows:
    """Check predictions and labels, and reduce them to scores and verdicts.

    Either ``proba`` (its top entry is the score, its argmax the prediction), or ``proba=None``
    with ``score`` and ``predicted``. A ``score`` beside ``proba`` replaces the top entry only.
    Or ``score`` and ``correct`` alone, where answers are no labels. Rows that are scored already
    are returned as they are.

    A label that is none of ``classes`` belongs to a class that the model does not know: whatever it
    predicts is wrong, and a `LabelWarning` says of how many rows that is true. Where ``seen`` is given,
    other rows will come, and what only all labels can tell is left for it to check.
    """
    if isinstance(proba, ScoredRows):
        if any(given is not None for given in (y, score, predicted, correct, classes)):
            raise InvalidParameterError(
                f"{owner} takes scored rows alone, without `y`: they already hold the truth."
            )
        return proba
    if correct is not None:
        others = {"proba": proba, "y": y, "predicted": predicted, "classes": classes}
        return _answered_rows(score, correct, others, owner)
    if y is None:
        raise InvalidParameterError(
            f"{owner} needs the truth of each row: `y`, or `correct` with `score`."
        )
    labels = as_array(y, "y")
    if labels.ndim != 1 or len(labels) == 0:
        raise InvalidDataError(
            f"`y` of {owner} must be a non-empty vector; got shape {labels.shape}."
        )
    top_probability: NDArray[np.float64] | None = None
    if proba is None:
        if score is None or predicted is None:
            raise InvalidParameterError(
                f"{owner} needs `proba`, or `score` and `predicted` with proba=None, or `score` "
                "and `correct` alone."
            )
        if predicted is y:
            raise InvalidParameterError(
                f"`predicted` of {owner} is `y` itself, so that every answer would be right. Give what "
                "the model answered."
            )
        answers = as_array(predicted, "predicted")
        check_length("predicted", answers, len(labels), owner)
        if classes is not None:
            labels = known_indices(labels, classes, owner, seen=seen)
            answers = class_indices(answers, classes, owner, "predicted")
        elif (answers.dtype.kind in "OU") != (labels.dtype.kind in "OU"):
            raise InvalidDataError(
                f"`predicted` of {owner} must hold labels as `y` does; got {answers[0]!r} where "
                f"`y` has {labels[0]!r}. Translate column numbers into labels first."
            )
        else:
            check_spelling(labels, answers, owner, seen)
    else:
        if predicted is not None:
            raise InvalidParameterError(
                f"{owner} takes `predicted` only with proba=None: `proba` already decides it."
            )
        table = check_proba(proba, owner)
        check_length("proba", table[:, 0], len(labels), owner)
        top_probability, answers = top_entries(table)
        labels = column_indices(labels, classes, table.shape[1], owner, seen)
    if score is None and top_probability is not None:
        scores = top_probability
    else:
        scores = check_score(score, len(labels), owner)
    lowest = 0.0 if score is None else -np.inf
    unknown = None if classes is None else _unknown(labels)
    return ScoredRows(scores, answers != labels, lowest, top_probability, labels, answers, unknown)


def _unknown(places: NDArray[np.intp]) -> NDArray[np.bool_] | None:
    """Return which rows are of a class that has no place; None if all have one."""
    unknown = places < 0
    return unknown if unknown.any() else None


def _answered_rows(score: Any, correct: Any, others: dict[str, Any], owner: str) -> ScoredRows:
    """Return rows of answers that are right or wrong, whatever they are."""
    for name, value in others.items():
        if value is not None:
            raise InvalidParameterError(
                f"{owner} takes `correct` with `score` alone: it already says which answers are "
                f"right. Leave out `{name}`, or `correct`."
            )
    if score is None:
        raise InvalidParameterError(
            f"{owner} needs a `score` beside `correct`: how sure each answer is, larger for surer."
        )
    right = check_correct(correct, owner)
    return ScoredRows(check_score(score, len(right), owner), ~right, -np.inf)


def check_correct(correct: Any, owner: str) -> NDArray[np.bool_]:
    """Return which answers are right: true and false, or 1 and 0.

    Examples
    --------
    >>> from reliablenet.certificate.scored import check_correct
    >>> check_correct([1, 0.0, True], "certify").tolist()
    [True, False, True]
    >>> check_correct([1, 0.5], "certify")
    Traceback (most recent call last):
        ...
    reliablenet.errors.InvalidDataError: `correct` of certify must hold true or false (or 1 and 0) for
    each answer; got 0.5 in row 1. Decide for each row whether its answer counts as right.
    """
    values = as_array(correct, "correct")
    if values.ndim != 1 or len(values) == 0:
        raise InvalidDataError(
            f"`correct` of {owner} must be a non-empty vector; got shape {values.shape}."
        )
    if values.dtype.kind in "biuf":
        plain = (values == 0) | (values == 1)
    else:  # gaps of a nullable column, or texts
        plain = np.array([is_flag(value) for value in values.tolist()])
    if not plain.all():
        row = int(plain.argmin())
        raise InvalidDataError(
            f"`correct` of {owner} must hold true or false (or 1 and 0) for each answer; got "
            f"{values.tolist()[row]!r} in row {row}. Decide for each row whether its answer counts as "
            "right."
        )
    return values.astype(np.bool_)


def proba_rows(
    proba: NDArray[np.float64], y: NDArray[np.intp], score: NDArray[np.float64] | None = None
) -> ScoredRows:
    """Return scores and verdicts of checked probabilities.

    Parameters
    ----------
    proba : array of shape (n, K)
    y : integer array of shape (n,)
        Places of the true classes among the columns, -1 for a class that has none.
    score : array of shape (n,), optional
        Acceptance score where it is not the top probability.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import proba_rows
    >>> rows = proba_rows(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, -1]))
    >>> rows.score.tolist(), rows.wrong.tolist(), rows.n_unknown
    ([0.9, 0.8], [False, True], 1)
    """
    top_probability, predicted = top_entries(proba)
    value, lowest = (top_probability, 0.0) if score is None else (score, -np.inf)
    return ScoredRows(value, predicted != y, lowest, top_probability, y, predicted, _unknown(y))


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


def check_score(score: Any, n: int | None, owner: str) -> NDArray[np.float64]:
    """Return scores as float64, one for each of n rows where their number is known, or say what is wrong."""
    scores = as_array(score, "score")
    if n is not None:
        check_length("score", scores, n, owner)
    elif scores.ndim != 1:
        raise InvalidDataError(f"`score` of {owner} must be a vector; got shape {scores.shape}.")
    if scores.dtype.kind not in "biuf":
        raise InvalidDataError(f"`score` of {owner} must hold numbers; got {scores.dtype}.")
    scores = scores.astype(np.float64)
    check_finite("score", scores, owner)
    return scores


def check_length(name: str, values: NDArray[Any], n: int, owner: str) -> None:
    """Raise unless the values are a vector with one entry for each label."""
    if values.shape != (n,):
        raise InvalidDataError(
            f"`{name}` of {owner} must have one entry for each of the {n} rows; "
            f"got shape {values.shape}."
        )
