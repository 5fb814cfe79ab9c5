"""Rows of a request: JSON in, the columns that the model knows out, or a line that names the column."""

from __future__ import annotations

import difflib
from array import array
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._listing import listed
from reliablenet.methods.layers import find_encoder, layers
from reliablenet.serve.errors import unusable
from reliablenet.serve.request_rows import Rows, Value
from reliablenet.tables.column_arrays import CodedTexts, ColumnArrays
from reliablenet.tables.piecewise import PiecewiseEncoder

NUMBERS: dict[str, Any] = {"type": ["number", "boolean", "null"]}
ANYTHING: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
PLAIN_NUMBERS = frozenset({int, float})
NUMBER_TYPES = PLAIN_NUMBERS | {bool, type(None)}
VALUE_TYPES = NUMBER_TYPES | {str}
TOO_LARGE = 1.7e308
WORDS = {int: "a number", float: "a number", bool: "true or false", str: "text", list: "a list"}


class Columns:
    """The columns that a model was fitted on, and what each may hold.

    Parameters
    ----------
    model : estimator
        Fitted on a data frame, whose names requests must use, or on an array of numbers.
    allow_missing : collection of str
        Columns that may be null in every row of a request though they never were in training.

    Attributes
    ----------
    names : list of str or None
        None for a model that was fitted on an array.
    numbers, categories, idle : frozenset of str
        What is read as a number or as a category, and what was left out in training, and may be absent.
    separable : bool
        Whether a row gets the same answer in any company, so that requests may be decided together.
    """

    def __init__(self, model: Any, allow_missing: Collection[str] = ()) -> None:
        names = getattr(model, "feature_names_in_", None)
        encoder = find_encoder(model)
        self.width = int(model.n_features_in_)
        self.names: list[str] | None = None if names is None else [str(name) for name in names]
        known = encoder is not None and self.names is not None
        self.numbers = frozenset(map(str, encoder.numbers_)) if known and encoder else frozenset()
        self.categories = (
            frozenset(map(str, encoder.categories_)) if known and encoder else frozenset()
        )
        idle = frozenset(map(str, encoder.dropped_)) if known and encoder else frozenset()
        # What the tolerance of a row is read from must be there, whether or not it was learned from.
        self._tolerance = getattr(getattr(model._target, "tolerance", None), "column", "")
        self.idle = idle - {self._tolerance}
        *_, core = layers(model)
        self.separable = hasattr(core, "network_")
        profile = getattr(model, "profile_", None)
        complete = (
            {str(known.name) for known in profile.columns if known.missing == 0.0}
            if profile
            else set()
        )
        self._complete = complete - self.idle - set(allow_missing)
        self._needed = [name for name in self.names or [] if name not in self.idle]
        self._take = {name: itemgetter(name) for name in self._needed}
        self._learned = self.numbers | self.categories
        self._direct = self._takes_arrays(model, encoder)
        self._index = pd.Index(self.names or [], dtype=object)  # quicker than arrow's texts
        self._levels = (
            {
                str(name): _Levels(levels)
                for name, levels in zip(encoder.categories_, encoder.levels_, strict=True)
            }
            if known and encoder
            else {}
        )

    def table(self, rows: Rows) -> Any:
        """Return rows as `decide` takes them: as they were read, or as a data frame."""
        if rows.matrix is not None:
            return rows.matrix
        if self._direct and rows.arrays.keys() >= self._learned:
            arrays = {name: rows.arrays[name] for name in self.numbers}
            coded = {name: self._levels[name].coded(rows.arrays[name]) for name in self.categories}
            return ColumnArrays(rows.size, {**arrays, **coded})
        made: dict[int, Any] = {}  # by number: names would become arrow's texts first
        for place, name in enumerate(self.names or ()):
            found = rows.arrays.get(name)
            if name not in self._levels:
                made[place] = rows.values[name] if found is None else found
            elif found is None:
                made[place] = _texts(rows.values[name])
            else:
                made[place] = self._levels[name].column(found)
        table = pd.DataFrame(made, copy=False)
        table.columns = self._index
        return table

    def from_records(self, records: Any) -> Rows:
        """Read a list of objects, one a row."""
        self._check_named()
        if not isinstance(records, list) or set(map(type, records)) - {dict}:
            raise unusable("`dataframe_records` must be a list of objects, one a row.")
        return self._from_dicts(records)

    def from_split(self, split: Any) -> Rows:
        """Read ``{"columns": [...], "data": [[...]]}``, as MLflow and pandas write tables."""
        self._check_named()
        if (
            not isinstance(split, dict)
            or not split.keys() <= {"columns", "data", "index"}
            or not _is_list_of(split.get("columns"), str)
            or not _is_list_of(split.get("data"), list)
        ):
            raise unusable(
                '`dataframe_split` must be {"columns": [names], "data": [[values of a row], ...]}.'
            )
        names = split["columns"]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise unusable(f"Column {twice!r} appears twice in `dataframe_split`.", twice)
        for place, row in enumerate(split["data"]):
            if len(row) != len(names):
                raise unusable(
                    f"Row {place} of `dataframe_split` has {len(row)} values for {len(names)} columns."
                )
        if not split["data"]:
            raise unusable("The request holds no row.")
        columns = zip(*split["data"], strict=True)
        return self.from_columns(dict(zip(names, map(list, columns), strict=True)))

    def from_columns(self, columns: dict[str, list[Any]]) -> Rows:
        """Read one list of values a column, all of one length."""
        self._check_named()
        self._check_names(columns)
        sizes = {name: len(values) for name, values in columns.items()}
        size = next(iter(sizes.values()))
        for name, found in sizes.items():
            if found != size:
                raise unusable(
                    f"Column {name!r} has {found} values where others have {size}.", name
                )
        return self._checked(size, columns)

    def from_lists(self, inputs: Any) -> Rows:
        """Read rows as lists of numbers, for a model that was fitted on an array."""
        if self.names is not None:
            raise unusable(
                f"This model knows its columns by name: send `dataframe_records` with {listed(self.names)}."
            )
        if not _is_list_of(inputs, list) or not inputs:
            raise unusable("`inputs` must be a list of rows, each a list of numbers.")
        if hasattr(inputs[0][0] if inputs[0] else None, "__len__"):
            return self._from_arrays(inputs)
        for place, row in enumerate(inputs):
            if len(row) != self.width:
                raise unusable(
                    f"Row {place} of `inputs` must hold {self.width} numbers; got {len(row)}."
                )
            if not set(map(type, row)) <= PLAIN_NUMBERS:
                strange = next(i for i, value in enumerate(row) if type(value) not in PLAIN_NUMBERS)
                raise unusable(
                    f"Column {strange} must hold numbers; got {_word(row[strange])} in row {place}.",
                    str(strange),
                )
        return Rows(len(inputs), {}, _finite_matrix(inputs))

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of one row."""
        if self.names is None:
            return {
                "type": "array",
                "items": {"type": "number"},
                "minItems": self.width,
                "maxItems": self.width,
            }
        return {
            "type": "object",
            "properties": {
                name: NUMBERS if name in self.numbers else ANYTHING for name in self.names
            },
            "required": self._needed,
            "additionalProperties": False,
        }

    def _takes_arrays(self, model: Any, encoder: Any) -> bool:
        """Tell whether a model can decide from columns as they are read here, without a data frame."""
        *_, core = layers(model)
        profile, promise = getattr(model, "profile_", None), getattr(model, "promise", None)
        if core is not model or not isinstance(encoder, PiecewiseEncoder) or profile is None:
            return False
        if self._tolerance or (
            promise is not None and promise.columns
        ):  # read from the table itself
            return False
        kinds = {str(known.name): known.kind for known in profile.columns}
        read = dict.fromkeys(self.numbers, "number") | dict.fromkeys(self.categories, "category")
        return kinds == read and read.keys() == set(self._needed)

    def _from_dicts(self, records: list[dict[str, Any]]) -> Rows:
        if not records:
            raise unusable("The request holds no row.")
        needed, known = self._needed, frozenset(self.names or ())
        # A row that has all that is needed and no more than that has no stranger.
        if self.idle or set(map(len, records)) != {len(needed)}:
            for place, record in enumerate(records):
                if not record.keys() <= known or len(record) < len(needed):
                    self._check_names(record, f"Row {place}")
        try:
            columns = {name: list(map(take, records)) for name, take in self._take.items()}
        except KeyError:
            for place, record in enumerate(records):
                self._check_names(record, f"Row {place}")
            raise
        for name in self.idle:
            columns[name] = [record.get(name) for record in records]
        return self._checked(len(records), columns)

    def _checked(self, size: int, columns: dict[str, list[Any]]) -> Rows:
        """Refuse values of a wrong type and numbers that are too large, by their column."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, values in columns.items():
            found = self._read(name, values)
            if found is None:
                found = self._read_each(name, values)
            if found is not None:
                arrays[name] = found
            if name == self._tolerance:
                _check_tolerance(name, values)
            if name in self._complete and values[0] is None and set(values) == {None}:
                raise unusable(
                    f"Column {name!r} is null in every row, but never in a row that the model was "
                    "trained on: its certificate says nothing about such rows.",
                    name,
                )
        for name in self.names or ():
            if name not in columns:
                columns[name] = [None] * size
        return Rows(size, columns, arrays=arrays)

    def _read(self, name: str, values: list[Any]) -> NDArray[Any] | None:
        """Return a column of numbers or of known categories as an array; None for any other.

        Most columns are such, and their values need not be looked at one by one.
        """
        if name in self._levels:
            return self._levels[name].codes(values)
        if name not in self.numbers:
            return None
        try:
            numbers = np.frombuffer(array("d", values))  # takes numbers and nothing else
        except (TypeError, OverflowError):
            return None
        return numbers if (np.abs(numbers) < TOO_LARGE).all() else None

    def _read_each(self, name: str, values: list[Any]) -> NDArray[np.float64] | None:
        """Return numbers as an array, NaN for null; refuse what the column cannot hold."""
        allowed = NUMBER_TYPES if name in self.numbers else VALUE_TYPES
        kinds = set(map(type, values))
        if not kinds <= allowed:
            place = next(i for i, value in enumerate(values) if type(value) not in allowed)
            expected = "a number or null" if allowed is NUMBER_TYPES else "text, a number or null"
            raise unusable(
                f"Column {name!r} must hold {expected}; got {_word(values[place])} in row {place}.",
                name,
            )
        if float in kinds or int in kinds:
            for place, value in enumerate(values):
                if type(value) in (int, float) and not -TOO_LARGE < value < TOO_LARGE:
                    raise unusable(
                        f"Column {name!r} holds too large a number in row {place}.", name
                    )
        return np.array(values, np.float64) if allowed is NUMBER_TYPES else None

    def _check_named(self) -> None:
        if self.names is None:
            raise unusable(
                f"This model was fitted on an array of {self.width} columns without names: send "
                '{"inputs": [[...], ...]}.'
            )

    def _check_names(self, given: Iterable[str], where: str = "The request") -> None:
        found = set(given)
        missing = [name for name in self._needed if name not in found]
        strangers = sorted(found - set(self.names or ()))
        if strangers:
            near = difflib.get_close_matches(strangers[0], missing or self._needed, 1)
            hint = f" Did you mean {near[0]!r}?" if near else " Leave it out."
            raise unusable(
                f"{where} has a column {strangers[0]!r} that the model does not know.{hint}",
                strangers[0],
            )
        if missing:
            raise unusable(
                f"{where} has no column {missing[0]!r}. Send null where its value is not known.",
                missing[0],
            )

    def _from_arrays(self, inputs: list[Any]) -> Rows:
        """Read images and the like; `decide` knows their shape."""
        return Rows(len(inputs), {}, _finite_matrix(inputs))


def _finite_matrix(inputs: list[Any]) -> NDArray[np.float64]:
    try:
        matrix = np.array(inputs, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise unusable("`inputs` must be rows of numbers, all of one shape.") from None
    if not np.isfinite(matrix).all():
        row, column = (int(place) for place in np.argwhere(~np.isfinite(matrix))[0][:2])
        raise unusable(f"Column {column} holds too large a number in row {row}.", str(column))
    return matrix


def _check_tolerance(name: str, values: list[Any]) -> None:
    for place, value in enumerate(values):
        if type(value) not in (int, float) or value <= 0:
            got = _word(value) if type(value) not in (int, float) else f"{value:g}"
            raise unusable(
                f"Column {name!r} says how far the value of a row may be off, and must be a number above "
                f"0; got {got} in row {place}.",
                name,
            )


class _Levels:
    """The categories that a model knows for one column, to read texts by without comparing them."""

    def __init__(self, levels: Sequence[str]) -> None:
        self._codes: dict[Value, int] = {level: place for place, level in enumerate(levels)}
        self._codes[None] = -1
        self._texts = list(levels)
        self._dtype = pd.CategoricalDtype(pd.Index(levels, dtype=object))
        self._small = np.min_scalar_type(-1 - len(levels))

    def codes(self, values: list[Any]) -> NDArray[Any] | None:
        """Return the places of values among the levels, None if one of them is no level."""
        try:
            return np.fromiter(map(self._codes.__getitem__, values), self._small, len(values))
        except (KeyError, TypeError):  # what cannot be looked up is no text
            return None

    def coded(self, codes: NDArray[Any]) -> CodedTexts:
        """Return values by their places."""
        return CodedTexts(codes, self._texts)

    def column(self, codes: NDArray[Any]) -> pd.Categorical:
        """Return values as a column of a data frame, by their places."""
        return pd.Categorical.from_codes(codes, dtype=self._dtype, validate=False)


def _texts(values: list[Value]) -> Any:
    """Return categories as a column, where some are no levels of the model."""
    kept: Any = values
    texts = set(map(type, values)) <= {str, type(None)}
    return pd.array(kept, dtype="str") if texts else np.array(kept, object)


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _word(value: Any) -> str:
    return "null" if value is None else WORDS.get(type(value), "an object")
