"""`Run`: one training run, epoch by epoch. What happens in an epoch, and what is decided after it."""

from __future__ import annotations

import copy
import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from reliablenet._checks import (
    parameter_error,
)
from reliablenet.errors import TrainingDivergedError
from reliablenet.risk.event import compute_violation
from reliablenet.risk.fused import StepGradient, cross_entropy_gradient
from reliablenet.risk.surrogate import gap
from reliablenet.training import ranks
from reliablenet.training.adaptation import (
    FIRST_MULTIPLIER,
    fitting_tau,
    have_settled,
    steered_multiplier,
)
from reliablenet.training.augmentation import augment_images
from reliablenet.training.averaging import WeightAverage
from reliablenet.training.constraint import JCWConstraint, NotFiniteError
from reliablenet.training.dense import DenseChain, find_chain
from reliablenet.training.descent import ClippedAdam
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.history import NAN, EpochRecord, History
from reliablenet.training.objective import Objective
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.rows import Rows
from reliablenet.training.schedule import Schedule
from reliablenet.training.stream import Stream
from reliablenet.training.tally import Passed, Tally
from reliablenet.training.thresholds import affordable_threshold, training_threshold

Keep = Literal["selection", "last"]


@dataclass(frozen=True)
class Settings:
    """The settings of `train`, in one piece."""

    alpha: float
    schedule: Schedule
    objective: Objective
    optimisation: Optimisation
    threshold: float | None
    aim: float
    keep: Keep
    seed: int
    m1: float
    m2: float
    augment: str | None

    def __post_init__(self) -> None:
        if self.schedule.max_stages and type(self.objective) is not Objective:
            raise parameter_error(
                "objective", "train", "be left out in constrained training", self.objective
            )
        if self.schedule.patience is not None and self.keep == "last":
            raise parameter_error(
                "keep", "train", 'be "selection" with a schedule that adapts', self.keep
            )
        if self.objective.is_warmup(self.schedule.epochs):
            raise parameter_error(
                "objective",
                "train",
                f"end its warm-up before the last epoch, {self.schedule.epochs}",
                self.objective,
            )


class Run:
    """The state of one training run between two epochs; `checkpoint` saves and restores it."""

    def __init__(
        self,
        network: nn.Module,
        rows: Rows | Stream,
        selection: Rows | Stream,
        settings: Settings,
    ) -> None:
        self.network = network
        self.rows = rows
        self.selection = selection
        self.settings = settings
        self.schedule = settings.schedule
        self.objective = settings.objective
        optimisation = settings.optimisation
        self.optimiser = ClippedAdam(
            network.parameters(),
            optimisation.learning_rate,
            optimisation.weight_decay,
            optimisation.clip_norm,
            decoupled=optimisation.decoupled,
        )
        averaging = optimisation.averaging
        self.average = WeightAverage(network, averaging) if averaging else None
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
        with self.averaged_weights():
            record = ranks.from_first(self.measure(epoch, stage, tau, passed))
        if not (math.isfinite(record.loss) and math.isfinite(record.loss_selection)):
            raise self.diverged(epoch, stage, max(record.loss, record.loss_selection))
        self.history.records.append(record)
        if self.is_best(record):
            self.keep_weights()
        if self.schedule.patience is not None:
            self.adapt(record)
        elif constraint is not None and self.schedule.ends_stage(epoch):
            floor = self.settings.m1 * tau if self.schedule.above_floor else 0.0
            if self.bracket_width(tau) - floor <= self.schedule.tolerance:
                self.history.stopped = f"the bracket is tight at tau = {tau:g}"
            constraint.tighten()
        if epoch == self.schedule.epochs:
            self.history.stopped = self.history.stopped or "all epochs of the schedule are done"

    def averaged_weights(self) -> AbstractContextManager[None]:
        """Return a context in which the network has its average weights, if these are averaged."""
        return nullcontext() if self.average is None else self.average.in_place()

    def adapt(self, record: EpochRecord) -> None:
        """Decide from what the selection fold shows whether warm-up or training are over."""
        history, patience = self.history, self.schedule.patience or 0
        if self.constraint is None:
            idle = record.epoch - history.chosen_epoch
            if idle >= patience or record.epoch == self.schedule.warmup_epochs:
                self.end_warmup(record.epoch)
            return
        constrained = [one for one in history.records if one.stage > 0]
        aim = self.settings.aim
        jcws = [one.jcw_selection for one in constrained]
        self.constraint.set_multiplier(steered_multiplier(jcws, aim))
        near = max(self.schedule.tolerance * aim, 1.0 / len(self.selection.y))
        if have_settled(constrained[-patience:], patience, aim, near):
            history.stopped = (
                f"JCW has settled at {record.jcw_selection:.4f}, with a multiplier of "
                f"{record.multiplier:.2g}"
            )
        elif history.chosen().feasible and record.epoch - history.chosen_epoch >= 2 * patience:
            history.stopped = f"no epoch within the aim was better for {2 * patience} epochs"

    def end_warmup(self, epoch: int) -> None:
        """Return to the best weights of the warm-up, and see whether they need the constraint."""
        history = self.history
        idle = epoch - history.chosen_epoch
        self.schedule = replace(self.schedule, warmup_epochs=epoch)
        self.return_to_kept()
        if self.schedule.max_stages == 0:
            if idle:
                history.stopped = f"the selection-fold loss has not fallen for {idle} epochs"
            return
        self.fix_threshold()
        place = history.chosen_epoch - 1
        again = self.measure(place + 1, 0, NAN, Passed(history.records[place].loss))
        history.records[place] = ranks.from_first(again)
        if history.records[place].feasible:
            history.stopped = (
                f"the budget holds without the constraint: selection-fold JCW is "
                f"{history.records[place].jcw_selection:.4f} at threshold {history.threshold:.4g}, "
                f"where {self.settings.aim:.4f} can be certified"
            )

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
        with self.averaged_weights():
            self.kept = copy.deepcopy(self.network.state_dict())

    def return_to_kept(self) -> None:
        """Give the network the weights that were kept, and their average with them."""
        self.network.load_state_dict(self.kept)
        if self.average is not None:
            self.average.reset()

    def fix_threshold(self) -> None:
        """Set the training threshold on the selection fold, unless it was given or none is needed."""
        if self.schedule.max_stages and math.isnan(self.history.threshold):
            with self.averaged_weights():
                logits = evaluate_logits(self.network, self.selection.X)
            if self.schedule.patience is None:
                quantile = self.schedule.threshold_quantile
                found = training_threshold(logits, self.selection.y, quantile)
            else:
                found = affordable_threshold(logits, self.selection.y, self.settings.aim)
            self.history.threshold = ranks.from_first(found)

    def build_constraint(self) -> JCWConstraint:
        """Return a fresh constraint for this run."""
        adapts = self.schedule.patience is not None
        constraint = JCWConstraint(
            self.settings.aim,
            self.history.threshold,
            rows=self.rows.total,
            tau=self.first_tau() if adapts else self.schedule.tau,
            tau_min=self.schedule.tau_min,
            tau_decay=self.schedule.tau_decay,
            dual_rate=self.schedule.dual_rate,
            ema=self.schedule.ema,
            multiplier_max=self.schedule.multiplier_max,
            m1=self.settings.m1,
            m2=self.settings.m2,
        ).to(self.rows.device)
        if adapts:
            constraint.set_multiplier(FIRST_MULTIPLIER)
        return constraint

    def first_tau(self) -> float:
        """Return the tau of a schedule that adapts, from the selection fold."""
        logits = evaluate_logits(self.network, self.selection.X).double()
        g = compute_violation(logits, self.selection.y, self.history.threshold)
        settings = self.settings
        return ranks.from_first(
            fitting_tau(g, self.schedule, settings.aim, settings.m1, settings.m2)
        )

    def pass_over_batches(self, epoch: int) -> Passed:
        """Update the weights once for every batch; return what the batches showed as they passed."""
        network, optimiser, constraint = self.network, self.optimiser, self.constraint
        parameters = list(network.parameters())
        settings = self.settings
        tau = NAN if constraint is None else constraint.tau
        tally = Tally(self.history.threshold, tau, settings.m1, settings.m2)
        network.train()
        chain = find_chain(network) if type(self.objective) is Objective else None
        for X, y in self.rows.batches(epoch, settings.optimisation.batch_size, self.generator):
            X = augment_images(X, settings.augment)
            if chain is None:
                tally.add(self.through_graph(X, y, epoch), len(y))
            else:
                tally.add(self.through_chain(chain, X, y), len(y))
            ranks.average_gradients(parameters, len(y))
            optimiser.descend()
            if self.average is not None:
                self.average.update()
            if constraint is not None and self.schedule.patience is None:
                constraint.step()
        # Running statistics are of each rank's own rows, and so is their average.
        ranks.share(network.buffers())
        ranks.share([] if self.average is None else self.average.average)
        return tally.means(self.rows.device)

    def through_graph(self, X: Tensor, y: Tensor, epoch: int) -> Tensor | StepGradient:
        """Set the gradients of a batch by autograd; return its loss, or what the constraint gave."""
        self.optimiser.zero_grad()
        outputs = self.network(X)
        if self.constraint is not None:
            return self.constraint.backward(outputs, y)
        loss = self.objective.loss(outputs, y, epoch)
        loss.backward()
        return loss.detach()

    def through_chain(self, chain: DenseChain, X: Tensor, y: Tensor) -> Tensor | StepGradient:
        """Do the same for a network that needs no graph, to the same bits."""
        logits = chain.forward(X)
        if self.constraint is not None:
            step = self.constraint.differentiate(logits, y)
            chain.backward(step.gradient)
            return step
        loss, gradient = cross_entropy_gradient(logits, y)
        chain.backward(gradient)
        return loss

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
        aim, y = self.settings.aim, self.selection.y
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
            inner_feasible=passed.psi <= aim,
            feasible=jcw <= aim,
        )

    def is_best(self, record: EpochRecord) -> bool:
        """Tell whether this epoch's weights replace those kept so far."""
        constrained = self.schedule.max_stages > 0
        adapts = self.schedule.patience is not None
        warming = constrained and record.stage == 0
        if (warming and not adapts) or self.objective.is_warmup(record.epoch):
            return False
        if self.settings.keep == "last" or self.history.chosen_epoch == 0:
            return True
        best = self.history.chosen()
        if best.stage == 0 < record.stage:
            return True  # a constrained epoch replaces the warm-up that needed it
        if not constrained or warming:
            return record.loss_selection < best.loss_selection
        if record.feasible != best.feasible:
            return record.feasible
        if record.feasible and adapts:
            return record.throughput > best.throughput
        if record.feasible:
            return record.loss_selection < best.loss_selection
        return (record.jcw_selection, record.loss_selection) < (
            best.jcw_selection,
            best.loss_selection,
        )
