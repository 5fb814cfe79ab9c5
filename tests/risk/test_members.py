from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from reliablenet.risk.members import average_members, cross_entropy_of_members


def test_the_average_is_that_of_probabilities():
    logits = torch.randn(6, 4, 3, generator=torch.Generator().manual_seed(0))
    mean = torch.softmax(logits, -1).mean(1)
    torch.testing.assert_close(average_members(logits).exp(), mean)


def test_confident_members_do_not_merge_into_ties():
    logits = torch.stack([torch.tensor([30.0 + i / 8, 0.0]) for i in range(8)])
    proba = torch.softmax(average_members(logits.unsqueeze(1).repeat(1, 4, 1)).double(), -1)
    assert len(set(proba[:, 1].tolist())) == 8
    assert proba[0, 1] == pytest.approx(1 / (1 + math.exp(30.0)), rel=1e-5)


def test_the_loss_is_the_mean_of_the_members():
    generator = torch.Generator().manual_seed(0)
    logits, y = torch.randn(6, 4, 3, generator=generator), torch.arange(6) % 3
    each = [cross_entropy(logits[:, member], y) for member in range(4)]
    torch.testing.assert_close(cross_entropy_of_members(logits, y), torch.stack(each).mean())
