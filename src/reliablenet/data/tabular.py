"""`TabularEncoder`: data frame or array in, float32 matrix out, fitted on the training fold alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from reliablenet.errors import InvalidDataError

MOST_CATEGORIES = 1000  # every category is a column of the matrix


class TabularEncoder(TransformerMixin, BaseEstimator):
    """Impute, standardise and one-hot encode, as the paper does.

    Numbers (booleans among them) get the training median where missing and are standardised;
    everything else is read as text, gets the most frequent value where missing, and is one-hot
    encoded. A column with fewer than two different values on the training fold is dropped. A
    category that training never saw becomes all zeros. A text column with more than a thousand
    different values is refused by name.

    Attributes
    ----------
    columns_ : list
        All columns that `fit` saw; names for a frame, positions for an array.
    numbers_, categories_ : list
        Those used as numbers and as categories.
    dropped_ : list
        Columns that do not vary.
    transformer_ : ColumnTransformer
        The fitted scikit-learn pipeline, explicit in its columns so that it can be saved safely.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [30, None, 50], "job": ["a", "b", None], "same": [1, 1, 1]})
    >>> encoder = TabularEncoder().fit(frame)
    >>> encoder.transform(frame).shape, encoder.dropped_
    ((3, 3), ['same'])
    >>> encoder.transform(pd.DataFrame({"age": [40], "job": ["new"], "same": [2]}))
    array([[0., 0., 0.]], dtype=float32)
    """

    columns_: list[Any]
    numbers_: list[Any]
    categories_: list[Any]
    dropped_: list[Any]
    transformer_: ColumnTransformer

    def fit(self, X: Any, y: Any = None) -> TabularEncoder:
        """Learn columns, medians, modes, scales and categories from the training rows."""
        table = _as_frame(X)
        self.columns_ = table.columns.tolist()
        self.numbers_, self.categories_, self.dropped_ = [], [], []
        for column in table.columns:
            kind, distinct = _kind(table[column], column), _distinct(table[column], column)
            if distinct < 2:
                self.dropped_.append(column)
            elif kind == "number":
                self.numbers_.append(column)
            elif distinct <= MOST_CATEGORIES:
                self.categories_.append(column)
            else:
                raise InvalidDataError(
                    f"Column {column!r} is text with {distinct} different values in "
                    f"{len(table)} training rows, more than {MOST_CATEGORIES}: a name or number of "
                    "the row, or free text. Drop it, group its values, or turn it into numbers."
                )
        if not self.numbers_ and not self.categories_:
            raise InvalidDataError(
                f"No feature varies over the {len(table)} training rows, so there is nothing to "
                f"learn from; columns: {self.dropped_[:10]}."
            )
        numerical = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        categorical = make_pipeline(
            SimpleImputer(strategy="most_frequent"),
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        )
        self.transformer_ = ColumnTransformer(
            [
                ("numbers", numerical, [str(column) for column in self.numbers_]),
                ("categories", categorical, [str(column) for column in self.categories_]),
            ]
        )
        try:
            with np.errstate(over="raise"):
                self.transformer_.fit(self._typed(table))
        except FloatingPointError:
            raise InvalidDataError(
                "A column holds numbers too large to standardise, since their squares overflow: "
                f"{self._largest(table)}. Drop, clip or rescale them."
            ) from None
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the matrix of shape (n, d) for rows with the columns that `fit` saw."""
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
            matrix = self.transformer_.transform(self._typed(self._aligned(X))).astype(np.float32)
        if not np.isfinite(matrix).all():
            row = int(np.argwhere(~np.isfinite(matrix))[0, 0])
            raise InvalidDataError(
                f"Row {row} holds a number too large to standardise in 32 bits. Drop or clip it."
            )
        return np.asarray(matrix)

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
                f"Columns that the model was fitted on are missing: {missing[:10]}. "
                f"Got {table.columns.tolist()[:10]}."
            )
        return table

    def _largest(self, table: pd.DataFrame) -> str:
        largest = {column: table[column].abs().max() for column in self.numbers_}
        worst = max(largest, key=lambda column: largest[column])
        return f"column {worst!r} with up to {largest[worst]:g}"

    def _typed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the used columns as float64 and as text, missing values as NaN."""
        # Under text names: scikit-learn would take a whole number for a position.
        columns: dict[str, NDArray[Any]]
        columns = {str(column): _numbers(table[column], column) for column in self.numbers_}
        columns |= {str(column): _texts(table[column]) for column in self.categories_}
        return pd.DataFrame(columns, index=table.index)


def _distinct(values: pd.Series[Any], name: Any) -> int:
    try:
        return int(values.nunique(dropna=True))
    except TypeError:
        raise InvalidDataError(
            f"Column {name!r} holds values that cannot be compared, such as {values.iloc[0]!r}. "
            "Replace lists and other containers by columns of their own."
        ) from None


def _as_frame(X: Any) -> pd.DataFrame:
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    repeated = pd.Index([str(column) for column in table.columns])
    if repeated.has_duplicates:
        twice = repeated[repeated.duplicated()].unique().tolist()
        raise InvalidDataError(f"Column names must differ; these occur more than once: {twice}.")
    return table


def _kind(values: pd.Series[Any], name: Any) -> str:
    if pd.api.types.is_datetime64_any_dtype(values) or pd.api.types.is_timedelta64_dtype(values):
        raise InvalidDataError(
            f"Column {name!r} holds dates or durations, which have no scale of their own. Replace "
            "it by numbers that mean something, such as days since an event or the weekday."
        )
    if pd.api.types.is_complex_dtype(values):
        raise InvalidDataError(f"Column {name!r} holds complex numbers. Use parts or magnitudes.")
    return "number" if pd.api.types.is_numeric_dtype(values) else "category"


def _numbers(values: pd.Series[Any], name: Any) -> NDArray[np.float64]:
    try:
        if _kind(values, name) != "number" and values.dtype != object:
            raise TypeError
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"Column {name!r} held numbers when the model was fitted; it now holds {values.dtype} "
            f"such as {values.iloc[0]!r}. Convert it with pandas.to_numeric."
        ) from None
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise InvalidDataError(
            f"Column {name!r} must hold finite numbers or missing values; got {numbers[row]} in "
            f"row {row}. Replace infinities by NaN to have them imputed, or drop the rows."
        )
    return np.asarray(numbers)


def _texts(values: pd.Series[Any]) -> NDArray[np.object_]:
    texts = values.astype(object).to_numpy()
    missing = pd.isna(texts)
    result = np.empty(len(texts), dtype=object)
    result[missing] = np.nan
    result[~missing] = [str(text) for text in texts[~missing]]
    return result
