"""Schedules: how long to train, where the constraint acts, how it is moved, and when to stop.

`Schedule` is the paper's Algorithm 1, which follows a plan. `AdaptiveSchedule` is ours, which follows the
selection fold. The training loop asks both the same questions, those of `BaseSchedule`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from reliablenet._checks import (
    check_count,
    check_fraction,
    check_positive,
    is_real,
    parameter_error,
)
from reliablenet._warn import warn_user
from reliablenet.certificate.planning import certifiable_jcw
from reliablenet.certificate.threshold import jcw_threshold
from reliablenet.certificate.wording import threshold_text
from reliablenet.risk.surrogate import psi
from reliablenet.training.constraint import JCWConstraint
from reliablenet.training.devices import in_double
from reliablenet.training.history import EpochRecord
from reliablenet.training.steering import FIRST_MULTIPLIER, has_settled, steered_multiplier

if TYPE_CHECKING:
    from reliablenet.training.loop import Run


@dataclass(frozen=True)
class BaseSchedule(ABC):
    """The settings that both schedules have, and the questions that both answer.

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

    # Whether the selection fold decides how many epochs are trained.
    chooses_epochs: ClassVar[bool]
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
        """Tell whether an epoch's weights may be kept; not in a warm-up that stages must follow."""
        return record.stage > 0 or not self.constrained or self.chooses_epochs

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


@dataclass(frozen=True)
class Schedule(BaseSchedule):
    """Algorithm 1 of the paper: warm-up epochs, then stages of constrained epochs at falling tau.

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

    Examples
    --------
    >>> from reliablenet.training import Schedule
    >>> Schedule.paper().epochs, Schedule.erm(100).epochs
    (100, 100)
    """

    chooses_epochs: ClassVar[bool] = False
    first_multiplier: ClassVar[float] = 0.0

    def __new__(cls, *settings: Any, patience: int | None = None, **named: Any) -> Any:
        """Return an `AdaptiveSchedule` where ``patience`` asks for one, as in version 0.1."""
        if patience is None:
            return super().__new__(cls)
        new = "reliablenet.training.AdaptiveSchedule(patience=...)"
        warn_user(
            f"Schedule(patience=...) is now {new}; `patience` will be removed in 0.3.",
            DeprecationWarning,
        )
        return AdaptiveSchedule(**vars(cls(*settings, **named)), patience=patience)

    @classmethod
    def paper(cls) -> Schedule:
        """Return Algorithm 1 with the paper's settings, its stopping rule as written."""
        return cls(above_floor=False)

    @classmethod
    def adaptive(cls) -> AdaptiveSchedule:
        """Return our own schedule, which follows the selection fold; see `AdaptiveSchedule`."""
        return AdaptiveSchedule()

    @classmethod
    def erm(cls, epochs: int = 100, patience: int | None = None) -> BaseSchedule:
        """Return plain empirical risk minimisation: a warm-up and nothing after it.

        With ``patience`` it ends once the selection-fold loss has not fallen for so many epochs.
        """
        check_count("epochs", epochs, "Schedule.erm")
        if patience is None:
            return cls(warmup_epochs=epochs, max_stages=0)
        return AdaptiveSchedule(warmup_epochs=epochs, max_stages=0, patience=patience)

    def ends_stage(self, epoch: int) -> bool:
        """Tell whether an epoch is the last of a constrained stage."""
        constrained = epoch - self.warmup_epochs
        return constrained > 0 and constrained % self.epochs_per_stage == 0

    def aim(self, alpha: float, rho: float, selection_rows: int) -> float:
        """Return alpha itself."""
        return alpha

    def find_threshold(self, logits: Tensor, y: Tensor, aim: float) -> float:
        """Return a quantile of the confidences of the wrong rows."""
        return training_threshold(logits, y, self.threshold_quantile)

    def is_better_within_budget(self, record: EpochRecord, best: EpochRecord) -> bool:
        """Prefer the lower loss."""
        return record.loss_selection < best.loss_selection

    def after_batch(self, constraint: JCWConstraint) -> None:
        """Move the multiplier along the violation of the batch."""
        constraint.step()

    def after_epoch(self, run: Run) -> None:
        """Lower tau at the end of a stage, and stop if the bracket was tight."""
        if run.constraint is None or not self.ends_stage(len(run.history.records)):
            return
        tau = run.constraint.tau
        floor = run.settings.m1 * tau if self.above_floor else 0.0
        if run.bracket_width(tau) - floor <= self.tolerance:
            run.history.stopped = f"the bracket is tight at tau = {tau:g}"
        run.constraint.tighten()


@dataclass(frozen=True)
class AdaptiveSchedule(BaseSchedule):
    """Train as long as it pays, and constrain only where that is needed.

    The warm-up ends once the selection-fold loss has not fallen for ``patience`` epochs, and its best
    weights are taken. If their selection-fold JCW at the threshold is within what can be certified,
    training is over. Else the constraint acts, at one tau: the first of the paper's at which the
    surrogate exceeds the hard JCW of the selection fold by no more than half the aim. Once an epoch the
    hard JCW moves the multiplier. Training ends when for ``patience`` epochs JCW has been close to the
    aim, or below it without a multiplier. `History.stopped` tells which. A constrained epoch is kept only
    if it serves better than the warm-up on the selection fold, so that training never ends worse.

    With groups, the threshold is that of all rows together, and the constraint acts where a group is above
    its aim; a multiplier follows the JCW of each group, and it is the worst group that has to be better.

    Parameters
    ----------
    warmup_epochs : int
        The longest warm-up.
    epochs_per_stage, max_stages : int
        Their product is the largest number of constrained epochs; no stage means plain training.
    tau, tau_min, tau_decay : float in (0, 1)
        The smoothing levels to choose from.
    tolerance : float
        How close to the aim JCW settles, as a share of the aim.
    multiplier_max : float
        Cap of the multiplier.
    patience : int
        Epochs without a better one after which a phase ends.
    above_floor, threshold_quantile, dual_rate, ema
        Settings of the paper's schedule that do nothing here.

    Examples
    --------
    >>> from reliablenet.training import AdaptiveSchedule
    >>> AdaptiveSchedule(patience=3).epochs
    120
    """

    warmup_epochs: int = 60
    epochs_per_stage: int = 60
    max_stages: int = 1
    tolerance: float = 0.1
    patience: int = 6

    chooses_epochs: ClassVar[bool] = True
    first_multiplier: ClassVar[float] = FIRST_MULTIPLIER

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("patience", self.patience, "AdaptiveSchedule")
        check_count("warmup_epochs", self.warmup_epochs, "AdaptiveSchedule")

    def aim(self, alpha: float, rho: float, selection_rows: int) -> float:
        """Return what a fold of so many rows can be expected to certify."""
        # rows too few for any certificate still leave something to aim at
        return certifiable_jcw(selection_rows, alpha, rho) or alpha / 2

    def find_threshold(self, logits: Tensor, y: Tensor, aim: float) -> float:
        """Return the most permissive legal threshold whose JCW is within the aim; else 1."""
        proba = torch.softmax(in_double(logits), -1).cpu().numpy()
        found = jcw_threshold(proba, y.cpu().numpy(), aim)
        return min(max(found, _lowest_threshold(logits)), 1.0)

    def first_tau(self, run: Run) -> float:
        """Return the first tau at which the surrogate exceeds JCW by no more than half the aim."""
        g, m1, m2, tau = run.selection_violations(), run.settings.m1, run.settings.m2, self.tau
        parts = [(g[part.rows], part.aim) for part in run.parts if part.n]
        held = [(one, float((one > 0).double().mean()), aim) for one, aim in parts]
        while tau > self.tau_min:
            if all(float(psi(one, tau, m1, m2)) - hard <= aim / 2 for one, hard, aim in held):
                break
            tau *= self.tau_decay
        return max(tau, self.tau_min)

    def is_better(self, record: EpochRecord, best: EpochRecord) -> bool:
        """Compare with the warm-up too: a constrained epoch that serves worse never replaces it."""
        if record.stage > 0 and not math.isnan(record.attainable):
            return record.attainable > best.attainable
        if best.stage == 0 < record.stage:
            if record.feasible:
                return record.throughput > 0.0
            return not record.at_chance and record.jcw_selection < best.jcw_selection
        return super().is_better(record, best)

    def is_better_within_budget(self, record: EpochRecord, best: EpochRecord) -> bool:
        """Prefer the larger share of rows acted on and right."""
        return record.throughput > best.throughput

    def after_batch(self, constraint: JCWConstraint) -> None:
        """Leave the multiplier as it is until the end of the epoch."""

    def after_epoch(self, run: Run) -> None:
        """Decide from what the selection fold shows whether warm-up or training are over."""
        history, record = run.history, run.history.records[-1]
        idle = record.epoch - history.chosen_epoch
        if run.constraint is None:
            if idle >= self.patience or record.epoch == self.warmup_epochs:
                self._end_warmup(run, record.epoch, idle)
            return
        constrained = [one for one in history.records if one.stage > 0]
        courses = [one.by_budget() for one in constrained]
        steered = [
            steered_multiplier([course[number][0] for course in courses], part.aim)
            for number, part in enumerate(run.parts)
        ]
        run.constraint.set_multiplier(steered if len(steered) > 1 else steered[0])
        if len(constrained) >= self.patience and all(
            has_settled(*one, part.aim, max(self.tolerance * part.aim, 1.0 / max(part.n, 1)))
            for course in courses[-self.patience :]
            for one, part in zip(course, run.parts, strict=True)
        ):
            history.stopped = (
                f"JCW has settled at {record.jcw_selection:.4f}, with a multiplier of "
                f"{record.multiplier:.2g}"
            )
        elif min(idle, len(constrained)) >= 2 * self.patience:
            if history.chosen().feasible:
                history.stopped = f"no epoch within the aim was better for {idle} epochs"
            elif not math.isnan(record.attainable):
                history.stopped = f"no epoch served better for {idle} epochs"

    def _end_warmup(self, run: Run, epoch: int, idle: int) -> None:
        """Return to the best weights of the warm-up, and see whether they need the constraint."""
        history = run.history
        run.schedule = replace(self, warmup_epochs=epoch)
        run.return_to_kept()
        if not self.constrained:
            if idle:
                history.stopped = f"the selection-fold loss has not fallen for {idle} epochs"
            return
        run.fix_threshold()
        best = run.measure_again(history.chosen_epoch)
        if best.feasible:
            history.stopped = (
                f"the budget holds without the constraint: selection-fold JCW is "
                f"{best.jcw_selection:.4f} at threshold {threshold_text(history.threshold)}, "
                f"where {run.settings.aim:.4f} can be certified"
            )


def schedule_from_dict(settings: dict[str, Any]) -> BaseSchedule:
    """Return the schedule that has these settings, as model files hold them.

    Files of version 0.1 have a ``patience`` in every schedule: none in the paper's.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    return AdaptiveSchedule(**given) if "patience" in given else Schedule(**given)


def training_threshold(logits: Tensor, y: Tensor, quantile: float) -> float:
    """Return the quantile of the confidences of the wrong rows (the paper's epsilon*).

    Without a wrong row even accepting everything keeps the budget, so the answer is then the
    smallest legal threshold, the first number above 1/K.
    """
    top, predicted = torch.softmax(in_double(logits), -1).max(-1)
    wrong = top[predicted != y.to(top.device)].cpu().numpy()
    lowest = _lowest_threshold(logits)
    return max(float(np.quantile(wrong, quantile)), lowest) if len(wrong) else lowest


def _lowest_threshold(logits: Tensor) -> float:
    return float(np.nextafter(1.0 / logits.shape[-1], 1.0))
