"""Oracle: torchmetrics' calibration error, for `expected_calibration_error` and `evaluate(...).ece`.

Conventions differ in two places, both at single points of the confidence axis.

* Edges. Our bins are (low, high], theirs [low, high). A confidence of exactly 1 falls out of their
  last bin into one of its own; a saturated softmax does produce such rows.
* Precision. `MulticlassCalibrationError` rounds confidences to float32, so that a row within 1e-7 of
  an edge may change its bin. `BinaryCalibrationError` keeps float64; given confidences and verdicts
  in place of P(class 1) and labels, it computes the same sum.

Reflection turns one convention into the other: 1 - c lies in [1 - high, 1 - low) where c lies in
(low, high], and |sum of c - right| over a bin is |sum of (1 - c) - wrong|. So their value for the
reflected rows is the oracle on the edges, where their value for the rows themselves is none.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torchmetrics.classification import BinaryCalibrationError, MulticlassCalibrationError

from reliablenet.metrics import evaluate, expected_calibration_error


def top_label_oracle(proba, y) -> float:
    metric = MulticlassCalibrationError(num_classes=proba.shape[1], n_bins=15, norm="l1")
    return float(metric(torch.from_numpy(proba), torch.from_numpy(y)))


def oracle(confidence, right, bins: int = 15) -> float:
    metric = BinaryCalibrationError(n_bins=bins, norm="l1")
    rows = torch.as_tensor(np.asarray(confidence, float)), torch.as_tensor(np.asarray(right, int))
    value = metric(*rows)
    assert value.dtype == torch.float64
    return float(value)


def random_rows(seed: int, n_classes: int, n: int = 2000):
    """Return probabilities and labels that are overconfident, so that the error is far from 0."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.7), n)
    drawn = (rng.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(max=n_classes - 1)
    return proba, np.where(rng.random(n) < 0.3, rng.integers(n_classes, size=n), drawn)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("seed", range(5))
def test_ece_equals_multiclass_calibration_error(seed, n_classes):
    proba, y = random_rows(seed, n_classes)
    confidence = proba.max(axis=1)
    assert confidence.astype(np.float32).max() < 1
    expected = top_label_oracle(proba, y)
    assert expected > 0.05
    ece = evaluate(proba, y, accepted=confidence > 0.7).ece
    assert ece == pytest.approx(expected, abs=1e-6)
    right = proba.argmax(axis=1) == y
    assert ece == pytest.approx(oracle(confidence, right), abs=1e-13)
    assert expected_calibration_error(confidence, right) == pytest.approx(ece, abs=1e-13)


@pytest.mark.parametrize("right", [True, False])
def test_a_single_row_is_its_own_bin(right):
    proba, y = np.array([[0.2, 0.8]]), np.array([int(right)])
    ece = evaluate(proba, y, accepted=[True]).ece
    assert ece == pytest.approx(top_label_oracle(proba, y), abs=1e-7)
    assert ece == pytest.approx(0.2 if right else 0.8)


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(1, 9999).filter(lambda c: (c * 15) % 10_000), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_ece_equals_the_oracle_wherever_no_row_lies_on_an_edge(rows):
    confidence, right = np.array([c for c, _ in rows]) / 10_000, np.array([r for _, r in rows])
    expected = oracle(confidence, right)
    assert expected_calibration_error(confidence, right) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(
    bins=st.sampled_from([1, 2, 8, 15, 16, 25]),
    rows=st.lists(
        st.tuples(st.integers(1, 25), st.sampled_from([0.0, 0.0, 0.5]), st.booleans()),
        min_size=1,
        max_size=60,
    ),
)
def test_on_the_edges_ece_equals_the_oracle_of_the_reflected_rows(bins, rows):
    """Most rows lie exactly on an edge, the others in the middle of a bin; 1 is an edge too."""
    edge = np.array([1 + (place - 1) % bins for place, _, _ in rows])
    below, right = np.array([b for _, b, _ in rows]), np.array([r for _, _, r in rows])
    confidence = (edge - below) / bins
    # Their edges as they compute them: 1 - 1/15 and their 14/15 are not the same float.
    theirs = torch.linspace(0, 1, bins + 1, dtype=torch.float64).numpy()
    reflected = np.where(below == 0, theirs[bins - edge], 1 - confidence)
    expected = oracle(reflected, ~right, bins)
    ours = expected_calibration_error(confidence, right, bins)
    assert ours == pytest.approx(expected, abs=1e-12)


def test_the_edges_have_teeth():
    """On these two rows the conventions give different values, so that the test above can fail."""
    confidence, right = np.array([0.45, 0.5]), np.array([True, False])
    assert expected_calibration_error(confidence, right, 2) == pytest.approx(0.05 / 2)
    assert oracle(1 - confidence, ~right, 2) == pytest.approx(0.05 / 2)
    assert oracle(confidence, right, 2) == pytest.approx((0.55 + 0.5) / 2)


def test_rows_of_confidence_1_share_the_last_bin_so_the_oracle_is_never_below():
    """Splitting a bin can only raise the sum of absolute values."""
    rng = np.random.default_rng(0)
    excess = []
    for _ in range(50):
        confidence = np.where(rng.random(40) < 0.4, 1.0, rng.uniform(0.5, 1.0, 40))
        right = rng.random(40) < 0.8
        ours = expected_calibration_error(confidence, right)
        excess.append(oracle(confidence, right) - ours)
        nearly = np.where(confidence == 1, np.nextafter(1.0, 0.0), confidence)
        assert ours == pytest.approx(oracle(nearly, right), abs=1e-12)
    assert min(excess) > -1e-12
