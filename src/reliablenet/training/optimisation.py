"""`Optimisation`: how the weights follow the gradient; `WeightAverage`: their average along the way.

`ClippedSGD` is descent with momentum, the plain alternative to Adam; `one_cycle` is its learning rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from reliablenet._checks import (
    check_count,
    check_fraction,
    check_positive,
    is_real,
    parameter_error,
)
from reliablenet.training.kernels import ClippedAdam, blend

RISING = 0.25  # part of a cycle in which steps grow
FIRST_STEP, LAST_STEP = 0.1, 0.002  # as shares of the largest
AFTERWARDS = 0.1  # the share that a constrained phase goes on with


@dataclass(frozen=True)
class Optimisation:
    """Settings of the optimiser; the defaults are the paper's.

    Parameters
    ----------
    batch_size : int
    learning_rate : float
    weight_decay : float
    clip_norm : float
        Largest norm of the gradient.
    decoupled : bool
        Shrink the weights by ``learning_rate * weight_decay`` a step (Loshchilov and Hutter 2019),
        instead of an L2 penalty in the gradient.
    averaging : float in [0, 1)
        Weight of the past in an exponential average of the weights, which is what is measured and
        kept; 0 for none. The average begins short and takes on this length.
    momentum : float in [0, 1)
        Above 0, gradient descent with this (Nesterov's) momentum takes the place of Adam.
    one_cycle : bool
        Let the learning rate grow to ``learning_rate`` in the first quarter of training and shrink
        to nearly nothing in the rest (Smith 2018). With a schedule that adapts, that is its longest
        warm-up; constrained epochs then go on with a tenth of it. Needs momentum.
    bfloat16 : bool
        Train in bfloat16 where the device is faster so; weights and evaluation stay in float32.

    Examples
    --------
    >>> from reliablenet.training import Optimisation
    >>> Optimisation.tabular().averaging, Optimisation().averaging
    (0.99, 0.0)
    """

    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    clip_norm: float = 5.0
    decoupled: bool = False
    averaging: float = 0.0
    momentum: float = 0.0
    one_cycle: bool = False
    bfloat16: bool = False

    def __post_init__(self) -> None:
        owner = "Optimisation"
        plain = {
            "batch_size": check_count("batch_size", self.batch_size, owner),
            "learning_rate": check_positive("learning_rate", self.learning_rate, owner),
            "weight_decay": check_positive("weight_decay", self.weight_decay, owner, zero=True),
            "clip_norm": check_positive("clip_norm", self.clip_norm, owner),
        }
        for name, value in plain.items():  # numpy's numbers become Python's: torch insists
            object.__setattr__(self, name, value)
        for name in ("decoupled", "one_cycle", "bfloat16"):
            if getattr(self, name) not in (True, False):
                raise parameter_error(name, owner, "be True or False", getattr(self, name))
        for name in ("averaging", "momentum"):
            if not is_real(getattr(self, name)) or getattr(self, name) != 0.0:
                check_fraction(name, getattr(self, name), owner)
        if self.momentum and self.decoupled:
            raise parameter_error("decoupled", owner, "be False with momentum", self.decoupled)
        if self.one_cycle and not self.momentum:
            raise parameter_error("one_cycle", owner, "be False without momentum", self.one_cycle)

    @classmethod
    def tabular(cls) -> Optimisation:
        """Return the settings for `tabular`, the ensemble for tables."""
        return cls(learning_rate=2e-3, weight_decay=1e-2, decoupled=True, averaging=0.99)

    @classmethod
    def images(cls) -> Optimisation:
        """Return the settings for `cnn5` and `resnet18`: the paper's, and the weights averaged."""
        return cls(averaging=0.99)

    @classmethod
    def fast_images(cls) -> Optimisation:
        """Return the settings for `resnet9`: one cycle of momentum descent, in bfloat16 where that is fast."""
        return cls(
            learning_rate=0.1,
            weight_decay=5e-4,
            averaging=0.99,
            momentum=0.9,
            one_cycle=True,
            bfloat16=True,
        )

    def build(self, parameters: Iterable[nn.Parameter]) -> ClippedAdam | ClippedSGD:
        """Return the optimiser of weights."""
        first = (parameters, self.learning_rate, self.weight_decay, self.clip_norm)
        if self.momentum:
            return ClippedSGD(*first, self.momentum)
        return ClippedAdam(*first, decoupled=self.decoupled)


def one_cycle(done: float) -> float:
    """Return the share of the largest step, after a share of a cycle (Smith 2018); later, a small one.

    Examples
    --------
    >>> from reliablenet.training.optimisation import one_cycle
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
    >>> from torch import nn
    >>> from reliablenet.training.optimisation import WeightAverage
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
        blend(self.average, self._weights, 1.0 - past)

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
