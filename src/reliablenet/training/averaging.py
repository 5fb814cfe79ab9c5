"""`WeightAverage`: the average of a network's weights along training, which wanders less than they."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """An exponential average of weights.

    After t steps the past has the weight ``min(decay, (1 + t) / (10 + t))``, so that the first
    weights, which know nothing, are soon forgotten.

    Parameters
    ----------
    network : nn.Module
        Its parameters are averaged, and what it keeps in buffers beside them, such as the running
        statistics of batch normalisation, which belong to the weights.
    decay : float in (0, 1)

    Attributes
    ----------
    average : list of Tensor
        Of the network's parameters, then of its buffers, those that are not whole numbers.
    steps : int

    Examples
    --------
    >>> layer = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(layer.weight, 0.0)
    >>> mean = WeightAverage(layer, 0.9)
    >>> _ = nn.init.constant_(layer.weight, 11.0)
    >>> mean.update()
    >>> with mean.in_place():
    ...     layer.weight.item()
    9.0
    >>> layer.weight.item()
    11.0
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        held = [*network.parameters(), *network.buffers()]
        self._weights = [weight.detach() for weight in held if weight.is_floating_point()]
        self.average = [weight.clone() for weight in self._weights]

    def update(self) -> None:
        """Take in the weights of this moment."""
        self.steps += 1
        past = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self.average, self._weights, 1.0 - past)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the average into the network while this lasts."""
        own = [weight.clone() for weight in self._weights]
        _copy(self.average, self._weights)
        try:
            yield
        finally:
            _copy(own, self._weights)

    def reset(self) -> None:
        """Make the weights that the network has now the average."""
        _copy(self._weights, self.average)


def _copy(sources: list[Tensor], targets: list[Tensor]) -> None:
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)
