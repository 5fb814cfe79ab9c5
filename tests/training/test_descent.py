from __future__ import annotations

import pytest
import torch
from torch import nn

from reliablenet.training.descent import ClippedSGD, one_cycle


def gradients(step: int, weights: list[torch.Tensor]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return [3.0 * torch.randn(weight.shape, generator=generator) for weight in weights]


def test_it_has_the_bits_of_torchs_own_calls():
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


def test_a_restored_state_goes_on_to_the_same_bits():
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


def test_a_cycle_rises_to_one_and_falls_to_nearly_nothing():
    shares = [one_cycle(step / 1000) for step in range(1000)]
    assert shares.index(max(shares)) == 250
    assert max(shares) == pytest.approx(1.0)
    assert shares[:251] == sorted(shares[:251])
    assert shares[250:] == sorted(shares[250:], reverse=True)
    assert 0.0 < shares[-1] < 0.01
    assert one_cycle(1.0) == one_cycle(7.0) == pytest.approx(0.1)
