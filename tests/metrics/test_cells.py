"""Columns cut into cells, as a reader would cut them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from reliablenet.errors import InvalidParameterError
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
