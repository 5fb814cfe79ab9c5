"""Proposition gap_stopping: the gap bounds both errors, tends to 0, and never falls to m1 tau."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, strategies as st

from reliablenet.risk import bracket, gap

TAU = st.floats(1e-4, 0.999)
SHAPE = st.tuples(st.floats(0.1, 5.0), st.floats(0.01, 0.99)).map(
    lambda pair: (pair[0], pair[1] * pair[0] / (1 + pair[0]))
)
VIOLATIONS = st.lists(st.floats(-2.0, 1.0), min_size=1, max_size=40)


def as_rows(values):
    return torch.tensor(values, dtype=torch.float64)


@given(values=VIOLATIONS, tau=TAU, shape=SHAPE)
def test_the_gap_bounds_the_error_of_both_ends(values, tau, shape):
    g = as_rows(values)
    share = (g <= 0).double().mean()
    width = gap(g, tau, *shape)
    lower, upper = bracket(g, tau, *shape)
    assert width >= 0
    assert max(abs(share - lower), abs(share - upper)) <= width + 1e-12


@given(values=st.lists(st.floats(-2.0, -0.01) | st.floats(0.01, 1.0), min_size=1), shape=SHAPE)
def test_the_gap_tends_to_0_with_tau(values, shape):
    g = as_rows(values)
    for tau in (1e-4, 1e-5, 1e-6):
        assert gap(g, tau, *shape) <= shape[0] * tau * (1 + 1e-6)


@given(steepness=st.lists(st.floats(-15.0, 15.0), min_size=1, max_size=40), tau=TAU, shape=SHAPE)
def test_the_gap_exceeds_its_floor(steepness, tau, shape):
    """The paper's stopping rule cannot fire: no gap is below m1 tau."""
    assert gap(tau * as_rows(steepness), tau, *shape) > shape[0] * tau


def test_the_gap_meets_its_floor_far_from_zero():
    """Far from zero nothing but the floor is left, so `gap - m1 tau` is what a tolerance can meet."""
    assert gap(as_rows([-1.0, 1.0]), 0.01).item() == pytest.approx(0.5 * 0.01, rel=1e-9)


def test_a_tie_keeps_the_gap_open():
    """Assumption boundary is needed: a row with g = 0 counts at both ends, whatever tau is."""
    assert gap(as_rows([0.0, 1.0]), 1e-6) > 0.5
