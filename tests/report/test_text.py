"""Numbers are never written better than they are."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from reliablenet.report import text

SHARES = st.floats(0, 1)


def number(written: str) -> Decimal:
    return Decimal(written.replace(text.NARROW, "").rstrip("%").lstrip("<> "))


@given(SHARES, st.integers(0, 3))
def test_zero_and_one_hundred_are_exact(share, digits) -> None:
    written = text.percent(share, digits)
    if written[0] in "<>":
        assert 0 < share < 1
    else:
        assert (number(written) == 0) == (share == 0)
        assert (number(written) == 100) == (share == 1)
        assert abs(number(written) - 100 * Decimal(share)) <= Decimal("0.51").scaleb(-digits)


@given(SHARES, st.floats(0.001, 0.999))
def test_a_bound_is_rounded_up_and_keeps_its_side_of_the_limit(bound, limit) -> None:
    written = number(text.percent_up(bound, limit)) / 100
    # a bound that is the limit is written as the limit was given
    assert written >= Decimal(bound) or (bound == limit == float(written))
    assert (float(written) <= limit) == (bound <= limit)


@given(st.floats(1e-6, 0.999))
def test_confidence_is_rounded_down(rho) -> None:
    assert number(text.confidence(rho)) <= 100 - 100 * Decimal(repr(rho))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.5, "0.5"),
        (0.99999987, "0.99999987"),
        (0.123456789, "0.123456…"),
        (-0.123456789, "-0.123456…"),
        (12.0, "12"),
        (-math.inf, "any"),
    ],
)
def test_thresholds(value, written) -> None:
    assert text.threshold(value) == written


def test_budgets_are_written_as_they_were_given() -> None:
    assert [text.budget(alpha).split(text.NARROW)[0] for alpha in (0.07, 0.1, 0.0005)] == [
        "7",
        "10",
        "0.05",
    ]


def test_cells() -> None:
    assert [text.cell(value) for value in (math.nan, 1 / 3, "a", 7)] == [
        text.NONE,
        "0.333333",
        "a",
        "7",
    ]
    assert text.percent(math.nan) == text.NONE
