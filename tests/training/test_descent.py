from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from reliablenet.training import descent as descent_module, mlp
from reliablenet.training.descent import ClippedAdam


def gradients(network: nn.Module, step: int, size: float) -> None:
    generator = torch.Generator().manual_seed(step)
    for weight in network.parameters():
        weight.grad = size * torch.randn(weight.shape, generator=generator)


def same_bits(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("kernel", [True, False], ids=["direct", "another version of torch"])
def test_steps_have_the_bits_of_clipping_and_fused_adam(monkeypatch, kernel):
    """Norms far below the limit, near it and above it, also where moments are loaded in between."""
    if not kernel:
        monkeypatch.setattr(descent_module, "KERNEL", None)
    network = mlp(7, 3, width=16)
    twin = copy.deepcopy(network)
    count = sum(weight.numel() for weight in network.parameters())
    ours = ClippedAdam(network.parameters(), 1e-2, 1e-3, clip_norm=0.3)
    plain = torch.optim.Adam(twin.parameters(), lr=1e-2, weight_decay=1e-3, fused=True)
    for step in range(12):
        size = (0.01, 0.2998, 0.3, 0.3002, 5.0)[step % 5] / math.sqrt(count)
        gradients(network, step, size)
        gradients(twin, step, size)
        ours.descend()
        nn.utils.clip_grad_norm_(twin.parameters(), 0.3)
        plain.step()
        assert same_bits(network, twin)
        if step == 6:
            ours.load_state_dict(copy.deepcopy(ours.state_dict()))
    for mine, theirs in zip(
        ours.state_dict()["state"].values(), plain.state_dict()["state"].values(), strict=True
    ):
        assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_a_weight_without_a_gradient_stays_as_it_is():
    network = mlp(7, 3, width=16)
    before = network.head.bias.detach().clone()
    optimiser = ClippedAdam(network.parameters(), 1e-2, 0.0, clip_norm=1.0)
    for step in range(3):
        gradients(network, step, 1.0)
        network.head.bias.grad = None
        optimiser.descend()
    assert torch.equal(network.head.bias, before)
    assert float(optimiser.state[network.head.weight]["step"]) == 3


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_spoils_the_weights_as_in_torch(bad):
    """The loop finds the loss not finite and stops."""
    network = mlp(7, 3, width=16)
    optimiser = ClippedAdam(network.parameters(), 1e-2, 0.0, clip_norm=1.0)
    for step in range(2):
        gradients(network, step, 1.0)
        if step:
            network.head.bias.grad[0] = bad
        optimiser.descend()
    assert not torch.isfinite(network.head.bias[0])
