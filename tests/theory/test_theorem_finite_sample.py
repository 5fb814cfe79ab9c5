"""Theorem finite_sample: empirical psi <= alpha - delta_n implies JCW <= alpha, whoever chose theta.

A one-parameter classifier on a finite population, so that psi and JCW are exact sums. Its logits are
(0, theta x) with |x| <= 1 and 0 <= theta <= R: confidence and margin are 1-Lipschitz in theta.
"""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings, strategies as st

from reliablenet.certificate import uniform_slack
from reliablenet.risk import confident_wrong, violation, zeta

RADIUS, ROWS, DRAWS, RHO, THRESHOLD = 8.0, 20_000, 40, 0.05, 0.7


def population(noise: float):
    """Return the points (x, y) and their probabilities: y = 1{x > 0}, flipped near x = 0."""
    x = np.linspace(-1.0, 1.0, 200)
    flipped = noise * np.exp(-5 * np.abs(x))
    right = (x > 0).astype(int)
    points = np.concatenate([x, x]), np.concatenate([right, 1 - right])
    return *points, np.concatenate([1 - flipped, flipped]) / len(x)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    tau=st.floats(0.05, 0.3),
    alpha=st.floats(0.1, 0.4),
    noise=st.floats(0.2, 0.5),
)
def test_every_parameter_within_the_tightened_budget_keeps_the_true_one(seed, tau, alpha, noise):
    x, y, mass = population(noise)
    theta = np.linspace(0.0, RADIUS, 81)
    slope = torch.from_numpy(np.outer(theta, x))
    logits = torch.stack([torch.zeros_like(slope), slope], dim=-1)
    labels = torch.from_numpy(y).expand(len(theta), -1)
    surrogate = zeta(violation(logits, labels, THRESHOLD), tau).numpy()
    jcw = confident_wrong(logits, labels, THRESHOLD).numpy() @ mass

    counts = np.random.default_rng(seed).multinomial(ROWS, mass / mass.sum(), size=DRAWS)
    empirical = counts @ surrogate.T / ROWS
    slack = uniform_slack(ROWS, RHO, tau, n_parameters=1, lipschitz=1.0, radius=RADIUS)
    deviation = np.abs(empirical - surrogate @ mass).max(axis=1)
    broken = ((empirical <= alpha - slack) & (jcw > alpha)).any(axis=1)
    # Both are rarer than RHO by far (the bound is loose), so none is expected in DRAWS draws.
    assert not (deviation > slack).any()
    assert not broken.any()


def test_the_hypothesis_of_the_theorem_can_be_met():
    """Otherwise the test above would claim nothing: some parameters keep the tightened budget."""
    x, y, mass = population(noise=0.3)
    logits = torch.from_numpy(np.stack([np.zeros_like(x), RADIUS * x], axis=-1))
    surrogate = zeta(violation(logits, torch.from_numpy(y), THRESHOLD), 0.05).numpy() @ mass
    slack = uniform_slack(ROWS, RHO, 0.05, n_parameters=1, lipschitz=1.0, radius=RADIUS)
    assert surrogate <= 0.3 - slack
