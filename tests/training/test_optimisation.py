from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from reliablenet.errors import InvalidParameterError
from reliablenet.risk.surrogate import M1, M2
from reliablenet.training import Optimisation, Schedule, train
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.kernels import ClippedAdam
from reliablenet.training.loop import Run
from reliablenet.training.objective import Objective
from reliablenet.training.optimisation import ClippedSGD, WeightAverage, one_cycle
from reliablenet.training.settings import Settings


def test_the_average_is_the_sum_that_its_weights_say():
    layer = nn.Linear(3, 2)
    mean = WeightAverage(layer, 0.5)
    expected, path = layer.weight.detach().double(), []
    for step in range(1, 12):
        with torch.no_grad():
            layer.weight.normal_(generator=torch.Generator().manual_seed(step))
        path.append(layer.weight.detach().double())
        mean.update()
    for step, weights in enumerate(path, 1):
        past = min(0.5, (1 + step) / (10 + step))
        expected = past * expected + (1 - past) * weights
    torch.testing.assert_close(mean.average[0].double(), expected)


def test_the_networks_own_weights_come_back_even_after_an_error():
    layer = nn.Linear(2, 2)
    mean = WeightAverage(layer, 0.9)
    with torch.no_grad():
        layer.weight.add_(1.0)
    before = layer.weight.detach().clone()

    def fail():
        with mean.in_place():
            torch.testing.assert_close(layer.weight.detach(), before - 1.0)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(layer.weight, before)


def test_running_statistics_are_averaged_with_the_weights_they_belong_to():
    layer = nn.BatchNorm1d(2)
    mean = WeightAverage(layer, 0.9)
    layer(torch.tensor([[0.0, 10.0], [2.0, 30.0]]))  # running mean 0.1 (1, 20), by torch's momentum
    mean.update()
    past = 2 / 11
    with mean.in_place():
        torch.testing.assert_close(layer.running_mean, (1 - past) * torch.tensor([0.1, 2.0]))
        assert layer.num_batches_tracked == 1  # counts are counts
    torch.testing.assert_close(layer.running_mean, torch.tensor([0.1, 2.0]))


def test_training_measures_and_keeps_the_average(folds, new_network):
    """The plain weights of the last epoch are another network, with another loss."""
    seen = []
    network = new_network()
    settings = {"alpha": 0.05, "schedule": Schedule.erm(4), "keep": "last", "random_state": 1}

    def look(history):
        seen.append(copy.deepcopy(network.state_dict()))
        return False

    history = train(
        network, *folds, **settings, optimisation=Optimisation(averaging=0.9), after_epoch=look
    )
    assert all(torch.equal(value, seen[-1][name]) for name, value in network.state_dict().items())
    plain = new_network()
    alone = train(plain, *folds, **settings)
    # the weights take the same path, averaged or not
    assert [one.loss for one in history.records] == [one.loss for one in alone.records]
    loss = nn.functional.cross_entropy(
        evaluate_logits(network, folds[1].X).double(), folds[1].y
    ).item()
    assert history.records[-1].loss_selection == loss
    assert not torch.equal(network.head.weight, plain.head.weight)


def test_decoupled_decay_is_that_of_torchs_adamw():
    torch.manual_seed(0)
    ours, theirs = nn.Linear(4, 3), nn.Linear(4, 3)
    theirs.load_state_dict(ours.state_dict())
    first = ClippedAdam(ours.parameters(), 1e-2, 0.5, 1e9, decoupled=True)
    second = torch.optim.AdamW(theirs.parameters(), lr=1e-2, weight_decay=0.5)
    X, y = torch.randn(32, 4), torch.randint(3, (32,))
    for _ in range(20):
        for network, optimiser in ((ours, first), (theirs, second)):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(X), y).backward()
            first.descend() if optimiser is first else second.step()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-5, atol=1e-6)


def test_the_learning_rate_goes_through_one_cycle_of_the_warm_up(folds, new_network):
    rates = []

    class Watched(nn.Module):
        """Notes the learning rate of each step."""

        def __init__(self):
            super().__init__()
            self.inner = new_network()

        def forward(self, x):
            if self.training:
                rates.append(run[0].optimiser.learning_rate)
            return self.inner(x)

    run = []
    how = Optimisation(learning_rate=0.2, momentum=0.9, one_cycle=True, batch_size=100)
    settings = Settings(
        alpha=0.05,
        schedule=Schedule.erm(4),
        objective=Objective(),
        optimisation=how,
        threshold=None,
        aim=0.05,
        keep="last",
        seed=0,
        m1=M1,
        m2=M2,
    )
    run.append(Run(Watched(), *folds, settings))
    for _ in range(4):
        run[0].one_epoch()
    assert rates == pytest.approx([0.2 * one_cycle(step / 24) for step in range(24)])


def gradients(step: int, weights: list[torch.Tensor]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return [3.0 * torch.randn(weight.shape, generator=generator) for weight in weights]


def test_descent_with_momentum_has_the_bits_of_torchs_own_calls():
    torch.manual_seed(0)
    ours, theirs = nn.Linear(4, 3), nn.Linear(4, 3)
    theirs.load_state_dict(ours.state_dict())
    mine = ClippedSGD(ours.parameters(), 0.1, 5e-4, 2.0, 0.9)
    plain = torch.optim.SGD(
        theirs.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4, foreach=False
    )
    for step in range(5):
        rate = 0.1 / (1 + step)
        mine.learning_rate = plain.param_groups[0]["lr"] = rate
        for network in (ours, theirs):
            for weight, gradient in zip(
                network.parameters(), gradients(step, list(network.parameters())), strict=True
            ):
                weight.grad = gradient
        mine.descend()
        nn.utils.clip_grad_norm_(theirs.parameters(), 2.0)
        plain.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_restored_state_of_it_goes_on_to_the_same_bits():
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(5))
    optimiser = ClippedSGD([weight], 0.1, 0.0, 5.0, 0.9)
    weight.grad = torch.ones(5)
    optimiser.descend()
    twin = nn.Parameter(weight.detach().clone())
    other = ClippedSGD([twin], 0.1, 0.0, 5.0, 0.9)
    held = optimiser.state_dict()["state"]
    other.load_state_dict({"state": {0: {"velocity": held[0]["velocity"].clone()}}})
    for one, its in ((weight, optimiser), (twin, other)):
        one.grad = torch.full((5,), 0.5)
        its.descend()
        its.zero_grad()
        assert one.grad is None
    assert torch.equal(weight, twin)


def test_one_cycle_rises_to_one_and_falls_to_nearly_nothing():
    shares = [one_cycle(step / 1000) for step in range(1000)]
    assert shares.index(max(shares)) == 250
    assert max(shares) == pytest.approx(1.0)
    assert shares[:251] == sorted(shares[:251])
    assert shares[250:] == sorted(shares[250:], reverse=True)
    assert 0.0 < shares[-1] < 0.01
    assert one_cycle(1.0) == one_cycle(7.0) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"averaging": 1.0}, r"`averaging` of Optimisation must lie in \(0, 1\)"),
        ({"averaging": math.nan}, "`averaging` of Optimisation"),
        ({"decoupled": "yes"}, "`decoupled` of Optimisation must be True or False"),
        ({"bfloat16": "yes"}, "`bfloat16` of Optimisation must be True or False"),
        ({"momentum": 1.0}, r"`momentum` of Optimisation must lie in \(0, 1\)"),
        ({"one_cycle": True}, "`one_cycle` of Optimisation must be False without momentum"),
        ({"momentum": 0.9, "decoupled": True}, "`decoupled` of .* must be False with momentum"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(InvalidParameterError, match=message):
        Optimisation(**setting)
