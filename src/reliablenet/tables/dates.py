"""Dates as numbers: read in any of their forms, each by itself, and taken apart.

A date is a number of days since the beginning of 1970. One with an offset is taken to UTC, so that a moment is the
same number however it is written; one without is taken as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._warn import warn_user
from reliablenet.errors import ColumnWarning

Days = NDArray[np.float64]

DAY = 86_400  # seconds
FIRST = date(1970, 1, 1).toordinal()
ELAPSED, UNTIL = "days", "until"
PARTS = (ELAPSED, "month", "day", "weekday", "hour")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = f"(?P<name>{'|'.join(MONTHS)})[a-z]*\\.?"
DATE = re.compile(
    r"(?:(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})"
    r"|(?P<a>\d{1,2})(?P<t>[-/.])(?P<b>\d{1,2})(?P=t)(?P<c>\d{4}|\d{2})"
    rf"|(?P<e>\d{{1,2}})[ -]{_NAME}[ -](?P<f>\d{{4}})"
    rf"|{_NAME.replace('<name>', '<other>')} (?P<g>\d{{1,2}}),? (?P<h>\d{{4}}))"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r"\s*(?P<half>[ap]m)?\s*(?P<zone>z|utc|gmt|[+-]\d{2}(?::?\d{2})?)?)?",
    re.IGNORECASE,
)


def holds_dates(texts: Sequence[str]) -> bool:
    """Tell whether all of several different texts are written as dates are.

    Examples
    --------
    >>> from reliablenet.tables.dates import holds_dates
    >>> holds_dates(["2024-01-31", "1/2/24 9:30 pm", "3 Feb 2024"]), holds_dates(["1.2.3", "1.2.4"])
    (True, False)
    """
    return len(texts) > 1 and all(DATE.fullmatch(text.strip()) for text in texts)


def is_date(values: pd.Series[Any]) -> bool:
    """Tell whether a column is of a type for dates or durations."""
    kind = pd.api.types
    return bool(
        kind.is_datetime64_any_dtype(values)
        or kind.is_timedelta64_dtype(values)
        or isinstance(values.dtype, pd.PeriodDtype)
    )


def day_comes_first(texts: Iterable[str], column: Any) -> bool:
    """Tell from all dates of a column whether 3/4/2024 is in April; warn where they do not tell.

    Dates with points have the day first; of others those tell that are possible in one order alone.

    Examples
    --------
    >>> from reliablenet.tables.dates import day_comes_first
    >>> day_comes_first(["3/4/2024", "31/1/2024"], "paid"), day_comes_first(["1/31/2024"], "paid")
    (True, False)
    """
    days = months = 0
    doubtful = ""
    for text in texts:
        found = DATE.fullmatch(text.strip())
        if found is None or found["a"] is None or found["t"] == ".":
            continue
        first, second = int(found["a"]), int(found["b"])
        days += first > 12 >= second
        months += second > 12 >= first
        doubtful = doubtful or text.strip() * (first <= 12 and second <= 12 and first != second)
    first_is_day = days > months
    if doubtful and min(days, months) == max(days, months):
        order = "the month" if not first_is_day else "the day"
        warn_user(
            f"Column {column!r} holds dates such as {doubtful!r}, and none shows whether day or month "
            f"comes first: {order} is assumed to. Write them as 2024-12-31 to be sure.",
            ColumnWarning,
        )
    return first_is_day


def read_days(values: pd.Series[Any], *, day_first: bool = False) -> Days:
    """Return each date as days since 1970, a duration in days; NaN where it is missing or not a date.

    Whole numbers are read as 20241231, or as seconds or milliseconds since 1970.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.dates import read_days
    >>> read_days(pd.Series(["1970-01-02", "3.1.1970 12:00", "2024-02-31", None])).tolist()
    [1.0, 2.5, nan, nan]
    """
    if pd.api.types.is_timedelta64_dtype(values):
        return np.asarray(values.dt.total_seconds(), np.float64) / DAY
    if is_date(values):
        moments = _moments(values)
        whole, rest = np.divmod(moments.astype(np.int64), 10**6 * DAY)
        days = whole + rest / 1e6 / DAY  # as from texts, in the same order, for the same bits
        days[np.isnat(moments)] = np.nan
        return days
    codes, distinct = pd.factorize(values.astype(object))
    read = [_read(value, day_first) for value in distinct]
    # The last entry is what code -1, a missing value, finds.
    return np.array([*read, np.nan], np.float64)[codes]


def write_dates(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return dates of a type for dates as texts that `read_days` reads alike; others stay as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.dates import write_dates
    >>> write_dates(pd.Series(pd.to_datetime(["2024-01-31 12:30", None]))).tolist()
    ['2024-01-31T12:30:00.000000', None]
    """
    if not is_date(values) or pd.api.types.is_timedelta64_dtype(values):
        return values
    moments = _moments(values)
    texts = np.datetime_as_string(moments).astype(object)
    texts[np.isnat(moments)] = None
    return pd.Series(texts, index=values.index, dtype=object)


def take_part(days: Days, part: str) -> Days:
    """Return a part of dates: the days themselves, month, day of the month, weekday (Monday is 0) or hour.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.dates import take_part
    >>> [take_part(np.array([31.75, np.nan]), part).tolist() for part in ("month", "weekday", "hour")]
    [[2.0, nan], [6.0, nan], [18.0, nan]]
    """
    if part == ELAPSED:
        return days
    there = np.isfinite(days)
    seconds = np.rint(np.where(there, days, 0.0) * DAY).astype(np.int64)
    whole = seconds // DAY
    moments = whole.astype("datetime64[D]")
    months = moments.astype("datetime64[M]")
    found = {
        "month": lambda: months.astype(np.int64) % 12 + 1,
        "day": lambda: (moments - months).astype(np.int64) + 1,
        "weekday": lambda: (whole + 3) % 7,
        "hour": lambda: seconds % DAY // 3600,
    }[part]()
    return np.where(there, found.astype(np.float64), np.nan)


def as_date(days: float) -> str:
    """Return a number of days since 1970 as a date."""
    return str(np.datetime64(int(np.floor(days)), "D"))


def _moments(values: pd.Series[Any]) -> NDArray[Any]:
    """Return a column of a type for dates as moments in UTC."""
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    return np.asarray(values, "datetime64[us]")


def _read(value: Any, day_first: bool) -> float:
    if isinstance(value, bool | np.bool_):
        return np.nan
    if isinstance(value, int | float | np.integer | np.floating):
        return _read_number(float(value))
    text = str(value).strip()
    found = DATE.fullmatch(text)
    if found is None:
        return _read_number(float(text)) if re.fullmatch(r"\d{8,13}(\.0)?", text) else np.nan
    try:
        return _days_of(found, day_first)
    except ValueError:  # such as the 31st of February
        return np.nan


def _read_number(number: float) -> float:
    if number != np.floor(number):
        return np.nan
    if 1e7 <= number < 1e8:  # 20241231
        digits = int(number)
        try:
            return float(
                date(digits // 10_000, digits // 100 % 100, digits % 100).toordinal() - FIRST
            )
        except ValueError:
            return np.nan
    if 1e8 <= number < 1e11:
        return number / DAY
    return number / (1000 * DAY) if 1e11 <= number < 1e14 else np.nan


def _days_of(found: re.Match[str], day_first: bool) -> float:
    if found["y"]:
        year, month, day = int(found["y"]), int(found["m"]), int(found["d"])
    elif found["a"]:
        first, second, year = int(found["a"]), int(found["b"]), int(found["c"])
        if len(found["c"]) == 2:
            year += 1900 if year >= 69 else 2000
        in_order = found["t"] == "." or day_first
        if (second if in_order else first) > 12:  # possible in the other order alone
            in_order = not in_order
        day, month = (first, second) if in_order else (second, first)
    else:
        name = (found["name"] or found["other"]).lower()
        month = MONTHS.index(name) + 1
        day, year = int(found["e"] or found["g"]), int(found["f"] or found["h"])
    seconds = 0.0
    if found["hour"]:
        hour, minute = int(found["hour"]), int(found["minute"])
        if found["half"]:
            hour = hour % 12 + 12 * (found["half"].lower() == "pm")
        rest = float((found["second"] or "0").replace(",", "."))
        if hour > 24 or minute > 59 or rest >= 61.0:
            raise ValueError
        seconds = 3600.0 * hour + 60.0 * minute + rest - _offset(found["zone"])
    return date(year, month, day).toordinal() - FIRST + seconds / DAY


def _offset(zone: str | None) -> float:
    """Return the seconds by which a zone is ahead of UTC."""
    if not zone or zone[0] not in "+-":
        return 0.0
    digits = zone[1:].replace(":", "")
    size = 3600.0 * int(digits[:2]) + 60.0 * int(digits[2:] or 0)
    return -size if zone[0] == "-" else size
