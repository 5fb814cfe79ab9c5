"""Costs of acting: their bound, the largest sum that a budget affords, and what a certificate is worth."""

from __future__ import annotations

import numpy as np

from reliablenet import Promise, certified_rule


def test_costs_decide_what_a_cost_certificate_is_worth():
    """Many cheap mistakes are worth it; what costs as much as a constant answer is not."""
    n = 4000
    rng = np.random.default_rng(1)
    sick = rng.random(n) < 0.2
    flagged = np.where(sick, rng.random(n) < 0.95, rng.random(n) < 0.3)  # most flags are false
    proba = np.where(flagged[:, None], [0.1, 0.9], [0.6, 0.4])
    promise = Promise.cost([[0, 1], [50, 0]], 0.9)
    found = certified_rule(proba, sick.astype(int), promise)
    assert found.errors / found.accepted > 0.2
    assert found.certified
    assert not found.empty
    common = (rng.random(n) < 0.55).astype(int)
    useless = certified_rule(np.tile([0.1, 0.9], (n, 1)), common, promise)
    assert useless.empty
    assert "always answering the cheapest label would cost" in str(useless)
