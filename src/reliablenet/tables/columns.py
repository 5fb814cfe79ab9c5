"""Columns: which must be there, and what each is good for: a number, a category, or nothing."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from reliablenet.errors import InvalidDataError

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
ROW_NUMBER = (
    "it rises from row to row, as a row number does. If the table is only sorted by it, shuffle the "
    "table"
)
IDENTIFIER = (
    "it is called an id and differs in every row: it names rows and tells nothing of new ones. If it "
    "is a measurement, rename it"
)
REMEDY_DATES = "To use it, derive numbers from it, such as days since an event or the weekday"
REMEDY_NUMBERS = "To use it, leave the cells that are not numbers empty"
REMEDY_TEXT = "To use it, group its values or turn it into numbers"


def check_columns(wanted: Sequence[str], present: Sequence[Any], name: str) -> None:
    """Raise unless all wanted columns are there; name what was probably meant."""
    missing = [column for column in wanted if column not in present]
    if missing:
        near = difflib.get_close_matches(missing[0], [str(column) for column in present], 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"It has {list(present)[:20]}."
        which = f"column {missing[0]!r}" if len(missing) == 1 else f"columns {missing[:10]}"
        raise InvalidDataError(f"{name} has no {which}. {hint}")


def check_distinct(names: Sequence[Any], name: str) -> None:
    """Raise if two columns have the same name, as texts.

    Examples
    --------
    >>> from reliablenet.tables.columns import check_distinct
    >>> check_distinct(["age", "rate", "age"], "loans.csv")
    Traceback (most recent call last):
        ...
    reliablenet.errors.InvalidDataError: loans.csv: column names must differ; ['age'] occur more than
    once. Rename or drop all but one of each.
    """
    counts = Counter(str(column) for column in names)
    if len(counts) < len(names):
        twice = [text for text, count in counts.items() if count > 1]
        raise InvalidDataError(
            f"{name}: column names must differ; {twice[:10]} occur more than once. Rename or drop "
            "all but one of each."
        )


def check_known(values: pd.Series[Any], what: str, remedy: str) -> None:
    """Raise if a value is missing in some row; say in how many, and which is the first."""
    missing = values.isna().to_numpy()
    if missing.any():
        raise InvalidDataError(
            f"{what} is missing in {int(missing.sum())} of {len(values)} rows, first in row "
            f"{row_number(values, int(missing.argmax()))}. {remedy}"
        )


def row_number(table: pd.DataFrame | pd.Series[Any], place: int) -> int:
    """Return the number of a row; a batch of a longer table goes on counting."""
    return int(table.index[place]) if isinstance(table.index, pd.RangeIndex) else place


def why_useless_number(values: pd.Series[Any], name: Any) -> str:
    """Return why a column of numbers should be left out, or nothing.

    A number that is different in every row and rises with the rows, or is called an id, names the
    row. Where the table is sorted by its target, it would even give the target away.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.columns import why_useless_number
    >>> why_useless_number(pd.Series(range(100)), "no")
    'it rises from row to row, as a row number does. If the table is only sorted by it, shuffle the table'
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
        return ROW_NUMBER
    if values.is_unique and NAMES_ROWS.fullmatch(str(name)):
        return IDENTIFIER
    return ""


def why_useless_text(levels: list[str], rows: int) -> str:
    """Return why text with these values in so many rows should be left out, or nothing.

    Examples
    --------
    >>> from reliablenet.tables.columns import why_useless_text
    >>> why_useless_text(["2024-01-31", "2024-02-01"], rows=200)
    'it holds dates. To use it, derive numbers from it, such as days since an event or the weekday'
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
        return f"most of its {count} are numbers, but {other!r} is not. {REMEDY_NUMBERS}"
    return f"it is text with {count}: an identifier or free text. {REMEDY_TEXT}"
