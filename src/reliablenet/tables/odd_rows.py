"""What is odd in new rows, compared with the profile of the training rows.

Whether a row is odd depends on that row alone. What is said of a whole column (empty, constant, another unit, another
type) needs several rows and marks none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.tables.column_arrays import CodedTexts, ColumnArrays
from reliablenet.tables.dates import as_date
from reliablenet.tables.oddities import Oddities, Oddity, What, some_values
from reliablenet.tables.profile import (
    FEW,
    ColumnProfile,
    InputProfile,
    NumberProfile,
    as_numbers,
    image_columns,
    kind_of,
)
from reliablenet.tables.units import CHANCE, changed_factor
from reliablenet.tables.values import text_codes

SAMPLED = 250  # rows that are looked at for a change of unit
MANY = 1000  # rows from which on it pays to read texts once for all
CACHED = 2**14  # numbers taken together, so that they stay in the cache
EXAMPLES = 3


def find_oddities(profile: InputProfile | None, X: Any, rows: int | None = None) -> Oddities:
    """Compare rows with the profile of training rows.

    Parameters
    ----------
    profile : InputProfile or None
        None finds nothing.
    X : data frame, array or ColumnArrays
        Rows as the model takes them.
    rows : int, optional
        How many they are, if they do not tell: those that are read batch by batch do not.

    Returns
    -------
    Oddities
    """
    n = (X.shape[0] if hasattr(X, "shape") else len(X)) if rows is None else rows
    if isinstance(X, np.ma.MaskedArray):  # without masked values, or the model had refused it
        X = np.asarray(X)
    nothing = np.zeros(n, bool)
    if profile is None or n == 0:
        return Oddities(nothing, profiled=profile is not None)
    if (
        isinstance(X, np.ndarray)
        and X.dtype.kind in "fiub"
        and X.ndim > 1
        and profile.layout != "frame"
    ):
        matrix = image_columns(X) if X.ndim > 2 else X
        numbers = profile.numbers
        if numbers is not None and numbers.places[-1] < matrix.shape[1]:
            return _Search(n).look_at_matrix(profile.columns, numbers, matrix).result()
    columns = profile.columns if n != 1 else _not_usual(profile.columns, X)
    if not columns:
        return Oddities(nothing)
    table = X if isinstance(X, ColumnArrays) else profile.table(X)
    if table is None:
        return Oddities(nothing, profiled=False)
    search = _Search(n)
    for column in columns:
        search.look_at(column, table[column.name])
    return search.result()


def _not_usual(columns: Sequence[ColumnProfile], X: Any) -> Sequence[ColumnProfile]:
    """Return the columns in which a single row must be looked at: most rows have none, and are done."""
    if isinstance(X, ColumnArrays):
        row: dict[Any, Any] = X.first()
    elif isinstance(X, pd.DataFrame):
        row = dict(zip(X.columns.tolist(), X.iloc[0].to_numpy(), strict=True))
    else:
        return columns
    if not all(column.name in row for column in columns):  # taken by position, if at all
        return columns
    return [column for column in columns if not _is_usual(column, row[column.name])]


def _is_usual(column: ColumnProfile, value: Any) -> bool:
    if column.kind == "number":
        low, high = column.fences
        return isinstance(value, np.integer | np.floating) and low <= float(value) <= high
    return column.kind == "category" and isinstance(value, str) and value in column.known


def with_codes(profile: InputProfile | None, X: Any) -> Any:
    """Return a frame, a long one with its texts as categories.

    So texts are read once and not twice. For an encoder of ours they are the same rows.
    """
    if profile is None or not isinstance(X, pd.DataFrame) or len(X) < MANY:
        return X
    coded: dict[Any, Any] = {}
    kinds: dict[Any, Any] = dict(zip(X.columns.tolist(), X.dtypes.tolist(), strict=True))
    for column in profile.columns:
        kind = kinds.get(column.name) if column.kind == "category" else None
        if kind is not None and not isinstance(kind, pd.CategoricalDtype):
            codes, texts = text_codes(X[column.name])
            coded[column.name] = pd.Categorical.from_codes(
                codes, pd.Index(texts, dtype=object), validate=False
            )
    if not coded:
        return X
    X = X.copy(deep=False)
    for name, texts_read in coded.items():
        X[name] = texts_read
    return X


@dataclass(eq=False)
class _Search:
    """Rows being looked at, column by column."""

    n: int
    found: list[Oddity] = field(default_factory=list)
    odd: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.odd = np.zeros(self.n, bool)

    @cached_property
    def sampled(self) -> Any:
        """Places of rows to look at: all of few, else a draw that no order of the rows can meet."""
        if self.n <= SAMPLED:
            return slice(None)
        return np.sort(np.random.default_rng(self.n).integers(self.n, size=SAMPLED))

    def result(self) -> Oddities:
        return Oddities(self.odd, tuple(self.found))

    def look_at_matrix(
        self, columns: Sequence[ColumnProfile], known: NumberProfile, X: NDArray[Any]
    ) -> _Search:
        """Look at an array of numbers: at single values only in columns where some is out of bounds."""
        if len(known.places) != X.shape[1]:
            X = X[:, known.places]
        least, most = _extremes(X)
        low, high = known.fences
        fits = (least >= low) & (most <= high)  # NaN fails every comparison
        for place in np.flatnonzero(~fits).tolist():
            self._look_at_numbers(columns[place], X[:, place].astype(np.float64))
        if self.n > 1:
            sample = X[self.sampled]
            middle = len(sample) // 2
            medians = np.partition(sample, middle, axis=0)[middle]  # NaN stands behind the others
            low, high = known.quartiles
            moved = ~((medians >= low) & (medians <= high)) | np.isnan(most)
            for place in np.flatnonzero(moved | (least == most)).tolist():
                self._look_at_whole(columns[place], X[:, place].astype(np.float64))
        return self

    def look_at(self, column: ColumnProfile, values: Any) -> None:
        """Look at a column of a frame, or of `ColumnArrays`."""
        if column.kind == "number":
            if values.dtype.kind not in "biuf" and values.notna().any():
                text = f"{_KINDS[kind_of(values)]} where training had numbers"
                if kind_of(values) != "number":
                    self._add(column, "type", text, self.n)
            numbers = as_numbers(values)
            low, high = column.fences
            # NaN fails every comparison
            if not (numbers.min() >= low and numbers.max() <= high):
                self._look_at_numbers(column, numbers)
                if not isinstance(values, np.ndarray):  # texts that are no numbers
                    self.odd |= np.isnan(numbers) & values.notna().to_numpy()
            if self.n > 1:
                self._look_at_whole(column, numbers)
        elif column.kind == "category":
            self._look_at_texts(column, values)
        elif column.fences:
            self._look_at_measured(column, values)
        else:
            self._look_at_missing(column, values.isna().to_numpy())
            if column.kind == "date" and kind_of(values) != "date" and values.notna().any():
                self._add(
                    column, "type", f"{_KINDS[kind_of(values)]} where training had dates", self.n
                )

    def _look_at_numbers(self, column: ColumnProfile, numbers: NDArray[np.float64]) -> None:
        self._look_at_missing(column, np.isnan(numbers))
        low, high = column.fences
        outside = (numbers < low) | (numbers > high)
        if count := int(outside.sum()):
            self.odd |= outside
            such = _listed(numbers[outside][:EXAMPLES], "{:.6g}")
            text = f"{some_values(count)} far outside {low:,g} to {high:,g}, such as {such}"
            self._add(column, "outside", text, count)

    def _look_at_measured(self, column: ColumnProfile, values: pd.Series[Any]) -> None:
        """Look at dates, and at the length of texts."""
        numbers = column.measure(values)
        missing = np.isnan(numbers)
        strange = missing & values.notna().to_numpy() if column.kind == "date" else ~missing & False
        if (count := int(strange.sum())) == len(values) and kind_of(values) != "date":
            self.odd |= strange
            text = f"{_KINDS[kind_of(values)]} where training had dates"
            self._add(column, "type", text, self.n)
        elif count:
            self.odd |= strange
            such = _listed(values[strange].astype(object).iloc[:EXAMPLES], "{!r}")
            text = f"{some_values(count)} that cannot be read as a date, such as {such}"
            self._add(column, "unseen", text, count)
        self._look_at_missing(column, missing & ~strange)
        low, high = column.fences
        outside = (numbers < low) | (numbers > high)
        if count := int(outside.sum()):
            self.odd |= outside
            if column.kind == "date":
                such = ", ".join(map(as_date, numbers[outside][:EXAMPLES]))
                text = f"far outside {as_date(low)} to {as_date(high)}, such as {such}"
            else:
                such = _listed(numbers[outside][:EXAMPLES], "{:,.0f}")
                text = f"of {such} characters, far outside {low:,g} to {high:,g}"
            self._add(column, "outside", f"{some_values(count)} {text}", count)

    def _look_at_texts(self, column: ColumnProfile, values: pd.Series[Any] | CodedTexts) -> None:
        try:
            codes, texts = text_codes(values)
        except TypeError:
            self._add(column, "type", "values that cannot be compared, such as lists", self.n)
            self.odd[:] = True
            return
        if kind_of(values) != "category" and (codes >= 0).any():
            text = f"{_KINDS[kind_of(values)]} where training had categories"
            self._add(column, "type", text, self.n)
        least, most = codes.min(), codes.max()
        if least < 0:
            self._look_at_missing(column, codes < 0)
        new = [place for place, text in enumerate(texts) if text not in column.known]
        if new and column.closed:
            present = np.bincount(codes + 1, minlength=len(texts) + 1)[1:]
            new = [place for place in new if present[place]]
        if new and column.closed:
            strange = np.zeros(len(texts) + 1, bool)
            strange[new] = True
            rows = strange[codes]  # code -1, a missing value, finds the last entry
            count = int(rows.sum())
            self.odd |= rows
            such = _listed([texts[place] for place in new[:EXAMPLES]], "{!r}")
            text = f"{some_values(count)} that fewer than {FEW} training rows had, such as {such}"
            self._add(column, "unseen", text, count)
        if self.n > 1 and 0 <= least == most:
            self._look_at_constant(column, self.n)

    def _look_at_missing(self, column: ColumnProfile, missing: NDArray[np.bool_]) -> None:
        count = int(missing.sum())
        if count == 0 or column.counts[0]:
            if count == self.n > 1 and column.missing ** (self.n - 1) < CHANCE:
                share = f"{column.missing:.0%}" if column.missing >= 0.01 else "under 1%"
                text = f"missing in every row, in training in {share}"
                self._add(column, "constant", text, self.n)
            return
        self.odd |= missing
        if count == self.n > 1:
            self._add(column, "empty", "missing in every row, and in training in none", count)
        else:
            text = f"{some_values(count)} missing, and in training none"
            self._add(column, "missing", text, count)

    def _look_at_whole(self, column: ColumnProfile, numbers: NDArray[np.float64]) -> None:
        """Tell whether a column of numbers became constant, or came in another unit."""
        sample = numbers[self.sampled]
        sample = sample[sample == sample]  # missing ones left out
        if len(sample) < 2:
            return
        if (sample == sample[0]).all():
            if (numbers == sample[0]).all():
                self._look_at_constant(column, self.n)
        elif factor := changed_factor(column, sample):
            self._add(column, "factor", factor, self.n)

    def _look_at_constant(self, column: ColumnProfile, looked_at: int) -> None:
        if column.commonest < 1.0 and column.commonest ** (looked_at - 1) < CHANCE:
            self._add(
                column, "constant", "the same value in every row, in training it varied", self.n
            )

    def _add(self, column: ColumnProfile, what: What, detail: str, rows: int) -> None:
        self.found.append(Oddity(column.name, what, rows, detail))


_KINDS = {"number": "numbers", "category": "text", "date": "dates", "text": "text"}


def _extremes(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the smallest and the largest number of each column; the latter is NaN where one is missing.

    Blocks of rows are compared number by number: numpy's own minimum over rows, and any minimum that
    heeds NaN, take several times as long with AVX-512.
    """
    step = max(CACHED // X.shape[1], 1)
    least, most = X[:step].copy(), X[:step].copy()
    for start in range(step, len(X), step):
        rows = X[start : start + step]
        np.fmin(least[: len(rows)], rows, out=least[: len(rows)])
        np.maximum(most[: len(rows)], rows, out=most[: len(rows)])
    return np.fmin.reduce(least), np.maximum.reduce(most)


def _listed(examples: Iterable[Any], form: str) -> str:
    return ", ".join(form.format(one) for one in examples)
