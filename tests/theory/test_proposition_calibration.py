"""Proposition calibration: where accepted rows are overconfident, WCE_hc <= JCW."""

from __future__ import annotations

import torch
from hypothesis import assume, example, given, strategies as st

from reliablenet.risk import confidence, confident_wrong


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 5),
    spread=st.floats(0.5, 20.0),
    threshold=st.floats(0.51, 0.99),
    error_rate=st.floats(0.0, 1.0),
)
@example(seed=0, n_classes=2, spread=3.0, threshold=0.6, error_rate=1.0)
def test_overconfident_rows_are_miscalibrated_by_at_most_jcw(
    seed, n_classes, spread, threshold, error_rate
):
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(40, n_classes, generator=generator, dtype=torch.float64)
    wrong = torch.rand(40, generator=generator) < error_rate
    y = (logits.argmax(dim=1) + wrong) % n_classes  # the next class is a wrong one
    top = confidence(logits)
    accepted = top >= threshold
    assume(accepted.any())
    mean_confidence = top[accepted].mean()
    accuracy = 1 - wrong[accepted].double().mean()
    assume(mean_confidence >= accuracy)  # overconfident

    calibration_gap = accepted.double().mean() * (mean_confidence - accuracy).abs()
    jcw = confident_wrong(logits, y, threshold).double().mean()
    assert calibration_gap <= jcw + 1e-12
