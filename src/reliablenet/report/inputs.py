"""What the training rows looked like, as a table: what is usual, and what would be odd."""

from __future__ import annotations

from reliablenet._listing import listed
from reliablenet.report import text
from reliablenet.report.charts import Numbers, marked_numbers
from reliablenet.tables.dates import as_date
from reliablenet.tables.profile import ColumnProfile, InputProfile

MOST_COLUMNS = 60
MOST_LEVELS = 6


def profile_table(profile: InputProfile) -> Numbers:
    """Return a line for each column of a profile.

    Parameters
    ----------
    profile : InputProfile

    Returns
    -------
    Numbers

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.report.inputs import profile_table
    >>> from reliablenet.tables.describing import describe_rows
    >>> ages, jobs = [20 + i % 50 for i in range(200)], ["clerk", "cook"] * 100
    >>> for row in profile_table(describe_rows(pd.DataFrame({"age": ages, "job": jobs}))).rows:
    ...     print(" | ".join(row))
    age | number | half of them from 32 to 57 | below 0, above 100, missing
    job | category | clerk, cook | any other, missing
    """
    shown = profile.columns[:MOST_COLUMNS]
    rows = [[str(column.name), column.kind, _usual(column), _odd(column)] for column in shown]
    return marked_numbers(["Column", "Kind", "In training", "Odd"], rows)


def hidden_columns(profile: InputProfile) -> int:
    """Return how many columns of a profile its table does not show."""
    return max(len(profile.columns) - MOST_COLUMNS, 0)


def _usual(column: ColumnProfile) -> str:
    missing = f"; missing in {text.percent(column.missing)}" if column.missing else ""
    if column.fences:
        low, _, high = column.quartiles
        unit = " characters" if column.kind == "text" else ""
        return f"half of them from {_shown(column, low)} to {_shown(column, high)}{unit}{missing}"
    if column.kind == "category":
        counted = zip(column.counts[1:], column.levels, strict=False)
        levels = [level for _, level in sorted(counted, key=lambda one: -one[0])]
        return f"{listed(levels, MOST_LEVELS, str)}{missing}"
    return f"any {column.kind}{missing}"


def _odd(column: ColumnProfile) -> str:
    odd = []
    if column.fences:
        low, high = column.fences
        before, after = {
            "date": ("before", "after"),
            "text": ("shorter than", "longer than"),
        }.get(column.kind, ("below", "above"))
        odd += [f"{before} {_shown(column, low)}", f"{after} {_shown(column, high)}"]
    if column.kind == "date" and column.fences:
        odd.append("no date")
    if column.closed:
        odd.append("any other")
    if not column.counts[0]:
        odd.append("missing")
    return ", ".join(odd) or text.NONE


def _shown(column: ColumnProfile, number: float) -> str:
    return as_date(number) if column.kind == "date" else f"{number:,g}"
