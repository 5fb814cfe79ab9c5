"""`Rule`: which rows to act on, by one threshold or one for each group or predicted class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import as_array, is_real, parameter_error
from reliablenet.certificate.promise import Label, plain_label
from reliablenet.certificate.scored import check_length, check_proba, check_score, top_entries
from reliablenet.errors import InvalidDataError, InvalidParameterError

ALL = "all"  # the key of a threshold that every row shares


@dataclass(frozen=True)
class Thresholds:
    """Thresholds for the values of one key; a row is accepted at or above that of its value.

    Attributes
    ----------
    key : tuple of str
        ``("all",)``, ``("predicted",)``, or the columns that make the groups.
    values : dict
        Threshold of each value; ``inf`` defers its rows. A value that is not there is deferred.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.rule import Thresholds
    >>> table = Thresholds(("race",), {"A": 0.8, "B": 0.9})
    >>> table.accept(np.array([0.85, 0.85, 0.99]), np.array(["A", "B", "C"])).tolist()
    [True, False, False]
    """

    key: tuple[str, ...]
    values: dict[Label, float]

    def __post_init__(self) -> None:
        for label, threshold in self.values.items():
            if not isinstance(label, Label):
                raise parameter_error("values", "Thresholds", "name texts or numbers", label)
            if not is_real(threshold) or math.isnan(threshold):
                raise parameter_error("threshold", "Thresholds", "be a number", threshold)

    def accept(
        self, score: NDArray[np.float64], labels: NDArray[Any] | None = None
    ) -> NDArray[np.bool_]:
        """Tell which rows reach the threshold of their value."""
        if self.key == (ALL,):
            return score >= self.values[ALL]
        limit = self.limits(len(score), labels)
        # nothing reaches "no threshold", not even an infinite score
        return (score >= limit) & (limit < np.inf)

    def limits(self, n: int, labels: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Return the threshold of each of n rows, ``inf`` where its value has none."""
        if self.key == (ALL,):
            return np.full(n, self.values[ALL])
        limit = np.full(n, np.inf)
        codes, names = factorize(np.asarray(labels))
        for code, name in enumerate(names):
            limit[codes == code] = self.values.get(plain_label(name), np.inf)
        return limit


@dataclass(frozen=True)
class Rule:
    """Which rows to act on.

    Attributes
    ----------
    tables : tuple of Thresholds
        A row is accepted where all of them accept it.
    classes : tuple, optional
        Labels of the columns of the probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.rule import Rule, Thresholds
    >>> rule = Rule((Thresholds(("race",), {"A": 0.8, "B": 0.9}),))
    >>> proba = np.array([[0.85, 0.15], [0.15, 0.85]])
    >>> rule.accept(proba, by=["A", "B"]).tolist()
    [True, False]
    >>> rule.thresholds
    {'A': 0.8, 'B': 0.9}
    """

    tables: tuple[Thresholds, ...]
    classes: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        if not self.tables:
            raise InvalidDataError("A rule needs at least one threshold.")

    @property
    def thresholds(self) -> dict[Label, float]:
        """The threshold of each group or predicted class; of "all" where there is only one.

        Where several keys play a part, names say of which: ``race=A``.
        """
        if len(self.tables) == 1:
            return dict(self.tables[0].values)
        return {
            key_name(table.key, label): value
            for table in self.tables
            for label, value in table.values.items()
        }

    @property
    def threshold(self) -> float:
        """The lowest threshold: rows below it are never acted on. ``inf`` where no row is."""
        return max(min(table.values.values(), default=math.inf) for table in self.tables)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that must be known to decide."""
        named = (name for table in self.tables for name in table.key)
        return tuple(dict.fromkeys(name for name in named if name not in (ALL, "predicted")))

    def values_of(self, column: str) -> list[Label]:
        """Return the values of a column that the rule knows: its own, then texts of those it is crossed in.

        Examples
        --------
        >>> from reliablenet.certificate.rule import Rule, Thresholds
        >>> Rule((Thresholds(("ward", "sex"), {"A, f": 0.9, "A, m": 0.8}),)).values_of("sex")
        ['f', 'm']
        """
        found: dict[Label, None] = {}
        for table in sorted(self.tables, key=lambda table: len(table.key)):
            if column in table.key:
                parts = (parted(label, table.key) for label in table.values)
                place = table.key.index(column)
                found |= {part[place]: None for part in parts if len(part) == len(table.key)}
        return list(found)

    def accept(
        self, proba: Any = None, by: Any = None, score: Any = None, predicted: Any = None
    ) -> NDArray[np.bool_]:
        """Tell for each row whether to act on its prediction.

        Parameters
        ----------
        proba : array-like of shape (n, K), optional
            Its top entry is the score, its argmax the prediction.
        by : array-like of shape (n,), or mapping or data frame of columns, optional
            Group of each row. A group that the rule does not know, or that is missing, is deferred.
        score : array-like of shape (n,), optional
            Acceptance score, if it is not the top entry.
        predicted : array-like of shape (n,), optional
            Predicted labels, with ``proba=None``.

        Returns
        -------
        boolean array of shape (n,)
        """
        owner = "Rule.accept"
        answers: NDArray[Any] | None = None
        values: NDArray[Any] | None = None
        if proba is not None:
            values, columns = top_entries(check_proba(proba, owner))
            answers = columns if self.classes is None else np.array(self.classes, object)[columns]
        if score is not None:
            values = check_score(score, None if values is None else len(values), owner)
        if values is None:
            raise InvalidParameterError(f"{owner} needs `proba`, or `score`.")
        if predicted is not None:
            if proba is not None:
                raise InvalidParameterError(
                    f"{owner} takes `predicted` only with proba=None: `proba` already decides it."
                )
            answers = as_array(predicted, "predicted")
            check_length("predicted", answers, len(values), owner)
        accepted = np.ones(len(values), bool)
        for table, labels in self._labelled(len(values), by, answers, owner):
            accepted &= table.accept(values, labels)
        return accepted

    def limits(self, n: int, by: Any = None, predicted: Any = None) -> NDArray[np.float64]:
        """Return the score from which on each of n rows is accepted, ``inf`` where no score is enough.

        Parameters
        ----------
        n : int
        by, predicted : optional
            As for `accept`, where the thresholds depend on them.

        Returns
        -------
        array of shape (n,)

        Examples
        --------
        >>> from reliablenet.certificate.rule import Rule, Thresholds
        >>> Rule((Thresholds(("ward",), {"A": 0.9, "B": 0.7}),)).limits(3, by=["A", "B", "C"])
        array([0.9, 0.7, inf])
        """
        limit = np.full(n, -np.inf)
        answers = None if predicted is None else as_array(predicted, "predicted")
        for table, labels in self._labelled(n, by, answers, "Rule.limits"):
            limit = np.maximum(limit, table.limits(n, labels))
        return limit

    def _labelled(
        self, n: int, by: Any, answers: NDArray[Any] | None, owner: str
    ) -> Iterator[tuple[Thresholds, NDArray[Any] | None]]:
        """Yield each table of thresholds with the value of each row that it asks for."""
        groups = columns_of(by, self.columns, n, owner) if self.columns else {}
        for table in self.tables:
            labels = crossed(groups, table.key) if table.key[0] in groups else answers
            if table.key == ("predicted",) and labels is None:
                raise InvalidParameterError(
                    f"{owner} needs `predicted` (or `proba`): the threshold depends on the prediction."
                )
            yield table, labels

    def without_threshold(self, by: Mapping[str, NDArray[Any]]) -> dict[Label | None, int]:
        """Count the rows of groups that the rule always defers, by group; None where it is missing.

        Examples
        --------
        >>> import math
        >>> import numpy as np
        >>> from reliablenet.certificate.rule import Rule, Thresholds
        >>> rule = Rule((Thresholds(("ward",), {"A": 0.9, "B": math.inf}),))
        >>> rule.without_threshold({"ward": np.array(["A", "B", "C", None], object)})
        {'B': 1, 'C': 1, None: 1}
        """
        found: dict[Label | None, int] = {}
        for table in self.tables:
            if not set(table.key) <= set(by):
                continue
            codes, names = factorize(crossed(by, table.key))
            labels = [*map(plain_label, names), None]  # what is missing has the code -1
            counts = np.bincount(codes % len(labels), minlength=len(labels))
            for label, count in zip(labels, counts, strict=True):
                if count and (label is None or table.values.get(label, math.inf) == math.inf):
                    found[label] = found.get(label, 0) + int(count)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; infinite thresholds as text."""
        tables = [
            {
                "key": list(table.key),
                "values": [
                    [label, value if math.isfinite(value) else str(value)]
                    for label, value in table.values.items()
                ],
            }
            for table in self.tables
        ]
        return {"tables": tables, "classes": None if self.classes is None else list(self.classes)}

    @classmethod
    def from_dict(cls, values: Any) -> Rule:
        """Make the rule that `to_dict` described, or say what is wrong with it."""
        try:
            tables = tuple(
                Thresholds(
                    tuple(table["key"]),
                    {
                        label: float(value) if value in ("inf", "-inf") else value
                        for label, value in table["values"]
                    },
                )
                for table in values["tables"]
            )
            names = values["classes"]
            return cls(tables, None if names is None else tuple(names))
        except InvalidParameterError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidDataError(f"This does not describe a rule: {error!r}.") from error


def merge_tables(tables: Sequence[Thresholds]) -> tuple[Thresholds, ...]:
    """Return one table for each key; a row that must reach two thresholds must reach the larger.

    Examples
    --------
    >>> from reliablenet.certificate.rule import Thresholds, merge_tables
    >>> one, two = Thresholds(("all",), {"all": 0.8}), Thresholds(("all",), {"all": 0.9})
    >>> merge_tables([one, two])
    (Thresholds(key=('all',), values={'all': 0.9}),)
    """
    merged: dict[tuple[str, ...], dict[Label, float]] = {}
    for table in tables:
        if table.key not in merged:
            merged[table.key] = dict(table.values)
            continue
        known = merged[table.key]  # who is not in a table is deferred by it
        merged[table.key] = {
            label: max(known.get(label, math.inf), table.values.get(label, math.inf))
            for label in [*known, *(label for label in table.values if label not in known)]
        }
    return tuple(Thresholds(key, values) for key, values in merged.items())


def key_name(key: tuple[str, ...], label: Any) -> str:
    """Return what a reader calls a value of a key, such as ``race=A``."""
    return str(label) if key == (ALL,) else f"{', '.join(key)}={label}"


def columns_of(
    by: Any, names: tuple[str, ...], n: int, owner: str, *, missing: bool = True
) -> dict[str, NDArray[Any]]:
    """Return the columns that make groups, one value a row, or say what is wrong with them.

    Parameters
    ----------
    by : array-like, or mapping or data frame of columns
        An array stands for the only column.
    names : tuple of str
    n : int
        Rows.
    owner : str
    missing : bool
        Whether values may be missing.

    Returns
    -------
    dict of arrays
    """
    if by is None:
        raise InvalidParameterError(
            f"`by` of {owner} must give the group of each row ({', '.join(names)}); got None."
        )
    tabular = isinstance(by, Mapping) or hasattr(by, "columns")
    if not tabular and len(names) > 1:
        raise InvalidParameterError(
            f"`by` of {owner} must hold the columns {list(names)}, as a mapping or a data frame; got "
            f"a {type(by).__name__}."
        )
    found = {}
    for name in names:
        if tabular and name not in by:
            raise InvalidDataError(
                f"`by` of {owner} must hold the column {name!r}; got {list(by)}."
            )
        column = by[name] if tabular else by
        values = (
            as_array(column, "by") if hasattr(column, "shape") else np.array(column, dtype=object)
        )
        if values.shape != (n,):
            raise InvalidDataError(
                f"`by` of {owner} must give one group for each of the {n} rows; got shape "
                f"{values.shape} for {name!r}."
            )
        if not missing:
            absent = factorize(values)[0] < 0
            if absent.any():
                raise InvalidDataError(
                    f"`by` of {owner} must name a group for every row; {name!r} is missing in row "
                    f"{int(absent.argmax())} ({int(absent.sum())} in all). Give such rows a group of "
                    "their own, such as 'unknown'."
                )
        found[name] = values
    return found


def crossed(columns: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> NDArray[Any]:
    """Return the group of each row; of several columns their values, joined by a comma."""
    if len(names) == 1:
        return columns[names[0]]
    codes = [factorize(columns[name]) for name in names]
    whole = np.zeros(len(codes[0][0]), np.int64)
    absent = np.zeros(len(whole), bool)
    for code, values in codes:
        whole = whole * (len(values) + 1) + code
        absent |= code < 0
    place, first = np.unique(whole, return_index=True)
    texts = np.array(
        [", ".join(str(plain_label(columns[name][i])) for name in names) for i in first], object
    )
    found = texts[np.searchsorted(place, whole)]
    found[absent] = None
    return found


def parted(label: Label, names: tuple[str, ...]) -> Sequence[Label]:
    """Return the value of each column that makes a group; more of them where one holds a comma itself."""
    return (label,) if len(names) == 1 else str(label).split(", ")


def factorize(values: NDArray[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    """Return the number of each row's value, -1 where it is missing, and the values."""
    import pandas as pd  # half a second

    codes, names = pd.factorize(values.astype(values.dtype.newbyteorder("=")))
    return codes, list(names)
