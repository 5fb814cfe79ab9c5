"""Labels and classes: which column each label is, which none is, and which only look different."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import as_array
from reliablenet._warn import warn_user
from reliablenet.errors import InvalidDataError, LabelWarning


def column_indices(
    labels: NDArray[Any], classes: Any, n_columns: int, owner: str
) -> NDArray[np.intp]:
    """Return the column of each label; without ``classes`` a label is the number of its column.

    A label that is none of ``classes`` has the column -1. Without ``classes`` a number that is no
    column is an error: it is more often a label of another kind than a class without a column.
    """
    numbers = classes is None and labels.dtype.kind in "iu"
    if numbers and labels.min() >= 0 and labels.max() < n_columns:
        return labels.astype(np.intp, copy=False)
    if classes is None:
        return class_indices(labels, np.arange(n_columns), owner)
    names = as_array(classes, "classes")
    if names.shape != (n_columns,):
        raise InvalidDataError(
            f"`classes` of {owner} must name the {n_columns} columns of `proba`; "
            f"got {names.size} names."
        )
    return known_indices(labels, names, owner)


def class_indices(
    labels: NDArray[Any], classes: Any, owner: str, name: str = "y"
) -> NDArray[np.intp]:
    """Return the position of each label among ``classes``, or name the labels that are not there."""
    names = _distinct(classes, owner)
    index = find_places(labels, names)
    unknown = index < 0
    if unknown.any():
        strangers = list(dict.fromkeys(labels[unknown].tolist()))
        raise InvalidDataError(
            f"`{name}` of {owner} holds labels that are not among the {len(names)} known classes: "
            f"{_listed(strangers)}. Known: {_listed(names.tolist())}. Give the names of the classes, in "
            "the order of the columns, with `classes=`."
        )
    return index


def known_indices(
    labels: NDArray[Any], classes: Any, owner: str, name: str = "y"
) -> NDArray[np.intp]:
    """Return the position of each label among ``classes``, -1 for a class that is not there.

    Whatever the model predicts for such a row is wrong, and a warning says of how many that is true.
    Labels that only differ from a known one in case or spaces, or of which none is known, are a
    mistake in the table and not another class.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.labels import known_indices
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     known_indices(np.array(["cat", "dog", "cow"]), ["cat", "dog"], "certify")
    array([ 0,  1, -1])
    """
    names = _distinct(classes, owner)
    index = find_places(labels, names)
    unknown = index < 0
    if unknown.any():
        strangers = list(dict.fromkeys(labels[unknown].tolist()))
        if any(label is None or label != label for label in strangers):
            raise InvalidDataError(
                f"`{name}` of {owner} must hold the truth of every row; it is missing in row "
                f"{next(i for i, label in enumerate(labels.tolist()) if label is None or label != label)}."
            )
        refuse_other_spelling(strangers, names.tolist(), owner, name)
        if unknown.all():
            raise InvalidDataError(
                f"None of the labels in `{name}` of {owner} is among the {len(names)} known classes: "
                f"got {_listed(strangers)}; known are {_listed(names.tolist())}."
            )
        warn_user(
            f"{int(unknown.sum())} of {len(labels)} rows have a label that the model does not know "
            f"({_listed(strangers)}): whatever it predicts for them is counted as wrong.",
            LabelWarning,
        )
    return index


def check_spelling(labels: NDArray[Any], answers: NDArray[Any], owner: str) -> None:
    """Raise where labels and predictions are texts that only case or spaces keep apart."""
    if labels.dtype.kind not in "OU":
        return
    true, said = set(labels.tolist()), set(answers.tolist())
    refuse_other_spelling(true - said, said - true, owner, "y")


def refuse_other_spelling(
    strangers: Iterable[Any], known: Iterable[Any], owner: str, name: str
) -> None:
    """Raise if a label that is not known differs from a known one in case or spaces alone."""
    plain = {label.strip().casefold(): label for label in known if isinstance(label, str)}
    for label in strangers:
        twin = plain.get(label.strip().casefold()) if isinstance(label, str) else None
        if twin is not None:
            raise InvalidDataError(
                f"`{name}` of {owner} holds {label!r} where the predictions say {twin!r}: they differ "
                "in case or spaces alone. Spell the labels alike."
            )


def _distinct(classes: Any, owner: str) -> NDArray[Any]:
    names = as_array(classes, "classes")
    if names.ndim != 1 or len(set(names.tolist())) != len(names):
        raise InvalidDataError(
            f"`classes` of {owner} must be distinct labels; got {names.tolist()}."
        )
    return names


def _listed(values: list[Any], most: int = 10) -> str:
    """Write labels, and how many more there are."""
    shown = f"[{', '.join(map(repr, values[:most]))}]"
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


def find_places(labels: NDArray[Any], names: NDArray[Any]) -> NDArray[np.intp]:
    """Return the place of each label among the names, -1 where it is not there."""
    if labels.dtype.kind == names.dtype.kind and labels.dtype.kind in "iufU":
        order = np.argsort(names)
        place = np.searchsorted(names, labels, sorter=order).clip(max=len(names) - 1)
        found = order[place]
        return np.where(names[found] == labels, found, -1).astype(np.intp)
    lookup = {name: position for position, name in enumerate(names.tolist())}
    return np.array([lookup.get(label, -1) for label in labels.tolist()], dtype=np.intp)
