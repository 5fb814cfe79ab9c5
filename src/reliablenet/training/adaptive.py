"""`AdaptiveSchedule`: ours, which follows the selection fold, and how it steers multipliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from reliablenet._checks import check_count, parameter_error
from reliablenet.certificate.planning import certifiable_jcw
from reliablenet.certificate.threshold import jcw_threshold
from reliablenet.certificate.wording import threshold_text
from reliablenet.risk.event import compute_violation
from reliablenet.risk.surrogate import psi
from reliablenet.training import ranks
from reliablenet.training.base_schedule import BaseSchedule, lowest_threshold
from reliablenet.training.constraint import JCWConstraint
from reliablenet.training.devices import in_double
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.history import NAN, EpochRecord
from reliablenet.training.objective import EpochMeans

if TYPE_CHECKING:
    from reliablenet.training.loop import Run

FIRST_MULTIPLIER = 0.03  # with it, a confident mistake weighs about as much again
IDLE_MULTIPLIER = 1e-3  # below it, the constraint does nothing
LARGEST_MOVE, SMALLEST_MOVE = 0.7, 0.1  # of the multiplier's logarithm, an epoch


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

    first_multiplier: ClassVar[float] = FIRST_MULTIPLIER

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("patience", self.patience, "AdaptiveSchedule")
        check_count("warmup_epochs", self.warmup_epochs, "AdaptiveSchedule")

    @property
    def keeps_warmup(self) -> bool:
        """Always: a constrained epoch has to be better."""
        return True

    def without_constraint(self) -> AdaptiveSchedule:
        """Return the warm-up alone."""
        return replace(self, max_stages=0)

    def check_keep(self, keep: str, parameter: str, owner: str, remedy: str = "") -> None:
        """Refuse "last", because training goes on for a while after its best epoch."""
        if keep == "last":
            expected = (
                'be "selection", because the selection fold decides when training ends, and the weights that '
                "were best there are kept"
            )
            raise parameter_error(parameter, owner, expected, keep, remedy)

    def cycle_done(self, epochs: float, *, constrained: bool) -> float:
        """Count the longest warm-up as a cycle, which is over once the constraint acts."""
        return 1.0 if constrained else epochs / self.warmup_epochs

    def leaves_threshold_open(self, given: float | None) -> bool:
        """Say yes unless one is given: it is then set anew when training is over."""
        return given is None

    def aim(self, alpha: float, rho: float, selection_rows: int) -> float:
        """Return what a fold of so many rows can be expected to certify."""
        # rows too few for any certificate still leave something to aim at
        return certifiable_jcw(selection_rows, alpha, rho) or alpha / 2

    def find_threshold(self, logits: Tensor, y: Tensor, aim: float) -> float:
        """Return the most permissive legal threshold whose JCW is within the aim; else 1."""
        proba = torch.softmax(in_double(logits), -1).cpu().numpy()
        found = jcw_threshold(proba, y.cpu().numpy(), aim)
        return min(max(found, lowest_threshold(logits)), 1.0)

    def first_tau(self, run: Run) -> float:
        """Return the first tau at which the surrogate exceeds JCW by no more than half the aim."""
        g, m1, m2, tau = _selection_violations(run), run.settings.m1, run.settings.m2, self.tau
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
        best = _measure_again(run, history.chosen_epoch)
        if best.feasible:
            history.stopped = (
                f"the budget holds without the constraint: selection-fold JCW is "
                f"{best.jcw_selection:.4f} at threshold {threshold_text(history.threshold)}, "
                f"where {run.settings.aim:.4f} can be certified"
            )


def steered_multiplier(jcws: Sequence[float], aim: float) -> float:
    """Return the multiplier after constrained epochs that ended with these JCWs.

    Its logarithm follows the violation relative to the aim, by at most 0.7 an epoch and half as much
    after every change of sign, so that it closes in on the multiplier at which JCW is the aim
    instead of swinging around it.
    """
    exponent, most, sign = math.log(FIRST_MULTIPLIER), LARGEST_MOVE, 0.0
    for jcw in jcws:
        violation = (jcw - aim) / aim
        if violation * sign < 0.0:
            most = max(most / 2, SMALLEST_MOVE)
        sign = violation or sign
        exponent += min(max(violation, -1.0), 1.0) * most
    return math.exp(exponent)


def has_settled(jcw: float, multiplier: float, aim: float, near: float) -> bool:
    """Tell whether JCW was that near to the aim, or below it with the constraint doing nothing."""
    return abs(jcw - aim) <= near or (multiplier < IDLE_MULTIPLIER and jcw <= aim)


def _selection_violations(run: Run) -> Tensor:
    """Return the violation of each row of the selection fold."""
    logits = in_double(evaluate_logits(run.network, run.selection.X))
    return compute_violation(logits, run.selection.y.to(logits.device), run.history.threshold)


def _measure_again(run: Run, epoch: int) -> EpochRecord:
    """Replace the record of an epoch of the warm-up, whose weights the network has, and return it."""
    passed = EpochMeans(run.history.records[epoch - 1].loss)
    record = ranks.from_first(run.measure(epoch, 0, NAN, passed))
    run.history.records[epoch - 1] = record
    return record
