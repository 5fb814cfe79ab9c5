"""Deep Gamblers: its loss against the paper's equation, its warm-up, and what it learns."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from contract_helpers import fit_quietly, quick
from hypothesis import given, settings, strategies as st
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.deep_gamblers import GamblersLoss
from reliablenet.tables import Fold

DRAW = SyntheticBand(random_state=0)
BAND, SELECTION, FRESH = DRAW.sample(600), DRAW.sample(300), DRAW.sample(4000)
PROBLEMS = st.tuples(st.integers(2, 6), st.floats(0.001, 1.0), st.integers(0, 10_000))


def draw(problem, n: int = 20, spread: float = 3.0) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Return outputs, labels, and a reward in (1, K]."""
    classes, share, seed = problem
    random = np.random.RandomState(seed)
    outputs = torch.from_numpy(spread * random.standard_normal((n, classes + 1)))
    return outputs, torch.from_numpy(random.randint(classes, size=n)), 1 + share * (classes - 1)


def gambling(outputs: np.ndarray, y: np.ndarray, reward: float) -> float:
    """The paper's equation, in float64."""
    p = softmax(np.asarray(outputs, np.float64), axis=1)
    return float(-np.log(p[np.arange(len(y)), y] + p[:, -1] / reward).mean())


def cross_entropy(outputs: np.ndarray, y: np.ndarray) -> float:
    """Of the class outputs alone."""
    logits = np.asarray(outputs, np.float64)[:, :-1]
    return float((logsumexp(logits, axis=1) - logits[np.arange(len(y)), y]).mean())


# The loss


@settings(deadline=None)
@given(problem=PROBLEMS)
def test_the_loss_is_the_papers_equation(problem) -> None:
    outputs, y, reward = draw(problem)
    loss = GamblersLoss(reward, 0).loss(outputs, y, 1)
    assert loss.shape == ()
    assert float(loss) == pytest.approx(gambling(outputs.numpy(), y.numpy(), reward), rel=1e-10)


@settings(deadline=None)
@given(problem=PROBLEMS, epoch=st.sampled_from([1, 3]))
def test_its_gradient_is_that_of_finite_differences(problem, epoch) -> None:
    outputs, y, reward = draw(problem, n=6, spread=1.5)
    outputs.requires_grad_()
    objective = GamblersLoss(reward, 2)
    assert torch.autograd.gradcheck(lambda o: objective.loss(o, y, epoch), outputs)


@settings(deadline=None)
@given(problem=PROBLEMS, epoch=st.sampled_from([1, 3]))
def test_extreme_outputs_leave_loss_and_gradient_finite(problem, epoch) -> None:
    outputs, y, reward = draw(problem)
    outputs = (1e4 * outputs.sign()).float().requires_grad_()
    loss = GamblersLoss(reward, 2).loss(outputs, y, epoch)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(outputs.grad).all()


def test_a_loss_beyond_the_range_of_probabilities_keeps_its_value() -> None:
    outputs = torch.tensor([[0.0, 1e4, -1e4], [-1e4, 0.0, 1e4]])
    losses = [
        float(GamblersLoss(1.5, 0).loss(outputs[[row]], torch.tensor([0]), 1)) for row in (0, 1)
    ]
    assert losses == pytest.approx([1e4, np.log(1.5)], rel=1e-6)


@settings(deadline=None)
@given(problem=PROBLEMS, warmup=st.integers(1, 5))
def test_the_warm_up_is_cross_entropy_of_the_classes_and_spares_the_abstention(
    problem, warmup
) -> None:
    outputs, y, reward = draw(problem)
    outputs.requires_grad_()
    objective = GamblersLoss(reward, warmup)
    loss = objective.loss(outputs, y, warmup)
    loss.backward()
    values = outputs.detach().numpy()
    assert loss.item() == pytest.approx(cross_entropy(values, y.numpy()), rel=1e-10)
    assert not outputs.grad[:, -1].any()
    assert outputs.grad[:, :-1].any()
    after = objective.loss(outputs, y, warmup + 1).item()
    assert after == pytest.approx(gambling(values, y.numpy(), reward), rel=1e-10)
    assert [objective.is_warmup(e) for e in (1, warmup, warmup + 1)] == [True, True, False]


@settings(deadline=None)
@given(problem=PROBLEMS)
def test_logits_and_score_leave_out_the_abstention(problem) -> None:
    outputs, _, reward = draw(problem)
    objective = GamblersLoss(reward, 0)
    np.testing.assert_array_equal(objective.logits(outputs), outputs[:, :-1])
    reservation = softmax(outputs.numpy(), axis=1)[:, -1]
    np.testing.assert_allclose(objective.score(outputs), 1 - reservation, rtol=1e-10, atol=1e-15)


# The network and its probabilities


def outputs_of(model, X: np.ndarray) -> np.ndarray:
    rows = torch.from_numpy(model.encoder_.transform(X))
    return model.network_.eval()(rows).detach().double().numpy()


@pytest.mark.parametrize("classes", [2, 5])
def test_class_probabilities_are_renormalised(classes) -> None:
    random = np.random.RandomState(0)
    X = random.standard_normal((800, 4))
    y = np.digitize(X[:, 0] + 0.3 * random.standard_normal(800), np.linspace(-1, 1, classes - 1))
    model = fit_quietly(quick(rn.DeepGamblersClassifier, reward=1.5), X, y)
    proba, outputs = model.predict_proba(X), outputs_of(model, X)
    assert outputs.shape == (800, classes + 1)
    assert proba.shape == (800, classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(proba.argmax(axis=1), outputs[:, :-1].argmax(axis=1))
    shares = softmax(outputs, axis=1)
    expected = shares[:, :-1] / shares[:, :-1].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba, expected, rtol=1e-4)
    np.testing.assert_allclose(model.acceptance_score(X), 1 - shares[:, -1], rtol=1e-4)
    np.testing.assert_array_equal(model.predict(X), proba.argmax(axis=1))


class Watcher:
    """Keeps the weights after every epoch, and stops after a given one."""

    def __init__(self, stop_after: int = 0) -> None:
        self.stop_after = stop_after
        self.weights: list[dict[str, torch.Tensor]] = []

    def setup(self, estimator, context) -> None:
        pass

    def on_fit_task_begin(self, estimator, context) -> None:
        pass

    def on_fit_task_end(self, estimator, context) -> bool:
        if context.task_name != "epoch":
            return False
        self.weights.append(copy.deepcopy(estimator.network_.state_dict()))
        return len(self.weights) == self.stop_after

    def teardown(self, estimator, context) -> None:
        pass


def watched(stop_after: int = 0, selection: Fold = SELECTION, **changes):
    """Fit on the Band with folds of its own; return the model and the weights of every epoch."""
    watcher = Watcher(stop_after)
    model = quick(rn.DeepGamblersClassifier, **changes).set_callbacks(watcher)
    fit_quietly(model, BAND.X, BAND.y, selection=selection, certification=FRESH)
    return model, watcher.weights


def same_bits(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


# The warm-up and the history


def test_the_selection_loss_is_the_gambling_loss_in_every_epoch() -> None:
    model, weights = watched()
    twin = copy.copy(model)
    twin.network_ = copy.deepcopy(model.network_)
    assert len(weights) == 7
    for record, state in zip(model.history_.records, weights, strict=True):
        twin.network_.load_state_dict(state)
        expected = gambling(outputs_of(twin, SELECTION.X), SELECTION.y, 1.9)
        assert record.loss_selection == pytest.approx(expected, rel=1e-5)


def test_the_training_loss_is_cross_entropy_first_and_the_gambling_loss_afterwards() -> None:
    # With one batch an epoch, the loss of an epoch is that of the weights before it.
    model, weights = watched(batch_size=600, reward=1.2)
    twin = copy.copy(model)
    twin.network_ = copy.deepcopy(model.network_)
    for record, before in zip(model.history_.records[1:], weights, strict=False):
        twin.network_.load_state_dict(before)
        outputs = outputs_of(twin, BAND.X)
        warm, gambled = cross_entropy(outputs, BAND.y), gambling(outputs, BAND.y, 1.2)
        assert abs(warm - gambled) > 1e-3
        expected = warm if record.epoch <= 2 else gambled
        assert record.loss == pytest.approx(expected, rel=1e-5)


def test_a_warm_up_epoch_is_never_kept_even_if_it_has_the_lowest_loss() -> None:
    turned = Fold(SELECTION.X, 1 - SELECTION.y)  # what it learns makes it worse there
    model, weights = watched(selection=turned, checkpoint="selection", epochs=7, warmup_epochs=4)
    losses = model.history_.frame()["loss_selection"]
    assert losses.idxmin() < 4  # the warm-up would be chosen if it might
    assert model.history_.chosen_epoch == losses[4:].idxmin() + 1
    assert same_bits(model.network_.state_dict(), weights[model.history_.chosen_epoch - 1])


@pytest.mark.parametrize("checkpoint", ["selection", "last"])
@pytest.mark.parametrize(("stop_after", "chosen"), [(1, {1}), (2, {2}), (3, {3}), (5, {3, 4, 5})])
def test_a_callback_may_stop_it_in_the_warm_up_and_after(checkpoint, stop_after, chosen) -> None:
    model, weights = watched(stop_after, checkpoint=checkpoint)
    history = model.history_
    assert len(history.records) == stop_after
    assert history.stopped == "a callback asked for it"
    assert history.chosen_epoch in (chosen if checkpoint == "selection" else {stop_after})
    assert same_bits(model.network_.state_dict(), weights[history.chosen_epoch - 1])
    decisions = model.decide(FRESH.X)
    assert np.isfinite(decisions.confidence).all()
    assert model.score(FRESH.X, FRESH.y) > 0.6


def test_without_a_warm_up_it_gambles_from_the_start() -> None:
    model, weights = watched(warmup_epochs=0, checkpoint="selection")
    best = model.history_.frame()["loss_selection"].idxmin()
    assert model.history_.chosen_epoch == best + 1
    assert same_bits(model.network_.state_dict(), weights[best])


# Bad settings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reward": 1.0}, r"`reward` of DeepGamblersClassifier must lie in \(1, 2\].*got 1.0"),
        ({"reward": 2.01}, r"`reward` .* lie in \(1, 2\]: beyond the number of classes.*got 2.01"),
        ({"reward": -3}, r"`reward` .* got -3"),
        ({"reward": np.nan}, r"`reward` .* got nan"),
        ({"reward": np.inf}, r"`reward` .* got inf"),
        ({"reward": "high"}, r"`reward` .* got 'high'"),
        ({"warmup_epochs": 7}, "`warmup_epochs` of DeepGamblers.* be below epochs = 7; got 7"),
        ({"warmup_epochs": 8}, "`warmup_epochs` .* be below epochs = 7; got 8"),
        ({"warmup_epochs": -1}, "`warmup_epochs` .* whole number of at least 0; got -1"),
        ({"warmup_epochs": 1.5}, "`warmup_epochs` .* whole number .* got 1.5"),
        ({"warmup_epochs": "2"}, "`warmup_epochs` .* whole number .* got '2'"),
        ({"network": lambda d, k: nn.Linear(d, 2)}, r"3 outputs a row \(2 classes\).*\(1, 2\)"),
    ],
)
def test_bad_settings(wrong, message) -> None:
    with pytest.raises(rn.errors.ReliableNetError, match=message):
        quick(rn.DeepGamblersClassifier, **wrong).fit(BAND.X, BAND.y)


def test_the_limit_of_the_reward_follows_the_number_of_classes() -> None:
    X, y = np.random.RandomState(0).standard_normal((90, 3)), np.arange(90) % 3
    model = quick(rn.DeepGamblersClassifier, reward=3.0)
    assert len(fit_quietly(model, X, y).classes_) == 3
    with pytest.raises(rn.errors.InvalidParameterError, match=r"lie in \(1, 3\]"):
        quick(rn.DeepGamblersClassifier, reward=3.5).fit(X, y)


def test_a_plain_module_is_a_network_here() -> None:
    model = quick(rn.DeepGamblersClassifier, network=lambda d, k: nn.Linear(d, k))
    fit_quietly(model, BAND.X, BAND.y)
    assert isinstance(model.network_, nn.Linear)
    assert model.network_.out_features == 3


# What it learns


def reservation_and_errors(model, X, y) -> tuple[np.ndarray, np.ndarray]:
    return 1 - model.acceptance_score(X), model.predict(X) != y


def test_on_the_band_the_reservation_finds_errors_and_grows_as_the_reward_shrinks() -> None:
    rows, means = SyntheticBand(random_state=0), []
    known, fresh = rows.sample(3000), rows.sample(4000)
    for reward in (1.2, 1.5, 1.9):
        model = rn.DeepGamblersClassifier(reward=reward, epochs=20, warmup_epochs=5, random_state=0)
        fit_quietly(model, known.X, known.y)
        reservation, wrong = reservation_and_errors(model, fresh.X, fresh.y)
        assert roc_auc_score(wrong, reservation) > 0.8  # seeds 0 to 4: 0.859 to 0.890
        means.append(reservation.mean())
    # Seeds 0 to 4: 0.400 to 0.420, 0.314 to 0.341, 0.083 to 0.123.
    assert means[0] > means[1] + 0.03
    assert means[1] > means[2] + 0.1


def test_on_noisy_digits_the_reservation_finds_errors_and_grows_as_the_reward_shrinks() -> None:
    X, y = load_digits(return_X_y=True)
    random = np.random.RandomState(0)
    X, order = X + 6 * random.standard_normal(X.shape), random.permutation(len(y))
    known, fresh = order[:1200], order[1200:]
    means = []
    for reward in (1.5, 1.9, 3.0):
        model = rn.DeepGamblersClassifier(
            reward=reward, epochs=30, fold_sizes=(0.7, 0.15, 0.15), random_state=0
        )
        fit_quietly(model, X[known], y[known])
        reservation, wrong = reservation_and_errors(model, X[fresh], y[fresh])
        assert 0.1 < wrong.mean() < 0.4
        assert roc_auc_score(wrong, reservation) > 0.65  # seeds 0 to 4: 0.739 to 0.848
        means.append(reservation.mean())
    # Seeds 0 to 4: 0.324 to 0.529, 0.127 to 0.172, 0.002 to 0.018.
    assert means[0] > means[1] + 0.1
    assert means[1] > means[2] + 0.05
