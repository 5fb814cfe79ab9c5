"""What `fit` is given: rows, labels and folds, checked; the folds that are missing are cut from the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from reliablenet._checks import as_array, parameter_error
from reliablenet._warn import warn_user
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.record import Unit
from reliablenet.errors import FoldWarning, InvalidDataError, ReuseWarning
from reliablenet.tables.column_arrays import ColumnArrays
from reliablenet.tables.copies import count_copies
from reliablenet.tables.folds import Fold, Folds, cut_parts
from reliablenet.tables.frames import pandas_of


def check_rows(model: BaseEstimator, X: Any, y: Any, *, reset: bool) -> Any:
    """Return rows as an array of floats or as the data frame they came in.

    Parameters
    ----------
    model : estimator
        Learns number and names of the features if ``reset``, else they must be those it knows.
    X : array, data frame or ColumnArrays
        Frames of polars, Arrow and the like become those of pandas. Arrays of columns were checked by
        whoever read them.
    y : array-like, None or "no_validation"
        Only looked at where it is missing.
    reset : bool
    """
    if isinstance(X, ColumnArrays):
        return X
    X = as_array(X) if hasattr(X, "detach") else pandas_of(X)
    owner = type(model).__name__
    if isinstance(X, pd.DataFrame):
        if reset or not _has_known_names(model, X, y):
            validate_data(model, X, y, reset=reset, skip_check_array=True)
        if len(X) == 0 or X.shape[1] == 0:
            raise InvalidDataError(
                f"Found array with 0 sample(s) or feature(s) (shape={X.shape}) while a minimum "
                f"of 1 is required by {owner}."
            )
        return X
    if y is None:
        validate_data(model, X, y)  # words the complaint as scikit-learn does
    try:
        # float32 stays as it is: images would take twice the memory
        return validate_data(model, X, reset=reset, dtype=[np.float64, np.float32], allow_nd=True)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise InvalidDataError(
            f"`X` of {owner} must hold numbers if it is an array; got text ({error}). Pass a data "
            "frame: its text columns become categories."
        ) from None


def _has_known_names(model: BaseEstimator, X: pd.DataFrame, y: Any) -> bool:
    """Tell whether a frame has the columns that a model knows, in their order: then all is well.

    scikit-learn finds the same out, and takes a tenth of the time of a decision about one row.
    """
    names = getattr(model, "feature_names_in_", None)
    return isinstance(y, str) and names is not None and X.columns.tolist() == names.tolist()


def check_labels(X: Any, y: Any, name: str) -> NDArray[Any]:
    """Return one label a row as an array, or say which is missing."""
    labels: NDArray[Any] = column_or_1d(as_array(y, "y"), warn=True)
    check_consistent_length(X, labels)
    # of a list of texts numpy makes NaN a text too
    mixed = labels.dtype.kind == "U" and isinstance(y, list | tuple)
    missing = pd.isna(column_or_1d(np.array(y, object)) if mixed else labels)
    if labels.dtype.kind == "f":
        missing |= np.isinf(labels)
    if missing.any():
        raise InvalidDataError(
            f"Input {name} contains infinity, NaN or a missing value in row "
            f"{int(missing.argmax())} ({int(missing.sum())} in all). Drop those rows."
        )
    return labels


def check_weights(n: int, sample_weight: Any = None) -> NDArray[np.float64] | None:
    """Return how much each of n rows counts in training, None if all count alike."""
    if sample_weight is None:
        return None
    given = as_array(sample_weight, "sample_weight")
    sound = given.shape == (n,) and given.dtype.kind in "biuf"
    if sound:
        weight: NDArray[np.float64] = given.astype(np.float64)
        sound = bool(np.isfinite(weight).all() and (weight >= 0.0).all() and weight.any())
    if not sound:
        raise parameter_error(
            "sample_weight",
            "fit",
            f"hold a number of at least 0 for each of the {n} rows, and not only zeros",
            _describe(given),
        )
    return weight


def _describe(values: NDArray[Any]) -> str:
    """Return what is to be seen of weights that are none."""
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        return f"shape {values.shape} of {values.dtype}"
    least, most = (float(end) if len(values) else 0.0 for end in (np.min(values), np.max(values)))
    return f"{len(values)} from {least:g} to {most:g}"


def _check_trained_weight(model: Any, train: Fold) -> None:
    """Raise if weights were given and there is nothing to train, or too little that counts."""
    weight = np.zeros(0) if train.weight is None else train.weight
    if len(train) == 0:
        expected, got = "be None: nothing is trained", "no rows to train on"
    elif not weight.any():
        expected, got = "leave rows with a weight to train on", "weights of 0 in the training fold"
    elif hasattr(model, "classes_") and len(np.unique(train.y[weight > 0])) < 2:
        expected, got = "leave rows of two classes with a weight to train on", "those of one"
    else:
        return
    raise parameter_error("sample_weight", "fit", expected, got)


@dataclass(frozen=True)
class FitFolds:
    """Folds whose `y` is encoded, and what the certification fold stands for.

    Attributes
    ----------
    folds : Folds
    numbers, selected, trained : integer arrays
        Numbers of the certification, the selection and the training rows in the table, -1 if the fold was
        given by itself.
    unit : {"row", "group"}
        What the certification rows are: rows, or one row of each group.
    beside : rows or None
        The other rows of those groups.
    """

    folds: Folds
    numbers: NDArray[np.intp]
    selected: NDArray[np.intp]
    unit: Unit
    trained: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    beside: Any = None


def make_folds(
    model: Any,
    X: Any,
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    selection: Any,
    certification: Any,
    groups: Any,
    random: np.random.RandomState,
) -> FitFolds:
    """Return the folds of a fit, cutting those that were not given.

    Parameters
    ----------
    model : SelectiveEstimator
        Knows what `y` holds, checks rows, and says how many go to each fold.
    X, y
        Checked rows and labels.
    weight : array of shape (n,) or None
        How much each row counts in training; those of a selection fold that was given count 1.
    selection, certification : pair (X, y), triple (X, y, groups), Fold or None
    groups : array-like of shape (n,) or None
    random : RandomState

    Returns
    -------
    FitFolds
    """
    target = model._target
    encoded = target.encode(model, y, "fit")
    chosen = None if selection is None else model._check_fold(selection, "selection")
    unit: Unit = "row" if groups is None else "group"
    held = beside = None
    if certification is not None:
        held, beside, unit = _certification(model, certification, random)
    there = [chosen is not None, held is not None]
    if groups is not None and all(there):
        raise parameter_error(
            "groups",
            "fit",
            "be None if both folds are given, because no fold is cut",
            type(groups).__name__,
            "Give the groups of a certification fold with it: certification=(X, y, groups).",
        )
    parts = cut_parts(
        target.strata(encoded),
        groups,
        lambda n: model._fold_counts(n, there),
        random,
        stratified=not model._promises_on_selection,
    )
    weights = [weight, weight, None]  # a certificate counts every row once
    folds = Folds(
        *(
            Fold(_safe_indexing(X, part), encoded[part], None if each is None else each[part])
            if fold is None
            else fold
            for fold, part, each in zip([None, chosen, held], parts, weights, strict=True)
        )
    )
    if weight is not None:
        _check_trained_weight(model, folds.train)
    numbers = parts[2] if held is None else np.full(len(held), -1)
    selected = parts[1] if chosen is None else np.full(len(chosen), -1)
    if held is None:
        beside = _others(X, len(encoded), *parts)
    return FitFolds(folds, numbers, selected, unit, parts[0], beside)


def check_pair(model: Any, pair: Any, name: str, *, groups: bool = False) -> tuple[Any, Any, Any]:
    """Return checked rows, labels and groups of a fold that a user gave."""
    expected = "be a pair (X, y)" + " or a triple (X, y, groups)" * groups
    try:
        X, y, *rest = _parts_of(pair)
    except (TypeError, ValueError):
        raise parameter_error(name, "fit", expected, type(pair).__name__) from None
    if len(rest) > groups:
        raise parameter_error(name, "fit", expected, f"{2 + len(rest)} parts")
    X = model._check_rows(X, reset=False)
    return X, check_labels(X, y, f"y of {name}"), rest[0] if rest else None


def _parts_of(pair: Any) -> Any:
    """Return the parts of a fold, which is a pair, a triple or a record."""
    return (pair.X, pair.y) if isinstance(pair, Fold) else pair


def given_parts(*pairs: Any) -> Iterator[Any]:
    """Yield the rows, labels and groups of all folds that a user gave."""
    for pair in pairs:
        if pair is not None:
            yield from (part for part in _parts_of(pair) if part is not None)


def _others(X: Any, n: int, *taken: NDArray[np.intp]) -> Any:
    """Return the rows of n that no part has taken; None if there are none."""
    left = np.ones(n, bool)
    left[np.concatenate(taken)] = False
    return _safe_indexing(X, np.flatnonzero(left)) if left.any() else None


def _certification(model: Any, pair: Any, random: np.random.RandomState) -> tuple[Fold, Any, Unit]:
    """Return the fold to certify on, one row of each group if it has groups, and their other rows."""
    X, labels, groups = check_pair(model, pair, "certification", groups=True)
    y = model._target.encode_fresh(model, labels, "the certification fold")
    if groups is None:
        return Fold(X, y), None, "row"
    drawn = draw_places(groups, len(y), int(random.randint(2**31 - 1)))
    return Fold(_safe_indexing(X, drawn), y[drawn]), _others(X, len(y), drawn), "group"


def warn_of_copies(folds: Folds, alpha: float) -> None:
    """Warn of certification rows that training or selection has seen."""
    found = count_copies(folds.certification, (folds.train, folds.selection))
    if found.suspicious:
        warn_user(
            f"{found.copies} of {found.n} certification rows ({found.share:.0%}) are copies of "
            "training or selection rows, label included. A model that has memorised them is right "
            "on the copies alone, so the share of other rows acted on wrongly may exceed alpha = "
            f"{alpha:g}. Drop duplicates, or give the copies of a row the same name in `groups`. "
            "If the source itself repeats its rows this often, the certificate holds for it.",
            FoldWarning,
        )


def warn_of_pipeline(model: Any, **folds: Any) -> None:
    """Warn of a rule behind other steps of a pipeline, which know its rows or do not change its folds.

    Parameters
    ----------
    model : estimator
    **folds
        ``selection`` and ``certification``, None where they are to be cut.
    """
    context: Any = getattr(model, "_parent_callback_ctx", None)  # scikit-learn says who calls `fit`
    if context is None or context.estimator_name != "Pipeline" or context.task_id == 0:
        return  # the first step of a pipeline has none before it
    name = type(model).__name__
    remedy = "Put the pipeline inside, CertifiedThreshold(make_pipeline(...))"
    given = [f"`{fold}`" for fold, rows in folds.items() if rows is not None]
    if given:
        warn_user(
            f"{name} is the last step of a Pipeline: the steps before it do not change the rows given "
            f"as {' and '.join(given)}. Unless they leave X as it is, the rule is chosen or certified "
            f"on other rows than it will meet. {remedy}, and give it the rows as they are.",
            FoldWarning,
        )
    if folds["certification"] is None:
        warn_user(
            f"{name} is the last step of a Pipeline: the steps before it have seen the rows that it "
            f"is going to certify on, so the certificate may be false. {remedy}.",
            ReuseWarning,
        )
