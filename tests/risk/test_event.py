from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
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


@pytest.mark.parametrize("call", [margin, lambda logits, y: violation(logits, y, 0.8)])
def test_the_last_axis_is_that_of_the_classes(call):
    """A label may be below the length of another axis and yet be no class."""
    with pytest.raises(InvalidDataError, match="class indices from 0 to 2; got values from 0 to 3"):
        call(torch.zeros(2, 4, 3), torch.tensor([[0, 1, 2, 3]] * 2))
    assert call(torch.zeros(3), torch.tensor(2)).shape == ()


def test_what_is_no_tensor_is_refused():
    with pytest.raises(InvalidDataError, match="`logits` must be a Tensor; got ndarray"):
        violation(np.zeros((2, 2)), torch.zeros(2).long(), 0.8)
    with pytest.raises(InvalidDataError, match="`s` must be a Tensor; got float"):
        zeta(0.5, 0.1)


COMPLEX, SPARSE = torch.zeros(2, 3, dtype=torch.complex64), torch.eye(3).to_sparse()


@pytest.mark.parametrize("values", [COMPLEX, SPARSE, torch.ones(2, 3, dtype=torch.bool)])
@pytest.mark.parametrize("call", [confidence, lambda s: zeta(s, 0.1), lambda g: psi(g, 0.1)])
def test_what_is_no_dense_tensor_of_real_numbers_is_refused(call, values):
    with pytest.raises(InvalidDataError, match="must be a dense Tensor of real numbers"):
        call(values)


def test_logits_of_whole_numbers_are_refused():
    with pytest.raises(InvalidDataError, match=r"`logits` must be of a floating type; got .*int64"):
        confidence(torch.zeros(2, 3, dtype=torch.int64))


def test_margin_checks_its_labels_and_takes_any_integer_type():
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    with pytest.raises(InvalidDataError, match="class indices from 0 to 2"):
        margin(logits, torch.tensor([3]))
    for kind in (torch.int8, torch.uint8, torch.int32):
        assert margin(logits, torch.tensor([1], dtype=kind)).tolist() == [2.0]


@pytest.mark.parametrize("threshold", [float("nan"), "0.5", None, torch.tensor(0.5)])
def test_a_threshold_of_confident_wrong_that_is_no_number(threshold):
    with pytest.raises(
        InvalidParameterError, match="`threshold` of confident_wrong must be a number"
    ):
        confident_wrong(torch.zeros(1, 2), torch.tensor([0]), threshold)


def test_settings_may_be_any_real_number():
    s = torch.tensor([0.3])
    assert zeta(s, Fraction(1, 2), Fraction(1, 2), Fraction(1, 4)) == zeta(s, 0.5, 0.5, 0.25)
    for settings in (
        {"tau": "x"},
        {"tau": 0.5, "m1": None},
        {"tau": 0.5, "m2": np.array([0.1, 0.2])},
    ):
        with pytest.raises(InvalidParameterError, match="of zeta must"):
            zeta(s, **settings)


ROWS = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
INDICES = torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: violation(torch.full((2, 2), math.nan), INDICES, 0.8),
            "`logits` of violation must be finite; got NaN or an infinity. "
            "Look for a diverged network or an input that is not finite.",
        ),
        (
            lambda: violation(ROWS, torch.tensor([0, 2]), 0.8),
            "`y` must hold class indices from 0 to 1; got values from 0 to 2. "
            "Leave out rows to be ignored.",
        ),
        (
            lambda: margin(ROWS, torch.tensor([-1, 1])),
            "`y` must hold class indices from 0 to 1; got values from -1 to 1. "
            "Leave out rows to be ignored.",
        ),
        (
            lambda: violation(ROWS, INDICES, 0.5),
            "`threshold` of violation must lie in (1/2, 1]: every confidence is at least 1/2; "
            "got 0.5.",
        ),
        (
            lambda: confident_wrong(ROWS, INDICES, math.nan),
            "`threshold` of confident_wrong must be a number; got nan.",
        ),
        (
            lambda: confident_wrong(ROWS, INDICES, "0.9"),
            "`threshold` of confident_wrong must be a number; got '0.9'.",
        ),
        (
            lambda: confidence(torch.zeros(4, 1)),
            "`logits` must have shape (..., K) with K >= 2 classes; got (4, 1). "
            "For one logit a row, stack it with zeros: torch.stack([0 * z, z], dim=-1).",
        ),
        (
            lambda: confidence(torch.zeros(4, 2).long()),
            "`logits` must be of a floating type; got torch.int64. Use logits.float().",
        ),
        (
            lambda: confidence(torch.zeros(4, 2).bool()),
            "`logits` must be a dense Tensor of real numbers; got torch.bool, torch.strided.",
        ),
        (
            lambda: confidence(torch.zeros(4, 2, dtype=torch.complex64)),
            "`logits` must be a dense Tensor of real numbers; got torch.complex64, torch.strided.",
        ),
        (
            lambda: confidence(torch.eye(2).to_sparse()),
            "`logits` must be a dense Tensor of real numbers; got torch.float32, torch.sparse_coo.",
        ),
        (
            lambda: margin(ROWS, INDICES.bool()),
            "`y` must hold class indices of an integer type; got torch.bool. Use y.long().",
        ),
        (
            lambda: margin(ROWS, [0, 1]),
            "`y` must be a Tensor; got list. Use torch.as_tensor.",
        ),
        (
            lambda: confident_wrong(ROWS, INDICES.float(), 0.8),
            "`y` must hold class indices of an integer type; got torch.float32. Use y.long().",
        ),
        (
            lambda: margin(ROWS, INDICES[:1]),
            "`y` must have the shape of `logits` without its last axis, (2,); got (1,).",
        ),
        (
            lambda: margin(ROWS.expand(3, *ROWS.shape), INDICES),
            "`y` must have the shape of `logits` without its last axis, (3, 2); got (2,).",
        ),
    ],
)
def test_bad_input_is_refused_in_these_words(call, text):
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        call()
    assert str(caught.value) == text


def test_labels_of_any_integer_type_and_no_rows_at_all_are_taken():
    assert margin(ROWS, INDICES.to(torch.uint8)).tolist() == [-4.0, -1.0]
    assert violation(ROWS[:0], INDICES[:0], 1.0).shape == (0,)


@pytest.mark.parametrize("threshold", [2, np.float32(0.5), -math.inf])
def test_the_hard_event_takes_any_number_for_a_threshold(threshold):
    found = confident_wrong(ROWS, 1 - INDICES, threshold)
    assert found.tolist() == [threshold < 1] * 2
