"""`TabularEncoder`: data frame or array in, float32 matrix out, fitted on the training fold alone."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from reliablenet._checks import as_array
from reliablenet._warn import warn_user
from reliablenet.errors import ColumnWarning, InvalidDataError
from reliablenet.tables.columns import (
    REMEDY_DATES,
    check_distinct,
    listed,
    row_number,
    why_useless_number,
    why_useless_text,
)

CONSTANT = "it does not vary"
ROWS_IN_CACHE = 256
INCONSISTENT = (
    "The stored settings of the encoder do not fit together: columns, scales and categories must come "
    "from one fit. Save the model again."
)


class TabularEncoder(TransformerMixin, BaseEstimator):
    """Impute, standardise and one-hot encode, as the paper does.

    Numbers (booleans among them) get the training median where missing and are standardised;
    everything else is read as text, gets the most frequent value where missing, and is one-hot
    encoded. A category that training never saw becomes all zeros.

    What cannot be learned from is left out: a column that does not vary on the training fold, and,
    with a `ColumnWarning`, dates, free text (more than a thousand different values, or more than
    half as many as rows), and numbers that name or count the rows of a data frame.

    Attributes
    ----------
    columns_ : list
        All columns that `fit` saw; names for a frame, positions for an array.
    numbers_, categories_ : list
        Those used as numbers and as categories.
    dropped_, reasons_ : list
        Columns that are left out, and why.
    medians_, means_, scales_ : list of float
        Of the numbers, after imputation.
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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn columns, medians, modes, scales and categories from the training rows."""
        table = _as_frame(X)
        for name in self._learned:
            setattr(self, name, [])
        self.columns_ = table.columns.tolist()
        for column in table.columns:
            reason = self._learn(table[column], column, named=isinstance(X, pd.DataFrame))
            if reason:
                self.dropped_.append(column)
                self.reasons_.append(reason)
            if reason and reason != CONSTANT:
                warn_user(f"Column {column!r} is left out: {reason}.", ColumnWarning)
        if not self.numbers_ and not self.categories_:
            raise InvalidDataError(
                f"No feature varies over the {len(table)} training rows in a way that can be "
                f"learned from; columns: {listed(self.dropped_)}."
            )
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the matrix of shape (n, d) for rows with the columns that `fit` saw."""
        if self._is_like_fitted(X):
            matrix = self._standardise(X)
            if matrix is not None:
                return matrix
        table = self._aligned(X)
        width = len(self.numbers_) + sum(len(levels) for levels in self.levels_)
        matrix = np.zeros((len(table), width), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            for place, column in enumerate(self.numbers_):
                numbers = read_numbers(table[column], column)
                numbers[np.isnan(numbers)] = self.medians_[place]
                matrix[:, place] = (numbers - self.means_[place]) / self.scales_[place]
        if not np.isfinite(matrix).all():
            row = int(np.argwhere(~np.isfinite(matrix))[0, 0])
            raise InvalidDataError(
                f"Row {row_number(table, row)} holds a number too large to standardise in 32 bits. Drop or clip it."
            )
        start = len(self.numbers_)
        for column, levels, mode in zip(self.categories_, self.levels_, self.modes_, strict=True):
            codes, texts = text_codes(table[column])
            known = {level: place for place, level in enumerate(levels)}
            # The last entry is what code -1, a missing value, finds.
            places = np.array([*(known.get(text, -1) for text in texts), mode])[codes]
            rows = np.flatnonzero(places >= 0)
            matrix[rows, start + places[rows]] = 1.0
            start += len(levels)
        return matrix

    def compact(self, X: Any) -> NDArray[np.float32]:
        """Return the matrix before a network spreads the columns that have bins; here, none has."""
        return self.transform(X)

    @property
    def bins_(self) -> list[int]:
        """Bins of each column of `compact`; 0 for one that stays as it is."""
        return [0] * (len(self.numbers_) + sum(map(len, self.levels_)))

    def _is_like_fitted(self, X: Any) -> bool:
        """Tell whether rows are an array of numbers, as those were that `fit` saw."""
        places = list(range(len(self.columns_)))
        return (
            isinstance(X, np.ndarray)
            and X.dtype in (np.float32, np.float64)
            and X.shape[1:] == (len(places),)
            and self.columns_ == places
            and not self.categories_
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
        return {name: getattr(self, name) for name in self._learned}

    @classmethod
    def from_dict(cls, learned: dict[str, Any]) -> Self:
        """Return the encoder that `to_dict` described, or refuse what no `fit` can have learned."""
        encoder = cls()
        for name in cls._learned:
            setattr(encoder, name, list(learned[name]))
        encoder._check_learned()
        return encoder

    def _check_learned(self) -> None:
        used = [*self.numbers_, *self.categories_, *self.dropped_]
        scales = np.array([self.medians_, self.means_, self.scales_], dtype=np.float64)
        sound = (
            len(set(self.columns_)) == len(self.columns_) == len(used)
            and set(used) == set(self.columns_)
            and scales.shape == (3, len(self.numbers_))
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

    def _learn(self, values: pd.Series[Any], column: Any, *, named: bool) -> str:
        """Learn one column, or return why it is left out."""
        if _is_date(values):
            return (
                CONSTANT if values.isna().all() else f"it holds dates or durations. {REMEDY_DATES}"
            )
        if not _is_number(values, column):
            return self._learn_category(values, column)
        # The columns of an array have no names, and are taken to be features.
        return (named and why_useless_number(values, column)) or self._learn_number(values, column)

    def _learn_number(self, values: pd.Series[Any], column: Any) -> str:
        numbers = read_numbers(values, column)
        missing = np.isnan(numbers)
        seen = numbers[~missing]
        if len(seen) == 0 or np.all(seen == seen[0]):
            return CONSTANT
        median = float(np.median(seen))
        numbers[missing] = median
        try:
            with np.errstate(over="raise"):
                mean, variance = float(numbers.mean()), float(numbers.var())
        except FloatingPointError:
            raise InvalidDataError(
                "A column holds numbers too large to standardise, since their squares overflow: "
                f"column {column!r} with up to {np.abs(seen).max():g}. Drop, clip or rescale them."
            ) from None
        # Numbers that differ by rounding alone, far from zero, are not blown up.
        n, eps = len(numbers), float(np.finfo(np.float64).eps)
        noise = variance <= n * eps * variance + (n * mean * eps) ** 2
        self.numbers_.append(column)
        self.medians_.append(median)
        self.means_.append(mean)
        self.scales_.append(1.0 if noise else variance**0.5)
        return ""

    def _learn_category(self, values: pd.Series[Any], column: Any) -> str:
        counts = count_texts(values, column)
        levels = sorted(counts)
        if len(levels) < 2:
            return CONSTANT
        if reason := why_useless_text(levels, sum(counts.values())):
            return reason
        self.categories_.append(column)
        self.levels_.append(levels)
        self.modes_.append(max(range(len(levels)), key=lambda place: counts[levels[place]]))
        return ""

    def _aligned(self, X: Any) -> pd.DataFrame:
        """Return rows under the names that `fit` saw; what has no names is taken by position."""
        table = _as_frame(X)
        unnamed = not isinstance(X, pd.DataFrame) or self.columns_ == list(
            range(len(self.columns_))
        )
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


def _is_date(values: pd.Series[Any]) -> bool:
    kind = pd.api.types
    return bool(
        kind.is_datetime64_any_dtype(values)
        or kind.is_timedelta64_dtype(values)
        or isinstance(values.dtype, pd.PeriodDtype)
    )


def _is_number(values: pd.Series[Any], name: Any) -> bool:
    if pd.api.types.is_complex_dtype(values):
        raise InvalidDataError(f"Column {name!r} holds complex numbers. Use parts or magnitudes.")
    return bool(pd.api.types.is_numeric_dtype(values))


def read_numbers(values: pd.Series[Any], name: Any) -> NDArray[np.float64]:
    """Return a new array of numbers, missing ones as NaN."""
    try:
        if not _is_number(values, name) and values.dtype != object:
            raise TypeError
        numbers = np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        texts = values.astype(object)
        numbers = np.array(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)
        strange = np.isnan(numbers) & texts.notna().to_numpy()
        if strange.any():  # digits as text are numbers
            row = int(strange.argmax())
            raise InvalidDataError(
                f"Column {name!r} held numbers when the model was fitted; it now holds "
                f"{texts.iloc[row]!r} in row {row_number(values, row)}. Write a number, or leave it empty "
                'to have it imputed (in pandas: to_numeric with errors="coerce").'
            ) from None
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise InvalidDataError(
            f"Column {name!r} must hold finite numbers or missing values; got {numbers[row]} in "
            f"row {row_number(values, row)}. Replace infinities by NaN to have them imputed, or drop the "
            "rows."
        )
    return numbers


def count_texts(values: pd.Series[Any], name: Any) -> dict[str, int]:
    """Return how often each value of a category occurs, as text; missing ones are not counted."""
    try:
        pd.unique(values)
    except TypeError:
        raise InvalidDataError(
            f"Column {name!r} holds values that cannot be compared, such as "
            f"{values.iloc[0]!r}. Replace lists and other containers by columns of their own."
        ) from None
    codes, texts = text_codes(values)
    counts: dict[str, int] = {}
    for text, count in zip(texts, np.bincount(codes + 1)[1:].tolist(), strict=False):
        if count:
            counts[text] = counts.get(text, 0) + count
    return counts


def text_codes(values: pd.Series[Any]) -> tuple[NDArray[Any], list[str]]:
    """Return a number for each value, -1 where missing, and the text that each number stands for."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        kept: Any = values.array  # `values.cat` looks at them again each time
        return kept.codes, [str(value) for value in kept.categories]
    if pd.api.types.infer_dtype(values, skipna=True) != "string":  # 1, 1.0 and True are three texts
        missing = values.isna().to_numpy()
        texts = values.astype(object).to_numpy(copy=True)
        texts[~missing] = [str(value) for value in texts[~missing]]
        texts[missing] = None
        values = pd.Series(texts, dtype=object)
    codes, distinct = pd.factorize(values)
    return codes, [str(value) for value in distinct]
