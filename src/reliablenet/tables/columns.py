"""Columns: which must be there, and what each is good for: a number, a category, or nothing."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from reliablenet._listing import listed
from reliablenet._warn import warn_user
from reliablenet.errors import ColumnWarning, InvalidDataError

MOST_CATEGORIES = 1000  # every category is a column of the matrix
FEW_CATEGORIES = 20  # so many are never taken for names of rows
FEW_ROWS = 20  # in fewer, rising whole numbers are no sign of a row number
NAMES_ROWS = re.compile(
    r"(?i:(.*[\W_])?(id|uuid|guid)|(row|index)[\W_]*(nr|no|num|number|id)?)|.*[a-z]I[dD]|Unnamed: \d+"
)
ROW_NUMBER = (
    "it rises from row to row, as a row number does. If the table is only sorted by it, shuffle the "
    "table"
)
IDENTIFIER = (
    "it is called an id and differs in every row: it names rows and tells nothing about new ones. If it "
    "is a measurement, rename it"
)
REMEDY_NUMBERS = "To use it, leave the cells that are not numbers empty"
REMEDY_TEXT = "To use it, name it as text, group its values or turn it into numbers"
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\d_]+")
FREE_WORDS = 3  # of free text; a name has two


def check_columns(wanted: Sequence[str], present: Sequence[Any], name: str) -> None:
    """Raise unless all wanted columns are there; name what was probably meant."""
    missing = [column for column in wanted if column not in present]
    if missing:
        near = difflib.get_close_matches(missing[0], [str(column) for column in present], 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"It has {listed(present)}."
        which = "column" if len(missing) == 1 else "columns"
        raise InvalidDataError(f"{name} has no {which} {listed(missing)}. {hint}")


def find_columns(wanted: Sequence[str], present: Sequence[Any], name: str) -> list[str]:
    """Return the columns that are meant, as `spell_columns` does; raise if one is not there."""
    found = spell_columns(wanted, present, name)
    check_columns(found, present, name)
    return found


def spell_columns(wanted: Sequence[str], present: Sequence[Any], name: str) -> list[str]:
    """Return the names of columns as the table spells them, whose case, spaces and underscores may differ.

    Parameters
    ----------
    wanted : sequence of str
        Names as a person typed them.
    present : sequence
        The columns of the table.
    name : str
        What to call the table in errors.

    Warns
    -----
    ColumnWarning
        If a column of another spelling is taken.

    Examples
    --------
    >>> import warnings
    >>> from reliablenet.tables.columns import spell_columns
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     spell_columns(["default"], ["age", "Default "], "loans.csv")
    ['Default ']
    >>> print(found[0].message)
    loans.csv has no column 'default'; 'Default ' is used instead.
    """
    found: list[str] = []
    for column in wanted:
        near = [other for other in present if _bare(str(other)) == _bare(column)]
        if column not in present and len(near) == 1:
            warn_user(
                f"{name} has no column {column!r}; {near[0]!r} is used instead.", ColumnWarning
            )
            found.append(near[0])
        else:
            found.append(column)
    return found


def _bare(name: str) -> str:
    return re.sub(r"[\s_]+", "", name).casefold()


def check_distinct(names: Sequence[Any], name: str) -> None:
    """Raise if two columns have the same name, as texts.

    Examples
    --------
    >>> from reliablenet.tables.columns import check_distinct
    >>> check_distinct(["age", "rate", "age"], "loans.csv")
    Traceback (most recent call last):
        ...
    reliablenet.errors.InvalidDataError: loans.csv: column names must differ; 'age' occur more than
    once. Rename or drop all but one of each.
    """
    counts = Counter(str(column) for column in names)
    if len(counts) < len(names):
        twice = [text for text, count in counts.items() if count > 1]
        raise InvalidDataError(
            f"{name}: column names must differ; {listed(twice)} occur more than once. Rename or drop "
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
    >>> why_useless_text(["red", "blue"], rows=200)
    ''
    >>> why_useless_text([f"k-{number}" for number in range(150)], rows=200)[:57]
    'it is text with 150 different values in 200 training rows'
    """
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


def is_free_text(levels: Sequence[str]) -> bool:
    """Tell whether at least half of some texts have three words or more, and not the same but for numbers.

    Examples
    --------
    >>> from reliablenet.tables.columns import is_free_text
    >>> is_free_text(["where is my card", "card lost"]), is_free_text(["Ada King", "AB-31 x"])
    (True, False)
    >>> is_free_text([f"order {number} was shipped" for number in range(100)])
    False
    """
    sample = levels[:: max(1, len(levels) // 1000)]
    words = [tuple(WORD.findall(text[:1000])) for text in sample]
    long = sum(len(some) >= FREE_WORDS for some in words)
    return 2 * long >= len(sample) > 0 and 2 * len(set(words)) >= len(sample)
