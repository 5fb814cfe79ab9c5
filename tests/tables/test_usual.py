"""Usual values of a column: those of its profile, in the type that the column has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from reliablenet.tables.describing import describe
from reliablenet.tables.usual import usual_values

DAYS = pd.Series(pd.date_range("2024-01-01", periods=101, freq="D"))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series(np.arange(101.0)), [25.0, 50.0, 75.0]),
        (pd.Series(np.arange(101), dtype="int16"), [25, 50, 75]),
        (pd.Series(np.arange(101), dtype="Int64"), [25, 50, 75]),
        (pd.Series([False] * 60 + [True] * 41), [False, True]),
        (pd.Series(["a"] * 60 + ["b"] * 40), ["a", "b"]),
        (pd.Series(["a"] * 60 + ["b"] * 40, dtype="string"), ["a", "b"]),
        (pd.Series(pd.Categorical([1] * 60 + [2] * 40)), [1, 2]),
        (pd.Series(list("abcdefg") * 10), list("abcde")),
    ],
    ids=lambda value: str(value.dtype) if isinstance(value, pd.Series) else "",
)
def test_values_have_the_type_of_the_column(column, expected) -> None:
    values, weights = usual_values(describe(column, "x"), column)
    assert values.tolist() == expected
    assert values.dtype == column.dtype or column.dtype == object
    assert weights.sum() == pytest.approx(1.0)
    assert weights.min() > 0


@pytest.mark.parametrize(
    "column",
    [
        DAYS,
        DAYS.dt.tz_localize("Europe/Berlin"),
        DAYS.dt.to_period("D"),
        DAYS - DAYS[0],
        DAYS.dt.strftime("%Y-%m-%d"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_dates_come_back_as_they_are_written(column) -> None:
    profile = describe(column, "day", "date")
    values, _ = usual_values(profile, column)
    assert values.dtype == column.dtype
    np.testing.assert_allclose(profile.measure(values), profile.quartiles)


def test_a_common_gap_is_usual_and_a_rare_one_is_not() -> None:
    numbers = pd.Series([np.nan] * 50 + [7.0] * 50)
    values, weights = usual_values(describe(numbers, "x"), numbers)
    assert values.isna().tolist() == [False, True]
    assert weights.tolist() == [0.5, 0.5]
    rare = pd.Series([np.nan] * 2 + [7.0] * 98)
    assert usual_values(describe(rare, "x"), rare)[0].tolist() == [7.0]
    jobs = pd.Series(["a"] * 50 + [None] * 50)
    assert usual_values(describe(jobs, "x"), jobs)[0].isna().tolist() == [False, True]
    days = pd.Series([pd.NaT] * 50 + [DAYS[0]] * 50)
    assert usual_values(describe(days, "x", "date"), days)[0].isna().tolist() == [False, True]
    whole = pd.Series([pd.NA] * 50 + [3] * 50, dtype="Int64")
    assert usual_values(describe(whole, "x"), whole)[0].isna().tolist() == [False, True]


def test_free_text_and_names_have_none() -> None:
    texts = pd.Series([f"letter {i}" for i in range(100)])
    for kind in ("text", None):
        values, weights = usual_values(describe(texts, "x", kind), texts)
        assert len(values) == len(weights) == 0


def test_a_category_that_the_type_does_not_know_is_a_text() -> None:
    profile = describe(pd.Series(["a"] * 60 + ["b"] * 40), "x")
    values, _ = usual_values(profile, pd.Series(pd.Categorical(["c"])))
    assert values.tolist() == ["a", "b"]
