"""Columns cut into cells, as a reader would cut them."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.metrics.cells import MISSING, OTHER, Cut, learn_cut, learn_cuts


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ([1, 2, 1, 2], ["1", "2", OTHER, MISSING]),
        ([1.5, None, 2.0], ["1.5", "2", OTHER, MISSING]),
        ([True, False], ["False", "True", OTHER, MISSING]),
        (pd.array([True, None], "boolean"), ["True", OTHER, MISSING]),
        (pd.Categorical(["b", "a", "b"]), ["a", "b", OTHER, MISSING]),
        (["x", None], ["x", OTHER, MISSING]),
        (
            pd.to_datetime(["2019-01-01", "2020-03-01", "2021-05-05"]),
            ["2019", "2020", "2021", OTHER, MISSING],
        ),
        (["2024-01-31T10:00:00", "2024-05-01"], ["2024 Q1", "2024 Q2", OTHER, MISSING]),
        (pd.to_datetime(["2024-01-31", None]).tz_localize("UTC"), ["2024 Q1", OTHER, MISSING]),
        (np.arange(8), ["under 2", "2 to under 4", "4 to under 6", "6 or more", MISSING]),
        ([0] * 90 + [*range(10)], ["under 1", "1 or more", MISSING]),
    ],
    ids=repr,
)
def test_columns_are_cut_as_a_reader_would(column, names) -> None:
    if names[0] == "under 1":
        column = [0] * 70 + [1] * 30 + list(range(8))
    cut = learn_cut(column)
    assert cut.names() == names
    places = cut.places(column)
    assert len(places) == len(column)
    missing = pd.isna(pd.Series(column)).to_numpy()
    assert ((places == len(names) - 1) == missing).all()
    assert json.loads(json.dumps(cut.to_dict()))["kind"] == cut.kind


@pytest.mark.parametrize(
    "column", [["x"] * 9, [None, None], [f"note {i}" for i in range(99)], [3] * 9]
)
def test_columns_that_tell_nothing_are_left_out(column) -> None:
    assert learn_cut(column) is None


def test_rare_values_are_one_cell_and_new_ones_fall_into_it() -> None:
    column = list("abcdefghijklmnopq") + ["a"] * 50
    cut = learn_cut(column)
    assert len(cut.values) == 12
    assert cut.names()[cut.places(["zebra"])[0]] == OTHER


def test_tables_that_are_none_have_no_cuts() -> None:
    assert learn_cuts(None) == {}
    assert learn_cuts(np.zeros((3, 4, 4))) == {}
    assert learn_cuts(np.random.default_rng(0).random((9, 101))) == {}
    assert list(learn_cuts(np.random.default_rng(0).random((9, 2)))) == ["0", "1"]


@given(
    st.lists(st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=False)), min_size=1),
)
def test_every_number_has_one_cell(values) -> None:
    column = pd.Series(values, dtype=float)
    cut = learn_cut(column)
    if cut is not None:
        places = cut.places(column)
        assert places.min() >= 0
        assert places.max() < len(cut.names())


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"kind": "letter"}, "`kind` of Cut must be one of"),
        ({"kind": "number", "edges": (2, 1)}, "`edges` of Cut must be finite and rise"),
        ({"kind": "number", "edges": (float("nan"),)}, "`edges` of Cut must be finite and rise"),
        ({"kind": "value", "values": ("a", "a")}, "`values` of Cut must be different"),
    ],
)
def test_cuts_check_themselves(settings, text) -> None:
    with pytest.raises(InvalidParameterError, match=text):
        Cut(**settings)


def test_numbers_without_an_edge_are_one_cell():
    cut = Cut("number")
    assert cut.names() == ["any", MISSING]
    assert cut.places([1.0, np.nan, -3.0]).tolist() == [0, 1, 0]


def test_dates_of_many_years_are_left_out():
    years = pd.to_datetime([f"{year}-05-01" for year in range(1900, 2000)])
    assert learn_cut(pd.Series(years)) is None
    few = learn_cut(pd.Series(years[:5]))
    assert few.kind == "year"
    quarters = learn_cut(pd.Series(pd.to_datetime(["2020-01-05", "2020-05-05"] * 20)))
    assert quarters.kind == "quarter"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"kind": "letter"}, "`kind` of Cut must be one of ('number', 'value', 'year', 'quarter'); got 'letter'."),
        ({"kind": "number", "edges": (2, 1)}, "`edges` of Cut must be finite and rise; got (2.0, 1.0)."),
        ({"kind": "number", "edges": (1, 1)}, "`edges` of Cut must be finite and rise; got (1.0, 1.0)."),
        ({"kind": "number", "edges": (0, float("inf"))}, "`edges` of Cut must be finite and rise; got (0.0, inf)."),
        ({"kind": "value", "values": (1, "1")}, "`values` of Cut must be different; got ('1', '1')."),
    ],
)  # fmt: skip
def test_cuts_that_cut_nothing_are_refused_in_these_words(settings, text) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        Cut(**settings)
    assert str(caught.value) == text


def test_cuts_are_plain_and_stay() -> None:
    cut = Cut("number", edges=np.array([1, 2]))
    assert cut.to_dict() == {"kind": "number", "edges": (1.0, 2.0), "values": ()}
    assert {type(edge) for edge in cut.edges} == {float}
    assert Cut("value", values=(1, 2.5)).values == ("1", "2.5")
    with pytest.raises(FrozenInstanceError):
        cut.kind = "value"


@pytest.mark.parametrize(
    ("cut", "column", "names"),
    [
        (Cut("number", edges=(1, 2)), [0.5, 1, 1.5, 2, None, 9], ["under 1", "1 to under 2", "1 to under 2", "2 or more", MISSING, "2 or more"]),
        (Cut("number", edges=(1,)), ["0", "what", "7"], ["under 1", MISSING, "1 or more"]),
        (Cut("number", edges=(1,)), pd.array([0, None, 7], "Int64"), ["under 1", MISSING, "1 or more"]),
        (Cut("value", values=("a", "1.5")), ["a", 1.5, None, "b"], ["a", "1.5", MISSING, OTHER]),
        (Cut("value", values=("[1]",)), [[1], [2], None], ["[1]", OTHER, MISSING]),
        (Cut("year", values=("2019",)), ["2019-05-01", "2020-01-01", None, "2019-13-45"], ["2019", OTHER, MISSING, MISSING]),
        (Cut("quarter", values=("2019 Q2",)), ["2019-05-01", "2019-07-01", None], ["2019 Q2", OTHER, MISSING]),
    ],
)  # fmt: skip
def test_every_value_falls_into_its_cell(cut, column, names) -> None:
    places = cut.places(column)
    assert [cut.names()[place] for place in places] == names
    assert places.dtype == np.intp


LETTERS = list("abcdefghijklmnopqrstuvwxyz") + [f"z{i}" for i in range(4)]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([*range(6)] * 2, Cut("value", values="012345")),
        ([*range(7)], Cut("number", edges=(2, 3, 5))),
        (pd.array([*range(7), None], "Int64"), Cut("number", edges=(2, 3, 5))),
        (LETTERS[:12] + [None] * 20, Cut("value", values=LETTERS[:12])),
        (LETTERS[:24], Cut("value", values=LETTERS[:12])),  # just half of the rows
        (LETTERS[:30], None),
        ([f"{year}-01-01" for year in range(2000, 2012)], Cut("year", values=range(2000, 2012))),
        ([f"{year}-01-01" for year in range(2000, 2013)], None),
        (["2024-01-01", "2024-04-01", "2024-07-01"], Cut("quarter", values=("2024 Q1", "2024 Q2", "2024 Q3"))),
        (["2024-13-45", "2024-01-01", "2024-05-01"], Cut("quarter", values=("2024 Q1", "2024 Q2"))),
        ([date(2024, 1, 31), date(2024, 5, 1)], Cut("quarter", values=("2024 Q1", "2024 Q2"))),
        # midnight is another day elsewhere: dates are read in universal time
        (["2024-03-31T23:30:00-05:00", "2024-01-01T00:30:00+02:00"], Cut("quarter", values=("2023 Q4", "2024 Q2"))),
        (["x", None, ["y"]], Cut("value", values=("['y']", "x"))),
        ([["y"], ["z"], ["y"]], Cut("value", values=("['y']", "['z']"))),
    ],
)  # fmt: skip
def test_columns_are_cut_like_this(column, expected) -> None:
    assert learn_cut(column) == expected


def test_long_columns_are_cut_by_some_of_their_rows() -> None:
    """Of 100,000 rows every second, of 250,000 every third, of fewer all."""
    for n, step in ((99_999, 1), (100_000, 2), (250_000, 3)):
        place = np.arange(n)
        column = np.where(place % step == 0, place, -1)
        assert learn_cuts({7: column}) == {"7": learn_cut(column[::step])}
    small = [5.0, 1.0, 2.0, 9.0, 7.0, 3.0, 8.0]
    assert learn_cuts({"x": small}) == {"x": learn_cut(small)}


def test_tables_of_a_hundred_columns_have_cuts() -> None:
    table = np.random.default_rng(0).random((9, 100))
    assert list(learn_cuts(table)) == [str(place) for place in range(100)]
    assert learn_cuts(pd.DataFrame(np.c_[table, table[:, :1]])) == {}


def test_what_is_no_column_is_refused_in_these_words() -> None:
    with pytest.raises(InvalidDataError) as caught:
        learn_cut(np.zeros((3, 2)))
    assert str(caught.value) == "A column to break down by must be a vector; got shape (3, 2)."
    with pytest.raises(InvalidDataError, match=r"^`by` must not hold masked values"):
        learn_cut(np.ma.array([1, 2, 3], mask=[0, 1, 0]))
