"""Small training problems, the same for every test of this folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from reliablenet.datasets import SyntheticBand
from reliablenet.training import Rows, mlp

FEATURES = 5


@pytest.fixture(scope="session")
def folds() -> tuple[Rows, Rows]:
    """Training and selection rows of a small Synthetic Band; the last of three batches is short."""
    band = SyntheticBand(random_state=0, dimension=FEATURES)
    samples = (band.sample(600), band.sample(300))
    return tuple(Rows(torch.from_numpy(s.X).float(), torch.from_numpy(s.y)) for s in samples)


@pytest.fixture(scope="session")
def new_network() -> Callable[..., nn.Module]:
    """A function that returns the same fresh network at every call, dropout in it if wanted."""

    def build(dropout: float = 0.0) -> nn.Module:
        with torch.random.fork_rng([]):
            torch.manual_seed(7)
            network = mlp(FEATURES, 2, width=16)
        if dropout:
            network.body.append(nn.Dropout(dropout))
        return network

    return build
