from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reliablenet.training import JCWConstraint, mlp
from reliablenet.training.dense import find_chain


def batch(n: int, n_features: int, n_classes: int):
    generator = torch.Generator().manual_seed(n)
    X = torch.randn(n, n_features, generator=generator)
    return X, torch.randint(n_classes, (n,), generator=generator)


def same_gradients(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a.grad, b.grad) for a, b in pairs)


@pytest.mark.parametrize("n", [1, 7, 256])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_logits_and_gradients_have_the_bits_of_autograd(n, n_classes, depth):
    network = mlp(13, n_classes, width=32, depth=depth)
    twin = copy.deepcopy(network)
    X, y = batch(n, 13, n_classes)
    logits = twin(X)
    (gradient,) = torch.autograd.grad(cross_entropy(logits, y), logits, retain_graph=True)
    logits.backward(gradient)
    chain = find_chain(network)
    assert torch.equal(chain.forward(X), logits)
    chain.backward(gradient)
    assert same_gradients(network, twin)
    assert max(weight.grad.abs().max() for weight in network.parameters()) > 0


def test_a_second_batch_replaces_the_gradients_of_the_first():
    network = mlp(13, 2, width=32)
    twin = copy.deepcopy(network)
    chain = find_chain(network)
    for n in (64, 20):
        X, y = batch(n, 13, 2)
        twin.zero_grad()
        constraint = JCWConstraint(rows=100)
        constraint.backward(twin(X), y)
        chain.backward(constraint.differentiate(chain.forward(X), y).gradient)
        assert same_gradients(network, twin)


def test_the_chain_follows_weights_that_change_in_place():
    network = mlp(5, 2, width=8)
    chain, (X, _) = find_chain(network), batch(9, 5, 2)
    network.load_state_dict(mlp(5, 2, width=8).state_dict())
    assert torch.equal(chain.forward(X), network(X))


def test_a_sequence_of_one_layer_is_a_chain():
    layer = nn.Linear(3, 2)
    X, _ = batch(4, 3, 2)
    assert torch.equal(find_chain(nn.Sequential(layer)).forward(X), layer(X))


def frozen() -> nn.Module:
    network = mlp(5, 2)
    network.head.bias.requires_grad_(False)
    return network


def watched() -> nn.Module:
    network = mlp(5, 2)
    network.body.register_forward_hook(lambda *_: None)
    return network


def watched_weight() -> nn.Module:
    network = mlp(5, 2)
    network.head.weight.register_hook(lambda gradient: gradient)
    return network


def tied() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer)


class Reversed(nn.Sequential):
    def forward(self, x):
        return -super().forward(x)


@pytest.mark.parametrize(
    "network",
    [
        frozen(),
        watched(),
        watched_weight(),
        tied(),
        Reversed(nn.Linear(3, 2)),
        nn.Sequential(),
        nn.Sequential(nn.Linear(3, 2), nn.ReLU()),
        nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Dropout(), nn.Linear(3, 2)),
        nn.Sequential(nn.Linear(3, 2, bias=False)),
    ],
)
def test_any_other_network_is_left_to_autograd(network):
    assert find_chain(network) is None
