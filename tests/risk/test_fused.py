from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from reliablenet.risk import margin, psi, violation
from reliablenet.risk.fused import log_likelihood, step_gradient

SHAPE = {"m1": 0.5, "m2": 0.3}


def plain_step(logits, y, *, loss_weight, multiplier, scale, threshold, tau, m1, m2):
    """Return the same gradient and psi from autograd of the plain form."""
    logits = logits.clone().requires_grad_()
    surrogate = psi(violation(logits, y, threshold), tau, m1, m2)
    loss = loss_weight * functional.cross_entropy(logits, y) + multiplier * surrogate / scale
    (gradient,) = torch.autograd.grad(loss, logits)
    return gradient, surrogate.detach()


def draw(n_classes, dtype):
    """Return logits and labels without ties; half of the labels are the predicted class."""
    generator = torch.Generator().manual_seed(n_classes)
    logits = 3 * torch.randn(64, n_classes, generator=generator, dtype=dtype)
    y = torch.randint(n_classes, (64,), generator=generator)
    return logits, torch.where(torch.arange(64) % 2 == 0, logits.argmax(dim=1), y)


@pytest.mark.parametrize("loss_weight", [0.0, 1.0])
@pytest.mark.parametrize("multiplier", [0.0, 0.7, 50.0])
@pytest.mark.parametrize("tau", [0.5, 0.05, 0.01, 1e-4])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 1000])
def test_gradient_and_psi_equal_plain_autograd_in_float64(n_classes, tau, multiplier, loss_weight):
    logits, y = draw(n_classes, torch.float64)
    setting = {"multiplier": multiplier, "scale": 0.05, "threshold": 0.6, "tau": tau}
    step = step_gradient(logits, y, loss_weight=loss_weight, **setting, **SHAPE)
    gradient, surrogate = plain_step(logits, y, loss_weight=loss_weight, **setting, **SHAPE)
    torch.testing.assert_close(step.gradient, gradient, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(step.psi, surrogate, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss_weight", [0.0, 1.0])
@pytest.mark.parametrize("tau", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 1000])
def test_gradient_and_psi_equal_plain_autograd_in_float32(n_classes, tau, loss_weight):
    logits, y = draw(n_classes, torch.float32)
    setting = {"multiplier": 2.0, "scale": 0.05, "threshold": 0.6, "tau": tau}
    step = step_gradient(logits, y, loss_weight=loss_weight, **setting, **SHAPE)
    gradient, surrogate = plain_step(logits, y, loss_weight=loss_weight, **setting, **SHAPE)
    assert step.gradient.dtype == torch.float32
    torch.testing.assert_close(
        step.gradient, gradient, rtol=1e-3, atol=1e-5 * gradient.abs().max().item()
    )
    torch.testing.assert_close(step.psi, surrogate, rtol=1e-4, atol=1e-6)


def test_a_shape_other_than_the_default_is_honoured():
    logits, y = draw(4, torch.float64)
    setting = {"multiplier": 3.0, "scale": 0.02, "threshold": 0.9, "tau": 0.2}
    step = step_gradient(logits, y, loss_weight=1.0, **setting, m1=2.0, m2=0.1)
    gradient, surrogate = plain_step(logits, y, loss_weight=1.0, **setting, m1=2.0, m2=0.1)
    torch.testing.assert_close(step.gradient, gradient)
    torch.testing.assert_close(step.psi, surrogate)


def test_confidence_and_margin_tell_log_likelihood_and_violation():
    logits, y = draw(5, torch.float64)
    setting = {"multiplier": 1.0, "scale": 0.05, "threshold": 0.6, "tau": 0.1}
    step = step_gradient(logits, y, loss_weight=1.0, **setting, **SHAPE)
    losses = functional.cross_entropy(logits, y, reduction="none")
    torch.testing.assert_close(-log_likelihood(step.confidence, step.margin).flatten(), losses)
    g = torch.minimum(step.confidence - 0.6, step.margin)
    torch.testing.assert_close(g.flatten(), violation(logits, y, 0.6))


def test_both_pieces_of_the_minimum_occur_in_these_tests():
    """Otherwise the comparisons above would check one branch only."""
    logits, y = draw(3, torch.float64)
    g = violation(logits, y, 0.6)
    from_confidence = g == torch.softmax(logits, dim=1).amax(dim=1) - 0.6
    assert 5 < from_confidence.sum() < len(y) - 5


def test_a_second_call_gives_the_same_and_the_inputs_are_left_alone():
    """The step works in place on its own tensors; none of them may be an input or a constant."""
    logits, y = draw(3, torch.float32)
    before, multiplier = logits.clone(), torch.tensor(2.0)
    setting = {"multiplier": multiplier, "scale": 0.05, "threshold": 0.6, "tau": 0.1}
    first = step_gradient(logits, y, loss_weight=1.0, **setting, **SHAPE)
    second = step_gradient(logits, y, loss_weight=1.0, **setting, **SHAPE)
    for name in ("gradient", "total", "confidence", "margin"):
        assert torch.equal(getattr(first, name), getattr(second, name))
    assert first.weight == second.weight
    assert torch.equal(logits, before)
    assert multiplier == 2.0


@pytest.mark.parametrize("tau", [0.5, 1e-4])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 1000])
def test_extreme_and_tied_logits_give_finite_numbers(n_classes, tau):
    rows = torch.stack(
        [
            torch.zeros(n_classes),
            torch.full((n_classes,), 1e4),
            torch.full((n_classes,), -1e4),
            torch.linspace(-1e4, 1e4, n_classes),
            torch.linspace(1e4, -1e4, n_classes),
            torch.tensor([5.0, 5.0] + [0.0] * (n_classes - 2)),
        ]
    ).repeat(2, 1)
    y = torch.tensor([0] * 6 + [n_classes - 1] * 6)
    setting = {"multiplier": 50.0, "scale": 0.01, "threshold": 0.9, "tau": tau}
    step = step_gradient(rows, y, loss_weight=1.0, **setting, **SHAPE)
    for values in (step.gradient, step.psi, step.confidence, step.margin):
        assert torch.isfinite(values).all()
    torch.testing.assert_close(step.psi, psi(violation(rows, y, 0.9), tau))


def test_a_gradient_row_sums_to_zero():
    """Softmax does not change when every logit rises alike, so neither may anything built on it."""
    logits, y = draw(10, torch.float64)
    setting = {"multiplier": 5.0, "scale": 0.05, "threshold": 0.6, "tau": 0.1}
    step = step_gradient(logits, y, loss_weight=1.0, **setting, **SHAPE)
    assert step.gradient.sum(dim=1).abs().max() < 1e-12


@pytest.mark.parametrize("multiplier", [2.5, torch.tensor(2.5)])
def test_the_multiplier_may_be_a_number_or_a_tensor(multiplier):
    logits, y = draw(3, torch.float64)
    setting = {"scale": 0.05, "threshold": 0.6, "tau": 0.1}
    step = step_gradient(logits, y, multiplier, loss_weight=1.0, **setting, **SHAPE)
    gradient, _ = plain_step(logits, y, loss_weight=1.0, multiplier=2.5, **setting, **SHAPE)
    torch.testing.assert_close(step.gradient, gradient)


@pytest.mark.parametrize(
    ("tau", "threshold"), [(0.05, 0.6), (0.01, 0.6), (0.005, 0.95), (0.0045, 0.95), (0.001, 0.9)]
)
def test_no_gradient_is_a_denormal_number(tau, threshold):
    """Rows far from a violation would give such slopes, and matrix products with them are slow."""
    own = torch.linspace(0.001, 20.0, 2000)
    logits = torch.stack([own, torch.zeros(2000)], dim=1)
    y = torch.zeros(2000, dtype=torch.long)
    setting = {"multiplier": 1.0, "scale": 0.05, "threshold": threshold, "tau": tau}
    step = step_gradient(logits, y, loss_weight=0.0, **setting, **SHAPE)
    size = step.gradient.abs()
    assert (size[size > 0] >= torch.finfo(torch.float32).tiny).all()


def test_of_two_classes_the_rival_is_the_other_to_the_bit():
    """The same logits with a third class that never matters take the general way."""
    logits, y = draw(2, torch.float64)
    three = torch.cat([logits, torch.full((len(y), 1), -1e4, dtype=torch.float64)], dim=1)
    setting = {"multiplier": 2.0, "scale": 0.05, "threshold": 0.6, "tau": 0.1}
    two, general = (
        step_gradient(rows, y, loss_weight=1.0, **setting, **SHAPE) for rows in (logits, three)
    )
    assert torch.equal(two.margin, general.margin)
    torch.testing.assert_close(two.gradient, general.gradient[:, :2], rtol=1e-12, atol=1e-15)


def test_constants_lie_where_the_logits_do_whatever_the_default_device():
    logits, y = draw(3, torch.float64)
    setting = {"multiplier": 2.0, "scale": 0.05, "threshold": 0.6, "tau": 0.123}  # in no cache yet
    with torch.device("meta"):
        step = step_gradient(logits, y, loss_weight=1.0, **setting, **SHAPE)
    gradient, surrogate = plain_step(logits, y, loss_weight=1.0, **setting, **SHAPE)
    torch.testing.assert_close(step.gradient, gradient)
    torch.testing.assert_close(step.psi, surrogate)


def test_where_confidence_and_margin_tie_the_gradient_is_that_of_the_margin():
    """Autograd takes the mean of both; either is right, and a step needs only one."""
    logits, y = torch.tensor([[0.0, -0.125]]), torch.tensor([0])
    threshold = torch.softmax(logits, 1).max().item() + 0.125
    setting = {"multiplier": 1.0, "scale": 1.0, "threshold": threshold, "tau": 0.1}
    step = step_gradient(logits, y, loss_weight=0.0, **setting, **SHAPE)
    assert torch.equal(step.confidence - threshold, step.margin)
    logits.requires_grad_()
    (expected,) = torch.autograd.grad(psi(margin(logits, y), 0.1), logits)
    torch.testing.assert_close(step.gradient, expected)


@pytest.mark.parametrize("loss_weight", [0.0, 1.0])
def test_a_row_is_weighed_by_its_group_and_adds_to_the_part_of_its_group(loss_weight):
    logits, y = draw(3, torch.float64)
    group = torch.arange(len(y)) % 3 % 2  # two rows in three are of the first of four groups
    multipliers = torch.tensor([0.5, 4.0, 9.0, 0.0], dtype=torch.float64)
    setting = {"scale": 0.05, "threshold": 0.6, "tau": 0.1}
    step = step_gradient(
        logits, y, multipliers, loss_weight=loss_weight, group=group, **setting, **SHAPE
    )
    leaf = logits.clone().requires_grad_()
    g = violation(leaf, y, 0.6)
    parts = torch.stack([psi(g[group == k], 0.1) * (group == k).double().mean() for k in (0, 1)])
    loss = loss_weight * functional.cross_entropy(leaf, y) + (multipliers[:2] * parts).sum() / 0.05
    (gradient,) = torch.autograd.grad(loss, leaf)
    torch.testing.assert_close(step.gradient, gradient, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(step.psi[:2], parts.detach(), rtol=1e-10, atol=1e-12)
    assert step.psi[2:].tolist() == [0.0, 0.0]
