"""Equations io_bracket and inclusion_set: 1 - psi <= P(g <= 0) <= phi, so F_in lies in F lies in F_out."""

from __future__ import annotations

import torch
from hypothesis import given, strategies as st

from reliablenet.risk import bracket, phi, psi

TAU = st.floats(1e-4, 0.999)
VIOLATIONS = st.lists(st.floats(-2.0, 1.0) | st.just(0.0), min_size=1, max_size=40).map(
    lambda values: torch.tensor(values, dtype=torch.float64)
)


@given(g=VIOLATIONS, tau=TAU)
def test_the_bracket_encloses_the_share_of_rows_without_violation(g, tau):
    share = (g <= 0).double().mean()
    lower, upper = bracket(g, tau)
    assert lower <= share <= upper
    assert lower == 1 - psi(g, tau)
    assert upper == phi(g, tau)


@given(g=VIOLATIONS, tau=TAU, alpha=st.floats(0.01, 0.99))
def test_inner_feasible_implies_feasible_implies_outer_feasible(g, tau, alpha):
    rounding = 1e-12
    inner = bool(psi(g, tau) <= alpha)
    feasible = bool((g > 0).double().mean() <= alpha + rounding)
    outer = bool(phi(g, tau) >= 1 - alpha - rounding)
    assert feasible or not inner
    assert outer or not feasible


def test_both_inclusions_are_strict():
    """One row in a hundred violates: feasible at alpha = 0.02, while psi at tau = 0.5 is not."""
    g = torch.full((100,), -0.3, dtype=torch.float64)
    g[0] = 0.3
    assert psi(g, 0.5) > 0.02 >= (g > 0).double().mean()
    # At alpha = 0.005 the same rows are infeasible, while phi still passes them.
    assert (g > 0).double().mean() > 0.005
    assert phi(g, 0.5) >= 1 - 0.005
