"""Dates in a graph are read as they are here, in every form, and give the same parts."""

# ruff: noqa: RUF001
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from graphs import open_part, run_part
from onnx import TensorProto

from reliablenet.export.onnx.dates import add_dates, durations
from reliablenet.export.onnx.graph import Graph
from reliablenet.export.onnx.trial import feeds
from reliablenet.tables.date_columns import DateColumns
from reliablenet.tables.dates import MONTHS, PARTS, read_days

NO_DATES = [
    *(
        "",
        "n/a",
        "1.2.3",
        "hello",
        "2024-02-30",
        "2023-02-29",
        "1900-2-29",
        "12:30",
        "3 Mai 2024",
        "12",
        "-5",
    ),
    *(
        "2024-01-01 25:00",
        "2024-13-01",
        "2024-01-01 12:60",
        "2024-01-01 12:30:61",
        "0000-01-01",
        "20241301",
    ),
    *("9" * 40, "2024-01-01-", "1/2-2024", "2024/01-01", "aug", "12345678901234"),
]
ODD_DATES = [
    *(
        "2024-02-29",
        "2000-2-29",
        "1/2/2024 12:00 am",
        "1/2/2024 13:00 pm",
        "2024-01-01 24:59",
        "0001-01-01",
    ),
    *(
        "2024-01-01T00:00:00.123456789+05:30",
        "2024-1-1 1:30:15,5\u202fPM",
        " 2024-01-01\n",
        "SEPT. 3, 2024",
    ),
    *(
        "1.2.69",
        "1.2.68",
        "13/1/24",
        "1/13/24",
        "13.1.2024",
        "1.13.2024",
        "1969-12-31 23:00-02:00",
        "9999-12-31",
    ),
    *(
        "20241231",
        "1700000000",
        "1700000000.0",
        "1700000000000",
        "00001234",
        "0012024-1-1",
        "sep 1 2020 5:00Z",
    ),
]


def draw_date(draw: random.Random) -> str:
    year, month, day = draw.randint(1, 9999), draw.randint(0, 13), draw.randint(0, 32)
    year = year if draw.random() < 0.3 else draw.randint(1950, 2039)
    mark, name = draw.choice("-/."), draw.choice(MONTHS)
    name = draw.choice([name, name.title(), name.upper(), name + "uary", name.title() + "."])
    short = draw.choice([f"{year:04d}", f"{year % 100:02d}"])
    text = draw.choice(
        [
            f"{year:04d}{mark}{month:02d}{mark}{day}",
            f"{day}{mark}{month}{mark}{short}",
            f"{month:02d}{mark}{day:02d}{mark}{short}",
            f"{day} {name} {year:04d}",
            f"{day}-{name}-{year:04d}",
            f"{name} {day}{draw.choice(['', ','])} {year:04d}",
        ]
    )
    if draw.random() < 0.6:
        text += f"{draw.choice('T ')}{draw.randint(0, 25)}:{draw.randint(0, 61):02d}"
        if draw.random() < 0.7:
            text += f":{draw.randint(0, 62):02d}"
            text += draw.choice(
                ["", f"{draw.choice('.,')}{draw.randrange(10 ** draw.randint(1, 12))}"]
            )
        text += (
            draw.choice(["", " "])
            + draw.choice(["", "", "am", "PM", "Am"])
            + draw.choice(["", "\u00a0"])
        )
        text += draw.choice(["", "", "z", "UTC", "gmt", "+02", "-0330", "+05:30", "-08:00", "+9"])
    return text


def texts(n: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)  # noqa: S311
    return [*NO_DATES, *ODD_DATES, *(draw_date(draw) for _ in range(n))]


def columns(names: list[Any], day_first: list[bool], parts: list[list[Any]]) -> DateColumns:
    found = DateColumns(names, day_first, parts, [[-1e9, 1e9]] * len(parts))
    found.check()
    return found


def run(dates: DateColumns, rows: pd.DataFrame) -> Any:
    graph = Graph()
    return run_part(graph, add_dates(graph, dates)[0], TensorProto.DOUBLE, rows)


def test_the_examples_are_what_they_are_called() -> None:
    none, odd = (read_days(pd.Series(found, dtype=object)) for found in (NO_DATES, ODD_DATES))
    assert np.isnan(none).all()
    assert np.isnan(odd).sum() == 2  # "00001234" and "0012024-1-1"


@pytest.mark.parametrize("day_first", [True, False])
def test_every_form_and_part_has_the_same_bits(day_first) -> None:
    written = texts(6000)
    rows = pd.DataFrame({"a": written, "b": written[::-1]}, dtype=object)
    parts = [["a", part] for part in PARTS] + [["b", "month"], ["a", "until", "b"]]
    dates = columns(["a", "b"], [day_first, not day_first], parts)
    expected = np.stack(list(dates.numbers(rows)), axis=1)
    assert 0.2 < np.isnan(expected[:, 0]).mean() < 0.6
    assert np.array_equal(run(dates, rows), expected, equal_nan=True)


def test_columns_of_a_type_for_dates_are_given_as_texts() -> None:
    moments = pd.Series(pd.date_range("1955-03-01 05:00", periods=300, freq="83123s333us"))
    moments[5] = pd.NaT
    rows = pd.DataFrame({"plain": moments, "zoned": moments.dt.tz_localize("Asia/Kolkata")})
    rows["month"] = pd.Series(pd.period_range("1990-01", periods=300, freq="M"))
    dates = columns(
        list(rows.columns), [False] * 3, [[name, part] for name in rows for part in PARTS]
    )
    expected = np.stack(list(dates.numbers(rows)), axis=1)
    assert np.array_equal(run(dates, rows), expected, equal_nan=True)


def test_a_duration_is_a_number_of_days() -> None:
    spans = pd.Series(pd.to_timedelta([1.5, None, 40.25], unit="D"))
    rows = pd.DataFrame({"open": spans, "paid": ["2024-01-01", "2024-02-01", None]})
    dates = columns(
        ["open", "paid"], [False, False], [["open", "days"], ["paid", "days"], ["paid", "day"]]
    )
    assert durations(dates) == ["open"]
    graph = Graph()
    parts, spans_given, _ = add_dates(graph, dates)
    assert spans_given == ["open"]
    assert graph.kinds == {"open": "days", "paid": "date"}
    found = run_part(graph, parts, TensorProto.DOUBLE, rows)
    expected = np.stack(list(dates.numbers(rows)), axis=1)
    assert np.array_equal(found, expected, equal_nan=True)


def test_what_lies_beyond_training_counts_as_the_nearest() -> None:
    dates = DateColumns(
        ["paid"], [False], [["paid", "days"], ["paid", "day"]], [[10.0, 20.0], [2.0, 9.0]]
    )
    rows = pd.DataFrame({"paid": ["1969-01-01", "1970-01-15", "2030-01-31", "never"]})
    assert run(dates, rows)[:, 0].tolist()[:3] == [10.0, 14.0, 20.0]
    assert np.isnan(run(dates, rows)[3]).all()


def test_digits_of_other_scripts_are_told() -> None:
    rows = pd.DataFrame({"paid": ["2024-01-01", "２０２４-01-01", "٢٠٢٤-٠١-٣١", "für immer", None]})
    dates = columns(["paid"], [False], [["paid", "days"], ["paid", "day"]])
    graph = Graph()
    _, _, readable = add_dates(graph, dates)
    session = open_part(graph, readable, TensorProto.BOOL)
    found = session.run(None, feeds(session, rows))[0]
    assert found.tolist() == [True, False, False, True, True]
