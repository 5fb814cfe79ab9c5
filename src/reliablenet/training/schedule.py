"""`Schedule`: how long to warm up, how fast to tighten the surrogate, when to stop."""

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
class Schedule:
    """Warm-up epochs, then stages of constrained epochs at falling tau.

    Parameters
    ----------
    warmup_epochs : int
        Epochs of plain training before the threshold is fixed.
    epochs_per_stage, max_stages : int
        Constrained epochs at one tau, and the largest number of taus; no stage means plain ERM.
    tau, tau_min, tau_decay : float in (0, 1)
        First and last smoothing level, and the factor between stages.
    tolerance : float
        Training stops after a stage whose bracket width is at most this.
    above_floor : bool
        Compare the width less its floor m1 tau with the tolerance. Without this (as the paper
        writes it) no tolerance below m1 tau can be met, and every stage runs.
    threshold_quantile : float in (0, 1)
        Quantile of the confidences of wrong selection rows that becomes the training threshold.
    dual_rate, ema, multiplier_max : float
        See `JCWConstraint`.
    patience : int, optional
        Makes the schedule adapt; see `adaptive`. All numbers of epochs are then the largest.

    Examples
    --------
    >>> Schedule.paper().epochs, Schedule.erm(100).epochs
    (100, 100)
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
    patience: int | None = None

    def __post_init__(self) -> None:
        owner = "Schedule"
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
        if self.patience is not None:
            check_count("patience", self.patience, owner)
        if self.epochs == 0 or (self.patience and self.warmup_epochs == 0):
            raise parameter_error(
                "warmup_epochs", owner, "be at least 1 without stages or with patience", 0
            )

    @classmethod
    def paper(cls) -> Schedule:
        """Return Algorithm 1 with the paper's settings, its stopping rule as written."""
        return cls(above_floor=False)

    @classmethod
    def adaptive(cls) -> Schedule:
        """Return a schedule that trains as long as it pays, and constrains only where that is needed.

        The warm-up ends once the selection-fold loss has not fallen for ``patience`` epochs, and
        its best weights are taken. If their selection-fold JCW at the threshold is within what can
        be certified, training is over. Else the constraint acts, in one stage: tau is the first of
        the paper's at which the surrogate exceeds the hard JCW of the selection fold by no more
        than half the aim; once an epoch the hard JCW moves the multiplier; and it ends when for
        ``patience`` epochs JCW has been within ``tolerance`` of the aim (as a share of it), or
        below it without a multiplier. `History.stopped` tells which.
        """
        return cls(warmup_epochs=60, epochs_per_stage=60, max_stages=1, tolerance=0.1, patience=6)

    @classmethod
    def erm(cls, epochs: int = 100, patience: int | None = None) -> Schedule:
        """Return plain empirical risk minimisation: a warm-up and nothing after it.

        With ``patience`` it ends once the selection-fold loss has not fallen for so many epochs.
        """
        check_count("epochs", epochs, "Schedule.erm")
        return cls(warmup_epochs=epochs, max_stages=0, patience=patience)

    @property
    def epochs(self) -> int:
        """The largest number of epochs."""
        # as Python's: numpy's small integers would overflow
        return int(self.warmup_epochs) + int(self.epochs_per_stage) * int(self.max_stages)

    def stage_of(self, epoch: int) -> int:
        """Return the stage, from 1, that an epoch (from 1) belongs to; 0 is the warm-up."""
        constrained = epoch - self.warmup_epochs
        return 0 if constrained <= 0 else 1 + (constrained - 1) // self.epochs_per_stage

    def ends_stage(self, epoch: int) -> bool:
        """Tell whether an epoch is the last of a constrained stage."""
        constrained = epoch - self.warmup_epochs
        return constrained > 0 and constrained % self.epochs_per_stage == 0
