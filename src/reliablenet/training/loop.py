"""The training loop: warm-up, threshold, constrained stages, choice of the weights to keep.

One flat loop over epochs, so that a run can be continued after any of them to the same bits.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from reliablenet._checks import check_count, check_positive, parameter_error
from reliablenet.errors import TrainingDivergedError
from reliablenet.risk.event import compute_violation
from reliablenet.risk.surrogate import M1, M2, gap
from reliablenet.training import checkpoint, ranks
from reliablenet.training.constraint import JCWConstraint, NotFiniteError
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.history import NAN, EpochRecord, History
from reliablenet.training.objective import Objective
from reliablenet.training.rows import Rows
from reliablenet.training.schedule import Schedule
from reliablenet.training.stream import Stream
from reliablenet.training.tally import Passed, Tally

Keep = Literal["selection", "last"]


@dataclass(frozen=True)
class Optimisation:
    """Settings of the optimiser; the defaults are the paper's.

    Parameters
    ----------
    batch_size : int
    learning_rate : float
    weight_decay : float
        L2 penalty, as Adam's coupled weight decay.
    clip_norm : float
        Largest norm of the gradient.
    """

    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    clip_norm: float = 5.0

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


def train(
    network: nn.Module,
    rows: Rows | Stream,
    selection: Rows | Stream,
    *,
    alpha: float,
    schedule: Schedule,
    objective: Objective | None = None,
    optimisation: Optimisation | None = None,
    threshold: float | None = None,
    keep: Keep = "selection",
    seed: int = 0,
    m1: float = M1,
    m2: float = M2,
    after_epoch: Callable[[History], bool] | None = None,
    checkpoint_file: Path | None = None,
) -> History:
    """Train a network in place under a budget for confident mistakes, and return its history.

    In a `torch.distributed` group all ranks call this alike and train one network: each on its share
    of every batch, with gradients averaged over all rows. Rank 0 measures and writes for all.

    Parameters
    ----------
    network : nn.Module
        Maps a batch of inputs to logits. Holds the chosen weights when this returns.
    rows, selection : Rows or Stream
        Training rows; and the rows that set the threshold and choose the weights, an ordered stream
        if they are one.
    alpha : float
        Budget.
    schedule : Schedule
        Without stages this is plain ERM.
    objective : Objective, optional
        What to minimise instead of cross-entropy; only without stages.
    optimisation : Optimisation, optional
    threshold : float, optional
        Training threshold; by default the schedule's quantile of the confidences of the selection
        rows that the warmed-up network gets wrong.
    keep : {"selection", "last"}
        Which constrained epoch's weights to keep. "selection": the lowest selection-fold loss
        among the epochs whose selection-fold JCW is within alpha, or the smallest JCW if there is
        none (for ERM: the lowest selection-fold loss). "last": those of the last epoch.
    seed : int
        Decides the order of the batches and whatever the network draws (dropout).
    m1, m2 : float
        Shape of the surrogate.
    after_epoch : callable, optional
        Called with the history after each epoch; a true answer ends training.
    checkpoint_file : Path, optional
        Written after every epoch; if it exists and belongs to this very run, training continues
        from it and ends with the same bits as if it had never stopped.

    Returns
    -------
    History
    """
    settings = _Settings(
        alpha,
        schedule,
        objective or Objective(),
        optimisation or Optimisation(),
        threshold,
        keep,
        seed,
        m1,
        m2,
    )
    key = ""
    if checkpoint_file is not None or ranks.world() > 1:
        key = checkpoint.fingerprint(network, [rows, selection], settings)
        ranks.check_agreement(f"{key} {checkpoint_file is None}")
    devices = [] if rows.device.type == "cpu" else [rows.device]
    with torch.random.fork_rng(devices):  # the caller's random state stays as it was
        torch.manual_seed(seed + ranks.rank())  # ranks draw other dropout, but one order of rows
        run = _Run(network, rows, selection, settings)
        if checkpoint_file is not None:
            checkpoint.restore(checkpoint_file, run, key)
        while not run.history.stopped:
            run.one_epoch()
            asked = after_epoch is not None and after_epoch(run.history)
            if any(ranks.gather(bool(asked))) and not run.history.stopped:
                run.history.stopped = "a callback asked for it"
                if not run.kept:  # in a warm-up, which is never kept otherwise
                    run.fix_threshold()
                    run.keep_weights()
            if checkpoint_file is not None:
                checkpoint.write(checkpoint_file, run, key)
    network.load_state_dict(run.kept)
    network.eval()
    return run.history


@dataclass(frozen=True)
class _Settings:
    """The settings of `train`, in one piece."""

    alpha: float
    schedule: Schedule
    objective: Objective
    optimisation: Optimisation
    threshold: float | None
    keep: Keep
    seed: int
    m1: float
    m2: float

    def __post_init__(self) -> None:
        if self.schedule.max_stages and type(self.objective) is not Objective:
            raise parameter_error(
                "objective", "train", "be left out in constrained training", self.objective
            )
        if self.objective.is_warmup(self.schedule.epochs):
            raise parameter_error(
                "objective",
                "train",
                f"end its warm-up before the last epoch, {self.schedule.epochs}",
                self.objective,
            )


class _Run:
    """The state of one training run between two epochs; `checkpoint` saves and restores it."""

    def __init__(
        self,
        network: nn.Module,
        rows: Rows | Stream,
        selection: Rows | Stream,
        settings: _Settings,
    ) -> None:
        self.network = network
        self.rows = rows
        self.selection = selection
        self.settings = settings
        self.schedule = settings.schedule
        self.objective = settings.objective
        optimisation = settings.optimisation
        self.optimiser = torch.optim.Adam(
            network.parameters(),
            lr=optimisation.learning_rate,
            weight_decay=optimisation.weight_decay,
            fused=True,
        )
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.history = History(
            settings.alpha, NAN if settings.threshold is None else settings.threshold
        )
        self.constraint: JCWConstraint | None = None
        self.kept: dict[str, Tensor] = {}

    def one_epoch(self) -> None:
        """Train one epoch, measure it, decide whether its weights are kept and whether to go on."""
        epoch = len(self.history.records) + 1
        stage = self.schedule.stage_of(epoch)
        if stage > 0 and self.constraint is None:
            self.fix_threshold()
            self.constraint = self.build_constraint()
        constraint = self.constraint
        tau = NAN if constraint is None else constraint.tau
        try:
            passed = self.pass_over_batches(epoch)
        except NotFiniteError as error:
            raise self.diverged(epoch, stage, NAN) from error
        record = ranks.from_first(self.measure(epoch, stage, tau, passed))
        if not (math.isfinite(record.loss) and math.isfinite(record.loss_selection)):
            raise self.diverged(epoch, stage, max(record.loss, record.loss_selection))
        self.history.records.append(record)
        if self.is_best(record):
            self.keep_weights()
        if constraint is not None and self.schedule.ends_stage(epoch):
            floor = self.settings.m1 * tau if self.schedule.above_floor else 0.0
            if self.bracket_width(tau) - floor <= self.schedule.tolerance:
                self.history.stopped = f"the bracket is tight at tau = {tau:g}"
            constraint.tighten()
        if epoch == self.schedule.epochs:
            self.history.stopped = self.history.stopped or "all epochs of the schedule are done"

    def bracket_width(self, tau: float) -> float:
        """Return the gap over the training rows at the weights of this moment."""
        total = 0.0
        for X, y in self.rows.parts():
            g = compute_violation(evaluate_logits(self.network, X), y, self.history.threshold)
            total += float(gap(g, tau, self.settings.m1, self.settings.m2)) * len(y)
        return ranks.add_up([total], self.rows.device)[0] / self.rows.total

    def keep_weights(self) -> None:
        """Make the weights of this moment the ones to return."""
        self.history.chosen_epoch = len(self.history.records)
        self.kept = copy.deepcopy(self.network.state_dict())

    def fix_threshold(self) -> None:
        """Set the training threshold on the selection fold, unless it was given or none is needed."""
        if self.schedule.max_stages and math.isnan(self.history.threshold):
            logits = evaluate_logits(self.network, self.selection.X)
            found = training_threshold(logits, self.selection.y, self.schedule.threshold_quantile)
            self.history.threshold = ranks.from_first(found)

    def build_constraint(self) -> JCWConstraint:
        """Return a fresh constraint for this run."""
        return JCWConstraint(
            self.history.alpha,
            self.history.threshold,
            rows=self.rows.total,
            tau=self.schedule.tau,
            tau_min=self.schedule.tau_min,
            tau_decay=self.schedule.tau_decay,
            dual_rate=self.schedule.dual_rate,
            ema=self.schedule.ema,
            multiplier_max=self.schedule.multiplier_max,
            m1=self.settings.m1,
            m2=self.settings.m2,
        ).to(self.rows.device)

    def pass_over_batches(self, epoch: int) -> Passed:
        """Update the weights once for every batch; return what the batches showed as they passed."""
        network, optimiser, constraint = self.network, self.optimiser, self.constraint
        parameters = list(network.parameters())
        settings = self.settings
        tau = NAN if constraint is None else constraint.tau
        tally = Tally(self.history.threshold, tau, settings.m1, settings.m2)
        network.train()
        for X, y in self.rows.batches(epoch, settings.optimisation.batch_size, self.generator):
            optimiser.zero_grad()
            outputs = network(X)
            if constraint is None:
                loss = self.objective.loss(outputs, y, epoch)
                loss.backward()
                tally.add(loss, len(y))
            else:
                tally.add(constraint.backward(outputs, y), len(y))
            ranks.average_gradients(parameters, len(y))
            nn.utils.clip_grad_norm_(parameters, settings.optimisation.clip_norm)
            optimiser.step()
            if constraint is not None:
                constraint.step()
        ranks.share_buffers(network)
        return tally.means(self.rows.device)

    def diverged(self, epoch: int, stage: int, loss: float) -> TrainingDivergedError:
        """Say where and why a run diverged; its weights are never kept."""
        where = "in the warm-up" if stage == 0 else f"in constrained stage {stage}"
        return TrainingDivergedError(
            f"Training diverged in epoch {epoch} ({where}): the loss became {loss:g}. Likely "
            f"cause: a learning rate of {self.settings.optimisation.learning_rate:g} is too high for inputs "
            f"of up to {self.rows.largest():.3g}. Lower learning_rate tenfold or scale the inputs."
        )

    def measure(self, epoch: int, stage: int, tau: float, passed: Passed) -> EpochRecord:
        """Evaluate the selection fold and put the epoch into one record."""
        alpha, y = self.history.alpha, self.selection.y
        outputs = evaluate_logits(self.network, self.selection.X).double()
        top, predicted = torch.softmax(self.objective.logits(outputs), -1).max(-1)
        right = predicted == y
        coverage = jcw = throughput = NAN
        if not math.isnan(self.history.threshold):
            accepted = top >= self.history.threshold
            coverage = float(accepted.double().mean())
            throughput = float((accepted & right).double().mean())
            jcw = float((accepted & ~right).double().mean())
        return EpochRecord(
            epoch=epoch,
            stage=stage,
            tau=tau,
            loss=passed.loss,
            psi=passed.psi,
            phi=passed.phi,
            gap=passed.phi + passed.psi - 1.0,
            jcw_train=passed.jcw,
            loss_selection=float(self.objective.loss(outputs, y, self.schedule.epochs)),
            accuracy=float(right.double().mean()),
            jcw_selection=jcw,
            coverage=coverage,
            throughput=throughput,
            multiplier=0.0 if self.constraint is None else float(self.constraint.multiplier),
            inner_feasible=passed.psi <= alpha,
            feasible=jcw <= alpha,
        )

    def is_best(self, record: EpochRecord) -> bool:
        """Tell whether this epoch's weights replace those kept so far."""
        constrained = self.schedule.max_stages > 0
        if (constrained and record.stage == 0) or self.objective.is_warmup(record.epoch):
            return False
        if self.settings.keep == "last" or self.history.chosen_epoch == 0:
            return True
        best = self.history.chosen()
        if not constrained:
            return record.loss_selection < best.loss_selection
        if record.feasible != best.feasible:
            return record.feasible
        if record.feasible:
            return record.loss_selection < best.loss_selection
        return (record.jcw_selection, record.loss_selection) < (
            best.jcw_selection,
            best.loss_selection,
        )


def training_threshold(logits: Tensor, y: Tensor, quantile: float) -> float:
    """Return the quantile of the confidences of the wrong rows (the paper's epsilon*).

    Without a wrong row even accepting everything keeps the budget, so the answer is then the
    smallest legal threshold, the first number above 1/K.
    """
    top, predicted = torch.softmax(logits.double(), -1).max(-1)
    wrong = top[predicted != y].cpu().numpy()
    lowest = float(np.nextafter(1.0 / logits.shape[-1], 1.0))
    return max(float(np.quantile(wrong, quantile)), lowest) if len(wrong) else lowest
