"""Dates are read in the forms that people write, each by itself, and taken apart as the calendar does."""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import ColumnWarning
from reliablenet.tables.dates import (
    PARTS,
    day_comes_first,
    holds_dates,
    read_days,
    take_part,
    write_dates,
)

NOON = (datetime(2024, 2, 3, 12, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-03",
        "2024/2/3",
        "2024.02.03",
        "3.2.2024",
        "03.02.24",
        "3 Feb 2024",
        "3-FEB-2024",
        "Feb 3, 2024",
        "February 3 2024",
        " 2024-02-03 ",
        "20240203",
        20240203,
        20240203.0,
        date(2024, 2, 3),
    ],
)
def test_one_day_in_many_forms(text) -> None:
    assert read_days(pd.Series([text], dtype=object)).tolist() == [19756.0]


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-03 12:00",
        "2024-02-03T12:00:00.000Z",
        "2024-02-03T12:00:00 UTC",
        "2024-02-03 14:00:00+02:00",
        "2024-02-03 07:00-0500",
        "2/3/2024 12:00 pm",
        "2024-02-03T17:30:00+05:30",
        int(NOON),
        int(NOON) * 1000,
        datetime(2024, 2, 3, 12),
        pd.Timestamp("2024-02-03 13:00", tz="Europe/Berlin"),
    ],
)
def test_one_moment_in_many_forms_and_zones(text) -> None:
    assert read_days(pd.Series([text], dtype=object)).tolist() == [19756.5]


def test_columns_of_dates_of_every_type_agree() -> None:
    texts = pd.Series(["2024-02-03 12:00", None, "1969-12-31"])
    moments = pd.to_datetime(texts, format="mixed")
    zoned = moments.dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata")
    for column in (moments, zoned, texts, texts.astype("category"), texts.astype("string")):
        assert np.array_equal(read_days(column), [19756.5, np.nan, -1.0], equal_nan=True)
    spans = pd.Series(pd.to_timedelta(["36h", None]))
    assert np.array_equal(read_days(spans), [1.5, np.nan], equal_nan=True)
    months = pd.Series(pd.period_range("1970-01", periods=2, freq="M"))
    assert read_days(months).tolist() == [0.0, 31.0]


@pytest.mark.parametrize(
    "value",
    ["2024-02-31", "2024-13-01", "31/31/2024", "soon", "1.2.3", "12:30", "2024", True, 1.5, 7, ""],
)
def test_what_is_no_date_is_missing(value) -> None:
    assert np.isnan(read_days(pd.Series([value], dtype=object))).all()


def test_the_order_of_day_and_month_is_that_of_the_column_where_both_are_possible() -> None:
    texts = pd.Series(["3/4/2024", "31/1/2024", "1/31/2024", "3.4.2024"])
    april, march = read_days(texts, day_first=True), read_days(texts, day_first=False)
    assert (april - march).tolist() == [19816.0 - 19786.0, 0.0, 0.0, 0.0]


def test_the_order_is_told_by_dates_that_are_possible_in_one_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert day_comes_first(["3/4/2024", "13/4/2024"], "d")
        assert not day_comes_first(["3/4/2024", "4/13/2024"], "d")
        assert not day_comes_first(["2024-03-04", "3.4.2024", "5/5/2024"], "d")
    with pytest.warns(ColumnWarning, match=r"'d' holds dates such as '3/4/2024'.*the month is"):
        assert not day_comes_first(["3/4/2024", "5/6/2024"], "d")


def test_parts_are_those_of_pandas() -> None:
    moments = pd.Series(pd.date_range("1899-12-30 01:59:59", "2101-01-01", periods=997)).dt.floor(
        "s"
    )
    days = read_days(moments)
    for part in PARTS[1:]:
        name = "day_of_week" if part == "weekday" else part
        expected = getattr(moments.dt, name).astype(float)
        assert np.array_equal(take_part(days, part), expected), part


def test_texts_that_look_like_versions_or_numbers_hold_no_dates() -> None:
    assert not holds_dates(["1.2.3", "1.2.4"])
    assert not holds_dates(["2024-01-01", "soon"])
    assert not holds_dates(["2024-01-01"])


def test_a_moment_has_the_same_bits_as_text_and_as_a_type() -> None:
    moments = pd.Series(pd.date_range("1931-01-01", periods=50_000, freq="61321s417us"))
    written = write_dates(moments)
    assert np.array_equal(read_days(moments), read_days(written))
    zoned = moments.dt.tz_localize("UTC").dt.tz_convert("Asia/Kolkata")
    assert write_dates(zoned).tolist() == written.tolist()
