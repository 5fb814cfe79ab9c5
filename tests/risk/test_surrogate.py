from __future__ import annotations

import math
import sys

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.risk import Bracket, bracket, gap, phi, psi, zeta, zeta_reflected
from reliablenet.risk.surrogate import check_smoothing

TAU = st.floats(1e-4, 0.999)


def literal_zeta(s: float, tau: float, m1: float, m2: float) -> mpmath.mpf:
    """Equation zeta_fs as it stands in the paper, in 50 digits."""
    with mpmath.workdps(50):
        s, tau, m1, m2 = (mpmath.mpf(value) for value in (s, tau, m1, m2))
        return (1 + m1 * tau) / (1 + m2 * tau * mpmath.exp(-s / tau))


@given(steepness=st.floats(-700.0, 1e4), tau=TAU)
def test_zeta_equals_the_literal_formula(steepness, tau):
    s = steepness * tau
    value = zeta(torch.tensor(s, dtype=torch.float64), tau).item()
    assert value == pytest.approx(float(literal_zeta(s, tau, 0.5, 0.3)), rel=1e-12)


@given(steepness=st.floats(-60.0, 1e4), tau=TAU)
def test_zeta_equals_the_literal_formula_in_float32(steepness, tau):
    s = torch.tensor(steepness * tau, dtype=torch.float32)
    value = zeta(s, tau)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(float(literal_zeta(s.item(), tau, 0.5, 0.3)), rel=1e-4)


@given(
    steepness=st.floats(-50.0, 50.0),
    tau=TAU,
    m1=st.floats(0.01, 10.0),
    part=st.floats(0.01, 0.99),
)
def test_zeta_equals_the_literal_formula_for_every_shape(steepness, tau, m1, part):
    s, m2 = steepness * tau, part * m1 / (1 + m1)
    value = zeta(torch.tensor(s, dtype=torch.float64), tau, m1, m2).item()
    assert value == pytest.approx(float(literal_zeta(s, tau, m1, m2)), rel=1e-12)


@pytest.mark.parametrize("tau", [0.9, 0.01, 1e-4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zeta_and_its_gradient_are_finite_where_the_literal_formula_overflows(tau, dtype):
    s = torch.tensor([-1e4, -1.0, -0.0, 0.0, 1.0, 1e4], dtype=dtype, requires_grad=True)
    value = zeta(s, tau)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(s.grad).all()
    assert value[0] == 0
    assert value[-1] == torch.tensor(1 + 0.5 * tau, dtype=dtype)


@pytest.mark.parametrize("tau", [0.5, 0.1, 0.01])
def test_zeta_passes_gradcheck(tau):
    s = torch.linspace(-10 * tau, 10 * tau, 21, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: zeta(x, tau), s, eps=1e-6 * tau)


def test_zeta_rises_in_s():
    s = torch.linspace(-2.0, 0.2, 1000, dtype=torch.float64)
    assert (zeta(s, 0.05).diff() > 0).all()


def test_the_reflection_is_zeta_of_the_negative():
    s = torch.linspace(-1.0, 1.0, 11)
    assert zeta_reflected(s, 0.1).tolist() == zeta(-s, 0.1).tolist()
    assert zeta_reflected(torch.tensor(-1.0), 0.1) > 1


@given(
    values=st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20),
    tau=TAU,
    shape=st.sampled_from([(0.5, 0.3), (1.0, 0.4), (2.0, 0.1)]),
)
def test_psi_phi_bracket_and_gap_are_the_means_they_are_defined_as(values, tau, shape):
    g = torch.tensor(values, dtype=torch.float64)
    inner = sum(float(literal_zeta(value, tau, *shape)) for value in values) / len(values)
    outer = sum(float(literal_zeta(-value, tau, *shape)) for value in values) / len(values)
    assert psi(g, tau, *shape).item() == pytest.approx(inner, rel=1e-9, abs=1e-300)
    assert phi(g, tau, *shape).item() == pytest.approx(outer, rel=1e-9, abs=1e-300)
    assert bracket(g, tau, *shape) == Bracket(1 - psi(g, tau, *shape), phi(g, tau, *shape))
    assert gap(g, tau, *shape).item() == pytest.approx(inner + outer - 1, abs=1e-9)


def test_psi_of_any_shape_is_the_mean_over_all_rows():
    g = torch.linspace(-1.0, 1.0, 24)
    assert psi(g.reshape(2, 3, 4), 0.1).item() == pytest.approx(psi(g, 0.1).item())
    assert psi(g.reshape(2, 3, 4), 0.1).shape == ()


@pytest.mark.parametrize("function", [psi, phi, bracket, gap])
def test_no_rows_are_refused(function):
    with pytest.raises(InvalidDataError, match="`g` must hold at least one row; got an empty"):
        function(torch.empty(0), 0.1)


@pytest.mark.parametrize("function", [zeta, zeta_reflected, psi, phi, bracket, gap])
@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_tau_outside_its_domain_is_refused(function, tau):
    with pytest.raises(InvalidParameterError, match=r"`tau` of zeta must lie in \(0, 1\); got"):
        function(torch.zeros(3), tau)


@pytest.mark.parametrize("m2", [0.0, -0.1, 1 / 3, 0.5, math.nan])
def test_m2_that_breaks_the_upper_bound_is_refused(m2):
    expected = r"`m2` of zeta must lie in \(0, m1 / \(1 \+ m1\)\) = \(0, 0.3333\); got .*no longer"
    with pytest.raises(InvalidParameterError, match=expected):
        zeta(torch.zeros(3), 0.1, m1=0.5, m2=m2)


@pytest.mark.parametrize("m1", [0.0, -1.0, math.inf, math.nan])
def test_m1_outside_its_domain_is_refused(m1):
    with pytest.raises(InvalidParameterError, match="`m1` of zeta must be a finite positive"):
        zeta(torch.zeros(3), 0.1, m1=m1)


@pytest.mark.parametrize("function", [zeta, zeta_reflected, psi, phi, bracket, gap])
def test_what_is_no_tensor_of_numbers_is_refused(function):
    name = "s" if function in (zeta, zeta_reflected) else "g"
    with pytest.raises(InvalidDataError) as caught:
        function(0.5, 0.1)
    assert str(caught.value) == f"`{name}` must be a Tensor; got float. Use torch.as_tensor."


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ({"tau": 5}, "`tau` of zeta must lie in (0, 1); got 5. Did you mean 0.05?"),
        ({"m1": -1.0}, "`m1` of zeta must be a finite positive number; got -1.0."),
        (
            {"m2": 0.5},
            "`m2` of zeta must lie in (0, m1 / (1 + m1)) = (0, 0.3333); got 0.5. "
            "Beyond that, zeta no longer bounds the indicator from above.",
        ),
        (
            {"m2": "0.3"},
            "`m2` of zeta must lie in (0, m1 / (1 + m1)) = (0, 0.3333); got '0.3'. "
            "Beyond that, zeta no longer bounds the indicator from above.",
        ),
    ],
)
def test_a_shape_outside_its_domain_is_refused_in_these_words(shape, text):
    with pytest.raises(InvalidParameterError) as caught:
        zeta(torch.zeros(3), **{"tau": 0.1} | shape)
    assert str(caught.value) == text


def test_no_rows_are_refused_in_these_words():
    with pytest.raises(InvalidDataError) as caught:
        psi(torch.empty(0), 0.1)
    assert str(caught.value) == "`g` must hold at least one row; got an empty tensor."


def test_the_shape_reaches_every_surrogate():
    """By name, and far from the default."""
    g, shape = torch.tensor([-0.2, 0.0, 0.1], dtype=torch.float64), {"m1": 4.0, "m2": 0.7}
    inner = [float(literal_zeta(value, 0.3, 4.0, 0.7)) for value in g.tolist()]
    outer = [float(literal_zeta(-value, 0.3, 4.0, 0.7)) for value in g.tolist()]
    assert zeta_reflected(g, 0.3, **shape).tolist() == pytest.approx(outer, rel=1e-12)
    assert psi(g, 0.3, **shape).item() == pytest.approx(sum(inner) / 3, rel=1e-12)
    assert phi(g, 0.3, **shape).item() == pytest.approx(sum(outer) / 3, rel=1e-12)
    lower, upper = bracket(g, 0.3, **shape)
    assert lower.item() == pytest.approx(1 - sum(inner) / 3, rel=1e-12)
    assert upper.item() == pytest.approx(sum(outer) / 3, rel=1e-12)
    assert gap(g, 0.3, **shape).item() == pytest.approx((upper - lower).item(), rel=1e-12)
    plain = [value.item() for value in (psi(g, 0.3), phi(g, 0.3), gap(g, 0.3))]
    named = [f(g, 0.3, m1=0.5, m2=0.3).item() for f in (psi, phi, gap)]
    assert plain == named


def test_numbers_of_numpy_make_a_shape_too():
    shape = [np.float32(value) for value in (0.25, 0.5, 0.125)]
    assert zeta(torch.zeros(1), *shape).item() == zeta(torch.zeros(1), 0.25, 0.5, 0.125).item()


def test_a_smoothing_level_whose_product_with_m2_is_no_normal_float_is_refused():
    """The logarithm of the product would lose its digits, and at last be infinite."""
    tau = 2.0**-1020
    assert tau * 0.25 == sys.float_info.min
    assert check_smoothing(tau, 0.5, 0.25) == (tau, 0.5, 0.25)
    smaller = tau / 2
    with pytest.raises(InvalidParameterError) as caught:
        check_smoothing(smaller, 0.5, 0.25, "psi")
    assert str(caught.value) == f"`tau` of psi must not vanish beside m2; got {smaller!r}."


@pytest.mark.parametrize("at_zero", [0, 1, 3])
def test_as_tau_falls_the_gap_tends_to_the_share_of_rows_at_zero(at_zero):
    g = torch.tensor([0.0] * at_zero + [1.0, -0.5], dtype=torch.float64)
    for tau in (1e-2, 1e-4, 1e-6):
        beyond = float(gap(g, tau)) - at_zero / len(g)
        assert 0.0 < beyond <= 0.5 * tau * (1 + 1e-6)
