"""`DateColumns`: which columns hold dates, and which numbers an encoder makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd

from reliablenet.errors import InvalidDataError
from reliablenet.tables.columns import row_number, why_useless_number
from reliablenet.tables.dates import (
    DAY,
    ELAPSED,
    PARTS,
    UNTIL,
    Days,
    day_comes_first,
    is_date,
    read_days,
    take_part,
)
from reliablenet.tables.values import count_texts

MOST_PAIRED = 5  # columns, of which each pair gives the days between


@dataclass
class DateColumns:
    """Columns of dates, and the parts of them that vary over the training rows.

    Attributes
    ----------
    columns : list
    day_first : list of bool
        Whether 3/4/2024 is in April, for each column.
    parts : list of lists
        Column and part, or column, "until" and another column: the days from the one to the other.
    ranges : list of pairs of float
        Of each part over the training rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.date_columns import DateColumns
    >>> table = pd.DataFrame({"paid": ["2024-03-01", "2024-01-20", "2024-01-25"]})
    >>> dates = DateColumns()
    >>> dates.add(table["paid"], "paid")
    >>> dates.learn_parts(table, lambda numbers, column: len(set(numbers)) == 1)
    >>> [part for _, part in dates.parts]
    ['days', 'month', 'day', 'weekday']
    >>> [numbers.tolist() for numbers in dates.numbers(pd.DataFrame({"paid": ["2030-02-20"]}))]
    [[19783.0], [2.0], [20.0], [3.0]]
    """

    columns: list[Any] = field(default_factory=list)
    day_first: list[bool] = field(default_factory=list)
    parts: list[list[Any]] = field(default_factory=list)
    ranges: list[list[float]] = field(default_factory=list)

    def check(self) -> None:
        """Raise if the lists do not fit together."""
        ranges = np.array(self.ranges, dtype=np.float64).reshape(-1, 2)
        sound = (
            len(self.columns) == len(self.day_first)
            and all(type(flag) is bool for flag in self.day_first)
            and len(self.parts) == len(self.ranges) == len(ranges)
            and bool(np.isfinite(ranges).all() and (ranges[:, 0] < ranges[:, 1]).all())
            and all(self._is_part(part) for part in self.parts)
        )
        if not sound:
            raise InvalidDataError(
                "The stored date columns are inconsistent. Fit and save the model again."
            )

    def _is_part(self, part: Any) -> bool:
        plain = len(part) == 2 and part[1] in PARTS
        paired = len(part) == 3 and part[1] == UNTIL and part[2] in self.columns
        return (plain or paired) and part[0] in self.columns

    def add(self, values: pd.Series[Any], column: Any) -> None:
        """Add a column; what comes first, day or month, all of its dates tell together."""
        texts = () if is_date(values) else count_texts(values, column)
        self.columns.append(column)
        self.day_first.append(day_comes_first(texts, column))

    def learn_parts(self, table: pd.DataFrame, constant: Callable[[Days, Any], Any]) -> None:
        """Keep the parts that vary; ``constant`` gets numbers and column, and tells if they do not."""
        spans = [c for c in self.columns if pd.api.types.is_timedelta64_dtype(table[c])]
        moments = [column for column in self.columns if column not in spans]
        wanted = [[column, ELAPSED] for column in spans]
        wanted += [[column, part] for column in moments for part in PARTS]
        if len(moments) <= MOST_PAIRED:
            pairs = [(a, b) for place, a in enumerate(moments) for b in moments[place + 1 :]]
            wanted += [[a, UNTIL, b] for a, b in pairs]
        read: dict[Any, Days] = {}
        for part in wanted:
            numbers = self._part(table, part, read)
            # of a table sorted by time, the time is a number of the row
            seconds = pd.Series(np.rint(numbers * DAY))
            rises = part[1] == ELAPSED and why_useless_number(seconds, "")
            if not rises and not constant(numbers, part[0]):
                self.parts.append(part)
                self.ranges.append([float(np.nanmin(numbers)), float(np.nanmax(numbers))])

    def drop_unused(self) -> list[Any]:
        """Take out the columns of which no part is used, and return them."""
        used = {column for part in self.parts for column in (part[0], *part[2:])}
        unused = [column for column in self.columns if column not in used]
        for column in unused:
            del self.day_first[self.columns.index(column)]
            self.columns.remove(column)
        return unused

    def numbers(self, table: pd.DataFrame) -> Iterator[Days]:
        """Yield the numbers of each part, within the range of the training rows; NaN where missing."""
        read: dict[Any, Days] = {}
        for part, (least, most) in zip(self.parts, self.ranges, strict=True):
            yield self._part(table, part, read).clip(least, most)

    def with_days(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with its dates as days since 1970, the same however they are written."""
        here = zip(self.columns, self.day_first, strict=True)
        days = {c: read_days(table[c], day_first=first) for c, first in here if c in table.columns}
        if not days:
            return table
        table = table.copy(deep=False)
        for column, numbers in days.items():
            table[column] = numbers
        return table

    def _part(self, table: pd.DataFrame, part: list[Any], read: dict[Any, Days]) -> Days:
        """Return a part of the dates of a table; what was ``read`` already is not read again."""
        for column in (part[0], *part[2:]):
            if column not in read:
                first = self.day_first[self.columns.index(column)]
                read[column] = read_days(table[column], day_first=first)
        if part[1] == UNTIL:
            return read[part[2]] - read[part[0]]
        return take_part(read[part[0]], part[1])

    def to_dict(self) -> dict[str, Any]:
        """Return the lists by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: dict[str, Any] | None) -> Self:
        """Return what `to_dict` described, nothing for None; refuse what no `fit` can have learned."""
        found = cls(**(stored or {}))
        found.check()
        return found


def check_dates(values: pd.Series[Any], column: Any) -> None:
    """Raise if more than half of the values of a column named as dates are not dates."""
    present = values.notna().to_numpy()
    strange = np.isnan(read_days(values)) & present
    if strange.sum() > present.sum() / 2:
        row = int(strange.argmax())
        raise InvalidDataError(
            f"Column {column!r} is to be read as dates; {int(strange.sum())} of {len(values)} rows hold "
            f"no date, such as {values.iloc[row]!r} in row {row_number(values, row)}. Write dates as "
            "2024-12-31, or leave the column to be read as it is."
        )
