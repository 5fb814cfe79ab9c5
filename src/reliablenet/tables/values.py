"""Values of one column: as numbers, or as texts with a code each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.errors import InvalidDataError
from reliablenet.tables.column_arrays import CodedTexts
from reliablenet.tables.columns import row_number


def is_number(values: pd.Series[Any], name: Any) -> bool:
    """Tell whether a column is of a type for numbers, which true and false are among."""
    if pd.api.types.is_complex_dtype(values):
        raise InvalidDataError(f"Column {name!r} holds complex numbers. Use parts or magnitudes.")
    return bool(pd.api.types.is_numeric_dtype(values))


def read_numbers(values: pd.Series[Any] | NDArray[Any], name: Any) -> NDArray[np.float64]:
    """Return a new array of numbers, missing ones as NaN; of `ColumnArrays` they are read already."""
    if isinstance(values, np.ndarray):
        return values.copy()
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "biuf":
        return _finite(np.array(values.to_numpy(), np.float64), values, name)
    try:
        if not is_number(values, name) and values.dtype != object:
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
    return _finite(numbers, values, name)


def _finite(numbers: NDArray[np.float64], values: pd.Series[Any], name: Any) -> NDArray[np.float64]:
    """Return numbers, or refuse an infinite one."""
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


def text_codes(values: pd.Series[Any] | CodedTexts) -> tuple[NDArray[Any], list[str]]:
    """Return a number for each value, -1 where missing, and the text that each number stands for."""
    if isinstance(values, CodedTexts):
        return values.codes, values.texts
    if isinstance(values.dtype, pd.CategoricalDtype):
        kept: Any = values.array  # `values.cat` looks at them again each time
        levels = kept.categories
        if isinstance(levels.dtype, pd.StringDtype):  # texts already, and slow to take one by one
            return kept.codes, levels.tolist()
        return kept.codes, [str(value) for value in levels]
    if pd.api.types.infer_dtype(values, skipna=True) != "string":  # 1, 1.0 and True are three texts
        missing = values.isna().to_numpy()
        texts = values.astype(object).to_numpy(copy=True)
        texts[~missing] = [str(value) for value in texts[~missing]]
        texts[missing] = None
        values = pd.Series(texts, dtype=object)
    codes, distinct = pd.factorize(values)
    return codes, [str(value) for value in distinct]
