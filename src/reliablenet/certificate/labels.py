"""Labels and classes: the column of each label, labels without one, and labels that only look different."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import as_array
from reliablenet._listing import listed
from reliablenet._warn import warn_user
from reliablenet.errors import InvalidDataError, LabelWarning


def column_indices(
    labels: NDArray[Any],
    classes: Any,
    n_columns: int,
    owner: str,
    seen: LabelsSeen | None = None,
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
    return known_indices(labels, names, owner, seen=seen)


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
            f"{listed(strangers)}. Known: {listed(names.tolist())}. Give the names of the classes, in the "
            "order of the columns, with `classes=`."
        )
    return index


@dataclass
class LabelsSeen:
    """Labels of rows that come in parts, for the checks that need all of them.

    Attributes
    ----------
    n, unknown : int
        Rows, and those of a class that the model does not know.
    strangers : dict
        Such classes, in the order in which they came.
    true, said : set
        True and predicted labels, where the classes are not given.
    """

    n: int = 0
    unknown: int = 0
    strangers: dict[Any, None] = field(default_factory=dict)
    true: set[Any] = field(default_factory=set)
    said: set[Any] = field(default_factory=set)

    def merge(self, later: LabelsSeen) -> None:
        """Take in the labels of later rows."""
        self.n, self.unknown = self.n + later.n, self.unknown + later.unknown
        self.strangers |= later.strangers
        self.true |= later.true
        self.said |= later.said

    def check(self, classes: Any, owner: str, name: str = "y") -> None:
        """Raise if no label is known, or if only case or spaces keep some apart; warn of unknown ones."""
        refuse_other_spelling(self.true - self.said, self.said, owner, name)
        if not self.unknown:
            return
        strangers, known = list(self.strangers), as_array(classes).tolist()
        if self.unknown == self.n:
            raise InvalidDataError(
                f"None of the labels in `{name}` of {owner} is among the {len(known)} known classes: "
                f"got {listed(strangers)}; known are {listed(known)}."
            )
        warn_user(
            f"{self.unknown} of {self.n} rows have a label that the model does not know "
            f"({listed(strangers)}): whatever it predicts for them is counted as wrong.",
            LabelWarning,
        )


def known_indices(
    labels: NDArray[Any],
    classes: Any,
    owner: str,
    name: str = "y",
    seen: LabelsSeen | None = None,
) -> NDArray[np.intp]:
    """Return the position of each label among ``classes``, -1 for a class that is not there.

    Whatever the model predicts for such a row is wrong, and a warning says of how many that is true.
    Labels that only differ from a known one in case or spaces, or of which none is known, are a
    mistake in the table and not another class. Where ``seen`` is given, other rows will come: then what
    only all of them can tell is written down there.

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
    found = LabelsSeen(len(labels))
    if unknown.any():
        found.strangers = dict.fromkeys(labels[unknown].tolist())
        found.unknown = int(unknown.sum())
        if any(label is None or label != label for label in found.strangers):
            raise InvalidDataError(
                f"`{name}` of {owner} must hold the truth of every row; it is missing in row "
                f"{next(i for i, label in enumerate(labels.tolist()) if label is None or label != label)}."
            )
        refuse_other_spelling(found.strangers, names.tolist(), owner, name)
    if seen is None:
        found.check(names, owner, name)
    else:
        seen.merge(found)
    return index


def check_spelling(
    labels: NDArray[Any], answers: NDArray[Any], owner: str, seen: LabelsSeen | None = None
) -> None:
    """Raise where labels and predictions are texts that only case or spaces keep apart.

    Where ``seen`` is given, other rows will come, and the labels are written down there.
    """
    found = LabelsSeen(len(labels))
    if labels.dtype.kind in "OU":
        found.true, found.said = set(labels.tolist()), set(answers.tolist())
    if seen is None:
        found.check((), owner)
    else:
        seen.merge(found)


def warn_of_twins(classes: Iterable[Any], owner: str) -> None:
    """Warn if two classes differ in case or spaces alone: more often a slip than two classes."""
    first: dict[str, str] = {}
    for label in classes:
        if isinstance(label, str):
            twin = first.setdefault(_plain(label), label)
            if twin is not label:
                warn_user(
                    f"`y` of {owner} holds {twin!r} and {label!r}, which differ in case or spaces alone, "
                    "and they are taken for two classes. Spell them alike if they are one.",
                    LabelWarning,
                )


def refuse_other_spelling(
    strangers: Iterable[Any], known: Iterable[Any], owner: str, name: str
) -> None:
    """Raise if a label that is not known differs from a known one in case or spaces alone."""
    plain = {_plain(label): label for label in known if isinstance(label, str)}
    for label in strangers:
        twin = plain.get(_plain(label)) if isinstance(label, str) else None
        if twin is not None:
            raise InvalidDataError(
                f"`{name}` of {owner} holds {label!r} where the predictions say {twin!r}: they differ "
                "in case or spaces alone. Spell the labels alike."
            )


def _plain(label: str) -> str:
    return label.strip().casefold()


def _distinct(classes: Any, owner: str) -> NDArray[Any]:
    names = as_array(classes, "classes")
    if names.ndim != 1 or len(set(names.tolist())) != len(names):
        raise InvalidDataError(
            f"`classes` of {owner} must be distinct labels; got {names.tolist()}."
        )
    return names


def find_places(labels: NDArray[Any], names: NDArray[Any]) -> NDArray[np.intp]:
    """Return the place of each label among the names, -1 where it is not there."""
    if labels.dtype.kind == names.dtype.kind and labels.dtype.kind in "iufU":
        order = np.argsort(names)
        place = np.searchsorted(names, labels, sorter=order).clip(max=len(names) - 1)
        found = order[place]
        return np.where(names[found] == labels, found, -1).astype(np.intp)
    lookup = {name: position for position, name in enumerate(names.tolist())}
    return np.array([lookup.get(label, -1) for label in labels.tolist()], dtype=np.intp)
