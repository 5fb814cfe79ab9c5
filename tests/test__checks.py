"""Checks of arguments that rooms share, at the ends of what they allow."""

import math

import numpy as np
import pytest

from reliablenet._checks import check_probability, check_threshold, is_flag
from reliablenet.errors import InvalidParameterError


@pytest.mark.parametrize(
    "value", [True, False, np.True_, 1, 0, 1.0, 0.0, np.int8(1), np.float32(0)]
)
def test_yes_and_no_are_flags(value):
    assert is_flag(value)


@pytest.mark.parametrize("value", ["1", "", None, 2, -1, 0.5, math.nan, np.timedelta64(1, "s")])
def test_nothing_else_is_a_flag(value):
    assert not is_flag(value)


@pytest.mark.parametrize("value", [1e-300, 0.5, 1, np.float32(1)])
def test_probabilities_come_back_as_floats(value):
    for zero in (False, True):
        found = check_probability("p", value, "f", zero=zero)
        assert isinstance(found, float)
        assert found == value
    assert check_threshold("p", value, "f") == value


def test_zero_is_a_probability_where_it_is_allowed():
    assert check_probability("p", 0, "f", zero=True) == 0.0
    with pytest.raises(InvalidParameterError, match=r"`p` of f must lie in \(0, 1\]; got 0\.$"):
        check_probability("p", 0, "f")


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "0.5", None, True, 101])
@pytest.mark.parametrize("zero", [False, True])
def test_what_is_no_probability_is_refused(value, zero):
    lowest = r"\[" if zero else r"\("
    with pytest.raises(InvalidParameterError, match=rf"lie in {lowest}0, 1\]; got [^?]*\.$"):
        check_probability("p", value, "f", zero=zero)


def test_a_share_in_percent_is_recognised():
    for value, share in ((1.5, "0.015"), (95, "0.95"), (100, "1")):
        with pytest.raises(InvalidParameterError, match=rf"Did you mean {share}\?$"):
            check_probability("p", value, "f", zero=True)
        with pytest.raises(InvalidParameterError, match=rf"Did you mean {share}\?$"):
            check_threshold("p", value, "f", 3)
