from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch import nn
from torch.nn.functional import cross_entropy

from reliablenet.errors import InvalidDataError, InvalidParameterError, ReliableNetError
from reliablenet.risk import psi, violation
from reliablenet.risk.fused import log_likelihood
from reliablenet.training import JCWConstraint


def batch(n: int = 32, n_classes: int = 3, seed: int = 0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    y = torch.randint(n_classes, (n,), generator=generator)
    return logits.to(dtype).requires_grad_(), y


def constraint_at(multiplier: float, dtype=torch.float64, **settings) -> JCWConstraint:
    constraint = JCWConstraint(**{"alpha": 0.05, "threshold": 0.6} | settings).to(dtype)
    constraint.multiplier.fill_(multiplier)
    return constraint


def plain_penalty(constraint, logits, y):
    g = violation(logits, y, constraint.threshold)
    surrogate = psi(g, constraint.tau, constraint.m1, constraint.m2)
    return constraint.multiplier * (surrogate - constraint.alpha) / max(constraint.alpha, 1e-2)


class PlainAlgorithm1:
    """Lines 5 to 9 of Algorithm 1 as the paper writes them, in Python floats."""

    def __init__(self, n, alpha, threshold, tau, eta, beta, cap, m1=0.5, m2=0.3):
        self.n, self.alpha, self.threshold, self.tau = n, alpha, threshold, tau
        self.eta, self.beta, self.cap, self.m1, self.m2 = eta, beta, cap, m1, m2
        self.multiplier = self.v_bar = 0.0

    def zeta(self, row, label):
        top = max(row)
        confidence = 1 / sum(math.exp(value - top) for value in row)
        rival = max(value for k, value in enumerate(row) if k != label)
        g = min(confidence - self.threshold, rival - row[label])
        return (1 + self.m1 * self.tau) / (1 + self.m2 * self.tau * math.exp(-g / self.tau))

    def step(self, logits, y):
        values = [self.zeta(row, label) for row, label in zip(logits, y, strict=True)]
        v = (sum(values) / len(values) - self.alpha) / max(self.alpha, 1e-2)
        self.v_bar = self.beta * self.v_bar + (1 - self.beta) * v
        moved = self.multiplier + self.eta * len(values) / self.n * self.v_bar
        self.multiplier = min(max(moved, 0.0), self.cap)


@pytest.mark.parametrize("alpha", [0.002, 0.05, 0.3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
def test_multiplier_and_running_mean_follow_algorithm_1(alpha, dtype, tolerance):
    settings = {"alpha": alpha, "threshold": 0.55, "tau": 0.2}
    plain = PlainAlgorithm1(n=150, **settings, eta=1.1, beta=0.75, cap=2.0)
    constraint = JCWConstraint(rows=150, **settings, multiplier_max=2.0).to(dtype)
    multipliers = []
    for number in range(150):
        size = 22 if number % 3 == 2 else 64  # the last batch of an epoch is smaller
        logits, y = batch(size, seed=number, dtype=dtype)
        if number >= 50:  # confident and right from here: the multiplier comes back to 0
            logits = 20 * nn.functional.one_hot(y, 3).to(dtype).requires_grad_()
        constraint.penalty(logits, y)
        constraint.step()
        plain.step(logits.tolist(), y.tolist())
        multipliers.append(plain.multiplier)
        assert float(constraint.multiplier) == pytest.approx(plain.multiplier, rel=tolerance)
        assert float(constraint.violation_ema) == pytest.approx(
            plain.v_bar, rel=tolerance, abs=tolerance
        )
    # The case has no teeth unless cap, interior and floor all occur.
    assert max(multipliers) == 2.0
    assert min(multipliers[50:]) == 0.0
    assert any(0.0 < value < 2.0 for value in multipliers)


def test_the_multiplier_stays_at_zero_while_the_running_mean_goes_below_it():
    constraint = JCWConstraint(alpha=0.5, threshold=0.6, rows=32, tau=0.05, ema=0)
    logits = torch.tensor([[9.0, 0.0]] * 32, requires_grad=True)
    for _ in range(3):
        constraint.penalty(logits, torch.zeros(32, dtype=torch.long))
        constraint.step()
    assert float(constraint.multiplier) == 0.0
    assert float(constraint.violation_ema) < -0.9


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("tau", [0.5, 0.05, 0.01])
@pytest.mark.parametrize("alpha", [0.002, 0.05])
def test_value_and_gradient_of_the_penalty_are_those_of_plain_autograd(n_classes, tau, alpha):
    logits, y = batch(64, n_classes)
    constraint = constraint_at(3.7, alpha=alpha, tau=tau)
    ours, plain = constraint.penalty(logits, y), plain_penalty(constraint, logits, y)
    torch.testing.assert_close(ours, plain, rtol=1e-12, atol=0)
    (mine,), (theirs,) = (torch.autograd.grad(value, logits) for value in (2 * ours, 2 * plain))
    assert theirs.abs().max() > 1e-4
    torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-14)


def test_backward_leaves_the_gradients_of_cross_entropy_plus_penalty():
    logits, y = batch()
    network = nn.Linear(3, 3).double()
    twin = copy.deepcopy(network)
    constraint = constraint_at(5.0)
    (
        cross_entropy(network(logits.detach()), y) + constraint.penalty(network(logits.detach()), y)
    ).backward()
    step = constraint.backward(out := twin(logits.detach()), y)
    for ours, plain in zip(twin.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, plain.grad, rtol=1e-9, atol=1e-14)
    expected = torch.log_softmax(out, -1)[torch.arange(len(y)), y]
    torch.testing.assert_close(
        log_likelihood(step.confidence, step.margin).flatten(), expected.detach()
    )


def test_backward_and_penalty_move_the_multiplier_alike():
    logits, y = batch()
    one, other = constraint_at(1.0), constraint_at(1.0)
    one.penalty(logits, y)
    other.backward(logits, y)
    one.step()
    other.step()
    assert one.multiplier == other.multiplier


def test_backward_returns_the_violations_for_logging():
    logits, y = batch()
    step = constraint_at(1.0).backward(logits, y)
    g = torch.minimum(step.confidence - 0.6, step.margin)
    torch.testing.assert_close(g.flatten(), violation(logits, y, 0.6).detach())
    assert not g.requires_grad


def test_backward_accumulates_as_torch_does():
    weights = torch.linspace(-1.0, 1.0, 6).double().reshape(2, 3).requires_grad_()
    logits, y = batch()
    inputs, gradients = logits.detach()[:, :2], []
    for scale in (1.0, 2.0):
        constraint_at(1.0).backward(scale * inputs @ weights, y)
        outputs = (scale * inputs @ weights).detach().requires_grad_()
        (cross_entropy(outputs, y) + constraint_at(1.0).penalty(outputs, y)).backward()
        gradients.append(scale * inputs.T @ outputs.grad)
    torch.testing.assert_close(weights.grad, gradients[0] + gradients[1])
    assert weights.grad.abs().max() > 0


def test_two_penalties_before_a_step_count_as_one_batch_of_both():
    logits, y = batch(40)
    whole, pieces = constraint_at(1.0, rows=100), constraint_at(1.0, rows=100)
    whole.penalty(logits, y)
    pieces.penalty(logits[:10], y[:10])
    pieces.penalty(logits[10:], y[10:])
    for constraint in (whole, pieces):
        constraint.step()
    torch.testing.assert_close(pieces.multiplier, whole.multiplier, rtol=1e-12, atol=0)
    torch.testing.assert_close(pieces.violation_ema, whole.violation_ema, rtol=1e-12, atol=0)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_penalties_without_gradients_do_not_count(mode):
    logits, y = batch(seed=2)
    watched, counted = constraint_at(1.0, tau=0.123), constraint_at(1.0, tau=0.123)
    with mode():
        watched.penalty(logits, y)
    for constraint in (watched, counted):
        (2 * constraint.penalty(*batch(seed=1))).backward()
        constraint.step()
    assert watched.multiplier == counted.multiplier


def test_without_rows_a_step_is_a_hundredth_of_an_epoch_whatever_the_batch():
    for size in (8, 200):
        constraint = JCWConstraint(threshold=0.6, dual_rate=2.0).double()
        constraint.penalty(*batch(size))
        constraint.step()
        expected = 2.0 / 100 * constraint.violation_ema
        torch.testing.assert_close(constraint.multiplier, expected, rtol=1e-12, atol=0)


def test_a_restored_state_continues_identically():
    first, second = JCWConstraint(threshold=0.6), JCWConstraint(threshold=0.6)
    for seed in range(5):
        first.penalty(*batch(seed=seed, dtype=torch.float32))
        first.step()
    first.tighten()
    second.load_state_dict(
        load(save(first.state_dict()))
    )  # through the bytes of a safetensors file
    assert second.tau == first.tau == 0.65 * 0.5
    for constraint in (first, second):
        constraint.penalty(*batch(seed=9, dtype=torch.float32))
        constraint.step()
    assert torch.equal(first.multiplier, second.multiplier)
    assert torch.equal(first.violation_ema, second.violation_ema)


def test_tighten_lowers_tau_by_the_decay_but_never_below_its_minimum():
    constraint = JCWConstraint(tau=0.5, tau_min=0.2, tau_decay=0.7)
    taus = []
    for _ in range(4):
        constraint.tighten()
        taus.append(constraint.tau)
    assert taus == pytest.approx([0.35, 0.245, 0.2, 0.2])


def test_tighten_never_raises_tau():
    with pytest.raises(InvalidParameterError, match="`tau_min` of JCWConstraint"):
        JCWConstraint(tau=0.005, tau_min=0.01)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits_are_computed_in_single_precision(dtype):
    logits, y = batch(dtype=dtype)
    constraint = constraint_at(2.0, torch.float32, tau=0.01)
    single = logits.detach().float().requires_grad_()
    value, expected = constraint.penalty(logits, y), constraint.penalty(single, y)
    assert value == expected
    value.backward()
    expected.backward()
    assert logits.grad.dtype == dtype
    torch.testing.assert_close(logits.grad, single.grad.to(dtype))
    constraint.step()
    assert constraint.multiplier.dtype == torch.float32


@pytest.mark.parametrize(
    ("of_logits", "of_constraint"),
    [(torch.float64, torch.float32), (torch.float32, torch.float64)],
)
def test_the_constraint_need_not_have_the_precision_of_the_logits(of_logits, of_constraint):
    constraint, reference = constraint_at(1.0, of_constraint), constraint_at(1.0)
    constraint.penalty(*batch(dtype=of_logits))
    reference.penalty(*batch())
    for each in (constraint, reference):
        each.step()
    assert float(constraint.multiplier) == pytest.approx(float(reference.multiplier), rel=1e-5)


def test_settings_that_a_reader_looks_for_are_in_the_repr():
    assert repr(JCWConstraint(alpha=0.02)) == "JCWConstraint(alpha=0.02, threshold=0.8, tau=0.5)"
    assert "threshold=0.9999999, " in repr(JCWConstraint(0.05, 0.9999999))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 5}, r"`alpha` of JCWConstraint must lie in \(0, 1\); got 5. Did you mean 0.05"),
        ({"alpha": 0}, "`alpha` of JCWConstraint"),
        ({"threshold": 80}, "`threshold` of JCWConstraint.*Did you mean 0.8"),
        ({"threshold": 1.01}, "`threshold` of JCWConstraint"),
        ({"threshold": 0.0}, "`threshold` of JCWConstraint"),
        ({"m2": 1 / 3}, r"`m2` of JCWConstraint must lie in \(0, m1 / \(1 \+ m1\)\)"),
        ({"m1": 0.0}, "`m1` of JCWConstraint"),
        ({"tau": 1.0}, "`tau` of JCWConstraint"),
        ({"tau_min": 0.0}, "`tau_min` of JCWConstraint"),
        ({"tau_decay": 1.0}, "`tau_decay` of JCWConstraint"),
        ({"rows": 0}, "`rows` of JCWConstraint must be a whole number of at least 1"),
        ({"dual_rate": 0.0}, "`dual_rate` of JCWConstraint"),
        ({"ema": 1.0}, "`ema` of JCWConstraint"),
        ({"multiplier_max": math.inf}, "`multiplier_max` of JCWConstraint"),
    ],
)
def test_settings_outside_their_domain_are_refused(settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        JCWConstraint(**settings)


def test_a_threshold_that_every_confidence_reaches_is_refused_at_first_use():
    constraint = JCWConstraint(threshold=0.5)
    constraint.penalty(*batch(n_classes=3))
    with pytest.raises(InvalidParameterError, match=r"`threshold` .* lie in \(1/2, 1\]"):
        constraint.penalty(*batch(n_classes=2))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_stop_the_step_and_name_the_cause(bad):
    logits, y = batch()
    logits = logits.detach().index_fill(0, torch.tensor([3]), bad).requires_grad_()
    constraint = constraint_at(1.0)
    constraint.penalty(logits, y)
    with pytest.raises(InvalidDataError, match=r"`logits` .* must be finite.*learning rate"):
        constraint.step()
    assert constraint.multiplier == 1.0


def test_a_step_without_a_penalty_is_refused_and_says_what_to_call():
    constraint = constraint_at(1.0)
    with pytest.raises(ReliableNetError, match=r"needs a penalty\(\) since the last step\(\)"):
        constraint.step()


@pytest.mark.parametrize(
    ("logits", "y", "message"),
    [
        (torch.zeros(4, 1), torch.zeros(4, dtype=torch.long), "K >= 2.*stack it with zeros"),
        (torch.zeros(4, 2), torch.zeros(3, dtype=torch.long), r"`y` must have the shape.*\(3,\)"),
        (torch.zeros(4, 2), torch.zeros(4), "`y` must hold class indices.*use y.long"),
    ],
)
def test_logits_and_labels_that_do_not_fit_are_refused(logits, y, message):
    with pytest.raises(InvalidDataError, match=f"(?i){message}"):
        JCWConstraint().penalty(logits, y)


def test_logits_with_a_further_axis_are_refused_rather_than_weighted_wrongly():
    logits, y = batch(12)
    with pytest.raises(InvalidDataError, match="`logits`"):
        constraint_at(1.0).penalty(logits.reshape(4, 3, 3), y.reshape(4, 3))
    with pytest.raises(InvalidDataError, match=r"n >= 1; got \(0, 3\)"):
        constraint_at(1.0).penalty(logits[:0], y[:0])


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_that_are_no_class_index_are_refused(label):
    logits, y = batch()
    y[0] = label
    with pytest.raises(InvalidDataError, match="class indices from 0 to 2"):
        constraint_at(1.0).penalty(logits, y)


def test_an_ensemble_is_held_by_its_mean_probability_and_trained_by_its_members():
    torch.manual_seed(0)
    logits = 2 * torch.randn(40, 3, 4)
    y = torch.randint(4, (40,))
    constraint = JCWConstraint(alpha=0.05, threshold=0.6, tau=0.1)
    constraint.set_multiplier(0.7)
    ours, plain = (logits.clone().requires_grad_() for _ in range(2))
    constraint.backward(ours, y)
    averaged = torch.softmax(plain, -1).mean(1).log()
    members = torch.stack([nn.functional.cross_entropy(plain[:, m], y) for m in range(3)])
    (members.mean() + constraint.penalty(averaged, y)).backward()
    torch.testing.assert_close(ours.grad, plain.grad, rtol=1e-4, atol=1e-7)


def test_a_multiplier_set_from_without_is_bounded_and_forgets_the_batches():
    constraint = JCWConstraint(alpha=0.05, threshold=0.6)
    constraint.penalty(torch.randn(8, 2), torch.zeros(8, dtype=torch.long))
    constraint.set_multiplier(70.0)
    assert float(constraint.multiplier) == 50.0
    with pytest.raises(ReliableNetError, match="needs a penalty"):
        constraint.step()
    with pytest.raises(InvalidParameterError, match=r"`value` of JCWConstraint\.set_multiplier"):
        constraint.set_multiplier(-1.0)


def test_labels_of_any_integer_type_give_the_same_penalty():
    logits = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    y = torch.arange(8) % 3
    penalties = [
        JCWConstraint(alpha=0.1).penalty(logits, y.to(kind)).item()
        for kind in (torch.int64, torch.int32, torch.int8, torch.uint8)
    ]
    assert len(set(penalties)) == 1


@pytest.mark.parametrize("logits", [3.0, "x", None, np.zeros((2, 2))])
def test_logits_that_are_no_tensor_are_refused(logits):
    with pytest.raises(InvalidDataError, match="`logits` must be a Tensor"):
        JCWConstraint(alpha=0.1).penalty(logits, torch.tensor([0, 1]))


def grouped_batch(sizes: tuple[int, ...], seed: int = 0, dtype=torch.float64):
    """A batch whose rows of the groups are mixed, and the rows of each."""
    logits, y = batch(sum(sizes), seed=seed, dtype=dtype)
    group = torch.cat([torch.full((n,), number) for number, n in enumerate(sizes)])
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    group = group[order]
    return logits, y, group, [group == number for number in range(len(sizes))]


def test_each_group_has_the_psi_penalty_and_gradient_of_a_constraint_of_its_own():
    alphas, multipliers = (0.05, 0.1, 0.2), (0.5, 0.0, 2.0)
    logits, y, group, members = grouped_batch((20, 5, 39))
    together = JCWConstraint(alphas, 0.6, groups=3).double()
    together.set_multiplier(multipliers)
    penalty = together.penalty(logits, y, group)
    (gradient,) = torch.autograd.grad(penalty, logits)
    expected, gradients = 0.0, torch.zeros_like(logits)
    for rows, alpha, multiplier in zip(members, alphas, multipliers, strict=True):
        own = logits[rows].detach().requires_grad_()
        alone = constraint_at(multiplier, alpha=alpha).penalty(own, y[rows])
        expected += float(alone.detach())
        gradients[rows] = torch.autograd.grad(alone, own)[0]
    assert penalty.item() == pytest.approx(expected, rel=1e-6)
    torch.testing.assert_close(gradient, gradients, rtol=1e-6, atol=1e-12)


def test_each_multiplier_moves_as_if_its_group_were_alone():
    alphas, rows = (0.02, 0.3), (300, 90)
    together = JCWConstraint(alphas, 0.6, groups=2, rows=rows)
    alone = [JCWConstraint(a, 0.6, rows=n) for a, n in zip(alphas, rows, strict=True)]
    for number in range(12):
        sizes = (30, 0) if number % 4 == 3 else (25, 10)  # a batch may lack a group
        for part in range(2):  # two micro-batches before one step
            logits, y, group, members = grouped_batch(sizes, seed=2 * number + part)
            together.penalty(logits, y, group)
            for one, mine in zip(alone, members, strict=True):
                if mine.any():
                    one.penalty(logits[mine], y[mine])
        together.step()
        for one, n in zip(alone, sizes, strict=True):
            if n:
                one.step()
    assert together.multiplier.min() > 0
    for name in ("multiplier", "violation_ema"):
        expected = torch.stack([getattr(one, name) for one in alone])
        torch.testing.assert_close(getattr(together, name), expected, rtol=1e-5, atol=1e-7)


def test_one_group_is_the_constraint_without_groups():
    logits, y = batch(64)
    plain, one = (JCWConstraint(0.05, 0.6, rows=640, groups=g).double() for g in (None, 1))
    for constraint, more in ((plain, ()), (one, (torch.zeros(64, dtype=torch.int64),))):
        constraint.set_multiplier(1.5)
        step = constraint.differentiate(logits, y, *more)
        constraint.step()
        constraint.seen = step
    torch.testing.assert_close(plain.seen.gradient, one.seen.gradient, rtol=1e-6, atol=1e-12)
    torch.testing.assert_close(plain.multiplier, one.multiplier[0], rtol=1e-6, atol=0)


def test_loss_and_penalty_of_groups_come_in_one_pass():
    logits, y, group, _ = grouped_batch((40, 24))
    constraint = JCWConstraint(0.05, 0.6, groups=2).double()
    constraint.set_multiplier([3.0, 0.5])
    (plain,) = torch.autograd.grad(
        cross_entropy(logits, y) + constraint.penalty(logits, y, group), logits
    )
    constraint.backward(logits, y, group)
    torch.testing.assert_close(logits.grad, plain)


def test_the_state_of_groups_is_saved_and_restored():
    logits, y, group, _ = grouped_batch((40, 24))
    first, second = (JCWConstraint(0.05, 0.6, groups=2) for _ in range(2))
    first.penalty(logits, y, group)
    first.step()
    first.tighten()
    second.load_state_dict(load(save(first.state_dict())))
    assert set(first.state_dict()) == set(JCWConstraint().state_dict())
    assert torch.equal(first.multiplier, second.multiplier)
    assert first.tau == second.tau


@pytest.mark.parametrize(
    ("groups", "group", "message"),
    [
        (2, None, "because it was made with groups=2; got NoneType"),
        (2, torch.zeros(31, dtype=torch.int64), r"shape of `y`, \(32,\)"),
        (2, torch.zeros(32), "must hold integers"),
        (2, torch.full((32,), 2), "indices from 0 to 1; got values from 2 to 2"),
        (2, torch.full((32,), -1), "indices from 0 to 1; got values from -1 to -1"),
        (None, torch.zeros(32, dtype=torch.int64), "made without groups=G"),
    ],
)
def test_groups_that_do_not_fit_are_named(groups, group, message):
    logits, y = batch()
    with pytest.raises(InvalidDataError, match=message):
        JCWConstraint(0.05, 0.6, groups=groups).penalty(logits, y, group)


@pytest.mark.parametrize(
    "settings", [{"alpha": (0.1,)}, {"rows": [3, 4, 5]}, {"groups": 0}, {"alpha": (0.1, 1.5)}]
)
def test_settings_of_groups_are_checked(settings):
    with pytest.raises(InvalidParameterError, match=f"`{next(iter(settings))}` of JCWConstraint"):
        JCWConstraint(**{"alpha": 0.1, "groups": 2} | settings)
