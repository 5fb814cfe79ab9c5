"""What a column is good for: a number, a category, or nothing that generalises to new rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

MOST_CATEGORIES = 1000  # every category is a column of the matrix
FEW_CATEGORIES = 20  # so many are never taken for names of rows
FEW_ROWS = 20  # in fewer, rising whole numbers are no sign of a row number
DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))"
    r"([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|[AaPp][Mm]|[+-]\d{2}:?\d{2})?)?"
)
NAMES_ROWS = re.compile(
    r"(?i:(.*[\W_])?(id|uuid|guid)|(row|index)[\W_]*(nr|no|num|number|id)?)|.*[a-z]I[dD]|Unnamed: \d+"
)
REMEDY_DATES = "Derive numbers from it, such as days since an event or the weekday, to use it"
REMEDY_NUMBERS = "Leave empty what is no number to use it"
REMEDY_TEXT = "Group its values or turn it into numbers to use it"


def why_useless_number(values: pd.Series[Any], name: Any) -> str:
    """Return why a column of numbers should be left out, or nothing.

    A number that is different in every row and rises with the rows, or is called an id, names the
    row. Where the table is sorted by its target, it would even give the target away.

    Examples
    --------
    >>> why_useless_number(pd.Series(range(100)), "no")
    'it numbers the rows. Shuffle the rows to use it'
    >>> why_useless_number(pd.Series([30, 41, 30] * 40), "age")
    ''
    """
    if pd.api.types.is_bool_dtype(values) or len(values) < FEW_ROWS or values.isna().any():
        return ""
    numbers = values.to_numpy(dtype=np.float64)
    if not np.all(np.isfinite(numbers)) or np.any(numbers != np.floor(numbers)):
        return ""
    steps = np.diff(numbers)
    if np.all(steps > 0) or np.all(steps < 0):
        return "it numbers the rows. Shuffle the rows to use it"
    if values.is_unique and NAMES_ROWS.fullmatch(str(name)):
        return "it names the rows, with a different value in each. Rename it to use it"
    return ""


def why_useless_text(levels: list[str], rows: int) -> str:
    """Return why text with these values in so many rows should be left out, or nothing.

    Examples
    --------
    >>> why_useless_text(["2024-01-31", "2024-02-01"], rows=200)
    'it holds dates. Derive numbers from it, such as days since an event or the weekday, to use it'
    >>> why_useless_text(["red", "blue"], rows=200)
    ''
    """
    if len(levels) > 1 and all(DATE.fullmatch(text.strip()) for text in levels):
        return f"it holds dates. {REMEDY_DATES}"
    if len(levels) <= MOST_CATEGORIES and (
        len(levels) <= FEW_CATEGORIES or len(levels) <= rows / 2
    ):
        return ""
    count = f"{len(levels)} different values in {rows} training rows"
    numbers = pd.to_numeric(pd.Series(levels, dtype=object), errors="coerce").notna().to_numpy()
    if numbers.mean() > 0.5:
        other = levels[int(np.argmin(numbers))]
        return f"most of its {count} are numbers, but {other!r} is none. {REMEDY_NUMBERS}"
    return f"it is text with {count}: a name of the row, or free text. {REMEDY_TEXT}"
