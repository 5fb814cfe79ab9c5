from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reliablenet.risk.members import cross_entropy_of_members
from reliablenet.training import JCWConstraint, chains, mlp, tabular
from reliablenet.training.chains import cross_entropy_gradient, find_chain
from reliablenet.training.networks import BatchEnsemble, PiecewiseLayer

# Linear layers with ReLU between them


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
def test_logits_and_gradients_of_layers_have_the_bits_of_autograd(n, n_classes, depth):
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


# Ensembles


def ensemble_of(bins: list[int], n_classes: int, depth: int, dropout: float) -> nn.Module:
    pieces = PiecewiseLayer(bins)
    ensemble = tabular(pieces.width, n_classes, width=24, depth=depth, dropout=dropout)
    network = nn.Sequential(pieces, ensemble) if any(bins) else ensemble
    return network.train()


@pytest.mark.parametrize("n", [1, 100, 256])
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("bins", [[0, 0, 0, 0], [0, 8, 3, 0]])
def test_an_ensemble_has_the_bits_of_autograd(n, n_classes, depth, dropout, bins):
    network = ensemble_of(bins, n_classes, depth, dropout)
    twin = copy.deepcopy(network)
    X, y = batch(n, len(bins), n_classes)
    torch.manual_seed(n)
    logits = twin(X)
    expected = cross_entropy_of_members(logits, y)
    expected.backward()
    torch.manual_seed(n)
    chain = find_chain(network)
    found = chain.forward(X)
    assert torch.equal(found, logits)
    loss, gradient = cross_entropy_gradient(found, y)
    assert torch.equal(loss, expected)
    chain.backward(gradient)
    assert same_gradients(network, twin)
    assert all(weight.grad.abs().max() > 0 for weight in network.parameters())


def test_a_constrained_ensemble_has_the_bits_of_autograd_batch_after_batch():
    network = ensemble_of([0, 8, 3], 3, 2, 0.1)
    twin = copy.deepcopy(network)
    chain = find_chain(network)
    for n in (64, 20, 64):
        X, y = batch(n, 3, 3)
        constraint = JCWConstraint(threshold=0.4, rows=100)
        constraint.set_multiplier(2.0)
        twin.zero_grad()
        torch.manual_seed(n)
        expected = constraint.backward(twin(X), y)
        torch.manual_seed(n)
        found = constraint.differentiate(chain.forward(X), y)
        chain.backward(found.gradient)
        assert torch.equal(found.total, expected.total)
        assert same_gradients(network, twin)


def test_the_chain_of_an_ensemble_follows_weights_that_change_in_place():
    network = ensemble_of([0, 0, 0], 2, 2, 0.0)
    chain, (X, _) = find_chain(network), batch(9, 3, 2)
    network.load_state_dict(ensemble_of([0, 0, 0], 2, 2, 0.0).state_dict())
    assert torch.equal(chain.forward(X), network(X))


# Their loss


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 64, 1000])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 1000])
def test_cross_entropy_and_its_gradient_have_the_bits_of_autograd(n_classes, n, dtype):
    generator = torch.Generator().manual_seed(n_classes)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=dtype)
    y = torch.randint(n_classes, (n,), generator=generator)
    loss, gradient = cross_entropy_gradient(logits, y)
    logits.requires_grad_()
    plain = cross_entropy(logits, y)
    plain.backward()
    assert torch.equal(loss, plain.detach())
    assert torch.equal(gradient, logits.grad)


# What is no chain


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


def frozen_ensemble() -> nn.Module:
    ensemble = tabular(3, 2)
    ensemble.head_bias.requires_grad_(False)
    return ensemble


def watched_ensemble() -> nn.Module:
    ensemble = tabular(3, 2)
    ensemble.shared[0].register_forward_hook(lambda *_: None)
    return ensemble


def doubled_ensemble() -> nn.Module:
    class Doubled(BatchEnsemble):
        def forward(self, x):
            return 2.0 * super().forward(x)

    return Doubled(3, 2, width=8, depth=2, members=2, dropout=0.0)


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
        frozen_ensemble(),
        watched_ensemble(),
        doubled_ensemble(),
        nn.Sequential(nn.ReLU(), tabular(3, 2)),
        nn.Sequential(PiecewiseLayer([4, 0]), PiecewiseLayer([1]), tabular(3, 2)),
        nn.Sequential(tabular(3, 2), nn.Linear(2, 2)),
    ],
)
def test_any_other_network_is_left_to_autograd(network):
    assert find_chain(network) is None


@pytest.mark.parametrize("network", [mlp(5, 2), tabular(5, 2)])
@pytest.mark.parametrize("absent", ["RELU_BACKWARD", "RELU_BACKWARD_INTO", "LOG_SOFTMAX_BACKWARD"])
def test_without_a_backward_pass_of_torchs_own_all_is_left_to_autograd(
    monkeypatch, network, absent
):
    assert find_chain(network) is not None
    monkeypatch.setattr(chains, absent, None)
    assert find_chain(network) is None


@pytest.mark.parametrize("names", ["HOOKS_OF_MODULES", "HOOKS_OF_WEIGHTS"])
def test_where_hooks_cannot_be_seen_all_is_left_to_autograd(monkeypatch, names):
    monkeypatch.setattr(chains, names, ("_hooks_by_a_name_of_tomorrow",))
    assert find_chain(mlp(5, 2)) is None
