"""Objectives of one's own in the training loop."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.training import Objective, Optimisation, Schedule, mlp, train

EPOCHS = Schedule.erm(8)
SETTINGS = {
    "alpha": 0.05,
    "schedule": EPOCHS,
    "optimisation": Optimisation(batch_size=128, learning_rate=5e-3),
    "random_state": 3,
}


@dataclass(frozen=True)
class Scaled(Objective):
    """Three outputs for two classes; the middle one is no logit. Notes down how it is called."""

    factor: float = 1.0
    warmup: int = 0
    calls: list = field(default_factory=list, compare=False, repr=False)

    def loss(self, outputs, y, epoch):
        self.calls.append((epoch, torch.is_grad_enabled() and outputs.requires_grad))
        return self.factor * cross_entropy(self.logits(outputs), y)

    def logits(self, outputs):
        return outputs[:, [0, 2]]

    def is_warmup(self, epoch):
        return epoch <= self.warmup


def three_outputs() -> nn.Module:
    with torch.random.fork_rng([]):
        torch.manual_seed(7)
        return mlp(5, 3, width=16)


def run(folds, objective, **changes):
    """Train; return history, network, and the weights after every epoch."""
    network, weights = three_outputs(), []

    def after_epoch(history):
        weights.append(copy.deepcopy(network.state_dict()))
        return False

    settings = SETTINGS | {"after_epoch": after_epoch} | changes
    return train(network, *folds, objective=objective, **settings), network, weights


def same_bits(one, other) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


# The base


def test_the_base_is_cross_entropy_of_logits() -> None:
    torch.manual_seed(0)
    outputs, y = torch.randn(20, 4), torch.randint(4, (20,))
    objective = Objective()
    assert torch.equal(objective.loss(outputs, y, 1), cross_entropy(outputs, y))
    assert objective.logits(outputs) is outputs
    assert objective.score(outputs) is None
    assert not any(objective.is_warmup(epoch) for epoch in (0, 1, 100))


def test_it_is_what_training_minimises_without_an_objective(folds, new_network) -> None:
    networks = [new_network(), new_network()]
    first = train(networks[0], *folds, **SETTINGS)
    second = train(networks[1], *folds, objective=Objective(), **SETTINGS)
    pd.testing.assert_frame_equal(first.to_frame(), second.to_frame(), check_exact=True)
    assert same_bits(networks[0].state_dict(), networks[1].state_dict())


# Constrained training


@dataclass(frozen=True)
class SameAsBase(Objective):
    """Even one that changes nothing could change something: only the base itself is known."""


@pytest.mark.parametrize("objective", [SameAsBase(), Scaled()])
@pytest.mark.parametrize("stages", [1, 3])
def test_constrained_training_refuses_an_objective_of_ones_own(
    folds, new_network, objective, stages
) -> None:
    network = new_network()
    before = copy.deepcopy(network.state_dict())
    schedule = Schedule(warmup_epochs=2, epochs_per_stage=1, max_stages=stages)
    message = f"`objective` of train must be left out in constrained training; got {objective!r}"
    with pytest.raises(InvalidParameterError) as raised:
        train(network, *folds, objective=objective, **SETTINGS | {"schedule": schedule})
    assert message in str(raised.value)
    assert same_bits(network.state_dict(), before)


def test_constrained_training_takes_the_base(folds, new_network) -> None:
    schedule = Schedule(warmup_epochs=1, epochs_per_stage=1, max_stages=1)
    settings = SETTINGS | {"schedule": schedule}
    assert train(new_network(), *folds, objective=Objective(), **settings).records[-1].stage == 1


# What the loop does with it


def test_the_objective_is_minimised_and_read_by_its_logits(folds) -> None:
    history, network, _ = run(folds, Scaled(factor=3.0), keep="last")
    X, y = folds[1]
    with torch.no_grad():
        logits = network(X)[:, [0, 2]]
    expected = 3 * cross_entropy(logits, y).item()
    assert history.records[-1].loss_selection == pytest.approx(expected, rel=1e-5)
    assert history.records[-1].accuracy == pytest.approx(
        (logits.argmax(-1) == y).double().mean().item()
    )
    assert history.records[-1].accuracy > 0.7
    assert history.records[-1].loss < 0.8 * history.records[0].loss


def test_training_batches_are_told_their_epoch_and_the_selection_fold_the_last_one(folds) -> None:
    objective = Scaled()
    run(folds, objective)
    batches = -(-len(folds[0].y) // 128)
    for epoch in range(1, 9):
        calls = objective.calls[(epoch - 1) * (batches + 1) : epoch * (batches + 1)]
        assert calls == [(epoch, True)] * batches + [(8, False)]


@pytest.mark.parametrize("warmup", [0, 6, 7])
def test_warm_up_epochs_are_never_kept(folds, warmup) -> None:
    rows, selection = folds
    turned = selection._replace(y=1 - selection.y)  # what it learns makes it worse there
    history, network, weights = run((rows, turned), Scaled(warmup=warmup))
    losses = history.to_frame()["loss_selection"]
    if warmup:
        assert losses.idxmin() < warmup
    assert history.chosen_epoch == losses[warmup:].idxmin() + 1
    assert same_bits(network.state_dict(), weights[history.chosen_epoch - 1])


@pytest.mark.parametrize("keep", ["selection", "last"])
def test_a_callback_that_stops_in_the_warm_up_leaves_the_weights_of_its_moment(folds, keep) -> None:
    weights, network = [], three_outputs()

    def stop_after_two(history):
        weights.append(copy.deepcopy(network.state_dict()))
        return len(history.records) == 2

    settings = SETTINGS | {"keep": keep, "after_epoch": stop_after_two}
    history = train(network, *folds, objective=Scaled(warmup=5), **settings)
    assert (history.chosen_epoch, history.stopped) == (2, "a callback asked for it")
    assert same_bits(network.state_dict(), weights[1])
    assert not network.training


@pytest.mark.parametrize("warmup", [8, 20])
def test_a_warm_up_as_long_as_the_schedule_is_refused_or_leaves_the_last_weights(
    folds, warmup
) -> None:
    try:
        history, network, weights = run(folds, Scaled(warmup=warmup))
    except InvalidParameterError:
        return
    assert history.chosen_epoch == 8
    assert same_bits(network.state_dict(), weights[-1])


# Its part in a checkpoint


def test_a_run_with_another_objective_is_told_apart(folds, tmp_path) -> None:
    path = tmp_path / "run.checkpoint"
    objective = Scaled(factor=2.0, warmup=2)
    first, network, _ = run(folds, objective, checkpoint_file=path)
    again, twin, epochs = run(folds, replace(objective), checkpoint_file=path)
    assert epochs == []  # the same settings: nothing was left to train
    pd.testing.assert_frame_equal(first.to_frame(), again.to_frame(), check_exact=True)
    assert same_bits(network.state_dict(), twin.state_dict())
    for other in (replace(objective, factor=2.5), replace(objective, warmup=3)):
        with pytest.raises(ModelFileError, match="other data, settings or torch version"):
            run(folds, other, checkpoint_file=path)


def test_settings_cannot_be_changed_in_mid_run() -> None:
    with pytest.raises(AttributeError):
        Scaled().factor = 2.0
