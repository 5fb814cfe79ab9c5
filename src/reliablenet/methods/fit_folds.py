"""The folds of one fit: those that a user gives, and those that are cut from the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from reliablenet._checks import parameter_error
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.record import Unit
from reliablenet.certificate.scored import class_indices, known_indices
from reliablenet.methods.inputs import check_labels
from reliablenet.tables.folds import Fold, Folds, cut_parts


@dataclass(frozen=True)
class FitFolds:
    """Folds whose labels are class indices, and what the certification fold stands for.

    Attributes
    ----------
    folds : Folds
    numbers : integer array
        Numbers of the certification rows in the table, -1 if that fold was given by itself.
    unit : {"row", "group"}
        What the certification rows are: rows, or one row of each group.
    """

    folds: Folds
    numbers: NDArray[np.intp]
    unit: Unit


def make_folds(
    model: Any,
    X: Any,
    y: NDArray[Any],
    selection: Any,
    certification: Any,
    groups: Any,
    random: np.random.RandomState,
) -> FitFolds:
    """Return the folds of a fit, cutting those that were not given.

    Parameters
    ----------
    model : SelectiveClassifier
        Knows its classes, checks rows, and says how many go to each fold.
    X, y
        Checked rows and labels.
    selection, certification : pair (X, y), triple (X, y, groups), Fold or None
    groups : array-like of shape (n,) or None
    random : RandomState

    Returns
    -------
    FitFolds
    """
    indices = class_indices(y, model.classes_, "fit")
    chosen = None if selection is None else model._check_fold(selection, "selection")
    unit: Unit = "row" if groups is None else "group"
    held = None
    if certification is not None:
        held, unit = _certification(model, certification, random)
    there = [chosen is not None, held is not None]
    if groups is not None and all(there):
        raise parameter_error(
            "groups",
            "fit",
            "be None if both folds are given: nothing is cut",
            type(groups).__name__,
            "The groups of a certification fold go with it: certification=(X, y, groups).",
        )
    parts = cut_parts(
        indices,
        groups,
        lambda n: model._fold_counts(n, there),
        random,
        stratified=not model._promises_on_selection,
    )
    folds = Folds(
        *(
            Fold(_safe_indexing(X, part), indices[part]) if fold is None else fold
            for fold, part in zip([None, chosen, held], parts, strict=True)
        )
    )
    return FitFolds(folds, parts[2] if held is None else np.full(len(held), -1), unit)


def check_pair(model: Any, pair: Any, name: str, *, groups: bool = False) -> tuple[Any, Any, Any]:
    """Return checked rows, labels and groups of a fold that a user gave."""
    expected = "be a pair (X, y)" + " or a triple (X, y, groups)" * groups
    try:
        X, y, *rest = parts_of(pair)
    except (TypeError, ValueError):
        raise parameter_error(name, "fit", expected, type(pair).__name__) from None
    if len(rest) > groups:
        raise parameter_error(name, "fit", expected, f"{2 + len(rest)} parts")
    X = model._check_rows(X, reset=False)
    return X, check_labels(X, y, f"y of {name}"), rest[0] if rest else None


def parts_of(pair: Any) -> Any:
    """Return the parts of a fold, which is a pair, a triple or a record."""
    return (pair.X, pair.y) if isinstance(pair, Fold) else pair


def _certification(model: Any, pair: Any, random: np.random.RandomState) -> tuple[Fold, Unit]:
    """Return the fold to certify on, one row of each group if it has groups."""
    X, labels, groups = check_pair(model, pair, "certification", groups=True)
    y = known_indices(labels, model.classes_, "the certification fold")
    if groups is None:
        return Fold(X, y), "row"
    drawn = draw_places(groups, len(y), int(random.randint(2**31 - 1)))
    return Fold(_safe_indexing(X, drawn), y[drawn]), "group"
