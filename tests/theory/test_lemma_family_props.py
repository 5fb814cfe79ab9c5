"""Lemma family_props: zeta is bounded, dominates the step 1{s >= 0} and tends to it."""

from __future__ import annotations

import torch
from hypothesis import given, strategies as st

from reliablenet.risk import zeta

TAU = st.floats(1e-4, 0.999)
SHAPE = st.tuples(st.floats(0.1, 5.0), st.floats(0.01, 0.99)).map(
    lambda pair: (pair[0], pair[1] * pair[0] / (1 + pair[0]))
)
ARGUMENTS = st.lists(st.floats(-1e4, 1e4) | st.just(-0.0), min_size=1, max_size=20)


@given(values=ARGUMENTS, tau=TAU, shape=SHAPE)
def test_i_zeta_lies_between_0_and_its_height(values, tau, shape):
    m1, m2 = shape
    s = torch.tensor(values, dtype=torch.float64)
    result = zeta(s, tau, m1, m2)
    assert (result <= 1 + m1 * tau).all()
    assert (result >= 0).all()
    # Strictly positive as far as float64 reaches: exp(-700) is representable.
    assert (result[s / tau > -700] > 0).all()


@given(values=ARGUMENTS, tau=TAU, shape=SHAPE)
def test_ii_zeta_dominates_the_step(values, tau, shape):
    s = torch.tensor(values, dtype=torch.float64)
    assert (zeta(s, tau, *shape)[s >= 0] > 1).all()


@given(values=ARGUMENTS, tau=TAU, shape=SHAPE)
def test_ii_zeta_dominates_the_step_in_float32(values, tau, shape):
    s = torch.tensor(values, dtype=torch.float32)
    result = zeta(s, tau, *shape)
    assert result.dtype == torch.float32
    assert (result >= (s >= 0)).all()


def test_ii_zeta_dominates_the_step_in_float32_around_zero_at_the_smallest_tau():
    tiny = torch.finfo(torch.float32).tiny
    s = torch.cat([torch.zeros(1), torch.tensor([tiny]), torch.logspace(-12, 0, 1000)])
    assert (zeta(s, tau=1e-4) > 1).all()


@given(
    s=st.floats(-10.0, -1e-3) | st.just(0.0) | st.floats(1e-3, 10.0),
    tolerance=st.floats(1e-6, 0.1),
    shape=SHAPE,
)
def test_iii_zeta_tends_to_the_step_as_tau_falls(s, tolerance, shape):
    """Below a tau that depends on s and the tolerance, zeta stays within the tolerance."""
    tau = min(tolerance / (2 * shape[0]), abs(s) / 50 or 1.0, 0.5)
    for smaller in (tau, tau / 10, tau / 100):
        value = zeta(torch.tensor(s, dtype=torch.float64), smaller, *shape).item()
        assert abs(value - (s >= 0)) <= tolerance
