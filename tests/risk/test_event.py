from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.risk import confidence, confident_wrong, margin, psi, violation, zeta

CLASS_COUNTS = (2, 3, 10, 1000)


def hard_logits(n_classes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return rows where careless code overflows, divides by zero or meets a tie."""
    equal = torch.zeros(3, n_classes)
    equal[1:] = torch.tensor([[1e4], [-1e4]])
    one_high = torch.full((n_classes,), -1e4)
    one_high[0] = 1e4
    one_low = torch.full((n_classes,), 1e4)
    one_low[0] = -1e4
    two_tied = torch.arange(n_classes, dtype=torch.float32).neg()
    two_tied[:2] = 5.0
    spread = torch.linspace(-1e4, 1e4, n_classes)
    rows = torch.stack([*equal, one_high, one_low, two_tied, 1e3 * two_tied, spread])
    return rows.to(dtype)


def every_label(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Pair each row with its first, second and last class as the label."""
    n, n_classes = logits.shape
    labels = torch.tensor([0, 1, n_classes - 1]).repeat_interleave(n)
    return logits.repeat(3, 1), labels


@pytest.mark.parametrize("tau", [0.5, 0.01, 1e-4])
@pytest.mark.parametrize("n_classes", CLASS_COUNTS)
def test_values_and_gradients_are_finite_for_extreme_and_tied_logits(n_classes, tau):
    logits, y = every_label(hard_logits(n_classes))
    logits.requires_grad_()
    g = violation(logits, y, threshold=0.9)
    loss = psi(g, tau)
    loss.backward()
    assert torch.isfinite(g).all()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()


@given(
    n_classes=st.sampled_from((2, 3, 10)),
    tau=st.floats(1e-4, 0.9),
    threshold=st.floats(0.51, 1.0),
    data=st.data(),
)
def test_values_and_gradients_are_finite_wherever_float32_logits_lie(
    n_classes, tau, threshold, data
):
    entry = st.floats(-1e4, 1e4, width=32) | st.sampled_from([-1e4, 0.0, 1e4])
    row = data.draw(st.lists(entry, min_size=n_classes, max_size=n_classes))
    logits = torch.tensor([row] * n_classes, requires_grad=True)
    loss = psi(violation(logits, torch.arange(n_classes), threshold), tau)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("n_classes", CLASS_COUNTS)
def test_confidence_is_the_largest_softmax_probability(n_classes):
    logits = hard_logits(n_classes, torch.float64)
    expected = softmax(logits.numpy(), axis=1).max(axis=1)
    np.testing.assert_allclose(confidence(logits).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("n_classes", CLASS_COUNTS)
def test_margin_is_the_best_other_logit_less_the_own_one(n_classes):
    logits, y = every_label(hard_logits(n_classes, torch.float64))
    expected = [
        max(value for k, value in enumerate(row) if k != label) - row[label]
        for row, label in zip(logits.tolist(), y.tolist(), strict=True)
    ]
    assert margin(logits, y).tolist() == expected


def test_margin_is_zero_where_the_own_logit_ties_for_the_maximum():
    logits = torch.tensor([[3.0, 3.0, 1.0], [2.0, 2.0, 2.0]])
    assert margin(logits, torch.tensor([1, 2])).tolist() == [0.0, 0.0]


def test_gradient_of_confidence_vanishes_where_all_logits_are_equal():
    logits = torch.full((1, 4), 7.0, dtype=torch.float64, requires_grad=True)
    confidence(logits).sum().backward()
    assert logits.grad.abs().max() < 1e-15


def test_gradient_at_a_tie_of_the_maximum_is_the_mean_of_the_tied_gradients():
    """Two rivals tie for the margin: each gets half of its gradient."""
    logits = torch.tensor([[0.0, 2.0, 2.0]], dtype=torch.float64, requires_grad=True)
    margin(logits, torch.tensor([0])).sum().backward()
    assert logits.grad.tolist() == [[-1.0, 0.5, 0.5]]


def test_gradient_at_a_tie_of_the_minimum_is_the_mean_of_both_gradients():
    y = torch.tensor([0])
    logits = torch.tensor([[0.0, -0.125]], requires_grad=True)
    threshold = confidence(logits).item() + 0.125  # then confidence - threshold = margin = -0.125
    assert (confidence(logits) - threshold).item() == margin(logits, y).item()
    pieces = [
        torch.autograd.grad(piece.sum(), logits)[0]
        for piece in (confidence(logits), margin(logits, y))
    ]
    (gradient,) = torch.autograd.grad(violation(logits, y, threshold).sum(), logits)
    torch.testing.assert_close(gradient, (pieces[0] + pieces[1]) / 2)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_violation_passes_gradcheck_away_from_ties(n_classes):
    generator = torch.Generator().manual_seed(n_classes)
    logits = 2 * torch.randn(20, n_classes, generator=generator, dtype=torch.float64)
    y = torch.randint(n_classes, (20,), generator=generator)
    pieces = torch.stack([confidence(logits) - 0.7, margin(logits, y)])
    top_two = logits.topk(2).values
    away = ((pieces[0] - pieces[1]).abs() > 1e-3) & (top_two[:, 0] - top_two[:, 1] > 1e-3)
    assert (pieces[0] < pieces[1])[away].any()
    assert (pieces[0] > pieces[1])[away].any()
    rows = logits[away].requires_grad_()
    assert torch.autograd.gradcheck(lambda z: violation(z, y[away], 0.7), rows)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 1, 3)])
def test_any_leading_shape_gives_the_same_numbers(shape):
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(*shape, 5, generator=generator)
    y = torch.randint(5, shape, generator=generator)
    g = violation(logits, y, 0.5)
    flat = violation(logits.reshape(-1, 5), y.reshape(-1), 0.5)
    assert g.shape == shape
    assert g.flatten().tolist() == flat.tolist()
    assert confident_wrong(logits, y, 0.5).shape == shape


def test_a_row_exactly_at_the_threshold_is_confident():
    logits = torch.tensor([[0.0, 2.0]])
    at = confidence(logits).item()
    above = math.nextafter(np.float32(at), 1) + 1e-6
    assert confident_wrong(logits, torch.tensor([0]), at).tolist() == [True]
    assert confident_wrong(logits, torch.tensor([0]), above).tolist() == [False]


@pytest.mark.parametrize(
    ("threshold", "n_classes", "text"),
    [
        (0.5, 2, r"`threshold` of violation must lie in \(1/2, 1\].*got 0.5"),
        (1 / 3, 3, r"must lie in \(1/3, 1\]: every confidence is at least 1/3"),
        (0.0, 10, r"must lie in \(1/10, 1\].*got 0.0"),
        (1.01, 2, r"must lie in \(1/2, 1\].*got 1.01"),
        (90, 2, r"got 90\. Did you mean 0.9\?"),
        (math.nan, 2, "got nan"),
        ("0.9", 2, "got '0.9'"),
    ],
)
def test_a_threshold_outside_its_domain_is_refused(threshold, n_classes, text):
    with pytest.raises(InvalidParameterError, match=text):
        violation(torch.zeros(4, n_classes), torch.zeros(4, dtype=torch.long), threshold)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_logits_that_are_not_finite_are_refused(bad):
    logits = torch.tensor([[0.0, 1.0], [0.0, bad]])
    with pytest.raises(InvalidDataError, match="`logits` of violation must be finite"):
        violation(logits, torch.tensor([0, 1]), 0.8)


@pytest.mark.parametrize(
    ("logits", "y", "text"),
    [
        (torch.zeros(4, 1), torch.zeros(4).long(), r"K >= 2 classes; got \(4, 1\).*torch.stack"),
        (torch.zeros(()), torch.zeros(()).long(), r"K >= 2 classes; got \(\)"),
        (torch.zeros(4, 2), torch.zeros(4, 1).long(), r"last axis, \(4,\); got \(4, 1\)"),
        (torch.zeros(4, 2), torch.zeros(3).long(), r"last axis, \(4,\); got \(3,\)"),
        (torch.zeros(4, 2), torch.zeros(4), r"integer type; got torch.float32. Use y.long\(\)"),
        (torch.zeros(4, 2), torch.zeros(4).bool(), r"integer type; got torch.bool"),
    ],
)
def test_logits_and_labels_that_do_not_fit_are_refused(logits, y, text):
    with pytest.raises(InvalidDataError, match=text):
        violation(logits, y, 0.8)


def test_confident_wrong_refuses_labels_that_would_be_broadcast():
    """Labels of shape (n, 1) would silently compare every row with every label."""
    with pytest.raises(InvalidDataError, match=r"last axis, \(4,\); got \(4, 1\)"):
        confident_wrong(torch.zeros(4, 2), torch.zeros(4, 1).long(), 0.8)


@pytest.mark.parametrize("labels", [[0, 2], [-1, 0]])
def test_labels_that_are_no_class_index_are_refused(labels):
    with pytest.raises(InvalidDataError, match="class indices from 0 to 1; got values from"):
        violation(torch.zeros(2, 2), torch.tensor(labels), 0.8)


def test_what_is_no_tensor_is_refused():
    with pytest.raises(InvalidDataError, match="`logits` must be a Tensor; got ndarray"):
        violation(np.zeros((2, 2)), torch.zeros(2).long(), 0.8)
    with pytest.raises(InvalidDataError, match="zeta takes a Tensor; got float"):
        zeta(0.5, 0.1)
