from __future__ import annotations

import pytest
import torch
from torch import nn

from reliablenet.errors import InvalidParameterError
from reliablenet.training import Network, mlp


def test_the_default_is_the_papers_10_128_128_2_network():
    sizes = [tuple(p.shape) for p in mlp(10, 2).parameters()]
    assert sizes == [(128, 10), (128,), (128, 128), (128,), (2, 128), (2,)]


@pytest.mark.parametrize(("width", "depth"), [(8, 1), (32, 3)])
def test_width_and_depth_are_those_of_the_hidden_layers(width, depth):
    network = mlp(4, 3, width=width, depth=depth)
    hidden = [layer for layer in network.body if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in hidden] == [width] * depth
    assert network(torch.zeros(5, 4)).shape == (5, 3)


def test_logits_are_linear_in_features_that_are_not_negative():
    network = mlp(4, 2, width=16)
    x = torch.randn(50, 4)
    features = network.body(x)
    assert (features >= 0).all()
    torch.testing.assert_close(network(x), features @ network.head.weight.T + network.head.bias)


def test_another_head_can_be_put_on_the_same_body():
    network = mlp(4, 2, width=16)
    wider = Network(network.body, nn.Linear(16, 5))
    assert wider(torch.zeros(3, 4)).shape == (3, 5)
    assert wider.body is network.body


def test_the_same_seed_initialises_the_same_weights():
    weights = []
    for _ in range(2):
        with torch.random.fork_rng([]):
            torch.manual_seed(3)
            weights.append(mlp(4, 2).head.weight)
    assert torch.equal(*weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": 0, "n_classes": 2}, "`n_features` of mlp"),
        ({"n_features": 3, "n_classes": 1}, "`n_classes` of mlp must be .* at least 2; got 1"),
        ({"n_features": 3, "n_classes": 2, "width": 0}, "`width` of mlp"),
        ({"n_features": 3, "n_classes": 2, "depth": 0}, "`depth` of mlp"),
        ({"n_features": 3.0, "n_classes": 2}, "`n_features` of mlp must be a whole number"),
    ],
)
def test_sizes_outside_their_domain_are_refused(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        mlp(**arguments)
