"""`BaseSchedule`: the settings that both schedules have, and what the training loop asks of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from torch import Tensor

from reliablenet._checks import (
    check_count,
    check_fraction,
    check_positive,
    is_real,
    parameter_error,
)
from reliablenet.training.constraint import JCWConstraint
from reliablenet.training.history import EpochRecord

if TYPE_CHECKING:
    from reliablenet.training.loop import Run


@dataclass(frozen=True)
class BaseSchedule(ABC):
    """What the two schedules have in common. Loop and estimators ask these questions, never which it is.

    Settings keep one order and one set of names: model files and benchmark results hold them.
    """

    warmup_epochs: int = 10
    epochs_per_stage: int = 6
    max_stages: int = 15
    tau: float = 0.5
    tau_min: float = 0.01
    tau_decay: float = 0.65
    tolerance: float = 1e-4
    above_floor: bool = True
    threshold_quantile: float = 0.8
    dual_rate: float = 1.1
    ema: float = 0.75
    multiplier_max: float = 50.0

    # What the multiplier is when the constraint begins to act.
    first_multiplier: ClassVar[float]

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_count("warmup_epochs", self.warmup_epochs, owner, minimum=0)
        check_count("epochs_per_stage", self.epochs_per_stage, owner)
        check_count("max_stages", self.max_stages, owner, minimum=0)
        for name in ("tau", "tau_min", "tau_decay", "threshold_quantile"):
            check_fraction(name, getattr(self, name), owner)
        if self.tau_min > self.tau:
            raise parameter_error("tau_min", owner, f"not exceed tau = {self.tau}", self.tau_min)
        check_positive("tolerance", self.tolerance, owner, zero=True)
        check_positive("dual_rate", self.dual_rate, owner)
        check_positive("multiplier_max", self.multiplier_max, owner)
        if not is_real(self.ema) or self.ema != 0.0:
            check_fraction("ema", self.ema, owner)
        if self.epochs == 0:
            raise parameter_error("warmup_epochs", owner, "be at least 1 without stages", 0)

    @property
    def epochs(self) -> int:
        """The largest number of epochs."""
        # as Python's: numpy's small integers would overflow
        return int(self.warmup_epochs) + int(self.epochs_per_stage) * int(self.max_stages)

    @property
    def constrained(self) -> bool:
        """Whether the constraint may act; if not, this is plain training."""
        return bool(self.max_stages)

    def stage_of(self, epoch: int) -> int:
        """Return the stage, from 1, that an epoch (from 1) belongs to; 0 is the warm-up."""
        constrained = epoch - self.warmup_epochs
        return 0 if constrained <= 0 else 1 + (constrained - 1) // self.epochs_per_stage

    def may_keep(self, record: EpochRecord) -> bool:
        """Tell whether an epoch's weights may be kept."""
        return record.stage > 0 or self.keeps_warmup

    def is_better(self, record: EpochRecord, best: EpochRecord) -> bool:
        """Tell whether the weights of an epoch are to be kept rather than the best so far."""
        if best.stage == 0 < record.stage:
            return True  # a constrained epoch replaces the warm-up that needed it
        if record.stage == 0:
            return record.loss_selection < best.loss_selection
        if record.feasible != best.feasible:
            return record.feasible
        if record.feasible:
            return self.is_better_within_budget(record, best)
        if record.jcw_selection != best.jcw_selection:
            return record.jcw_selection < best.jcw_selection
        return record.loss_selection < best.loss_selection

    def first_tau(self, run: Run) -> float:
        """Return the smoothing level to begin with."""
        return self.tau

    @property
    @abstractmethod
    def keeps_warmup(self) -> bool:
        """Whether training may end with weights of the warm-up, as where the constraint does not serve."""

    @abstractmethod
    def without_constraint(self) -> BaseSchedule:
        """Return the same schedule as plain training."""

    @abstractmethod
    def check_keep(self, keep: str, parameter: str, owner: str, remedy: str = "") -> None:
        """Refuse a choice of the weights to keep, "selection" or "last", that does not go with this."""

    @abstractmethod
    def cycle_done(self, epochs: float, *, constrained: bool) -> float:
        """Return the share of a cycle of the learning rate that is done after so many epochs."""

    @abstractmethod
    def leaves_threshold_open(self, given: float | None) -> bool:
        """Tell whether the threshold is chosen when training is over, so that an epoch counts by what it could serve.

        ``given`` is the training threshold that the user has set, if any.
        """

    @abstractmethod
    def aim(self, alpha: float, rho: float, selection_rows: int) -> float:
        """Return the JCW that training is to keep on a selection fold of so many rows."""

    @abstractmethod
    def find_threshold(self, logits: Tensor, y: Tensor, aim: float) -> float:
        """Return the training threshold, from the selection fold after the warm-up."""

    @abstractmethod
    def is_better_within_budget(self, record: EpochRecord, best: EpochRecord) -> bool:
        """Compare two constrained epochs that both keep the budget on the selection fold."""

    @abstractmethod
    def after_batch(self, constraint: JCWConstraint) -> None:
        """Do to the constraint what follows a constrained batch."""

    @abstractmethod
    def after_epoch(self, run: Run) -> None:
        """Decide what follows an epoch that was measured and perhaps kept."""


def lowest_threshold(logits: Tensor) -> float:
    """Return the smallest legal threshold, the first number above 1/K."""
    return float(np.nextafter(1.0 / logits.shape[-1], 1.0))
