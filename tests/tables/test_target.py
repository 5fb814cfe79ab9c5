"""The target of a table: what may be one, and what gives it away."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import ColumnWarning, InvalidDataError, LeakWarning
from reliablenet.tables.target import label_texts, take_target


def table(target: object, n: int = 100) -> pd.DataFrame:
    return pd.DataFrame({"x": np.random.default_rng(0).normal(size=n), "y": target})


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        (["no", "yes"] * 50, ["no", "yes"]),
        ([0, 1] * 50, [0, 1]),
        ([1.0, 2.0] * 50, [1, 2]),
        ([0.5, 1.5] * 50, [0.5, 1.5]),
        ([False, True] * 50, [False, True]),
        (pd.array([False, True] * 50, "boolean"), [False, True]),
        (pd.Categorical(["b", "a"] * 50), ["b", "a"]),
    ],
)
def test_labels_of_every_kind(target, labels) -> None:
    features, y = take_target(table(target), "y")
    assert features.columns.tolist() == ["x"]
    assert y[:2].tolist() == labels
    assert y.dtype.kind != "O"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.random.default_rng(0).normal(size=100), "quantity .100 different numbers.*cut it"),
        (range(100), "holds 100 different values in 100 rows, too many"),
        (["no"] * 100, "holds a single value, no, in all 100 rows"),
        (["no", None, "yes", None] * 25, "missing in 50 of 100 rows, first in row 1"),
        ([["a"], ["b"]] * 50, "holds lists and not labels"),
    ],
)
def test_what_is_no_class_is_refused(target, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        take_target(table(target), "y")


def test_absent_columns_are_named_with_what_was_probably_meant() -> None:
    with pytest.raises(
        InvalidDataError, match=r"t.csv has no column 'defualt'. Did you mean 'default"
    ):
        take_target(pd.DataFrame({"default": [0]}), "defualt", name="t.csv")
    with pytest.raises(InvalidDataError, match=r"has no columns 'p', 'q'. It has 'x', 'y'"):
        take_target(table([0, 1] * 50), "y", drop=["p", "q"])
    with pytest.raises(InvalidDataError, match="no column to predict 'y' from"):
        take_target(table([0, 1] * 50), "y", drop=["x"])


@pytest.mark.parametrize(
    "answer", [[1, 0] * 50, ["b", "a"] * 50, [1.0, None] * 50, ["p", "q", "r", "q"] * 25]
)
def test_a_column_that_gives_the_target_away_is_named(answer) -> None:
    rows = table([0, 1] * 50).assign(answer=answer)
    with pytest.warns(ColumnWarning, match="'answer' gives the target away.*leave it out") as said:
        take_target(rows, "y")
    assert isinstance(said[0].message, LeakWarning)
    assert said[0].message.column == "answer"
    assert copy.copy(said[0].message).column == "answer"  # as a worker process hands it over
    take_target(rows, "y", drop=["answer"])


def test_a_good_feature_and_a_row_number_are_not_named() -> None:
    good = [0, 1] * 50
    good[7:17] = [0] * 10
    take_target(table([0, 1] * 50).assign(good=good, apart=range(100)), "y")


@pytest.mark.parametrize(
    ("left", "right"),
    [([1, 0], ["1", "0"]), ([1.0, 2.5], ["1", "2.5"]), ([True, False], ["true", "FALSE"])],
)
def test_labels_are_equal_where_a_person_would_say_so(left, right) -> None:
    assert label_texts(left).tolist() == label_texts(right).tolist()


def test_large_whole_numbers_stay_apart() -> None:
    texts = label_texts(np.array([2**60, 2**60 + 1]))
    assert texts.tolist() == [str(2**60), str(2**60 + 1)]
