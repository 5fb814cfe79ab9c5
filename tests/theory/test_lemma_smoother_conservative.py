"""Lemma smoother_conservative: the Lipschitz constant of zeta, and psi >= JCW."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, strategies as st

from reliablenet.risk import confident_wrong, psi, violation, zeta

TAU = st.floats(1e-4, 0.999)
SHAPE = st.tuples(st.floats(0.1, 5.0), st.floats(0.01, 0.99)).map(
    lambda pair: (pair[0], pair[1] * pair[0] / (1 + pair[0]))
)


@given(steepness=st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=20), tau=TAU, shape=SHAPE)
def test_the_slope_of_zeta_is_at_most_its_lipschitz_constant(steepness, tau, shape):
    m1, m2 = shape
    s = (tau * torch.tensor(steepness, dtype=torch.float64)).requires_grad_()
    (slope,) = torch.autograd.grad(zeta(s, tau, m1, m2).sum(), s)
    assert (slope >= 0).all()
    assert (slope <= (1 + m1 * tau) / (4 * tau) * (1 + 1e-12)).all()


@given(tau=TAU, shape=SHAPE)
def test_the_lipschitz_constant_is_attained_where_the_exponential_term_is_1(tau, shape):
    m1, m2 = shape
    s = torch.tensor(tau * math.log(m2 * tau), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(zeta(s, tau, m1, m2), s)
    assert slope.item() == pytest.approx((1 + m1 * tau) / (4 * tau), rel=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 6),
    spread=st.floats(0.1, 100.0),
    position=st.floats(0.01, 1.0),
    tau=TAU,
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_psi_is_at_least_jcw(seed, n_classes, spread, position, tau, dtype):
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(30, n_classes, generator=generator, dtype=dtype)
    y = torch.randint(n_classes, (30,), generator=generator)
    threshold = 1 / n_classes + position * (1 - 1 / n_classes)
    jcw = confident_wrong(logits, y, threshold).to(dtype).mean()
    assert psi(violation(logits, y, threshold), tau) >= jcw
