"""Theorem concentration: delta_n from the net argument of its proof, in 40 digits."""

from __future__ import annotations

import mpmath
import pytest
from hypothesis import given, strategies as st

from reliablenet.certificate import uniform_slack


@given(
    n=st.integers(1, 10**7),
    rho=st.floats(1e-6, 0.999),
    tau=st.floats(1e-4, 0.999),
    n_parameters=st.integers(1, 10**6),
    lipschitz=st.floats(0.0, 100.0),
    radius=st.floats(0.0, 100.0),
    m1=st.floats(0.01, 5.0),
)
def test_uniform_slack_is_hoeffding_over_a_net_plus_the_distance_to_it(
    n, rho, tau, n_parameters, lipschitz, radius, m1
):
    slack = uniform_slack(
        n, rho, tau, n_parameters=n_parameters, lipschitz=lipschitz, radius=radius, m1=m1
    )
    with mpmath.workdps(40):
        height = 1 + mpmath.mpf(m1) * mpmath.mpf(tau)
        slope = height / (4 * mpmath.mpf(tau)) * lipschitz  # of zeta(g) in the parameters
        mesh = mpmath.mpf(radius) / n
        log_net = n_parameters * mpmath.log(3 * mpmath.mpf(n))  # N = (3 R / mesh)^d
        # 2 N exp(-2 n t^2 / height^2) = rho, solved for t.
        deviation = height * mpmath.sqrt((mpmath.log(2) + log_net - mpmath.log(rho)) / (2 * n))
        expected = float(deviation + 2 * slope * mesh)
    assert slack == pytest.approx(expected, rel=1e-12)
