from __future__ import annotations

import math

import pytest
import torch

from reliablenet.errors import InvalidParameterError
from reliablenet.training.ensemble import average_members, tabular


def test_each_member_is_a_network_of_its_own_with_weights_made_of_shared_ones():
    torch.manual_seed(0)
    network = tabular(5, 3, width=7, depth=3, members=4, dropout=0.0)
    for parameter in network.parameters():  # no factor is 1 any more
        parameter.data += 0.1 * torch.randn_like(parameter)
    X = torch.randn(6, 5)
    together = network.train()(X)
    assert together.shape == (6, 4, 3)
    for member in range(4):
        hidden = X
        for layer, weights in enumerate(network.shared):
            matrix = weights.weight * network.after[layer][member].T
            if layer:
                matrix = matrix * network.before[layer - 1][member]
            hidden = torch.relu(hidden @ matrix.T + network.bias[layer][member])
        alone = hidden @ network.head[member] + network.head_bias[member]
        torch.testing.assert_close(together[:, member], alone)


def test_evaluation_gives_the_mean_of_the_members_probabilities():
    torch.manual_seed(0)
    network = tabular(5, 3, members=4, dropout=0.0)
    X = torch.randn(6, 5)
    mean = torch.softmax(network.train()(X), -1).mean(1)
    torch.testing.assert_close(torch.softmax(network.eval()(X), -1), mean)


def test_confident_members_do_not_merge_into_ties():
    logits = torch.stack([torch.tensor([30.0 + i / 8, 0.0]) for i in range(8)])
    proba = torch.softmax(average_members(logits.unsqueeze(1).repeat(1, 4, 1)).double(), -1)
    assert len(set(proba[:, 1].tolist())) == 8
    assert proba[0, 1] == pytest.approx(1 / (1 + math.exp(30.0)), rel=1e-5)


def test_members_differ_from_the_start_and_dropout_acts_in_training_alone():
    torch.manual_seed(0)
    network = tabular(5, 2, dropout=0.5)
    X = torch.randn(3, 5)
    members = network.train()(X)
    assert len(set(members[0, :, 0].tolist())) == 8
    assert not torch.equal(members, network(X))
    assert torch.equal(network.eval()(X), network(X))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"members": 0}, "`members` of tabular"),
        ({"dropout": 1.0}, r"`dropout` of tabular must lie in \[0, 1\)"),
        ({"width": 1.5}, "`width` of tabular"),
        ({"n_classes": 1}, "`n_classes` of tabular"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(InvalidParameterError, match=message):
        tabular(**({"n_features": 3, "n_classes": 2} | setting))
