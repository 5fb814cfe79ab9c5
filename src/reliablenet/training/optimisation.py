"""`Optimisation`: how the weights follow the gradient."""

from __future__ import annotations

from dataclasses import dataclass

from reliablenet._checks import (
    check_count,
    check_fraction,
    check_positive,
    is_real,
    parameter_error,
)


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

    Examples
    --------
    >>> Optimisation.tabular().averaging, Optimisation().averaging
    (0.99, 0.0)
    """

    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    clip_norm: float = 5.0
    decoupled: bool = False
    averaging: float = 0.0

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
        if self.decoupled not in (True, False):
            raise parameter_error("decoupled", owner, "be True or False", self.decoupled)
        if not is_real(self.averaging) or self.averaging != 0.0:
            check_fraction("averaging", self.averaging, owner)

    @classmethod
    def tabular(cls) -> Optimisation:
        """Return the settings for `tabular`, the ensemble for tables."""
        return cls(learning_rate=2e-3, weight_decay=1e-2, decoupled=True, averaging=0.99)

    @classmethod
    def images(cls) -> Optimisation:
        """Return the settings for `cnn5` and `resnet18`: the paper's, and the weights averaged."""
        return cls(averaging=0.99)
