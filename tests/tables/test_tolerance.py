"""How far a number may be off: read from settings, applied to rows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.tables.tolerance import Margin, Tolerance


@pytest.mark.parametrize(
    ("setting", "kind", "amount"),
    [
        (5, "absolute", 5.0),
        (0.5, "absolute", 0.5),
        ("5", "absolute", 5.0),
        ("1e-3", "absolute", 1e-3),
        *[
            ("10%", "relative", 0.1),
            (" 2.5 % ", "relative", 0.025),
            (np.float32(2), "absolute", 2.0),
        ],
    ],
)
def test_a_setting_is_read(setting, kind, amount) -> None:
    found = Tolerance.of(setting, "fit")
    assert (found.kind, found.column) == (kind, "")
    assert found.amount == pytest.approx(amount)
    assert Tolerance.of(found, "fit") is found


@pytest.mark.parametrize(
    "setting", [0, -1, 0.0, math.nan, math.inf, None, True, [1.0], "", "0", "-3"]
)
def test_what_is_no_tolerance_is_refused(setting) -> None:
    with pytest.raises(InvalidParameterError, match="`tolerance` of fit must be a number above 0"):
        Tolerance.of(setting, "fit")


@pytest.mark.parametrize("setting", ["0%", "100%", "-5%", "250%", "nan%"])
def test_a_share_lies_between_nothing_and_all(setting) -> None:
    with pytest.raises(InvalidParameterError, match=r"between 0 % and 100 %.*always answering 0"):
        Tolerance.of(setting, "fit")


def test_a_column_gives_each_row_its_own() -> None:
    tolerance = Tolerance.of("allowed", "fit")
    margin = tolerance.rows(pd.DataFrame({"allowed": [1, 10]}), "fit")
    assert margin.within(np.array([0.0, 0.0]), np.array([2.0, 2.0])).tolist() == [False, True]
    assert margin.take([1]).amount.tolist() == [10.0]
    for X in (pd.DataFrame({"other": [1.0]}), np.ones((1, 1))):
        with pytest.raises(InvalidDataError, match="names the column 'allowed'"):
            tolerance.rows(X, "fit")


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "much", None])
def test_a_column_must_hold_tolerances(bad) -> None:
    frame = pd.DataFrame({"allowed": pd.Series([1.0, bad], dtype=object)})
    with pytest.raises(InvalidDataError, match="must hold numbers above 0; row 1 has"):
        Tolerance.of("allowed", "fit").rows(frame, "fit")


def test_a_share_is_of_the_truth_whatever_its_sign_and_nothing_at_zero() -> None:
    margin = Tolerance.of("10%", "fit").rows(None, "fit")
    truth = np.array([100.0, 100.0, -100.0, -100.0, 0.0, 0.0])
    value = np.array([109.9, 110.1, -90.1, -89.9, 0.0, 1e-9])
    assert margin.within(value, truth).tolist() == [True, False, True, False, True, False]


def test_the_edge_is_right() -> None:
    assert Margin(5.0).within(np.array([35.0]), np.array([40.0])).tolist() == [True]
