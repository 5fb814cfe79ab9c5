"""Corollary encoding: off ties, g > 0 exactly where the model is confident and wrong."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import softmax

from reliablenet.risk import confident_wrong, violation


@given(
    logits=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6),
        elements=st.floats(-20.0, 20.0),
    ),
    seed=st.integers(0, 2**32 - 1),
    position=st.floats(0.01, 1.0),
)
def test_violation_is_positive_exactly_where_confident_and_wrong(logits, seed, position):
    n, n_classes = logits.shape
    threshold = 1 / n_classes + position * (1 - 1 / n_classes)
    y = np.random.default_rng(seed).integers(n_classes, size=n)
    proba = softmax(logits, axis=1)
    expected = (proba.max(axis=1) >= threshold) & (proba.argmax(axis=1) != y)
    runner_up, highest = np.sort(logits, axis=1)[:, -2:].T
    no_tie = (highest - runner_up > 1e-9) & (np.abs(proba.max(axis=1) - threshold) > 1e-9)

    tensors = torch.from_numpy(logits), torch.from_numpy(y)
    positive = (violation(*tensors, threshold) > 0).numpy()
    assert (positive == expected)[no_tie].all()
    assert (confident_wrong(*tensors, threshold).numpy() == expected)[no_tie].all()
