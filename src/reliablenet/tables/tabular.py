"""`TabularEncoder`: data frame or array in, float32 matrix out, fitted on the training fold alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from reliablenet._checks import as_array, parameter_error
from reliablenet._listing import listed
from reliablenet._warn import warn_user
from reliablenet.errors import ColumnWarning, InvalidDataError
from reliablenet.tables.columns import (
    check_columns,
    check_distinct,
    is_free_text,
    row_number,
    why_useless_number,
    why_useless_text,
)
from reliablenet.tables.date_columns import DateColumns, check_dates
from reliablenet.tables.dates import holds_dates, is_date
from reliablenet.tables.free_text import Embedding
from reliablenet.tables.text_columns import TextColumns
from reliablenet.tables.values import count_texts, is_number, read_numbers, text_codes

CONSTANT = "it does not vary"
ROWS_IN_CACHE = 256
INCONSISTENT = (
    "The stored settings of the encoder do not fit together: columns, scales and categories must come "
    "from one fit. Save the model again."
)


class TabularEncoder(TransformerMixin, BaseEstimator):
    """Impute, standardise and one-hot encode, as the paper does.

    Numbers (booleans among them) get the training median where missing and are standardised;
    categories get the most frequent value where missing, and are one-hot encoded. A category that
    training never saw becomes all zeros.

    A date gives numbers: days since 1970, month, day of the month, weekday and hour, as far as they
    vary, and with another date the days between them. Dates beyond those of the training rows count as
    the nearest of those; what cannot be read as a date counts as missing. Free text (more than a
    thousand different values, or more than half as many as rows, most of three words or more) gives the
    numbers of `TextFeatures`, or those of an embedding of your own.

    What cannot be learned from is left out: a column that does not vary on the training fold, and,
    with a `ColumnWarning`, other text with so many values, and numbers that name or count the rows of
    a data frame.

    Parameters
    ----------
    text : "auto", None, or column or sequence of columns
        Columns to read as text, beside those that look like it; None leaves free text out.
    dates : "auto", None, or column or sequence of columns
        Columns to read as dates, beside those that look like it; None leaves dates out.
    embedding : callable, optional
        From a list of n texts to an array of shape (n, d), in place of TF-IDF.

    Attributes
    ----------
    columns_ : list
        All columns that `fit` saw; names for a frame, positions for an array.
    numbers_, categories_ : list
        Those used as numbers and as categories.
    dropped_, reasons_ : list
        Columns that are left out, and why.
    dates_, texts_ : list
        Those used as dates and as free text.
    date_columns_ : DateColumns
        How dates become numbers.
    text_columns_ : TextColumns
        How texts become numbers.
    medians_, means_, scales_ : list of float
        Of the numbers and behind them of those that dates give, after imputation.
    levels_ : list of lists of str
        The values of each category, one column of the matrix each.
    modes_ : list of int
        Position of the most frequent one.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables import TabularEncoder
    >>> frame = pd.DataFrame({"age": [30, None, 50], "job": ["a", "b", None], "same": [1, 1, 1]})
    >>> encoder = TabularEncoder().fit(frame)
    >>> encoder.transform(frame).shape, encoder.dropped_
    ((3, 3), ['same'])
    >>> encoder.transform(pd.DataFrame({"age": [40], "job": ["new"], "same": [2]}))
    array([[0., 0., 0.]], dtype=float32)
    """

    _learned: ClassVar[tuple[str, ...]] = (
        *("columns_", "numbers_", "categories_", "dropped_", "reasons_"),
        *("medians_", "means_", "scales_", "levels_", "modes_"),
    )
    columns_: list[Any]
    numbers_: list[Any]
    categories_: list[Any]
    dropped_: list[Any]
    reasons_: list[str]
    medians_: list[float]
    means_: list[float]
    scales_: list[float]
    levels_: list[list[str]]
    modes_: list[int]
    # None in files of version 0.1
    text: Any = "auto"
    dates: Any = "auto"
    embedding: Embedding | None = None
    date_columns_: DateColumns = DateColumns()
    text_columns_: TextColumns = TextColumns()

    def __init__(
        self, text: Any = "auto", dates: Any = "auto", embedding: Embedding | None = None
    ) -> None:
        self.text = text
        self.dates = dates
        self.embedding = embedding

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn columns, medians, modes, scales and categories from the training rows."""
        table = _as_frame(X)
        for name in self._learned:
            setattr(self, name, [])
        self.date_columns_, self.text_columns_ = DateColumns(), TextColumns()
        self.columns_ = table.columns.tolist()
        self._check_asked()
        for column in table.columns:
            reason = self._learn(table[column], column, named=isinstance(X, pd.DataFrame))
            if reason:
                self.dropped_.append(column)
                self.reasons_.append(reason)
            if reason and reason != CONSTANT:
                warn_user(f"Column {column!r} is left out: {reason}.", ColumnWarning)
        self.date_columns_.learn_parts(table, self._learn_number)
        for column in self.date_columns_.drop_unused():
            self.dropped_.append(column)
            self.reasons_.append(CONSTANT)
        if not (self.numbers_ or self.categories_ or self.dates_ or self.texts_):
            raise InvalidDataError(
                f"None of the columns can be learned from ({len(table)} training rows); left out: "
                f"{listed(self.dropped_)}."
            )
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the matrix of shape (n, d) for rows with the columns that `fit` saw."""
        if self._is_like_fitted(X):
            matrix = self._standardise(X)
            if matrix is not None:
                return matrix
        table = self._aligned(X)
        matrix = np.zeros((len(table), len(self.bins_)), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            for place, numbers in enumerate(self._all_numbers(table)):
                numbers[np.isnan(numbers)] = self.medians_[place]
                matrix[:, place] = (numbers - self.means_[place]) / self.scales_[place]
        if not np.isfinite(matrix).all():
            row = int(np.argwhere(~np.isfinite(matrix))[0, 0])
            raise InvalidDataError(
                f"Row {row_number(table, row)} holds a number too large to standardise in 32 bits. Drop or clip it."
            )
        start = len(self.medians_)
        for column, levels, mode in zip(self.categories_, self.levels_, self.modes_, strict=True):
            codes, texts = text_codes(table[column])
            known = {level: place for place, level in enumerate(levels)}
            # The last entry is what code -1, a missing value, finds.
            places = np.array([*(known.get(text, -1) for text in texts), mode])[codes]
            rows = np.flatnonzero(places >= 0)
            matrix[rows, start + places[rows]] = 1.0
            start += len(levels)
        for block in self.text_columns_.blocks(table):
            matrix[:, start : start + block.shape[1]] = block
            start += block.shape[1]
        return matrix

    def compact(self, X: Any) -> NDArray[np.float32]:
        """Return the matrix before a network spreads the columns that have bins; here, none has."""
        return self.transform(X)

    @property
    def bins_(self) -> list[int]:
        """Bins of each column of `compact`; 0 for one that stays as it is."""
        return [0] * (len(self.medians_) + sum(map(len, self.levels_)) + self.text_columns_.width)

    @property
    def dates_(self) -> list[Any]:
        """Columns used as dates."""
        return self.date_columns_.columns

    @property
    def texts_(self) -> list[Any]:
        """Columns used as free text."""
        return self.text_columns_.columns

    def _is_like_fitted(self, X: Any) -> bool:
        """Tell whether rows are an array of numbers, as those were that `fit` saw."""
        places = list(range(len(self.columns_)))
        return (
            isinstance(X, np.ndarray)
            and X.dtype in (np.float32, np.float64)
            and X.shape[1:] == (len(places),)
            and self.columns_ == places
            and not (self.categories_ or self.dates_ or self.texts_)
        )

    def _standardise(self, X: NDArray[Any]) -> NDArray[np.float32] | None:
        """Return the matrix of an array, None where a number is missing or too large.

        Rows are taken in pieces that stay in the cache, which is several times as fast as columns.
        """
        whole = len(self.numbers_) == X.shape[1]
        # One for each row: numpy is faster with two arrays of one shape.
        means, scales = (np.tile(v, (ROWS_IN_CACHE, 1)) for v in (self.means_, self.scales_))
        numbers = np.empty_like(means)
        matrix = np.empty((len(X), means.shape[1]), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(X), ROWS_IN_CACHE):
                rows = X[start : start + ROWS_IN_CACHE]
                piece, n = matrix[start : start + ROWS_IN_CACHE], len(rows)
                numbers[:n] = rows if whole else rows[:, self.numbers_]
                numbers[:n] -= means[:n]
                numbers[:n] /= scales[:n]
                piece[...] = numbers[:n]
                if not np.isfinite(piece.sum()):  # nor is it if one of them is not
                    return None
        return matrix

    def to_dict(self) -> dict[str, Any]:
        """Return all that `fit` learned as plain values, which JSON keeps to the bit."""
        plain = {name: getattr(self, name) for name in self._learned}
        if self.dates_:
            plain["date_columns_"] = self.date_columns_.to_dict()
        if self.texts_:
            plain["text_columns_"] = self.text_columns_.to_dict()
        return plain

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what text gives numbers by, which is too much for JSON; nothing without text."""
        return self.text_columns_.to_arrays()

    @classmethod
    def from_dict(
        cls,
        learned: dict[str, Any],
        arrays: Mapping[str, NDArray[Any]] | None = None,
        embedding: Embedding | None = None,
    ) -> Self:
        """Return the encoder that `to_dict` and `to_arrays` described, or refuse what no `fit` can have learned.

        An embedding of the user's own is not in a file, and has to be given.
        """
        encoder = cls()
        for name in cls._learned:
            setattr(encoder, name, list(learned[name]))
        encoder.date_columns_ = DateColumns.from_dict(learned.get("date_columns_"))
        encoder.text_columns_ = TextColumns.from_dict(
            learned.get("text_columns_"), arrays or {}, embedding
        )
        if encoder.text_columns_.embedded:
            encoder.embedding = embedding
        encoder._check_learned()
        return encoder

    def _check_learned(self) -> None:
        used = [*self.numbers_, *self.categories_, *self.dropped_, *self.dates_, *self.texts_]
        scales = np.array([self.medians_, self.means_, self.scales_], dtype=np.float64)
        sound = (
            len(set(self.columns_)) == len(self.columns_) == len(used)
            and set(used) == set(self.columns_)
            and scales.shape == (3, len(self.numbers_) + len(self.date_columns_.parts))
            and bool(np.isfinite(scales).all() and (scales[2] > 0).all())
            and len(self.levels_) == len(self.modes_) == len(self.categories_)
            and all(
                type(mode) is int and 0 <= mode < len(levels)
                for levels, mode in zip(self.levels_, self.modes_, strict=True)
            )
            and all(type(text) is str for levels in self.levels_ for text in levels)
            and len(self.reasons_) == len(self.dropped_)
        )
        if not sound:
            raise InvalidDataError(INCONSISTENT)

    def _check_asked(self) -> None:
        """Raise if columns are asked for as text or dates that are not there, or as both."""
        owner, asked = type(self).__name__, [*self._asked("text"), *self._asked("dates")]
        check_columns(asked, self.columns_, "The table")
        if len(set(asked)) < len(asked):
            expected = "name other columns than `text`, and each once"
            raise parameter_error("dates", owner, expected, self.dates)
        if self.embedding is not None and not callable(self.embedding):
            expected = "be a function from a list of texts to an array of shape (n, d)"
            raise parameter_error("embedding", owner, expected, self.embedding)

    def _asked(self, setting: str) -> list[Any]:
        """Return the columns that the user named as text or dates."""
        value = getattr(self, setting)
        if value is None or (isinstance(value, str) and value == "auto"):
            return []
        if isinstance(value, bool | float) or callable(value):
            expected = 'be "auto", None, or name columns'
            raise parameter_error(setting, type(self).__name__, expected, value)
        return [value] if isinstance(value, str | int) else list(value)

    def _learn(self, values: pd.Series[Any], column: Any, *, named: bool) -> str:
        """Learn one column, or return why it is left out."""
        if column in self._asked("text"):
            return self.text_columns_.add(values, column, self.embedding)
        if column in self._asked("dates"):
            check_dates(values, column)
            return self._learn_date(values, column)
        if is_date(values):
            return self._learn_date(values, column)
        if is_number(values, column):
            # The columns of an array have no names, and are taken to be features.
            reason = why_useless_number(values, column) if named else ""
            reason = reason or self._learn_number(read_numbers(values, column), column)
            self.numbers_ += [] if reason else [column]
            return reason
        counts = count_texts(values, column)
        levels = sorted(counts)
        if holds_dates(levels):
            return self._learn_date(values, column)
        reason = why_useless_text(levels, sum(counts.values()))
        if reason and self.text is not None and is_free_text(levels):
            return self.text_columns_.add(values, column, self.embedding)
        return reason or self._learn_category(counts, len(values), column)

    def _learn_number(self, numbers: NDArray[np.float64], column: Any) -> str:
        missing = np.isnan(numbers)
        seen = numbers[~missing]
        if len(seen) == 0 or np.all(seen == seen[0]):
            return CONSTANT
        median = float(np.median(seen))
        filled = np.where(missing, median, numbers)
        try:
            with np.errstate(over="raise"):
                mean, variance = float(filled.mean()), float(filled.var())
        except FloatingPointError:
            raise InvalidDataError(
                "A column holds numbers too large to standardise, since their squares overflow: "
                f"column {column!r} with up to {np.abs(seen).max():g}. Drop, clip or rescale them."
            ) from None
        # Numbers that differ by rounding alone, far from zero, are not blown up.
        n, eps = len(numbers), float(np.finfo(np.float64).eps)
        noise = variance <= n * eps * variance + (n * mean * eps) ** 2
        self.medians_.append(median)
        self.means_.append(mean)
        self.scales_.append(1.0 if noise else variance**0.5)
        return ""

    def _learn_category(self, counts: dict[str, int], rows: int, column: Any) -> str:
        levels = sorted(counts)
        if len(levels) < 2:
            return CONSTANT
        self.categories_.append(column)
        self.levels_.append(levels)
        self.modes_.append(max(range(len(levels)), key=lambda place: counts[levels[place]]))
        return ""

    def _learn_date(self, values: pd.Series[Any], column: Any) -> str:
        if values.isna().all():
            return CONSTANT
        if self.dates is None:
            return 'it holds dates or durations; pass `dates="auto"` to use it'
        self.date_columns_.add(values, column)
        return ""

    def _all_numbers(self, table: pd.DataFrame) -> Iterator[NDArray[np.float64]]:
        """Yield new arrays of numbers, and of those that dates give."""
        for column in self.numbers_:
            yield read_numbers(table[column], column)
        yield from self.date_columns_.numbers(table)

    def _aligned(self, X: Any) -> pd.DataFrame:
        """Return rows under the names that `fit` saw; what has no names is taken by position."""
        table = _as_frame(X)
        places = list(range(len(self.columns_)))
        unnamed = not isinstance(X, pd.DataFrame) or self.columns_ == places
        if unnamed and table.shape[1] == len(self.columns_):
            return table.set_axis(self.columns_, axis=1)
        missing = [column for column in self.columns_ if column not in table.columns]
        if missing:
            raise InvalidDataError(
                f"Columns that the model was fitted on are missing: {listed(missing)}. "
                f"Got {listed(table.columns)}."
            )
        return table


def _as_frame(X: Any) -> pd.DataFrame:
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(as_array(X))
    check_distinct(table.columns.tolist(), "The table")
    return table
