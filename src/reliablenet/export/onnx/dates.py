"""Columns of dates inside a graph: texts in every form that `read_days` reads, and the parts that an encoder takes.

Regular expressions tell in which form a date is written; which of its runs of digits is what follows from that.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from reliablenet.export.onnx.arithmetic import Value
from reliablenet.export.onnx.graph import ML, RUNTIME, Graph
from reliablenet.export.parts import DATE, DAYS
from reliablenet.tables.date_columns import DateColumns
from reliablenet.tables.dates import DAY, ELAPSED, MONTHS, UNTIL

RUNS = 8  # of digits at most: three of a date, hour, minute, second, fraction and two of a zone, less one
MARCH = 719_468  # days from 0000-03-01, behind the leap day of an era, to 1970-01-01
ERA = 146_097  # days in 400 years
LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
NO_DATE = "0"  # stands for a text that is none


def _class_of(holds: Callable[[str], bool]) -> str:
    """Return the characters for which something holds, for a regular expression."""
    found = [code for code in range(sys.maxunicode + 1) if holds(chr(code))]
    return "".join(f"\\x{{{code:x}}}" for code in found)


_SPACE = _class_of(str.isspace)
_DIGITS = _class_of(lambda one: one.isdecimal() and not one.isascii())
_DAY, _YEAR, _END = "[0-9]{1,2}", "[0-9]{4}", f"[{_SPACE}]*"
_NAME = rf"(?:{'|'.join(MONTHS)})[a-z]*\.?"
_TIME = (
    rf"(?:[T ]{_DAY}:[0-9]{{2}}(?::[0-9]{{2}}(?:[.,][0-9]{{1,18}})?)?"
    rf"{_END}(?:[ap]m)?{_END}(?:z|utc|gmt|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)?)?"
)


def _form(date: str, time: str = _TIME) -> str:
    return f"(?is){_END}{date}{time}{_END}"


def _same(parts: Sequence[str], separators: str = "-/.") -> str:
    """Return three parts with the same separator between them."""
    return "(?:" + "|".join(f"[{one}]".join(parts) for one in separators) + ")"


FORMS = {
    "year first": _form(_same([_YEAR, _DAY, _DAY])),
    "year last": _form(_same([_DAY, _DAY, f"(?:{_YEAR}|[0-9]{{2}})"])),
    "name second": _form(f"{_DAY}[ -]{_NAME}[ -]{_YEAR}"),
    "name first": _form(f"{_NAME} {_DAY},? {_YEAR}"),
    "number": _form(r"[0-9]{8,13}(?:\.0)?", ""),
}
MARKS = {
    "points": _form(_same([_DAY, _DAY, ""], "."), ".*"),
    "short year": _form(_same([_DAY, _DAY, "[0-9]{2}"])),
    "seconds": "(?s)[^:]*:[0-9]{2}:.*",
    "fraction": "(?s)[^:]*:[0-9]{2}:[0-9]{2}[.,].*",
    "morning": "(?is)[^:]*:.*am.*",
    "evening": "(?is)[^:]*:.*pm.*",
    "behind UTC": "(?s)[^:]*:.*-.*",
    "zone of four": f"(?s)[^:]*:.*[+-][0-9]{{4}}{_END}",
}
# In Python these are digits as well; and no number of a graph has so many.
UNREADABLE = rf"(?s).*(?:[{_DIGITS}]|:[0-9]{{2}}[.,][0-9]{{19}}).*"


def add_dates(graph: Graph, dates: DateColumns) -> tuple[str, list[str], str]:
    """Return what an encoder makes of dates.

    Returns
    -------
    parts : str
        Of shape (n, p), within the range of the training rows.
    spans : list of str
        The inputs of durations, which are numbers of days.
    readable : str
        Of shape (n,): in which rows all texts can be read; empty if there are none.
    """
    days: dict[Any, Value] = {}
    for column in (spans := durations(dates)):
        days[column] = Value(graph, graph.number(column, DAYS), np.float64)
    first = dict(zip(dates.columns, dates.day_first, strict=True))
    readable = ""
    if texts := [column for column in dates.columns if column not in spans]:
        given = graph.join([graph.text(column, DATE) for column in texts])
        readable = _all_readable(graph, given)
        moments = _read(graph, given, [first[column] for column in texts])
        for place, column in enumerate(texts):
            days[column] = Value(graph, graph.take(moments.name, [place]), np.float64)
    parts = graph.join([_part(days, part).name for part in dates.parts])
    low, high = (graph.constant(np.array([ends])) for ends in zip(*dates.ranges, strict=True))
    within = graph.add("Min", graph.add("Max", parts, low), high)
    within = graph.add("Where", graph.add("IsNaN", parts), parts, within)
    return within, [days[column].name for column in spans], readable


def durations(dates: DateColumns) -> list[Any]:
    """Return the columns of durations: of a date, more would vary than the days."""
    own = {
        column: [part[1] for part in dates.parts if column in (part[0], *part[2:])]
        for column in dates.columns
    }
    return [column for column, parts in own.items() if parts == [ELAPSED]]


def _all_readable(graph: Graph, texts: str) -> str:
    strange = graph.cast(graph.add("RegexFullMatch", texts, pattern=UNREADABLE), np.int32)
    most = graph.add("ReduceMax", strange, graph.whole([1]), keepdims=0)
    return graph.add("Equal", most, graph.constant(np.array(0, np.int32)))


def _part(days: Mapping[Any, Value], part: Sequence[Any]) -> Value:
    """Return a part of dates, as `take_part` does."""
    if part[1] == UNTIL:
        return days[part[2]] - days[part[0]]
    own = days[part[0]]
    if part[1] == ELAPSED:
        return own
    graph = own.graph
    there = ~Value(graph, graph.add("IsNaN", own.name), bool)
    seconds = there.where(own, 0.0) * float(DAY)
    seconds = Value(graph, graph.add("Round", seconds.name), np.float64).to(np.int64)
    seconds = seconds + MARCH * DAY  # so that none is negative
    whole = seconds // DAY
    found = {
        "month": lambda: _civil(whole)[0],
        "day": lambda: _civil(whole)[1],
        "weekday": lambda: (whole + (3 - MARCH) % 7) % 7,
        "hour": lambda: (seconds - whole * DAY) // 3600,
    }[part[1]]()
    return there.where(found.to(np.float64), math.nan)


def _civil(days: Value) -> tuple[Value, Value]:
    """Return month and day of the month, by days since 0000-03-01."""
    within = days % ERA
    year = (within - within // 1460 + within // 36_524 - within // 146_096) // 365
    of_year = within - (year * 365 + year // 4 - year // 100)
    month = (of_year * 5 + 2) // 153
    day = of_year - (month * 153 + 2) // 5 + 1
    return (month + 2) % 12 + 1, day


def _days(year: Value, month: Value, day: Value) -> Value:
    """Return days since 1970, of dates from the year 1 on."""
    year = year - (month <= 2).to(np.int64)
    of_year = ((month + 9) % 12 * 153 + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + of_year - MARCH


def _read(graph: Graph, texts: str, day_first: Sequence[bool]) -> Value:
    """Return days since 1970, of shape (n, c), NaN where a text is no date."""

    def matches(pattern: str, among: str) -> Value:
        return Value(graph, graph.add("RegexFullMatch", among, pattern=pattern), bool)

    strange = matches(UNREADABLE, texts)
    form = {name: matches(pattern, texts) & ~strange for name, pattern in FORMS.items()}
    is_date, *others = form.values()
    for other in others:
        is_date = is_date | other
    safe = graph.add("Where", is_date.name, texts, graph.constant(np.array(NO_DATE)))
    mark = {name: matches(pattern, safe) & ~form["number"] for name, pattern in MARKS.items()}
    runs = _Runs(graph, safe)
    year, month, day, sound = _date(graph, runs, form, mark, safe, day_first)
    seconds, in_time = _seconds(runs, form, mark)
    is_date = is_date & sound & in_time & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    leap = (year % 4 == 0) & (~(year % 100 == 0) | (year % 400 == 0)) & (month == 2)
    length = ((month >= 1) & (month <= 12)).where(month, 0).look_up(LENGTHS)
    is_date = is_date & (day <= length + leap.to(np.int64))
    days = _days(year, month, day).to(np.float64) + seconds / float(DAY)
    number = runs.whole(0).to(np.float64)
    clock = (number < 1e11).where(number / float(DAY), number / (1000.0 * DAY))
    days = is_date.where(days, math.nan)
    return (form["number"] & (number >= 1e8)).where(clock, days)


class _Runs:
    """The runs of digits in texts of shape (n, c), each by its place."""

    def __init__(self, graph: Graph, texts: str) -> None:
        self.graph = graph
        found = graph.add(
            "Tokenizer",
            texts,
            domain=RUNTIME,
            mark=0,
            mincharnum=1,
            pad_value="0",
            tokenexp="[0-9]+",
        )
        shape = graph.add("Concat", graph.add("Shape", texts), graph.whole([RUNS]), axis=0)
        nothing = graph.add("Expand", graph.constant(np.array("0")), shape)
        self.texts = graph.add("Concat", found, nothing, axis=2)

    def text(self, place: Value) -> str:
        """Return the runs at places of shape (n, c), "0" where there is none."""
        graph, axis = self.graph, self.graph.whole([2])
        places = graph.add("Unsqueeze", place.name, axis)
        found = graph.add("GatherElements", self.texts, places, axis=2)
        return graph.add("Squeeze", found, axis)

    def whole(self, place: int | Value) -> Value:
        """Return the runs at one place, or at places of shape (n, c), as numbers."""
        if isinstance(place, Value):
            found = self.text(place)
        else:
            found = self.graph.add("Gather", self.texts, self.graph.whole(place), axis=2)
        return Value(self.graph, self.graph.cast(found, np.int64), np.int64)


def _date(
    graph: Graph,
    runs: _Runs,
    form: Mapping[str, Value],
    mark: Mapping[str, Value],
    texts: str,
    day_first: Sequence[bool],
) -> tuple[Value, Value, Value, Value]:
    """Return year, month and day, and whether the name of a month is one."""
    first, second, third = (runs.whole(place) for place in range(3))
    by_name = form["name second"] | form["name first"]
    in_order = mark["points"] | Value(graph, graph.constant(np.array([day_first])), bool)
    beyond = in_order.where(second, first) > 12
    in_order = (in_order & ~beyond) | (~in_order & beyond)
    in_century = third + 2000 - (third >= 69).to(np.int64) * 100
    year = mark["short year"].where(in_century, third)
    year = form["year first"].where(first, by_name.where(second, year))
    month = form["year first"].where(second, in_order.where(second, first))
    month = by_name.where(_named_month(graph, texts), month)
    day = form["year first"].where(third, in_order.where(first, second))
    day = by_name.where(first, day)
    number = form["number"]
    year = number.where(first // 10_000, year)
    month = number.where(first // 100 % 100, month)
    day = number.where(first % 100, day)
    return year, month, day, ~number | ((first >= 10**7) & (first < 10**8))


def _named_month(graph: Graph, texts: str) -> Value:
    """Return the month whose name begins first in each text, 0 if none does."""
    found = graph.add(
        "Tokenizer",
        texts,
        domain=RUNTIME,
        mark=0,
        mincharnum=1,
        pad_value="",
        tokenexp=f"(?i){'|'.join(MONTHS)}",
    )
    shape = graph.add("Concat", graph.add("Shape", texts), graph.whole([1]), axis=0)
    nothing = graph.add("Expand", graph.constant(np.array("")), shape)
    first = graph.add("Gather", graph.add("Concat", found, nothing, axis=2), graph.whole(0), axis=2)
    spellings = {
        "".join(letters): number
        for number, name in enumerate(MONTHS, start=1)
        for letters in itertools.product(*zip(name, name.upper(), strict=True))
    }
    month = graph.add(
        "LabelEncoder",
        first,
        domain=ML,
        keys_strings=list(spellings),
        values_int64s=list(spellings.values()),
        default_int64=0,
    )
    return Value(graph, month, np.int64)


def _seconds(
    runs: _Runs, form: Mapping[str, Value], mark: Mapping[str, Value]
) -> tuple[Value, Value]:
    """Return the seconds since midnight in UTC, and whether there is such a time."""
    graph = runs.graph
    numeric = form["year first"] | form["year last"]
    hour_place = numeric.to(np.int64) + 2
    hour, minute = runs.whole(hour_place), runs.whole(hour_place + 1)
    has_half = mark["morning"] | mark["evening"]
    twelve = mark["evening"].to(np.int64) * 12
    hour = has_half.where(hour % 12 + twelve, hour)
    second_place, zero = hour_place + 2, graph.constant(np.array("0"))
    second = graph.add("Where", mark["seconds"].name, runs.text(second_place), zero)
    fraction = graph.add("Where", mark["fraction"].name, runs.text(second_place + 1), zero)
    point = graph.constant(np.array("."))
    written = graph.add("StringConcat", graph.add("StringConcat", second, point), fraction)
    rest = Value(graph, graph.cast(written, np.float64), np.float64)
    zone = second_place + mark["seconds"].to(np.int64) + mark["fraction"].to(np.int64)
    ahead, more = runs.whole(zone), runs.whole(zone + 1)
    together = mark["zone of four"]
    hours, minutes = together.where(ahead // 100, ahead), together.where(ahead % 100, more)
    offset = hours.to(np.float64) * 3600.0 + minutes.to(np.float64) * 60.0
    offset = mark["behind UTC"].where(offset * -1.0, offset)
    seconds = hour.to(np.float64) * 3600.0 + minute.to(np.float64) * 60.0 + rest - offset
    in_time = form["number"] | ((hour <= 24) & (minute <= 59) & (rest < 61.0))
    return form["number"].where(seconds * 0.0, seconds), in_time
