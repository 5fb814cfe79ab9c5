"""`InputProfile`: what the rows that a model was trained on looked like, column by column.

It tells no row: of numbers it keeps rounded cells and outer fences, of categories those that several rows share.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.errors import InvalidDataError
from reliablenet.tables.column_arrays import CodedTexts
from reliablenet.tables.dates import is_date, read_days
from reliablenet.tables.values import text_codes

FORMAT = "reliablenet-profile/1"
FEW = 5  # a category of fewer rows is not named: it might tell of a person
OPEN_SHARE = 0.05  # of rows in categories that are not named: new ones are nothing odd then
MOST_CHANNELS = 4

Kind = Literal["number", "category", "text", "date"]
Layout = Literal["frame", "array", "image"]


@dataclass(frozen=True)
class ColumnProfile:
    """One column of the training rows.

    Attributes
    ----------
    name : str or int
        Name, or position in an array.
    kind : {"number", "category", "text", "date"}
        "text" has too many different values to name them. Dates are measured in days since 1970, and
        free text by its length in characters; where they are not, they have no ``edges`` and ``fences``.
    counts : tuple of int
        Training rows in each cell: missing, then the cells of what is measured between its ``edges``, or
        each of the ``levels`` and last all others; of what is neither: missing, present.
    edges : tuple of float
        Inner borders of the cells: short numbers between two values, never a value.
    fences : tuple of float
        Below the first and above the second a number is far outside: the range of the training rows,
        widened by half of it and rounded outwards to one digit. Empty for what is not measured.
    quartiles : tuple of float
        Rounded to three digits; of dates to days.
    commonest : float
        Share of the commonest value among those that are not missing, rounded up to a percent.
    levels : tuple of str
        Categories that at least five training rows share.
    day_first : bool
        Of dates, whether 3/4/2024 is in April.
    """

    name: str | int
    kind: Kind
    counts: tuple[int, ...]
    edges: tuple[float, ...] = ()
    fences: tuple[float, ...] = ()
    quartiles: tuple[float, ...] = ()
    commonest: float = 1.0
    levels: tuple[str, ...] = ()
    day_first: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, list):
                object.__setattr__(self, field.name, tuple(value))
        numbers = (*self.edges, *self.fences, *self.quartiles, self.commonest)
        measured = self.kind == "number" or (self.kind != "category" and bool(self.fences))
        inner = self.edges if measured else self.levels
        sound = (
            type(self.name) in (str, int)
            and self.kind in ("number", "category", "text", "date")
            and all(type(count) is int and count >= 0 for count in self.counts)
            and len(self.counts) == len(inner) + 2
            and all(type(value) in (int, float) and math.isfinite(value) for value in numbers)
            and list(self.edges) == sorted(set(self.edges))
            and (len(self.fences), len(self.quartiles)) == ((2, 3) if measured else (0, 0))
            and all(type(level) is str for level in self.levels)
            and len(set(self.levels)) == len(self.levels)
            and 0.0 <= self.commonest <= 1.0
            and type(self.day_first) is bool
        )
        if not sound:
            raise InvalidDataError(
                f"The profile of column {self.name!r} is not one that `fit` can have made. Fit and save "
                "the model again."
            )

    @cached_property
    def known(self) -> frozenset[str]:
        """The levels, to ask whether a text is among them."""
        return frozenset(self.levels)

    @property
    def missing(self) -> float:
        """Share of the training rows in which it was missing."""
        return self.counts[0] / max(sum(self.counts), 1)

    @cached_property
    def closed(self) -> bool:
        """Whether a category that is not among the levels is odd: few training rows had such."""
        present = sum(self.counts[1:])
        return self.kind == "category" and self.counts[-1] <= OPEN_SHARE * present

    def measure(self, values: pd.Series[Any]) -> NDArray[np.float64]:
        """Return what is measured of each value; NaN where it is missing or cannot be read so."""
        if self.kind == "date":
            return read_days(values, day_first=self.day_first)
        return text_lengths(values) if self.kind == "text" else as_numbers(values)

    def codes(self, values: pd.Series[Any]) -> NDArray[np.intp]:
        """Return the cell of each value, as ``counts`` has them."""
        if self.fences:
            numbers = self.measure(values)
            cells: NDArray[np.intp] = 1 + np.searchsorted(self.edges, numbers, side="right")
            cells[np.isnan(numbers)] = 0
            return cells
        if self.kind != "category":
            return values.notna().to_numpy().astype(np.intp)
        codes, texts = text_codes(values)
        known = {level: place for place, level in enumerate(self.levels, start=1)}
        last = len(self.levels) + 1
        # The last entry is what code -1, a missing value, finds.
        places = np.array([*(known.get(text, last) for text in texts), 0], np.intp)
        return np.asarray(places[codes])


@dataclass(frozen=True)
class NumberProfile:
    """What a profile knows about columns that are all numbers of an array, one below the other.

    Attributes
    ----------
    places : list of int
        Of the columns in the array, ascending.
    fences, quartiles : arrays of shape (2, columns)
        Lower and upper fence, first and third quartile.
    """

    places: list[int]
    fences: NDArray[np.float64]
    quartiles: NDArray[np.float64]


@dataclass(frozen=True)
class InputProfile:
    """What training rows looked like, in counts.

    Attributes
    ----------
    rows : int
        How many there were.
    layout : {"frame", "array", "image"}
        Columns by name, by position, or brightness and contrast of the channels of images.
    columns : tuple of ColumnProfile
        Those that the model uses.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.describing import describe_rows
    >>> from reliablenet.tables.profile import InputProfile
    >>> ages, jobs = [20 + i % 50 for i in range(200)], ["clerk", "cook"] * 100
    >>> profile = describe_rows(pd.DataFrame({"age": ages, "job": jobs}))
    >>> profile.columns[0].fences, profile.columns[1].levels
    ((0.0, 100.0), ('clerk', 'cook'))
    >>> InputProfile.from_json(profile.to_json()) == profile
    True
    """

    rows: int
    layout: Layout
    columns: tuple[ColumnProfile, ...]

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        sound = (
            type(self.rows) is int
            and self.layout in ("frame", "array", "image")
            and 0 < len(names) == len(set(names))
            and all(sum(column.counts) == self.rows for column in self.columns)
        )
        if not sound:
            raise InvalidDataError(
                "The input profile is inconsistent: columns must differ and count the same rows. "
                "Fit and save the model again."
            )

    @cached_property
    def numbers(self) -> NumberProfile | None:
        """The columns as arrays, where all are numbers of an array."""
        places = [column.name for column in self.columns if type(column.name) is int]
        if any(column.kind != "number" for column in self.columns) or places != sorted(places):
            return None
        if len(places) < len(self.columns):
            return None
        fences = np.array([column.fences for column in self.columns]).T
        quartiles = np.array([column.quartiles for column in self.columns]).T[[0, 2]]
        return NumberProfile(places, fences, quartiles)

    def summary(self) -> str:
        """Return in a line what it knows."""
        known = [column.kind for column in self.columns]
        kinds = [f"{kind}: {known.count(kind)}" for kind in dict.fromkeys(known)]
        never = sum(column.counts[0] == 0 for column in self.columns)
        return (
            f"{len(known)} column{'s' * (len(known) > 1)} ({', '.join(kinds)}) of {self.rows:,} "
            f"training rows; {never} never missing"
        )

    def table(self, X: Any) -> pd.DataFrame | None:
        """Return rows under the names of this profile, None where they cannot be read so."""
        table = as_table(X)
        if table is None:
            return None
        names = [column.name for column in self.columns]
        if all(name in table.columns for name in names):
            return table
        if isinstance(X, pd.DataFrame) and self.layout == "array":  # by position
            return (
                None
                if max(map(int, names)) >= table.shape[1]
                else table.set_axis(range(table.shape[1]), axis=1)
            )
        return table.set_axis(names, axis=1) if table.shape[1] == len(names) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as JSON can hold it."""
        columns = [
            {
                name: value
                for name, value in asdict(column).items()
                if value != () and value is not False
            }
            for column in self.columns
        ]
        return {"format": FORMAT, "rows": self.rows, "layout": self.layout, "columns": columns}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> InputProfile:
        """Return the profile that `to_dict` described, or refuse what no `fit` can have made."""
        if stored.get("format") != FORMAT:
            raise InvalidDataError(
                f"An input profile has the format {FORMAT!r}; got {stored.get('format')!r}."
            )
        columns = tuple(ColumnProfile(**column) for column in stored["columns"])
        return cls(stored["rows"], stored["layout"], columns)

    def to_json(self) -> str:
        """Return the profile as text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> InputProfile:
        """Read what `to_json` wrote."""
        return cls.from_dict(json.loads(text))


def layout_of(X: Any) -> Layout:
    """Return how rows are laid out."""
    if isinstance(X, pd.DataFrame):
        return "frame"
    return "image" if getattr(X, "ndim", 2) > 2 else "array"


def as_table(X: Any) -> pd.DataFrame | None:
    """Return rows as a frame without a copy where that can be; None where they have no columns."""
    if isinstance(X, pd.DataFrame):
        return X
    if isinstance(X, list):
        try:
            X = np.array(X)
        except ValueError:  # rows of unequal length
            return None
    if not isinstance(X, np.ndarray) or X.ndim < 2 or X.dtype.kind not in "biufOU":
        return None
    return pd.DataFrame(image_columns(X) if X.ndim > 2 else X, copy=False)


def image_columns(X: NDArray[Any]) -> NDArray[np.float64]:
    """Return mean and standard deviation of each channel of each image."""
    channels = X.shape[1] if X.ndim > 3 and X.shape[1] <= MOST_CHANNELS else 1
    pixels = X.reshape(len(X), channels, -1)
    return np.concatenate([pixels.mean(-1), pixels.std(-1)], axis=1, dtype=np.float64)


def as_numbers(values: pd.Series[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers, NaN for whatever is none."""
    if isinstance(values, np.ndarray):  # of `ColumnArrays`
        return values
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return values.to_numpy().astype(np.float64, copy=False)
    if kind_of(values) == "date":
        return np.full(len(values), np.nan)
    try:
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return np.array(pd.to_numeric(values.astype(object), errors="coerce"), dtype=np.float64)


def text_lengths(values: pd.Series[Any]) -> NDArray[np.float64]:
    """Return how many characters texts have; NaN for one that is missing or blank."""
    codes, texts = text_codes(values)
    lengths = [len(text) if text.strip() else np.nan for text in texts]
    # The last entry is what code -1, a missing value, finds.
    return np.asarray(np.array([*lengths, np.nan], np.float64)[codes])


def kind_of(values: pd.Series[Any] | CodedTexts) -> Kind:
    """Return what a column holds, by its type."""
    if isinstance(values, CodedTexts):
        return "category"
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return "number"
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "category"
    if is_date(values):
        return "date"
    return "number" if pd.api.types.is_numeric_dtype(values) else "category"
