"""`Schedule`: Algorithm 1 of the paper, which follows a plan of warm-up and stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from reliablenet._checks import check_count
from reliablenet._warn import warn_user
from reliablenet.risk.event import compute_violation
from reliablenet.risk.surrogate import gap
from reliablenet.training import ranks
from reliablenet.training.adaptive import AdaptiveSchedule
from reliablenet.training.base_schedule import BaseSchedule, lowest_threshold
from reliablenet.training.constraint import JCWConstraint
from reliablenet.training.devices import in_double
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.history import EpochRecord

if TYPE_CHECKING:
    from reliablenet.training.loop import Run


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

    @property
    def keeps_warmup(self) -> bool:
        """Only without stages, which else must follow it."""
        return not self.constrained

    def without_constraint(self) -> Schedule:
        """Return as many epochs of plain training."""
        return replace(self, warmup_epochs=self.epochs, max_stages=0)

    def check_keep(self, keep: str, parameter: str, owner: str, remedy: str = "") -> None:
        """Allow both."""

    def cycle_done(self, epochs: float, *, constrained: bool) -> float:
        """Count all epochs as one cycle."""
        return epochs / self.epochs

    def leaves_threshold_open(self, given: float | None) -> bool:
        """Say no: epochs are judged at the training threshold."""
        return False

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
        if bracket_width(run, tau) - floor <= self.tolerance:
            run.history.stopped = f"the bracket is tight at tau = {tau:g}"
        run.constraint.tighten()


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
    lowest = lowest_threshold(logits)
    return max(float(np.quantile(wrong, quantile)), lowest) if len(wrong) else lowest


def bracket_width(run: Run, tau: float) -> float:
    """Return the gap over the training rows at the weights of this moment."""
    total = 0.0
    for X, y in run.rows.parts():
        g = compute_violation(evaluate_logits(run.network, X), y, run.history.threshold)
        total += float(gap(g, tau, run.settings.m1, run.settings.m2)) * len(y)
    return ranks.add_up([total], run.rows.device)[0] / run.rows.total
