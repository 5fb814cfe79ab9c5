"""`ClippedSGD`: gradient descent with momentum; `one_cycle`: how its step grows and shrinks again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

RISING = 0.25  # part of a cycle in which steps grow
FIRST_STEP, LAST_STEP = 0.1, 0.002  # as shares of the largest
AFTERWARDS = 0.1  # the share that a constrained phase goes on with


def one_cycle(done: float) -> float:
    """Return the share of the largest step, after a share of a cycle (Smith 2018); later, a small one.

    Examples
    --------
    >>> from reliablenet.training.descent import one_cycle
    >>> [round(one_cycle(done), 3) for done in (0.0, 0.25, 0.625, 1.0)]
    [0.1, 1.0, 0.501, 0.1]
    """
    if done >= 1.0:
        return AFTERWARDS
    if done < RISING:
        return FIRST_STEP + (1.0 - FIRST_STEP) * done / RISING
    return LAST_STEP + (1.0 - LAST_STEP) * (1.0 - done) / (1.0 - RISING)


class ClippedSGD:
    """Gradient descent with Nesterov's momentum, whose `descend` clips the norm of the gradient first.

    It has the bits of `torch.optim.SGD`, and what the training loop asks of an optimiser.

    Parameters
    ----------
    parameters : iterable of nn.Parameter
    learning_rate, weight_decay, clip_norm, momentum : float
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        weight_decay: float,
        clip_norm: float,
        momentum: float,
    ) -> None:
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.momentum = momentum
        self._weights = list(parameters)
        self._velocities: dict[int, Tensor] = {}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for weight in self._weights:
            weight.grad = None

    def descend(self) -> None:
        """Clip the gradients that the weights hold, and move the weights."""
        nn.utils.clip_grad_norm_(self._weights, self.clip_norm)
        with torch.no_grad():
            for number, weight in enumerate(self._weights):
                if weight.grad is None:
                    continue
                gradient = weight.grad.add_(weight, alpha=self.weight_decay)
                velocity = self._velocities.get(number)
                if velocity is None:
                    velocity = self._velocities[number] = gradient.clone()
                else:
                    velocity.mul_(self.momentum).add_(gradient)
                gradient.add_(velocity, alpha=self.momentum)
                weight.add_(gradient, alpha=-self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` takes, in the form of torch's optimisers."""
        held = {number: {"velocity": one} for number, one in self._velocities.items()}
        return {"state": held}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take the velocities of an earlier run."""
        self._velocities = {number: held["velocity"] for number, held in state["state"].items()}
