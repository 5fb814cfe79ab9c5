"""Columns of dates give parts that vary, days between, and nothing beyond what training showed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import InvalidDataError
from reliablenet.tables import PiecewiseEncoder, TabularEncoder
from reliablenet.tables.date_columns import DateColumns

RNG = np.random.default_rng(0)
N = 400
OPENED = pd.Timestamp("2023-01-01") + pd.to_timedelta(RNG.integers(0, 700, N), "D")
CLOSED = OPENED + pd.to_timedelta(RNG.integers(1, 90, N), "D")
TABLE = pd.DataFrame({"opened": OPENED.strftime("%d/%m/%Y"), "closed": CLOSED})
encoders = pytest.mark.parametrize("encoder", [TabularEncoder, PiecewiseEncoder])


@encoders
def test_parts_and_the_days_between_are_features(encoder) -> None:
    found = encoder().fit(TABLE)
    assert found.dates_ == ["opened", "closed"]
    parts = found.date_columns_.parts
    each = [[c, part] for c in found.dates_ for part in ("days", "month", "day", "weekday")]
    assert parts == [*each, ["opened", "until", "closed"]]
    numbers = dict(zip(map(tuple, parts), found.date_columns_.numbers(TABLE), strict=True))
    assert np.array_equal(numbers["opened", "until", "closed"], (CLOSED - OPENED).days)
    assert np.array_equal(numbers["opened", "weekday"], OPENED.day_of_week)


@encoders
def test_dates_beyond_those_of_training_count_as_the_nearest(encoder) -> None:
    found = encoder().fit(TABLE)
    last = pd.DataFrame({"opened": [OPENED.max()], "closed": [CLOSED.max()]})
    later = pd.DataFrame({"opened": ["31/12/2199"], "closed": [pd.Timestamp("2199-12-31")]})
    days = [place for place, part in enumerate(found.date_columns_.parts) if part[1] == "days"]
    ours, theirs = (list(found.date_columns_.numbers(rows)) for rows in (later, last))
    assert [ours[place] for place in days] == [theirs[place] for place in days]
    assert np.isfinite(found.transform(later)).all()


@encoders
def test_what_is_no_date_counts_as_missing_in_any_company(encoder) -> None:
    found = encoder().fit(TABLE)
    new = TABLE.assign(opened=["30/02/2024", "soon", None, *TABLE["opened"][3:]])
    matrix = found.transform(new)
    assert np.array_equal(matrix[0, :1], matrix[1, :1])
    assert np.array_equal(matrix[0, :1], matrix[2, :1])
    alone = [found.transform(new.iloc[[row]]) for row in range(40)]
    assert np.array_equal(np.concatenate(alone), matrix[:40])


def test_the_time_of_a_table_sorted_by_time_is_a_row_number_and_its_parts_are_not() -> None:
    table = pd.DataFrame({"at": pd.date_range("2024-01-01", periods=300, freq="7h")})
    parts = [part for _, part in TabularEncoder().fit(table).date_columns_.parts]
    assert parts == ["month", "day", "weekday", "hour"]


def test_a_date_that_does_not_vary_is_left_out() -> None:
    table = pd.DataFrame({"x": [1, 2, 3], "at": [pd.Timestamp("2024-01-01"), pd.NaT, None]})
    assert TabularEncoder().fit(table).dropped_ == ["at"]


def test_a_column_is_a_date_if_the_user_says_so_and_most_of_it_is() -> None:
    table = pd.DataFrame({"x": RNG.normal(size=N), "day": OPENED.strftime("%Y%m%d").astype(int)})
    assert TabularEncoder().fit(table).numbers_ == ["x", "day"]
    found = TabularEncoder(dates="day").fit(table)
    assert (found.numbers_, found.dates_) == (["x"], ["day"])
    with pytest.raises(
        InvalidDataError, match=r"'x' is to be read as dates; 400 of 400 rows hold no date, such as"
    ):
        TabularEncoder(dates=["x"]).fit(table)
    with pytest.raises(
        InvalidDataError, match=r"The table has no column 'Day'. Did you mean 'day'"
    ):
        TabularEncoder(dates=["Day"]).fit(table)


def test_what_is_stored_is_checked_when_it_comes_back() -> None:
    found = TabularEncoder().fit(TABLE).date_columns_
    assert DateColumns.from_dict(found.to_dict()) == found
    assert DateColumns.from_dict(None) == DateColumns()
    plain = found.to_dict()
    for broken in (
        {"day_first": [True]},
        {"day_first": [1, 0]},
        {"parts": [["opened", "year"], *plain["parts"][1:]]},
        {"parts": [["other", "days"], *plain["parts"][1:]]},
        {"ranges": [[2.0, 1.0], *plain["ranges"][1:]]},
        {"ranges": plain["ranges"][1:]},
    ):
        with pytest.raises(InvalidDataError, match="stored date columns are inconsistent"):
            DateColumns.from_dict(plain | broken)
