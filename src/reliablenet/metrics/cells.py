"""Columns cut into cells: numbers at quantiles, dates by year or quarter, categories, and what is missing.

A cut is learned once and then fixed, so that rows that come later, or in batches, fall into the same
cells, and so that cells do not depend on the rows that are counted in them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import as_array, parameter_error
from reliablenet.errors import InvalidDataError

Kind = Literal["number", "value", "year", "quarter"]
MOST_VALUES = 12  # of a column with more, the commonest are cells and the rest is one
FEW_NUMBERS = 6  # so many different numbers are values and not a scale
FEW_YEARS = 3  # dates of fewer years are cut by quarter
PARTS = 4  # of a scale
MOST_COLUMNS = 100  # of a table; pixels of an image are no columns that anyone is compared by
MOST_ROWS = 100_000  # that a cut is learned from
MISSING, OTHER = "missing", "other"
ISO_DATE = r"\d{4}-\d{2}-\d{2}([T ].*)?"


@dataclass(frozen=True)
class Cut:
    """How a column is cut.

    Attributes
    ----------
    kind : {"number", "value", "year", "quarter"}
    edges : tuple of float
        Of numbers: each begins a cell.
    values : tuple of str
        Of the others: a cell each, and one for all others.

    Examples
    --------
    >>> from reliablenet.metrics.cells import Cut
    >>> cut = Cut("number", edges=(18.0, 65.0))
    >>> cut.names()
    ['under 18', '18 to under 65', '65 or more', 'missing']
    >>> cut.places([70, 18, None]).tolist()
    [2, 1, 3]
    """

    kind: Kind
    edges: tuple[float, ...] = ()
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise parameter_error("kind", "Cut", f"be one of {get_args(Kind)}", self.kind)
        object.__setattr__(self, "edges", tuple(float(edge) for edge in self.edges))
        object.__setattr__(self, "values", tuple(str(value) for value in self.values))
        if list(self.edges) != sorted(set(self.edges)) or not np.isfinite(self.edges).all():
            raise parameter_error("edges", "Cut", "be finite and rise", self.edges)
        if len(set(self.values)) != len(self.values):
            raise parameter_error("values", "Cut", "be different", self.values)

    def names(self) -> list[str]:
        """Return the names of the cells in their order; the last is for missing values."""
        if self.kind != "number":
            return [*self.values, OTHER, MISSING]
        text = [f"{edge:.6g}" for edge in self.edges]
        if not text:
            return ["any", MISSING]
        between = [f"{low} to under {high}" for low, high in pairwise(text)]
        return [f"under {text[0]}", *between, f"{text[-1]} or more", MISSING]

    def places(self, column: Any) -> NDArray[np.intp]:
        """Return the place of each value's cell among the names."""
        values = _series(column)
        last = len(self.names()) - 1
        if self.kind == "number":
            numbers = pd.to_numeric(values, errors="coerce").to_numpy(float, na_value=np.nan)
            found = np.searchsorted(np.array(self.edges), numbers, side="right")
            return np.where(np.isnan(numbers), last, found).astype(np.intp)
        lookup = {value: place for place, value in enumerate(self.values)}
        if self.kind == "value":  # each different value is written once
            codes, different = pd.factorize(values)  # -1 where missing
        else:
            codes, different = pd.factorize(_texts(values, self.kind))
        distinct = [_text(value) for value in different]
        place = np.array([*(lookup.get(value, last - 1) for value in distinct), last], np.intp)
        return place[codes]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return asdict(self)


def learn_cut(column: Any) -> Cut | None:
    """Choose how to cut a column; None if it has one cell, or names its rows.

    Examples
    --------
    >>> from reliablenet.metrics.cells import learn_cut
    >>> learn_cut(["red", "blue", "red", None]).names()
    ['blue', 'red', 'other', 'missing']
    >>> learn_cut(range(100)).edges
    (25.0, 50.0, 75.0)
    >>> learn_cut(["2024-01-31", "2024-05-01", "2024-06-30"]).values
    ('2024 Q1', '2024 Q2')
    """
    values = _series(column)
    if values.isna().all():
        return None
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        numbers = values.dropna().to_numpy(float)
        distinct = np.unique(numbers)
        if len(distinct) > FEW_NUMBERS:
            places = np.arange(1, PARTS) / PARTS
            inner = np.unique(np.quantile(numbers, places, method="higher"))
            return Cut("number", edges=tuple(inner[inner > distinct[0]].tolist()))
        return _of_values("value", _texts(values, "value"))
    if _are_dates(values):
        years = _texts(values, "year")
        if years.nunique() > MOST_VALUES:
            return None
        kind: Kind = "year" if years.nunique() >= FEW_YEARS else "quarter"
        return _of_values(kind, _texts(values, kind))
    return _of_values("value", _texts(values, "value"))


def learn_cuts(table: Any) -> dict[str, Cut]:
    """Choose how to cut each column of a table; those that tell nothing are left out.

    Parameters
    ----------
    table : data frame, mapping of names to columns, or array of shape (n, d)
        Columns of an array are called by their numbers. Tables of more than `MOST_COLUMNS` columns,
        and arrays that are no tables, have no cuts.

    Returns
    -------
    dict of str to Cut
    """
    columns = as_columns(table)
    found = {
        name: learn_cut(as_column(c)[:: 1 + len(c) // MOST_ROWS]) for name, c in columns.items()
    }
    return {name: cut for name, cut in found.items() if cut is not None}


def as_columns(table: Any) -> dict[str, Any]:
    """Return the columns of a table by their names."""
    if table is None:
        return {}
    if isinstance(table, Mapping):
        return {str(name): column for name, column in table.items()}
    if isinstance(table, np.ndarray) and table.ndim == 2:
        table = pd.DataFrame(table)
    if not isinstance(table, pd.DataFrame):
        return {}
    if table.shape[1] > MOST_COLUMNS:
        return {}
    return {str(name): table.iloc[:, place] for place, name in enumerate(table.columns)}


def as_column(column: Any) -> Any:
    """Return a column as pandas takes it."""
    if isinstance(column, pd.Series):
        return column.reset_index(drop=True)
    if isinstance(column, pd.api.extensions.ExtensionArray):
        return column
    if not hasattr(column, "shape"):
        return pd.Series(list(column))  # numpy would write None among numbers as an object
    values = as_array(column, "by")
    if values.ndim != 1:
        raise InvalidDataError(
            f"A column to break down by must be a vector; got shape {values.shape}."
        )
    return values


def _series(column: Any) -> pd.Series[Any]:
    """Return a column as a series of values that can be told apart: lists, as JSON has them, as texts."""
    values = pd.Series(as_column(column))
    if not pd.api.types.is_object_dtype(values):
        return values
    return values.map(lambda value: value if isinstance(value, Hashable) else str(value))


def _of_values(kind: Kind, texts: pd.Series[Any]) -> Cut | None:
    counts = texts.value_counts()  # without what is missing
    if len(counts) < 2 and not texts.isna().any():
        return None
    kept = counts.index[:MOST_VALUES]
    if len(counts) > MOST_VALUES and counts.iloc[:MOST_VALUES].sum() < len(texts) / 2:
        return None  # it names rows, or is free text
    return Cut(kind, values=tuple(sorted(kept)))


def _are_dates(values: pd.Series[Any]) -> bool:
    if pd.api.types.is_datetime64_any_dtype(values):
        return True
    if not (pd.api.types.is_object_dtype(values) or pd.api.types.is_string_dtype(values)):
        return False
    known = values.dropna()
    return bool(known.astype(str).str.fullmatch(ISO_DATE).all())


def _texts(values: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    """Return each value as the name of its cell, missing where it is."""
    if kind == "value":
        codes, distinct = pd.factorize(values)
        written = np.array([*map(_text, distinct), None], dtype=object)
        return pd.Series(written[codes], dtype=object)
    dates = pd.to_datetime(values, errors="coerce", format="ISO8601", utc=True)
    year = dates.dt.year.astype("Int64").astype("string")
    return (
        year if kind == "year" else year + " Q" + dates.dt.quarter.astype("Int64").astype("string")
    )


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)
