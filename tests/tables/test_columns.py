"""Columns: the names that people type, and lists of names in messages."""

from __future__ import annotations

import warnings

import pytest

from reliablenet.errors import ColumnWarning, InvalidDataError
from reliablenet.tables.columns import check_columns, find_columns


@pytest.mark.parametrize("typed", ["Default", "DEFAULT", " default", "def ault", "de_fault"])
def test_a_name_in_another_case_is_taken_and_said(typed) -> None:
    with pytest.warns(
        ColumnWarning, match=f"t.csv has no column '{typed}'; 'default' is used instead"
    ):
        assert find_columns([typed], ["age", "default"], "t.csv") == ["default"]


def test_an_exact_name_is_never_another_and_two_namesakes_are_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_columns(["age", "Age"], ["Age", "age"], "t.csv") == ["age", "Age"]
    with pytest.raises(InvalidDataError, match=r"t.csv has no column 'AGE'"):
        find_columns(["AGE"], ["Age", "age"], "t.csv")


def test_lists_are_whole_or_say_how_many_more_there_are() -> None:
    names = [f"column {number}" for number in range(25)]
    with pytest.raises(InvalidDataError, match=r"'column 19' and 5 more\.$"):
        check_columns(["zzz"], names, "t.csv")
    with pytest.raises(InvalidDataError, match=r"'column 18', 'column 19'\.$"):
        check_columns(["zzz"], names[:20], "t.csv")
