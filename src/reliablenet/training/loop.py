"""The training loop: warm-up, threshold, constrained stages, choice of the weights to keep.

Read `train`, then `Run.one_epoch`, then the steps that it names, in their order. It is one flat loop over
epochs, so that a run can be continued after any of them to the same bits. When a phase ends, how the
constraint is moved and which of two epochs is the better one is up to the `schedule`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

from reliablenet._checks import parameter_error
from reliablenet._renamed import renamed_parameter
from reliablenet.errors import TrainingDivergedError
from reliablenet.risk.fused import StepGradient
from reliablenet.risk.surrogate import M1, M2
from reliablenet.training import checkpoint, ranks
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.batches import AnnotatedRows, Rows, augment_images, check_rows
from reliablenet.training.chains import (
    DenseChain,
    EnsembleChain,
    cross_entropy_gradient,
    find_chain,
)
from reliablenet.training.constraint import JCWConstraint, NotFiniteError
from reliablenet.training.devices import has_fast_bfloat16, in_double
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.history import NAN, EpochRecord, History
from reliablenet.training.kernels import flushed_denormals
from reliablenet.training.objective import EpochMeans, Objective, RunningMeans
from reliablenet.training.optimisation import ClippedSGD, Optimisation, WeightAverage, one_cycle
from reliablenet.training.selection_fold import look_at, parts_of
from reliablenet.training.settings import Keep, Settings
from reliablenet.training.stream import Stream


@renamed_parameter("seed", "random_state")
def train(
    network: nn.Module,
    rows: Rows | Stream,
    selection: Rows | Stream,
    *,
    alpha: float,
    schedule: BaseSchedule,
    objective: Objective | None = None,
    optimisation: Optimisation | None = None,
    threshold: float | None = None,
    aim: float | None = None,
    group_aims: Sequence[float] = (),
    keep: Keep = "selection",
    random_state: int = 0,
    m1: float = M1,
    m2: float = M2,
    augment: str | None = None,
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
    schedule : Schedule or AdaptiveSchedule
        Without stages this is plain ERM.
    objective : Objective, optional
        What to minimise instead of cross-entropy; only without stages.
    optimisation : Optimisation, optional
    threshold : float, optional
        Training threshold; by default the schedule sets it on the selection fold after the warm-up.
    aim : float, optional
        JCW that the selection fold is to keep; by default alpha.
    group_aims : sequence of float, optional
        The same for each group of rows, which both folds then name: a constraint for each, and the
        worst group of the selection fold decides which weights are kept.
    keep : {"selection", "last"}
        Which constrained epoch's weights to keep. "selection": the lowest selection-fold loss
        among the epochs whose selection-fold JCW is within alpha, or the smallest JCW if there is
        none (for ERM: the lowest selection-fold loss). "last": those of the last epoch.
    random_state : int
        Decides the order of the batches and whatever the network draws (dropout).
    m1, m2 : float
        Shape of the surrogate.
    augment : {"flips", "crops", "flips+crops"}, optional
        What happens at random to training images; evaluation sees them as they are.
    after_epoch : callable, optional
        Called with the history after each epoch, when the network has the weights that were
        measured; a true answer ends training.
    checkpoint_file : Path, optional
        Written after every epoch; if it exists and belongs to this very run, training continues
        from it and ends with the same bits as if it had never stopped.

    Returns
    -------
    History
    """
    settings = Settings(
        alpha=alpha,
        schedule=schedule,
        objective=objective or Objective(),
        optimisation=optimisation or Optimisation(),
        threshold=threshold,
        aim=alpha if aim is None else aim,
        group_aims=tuple(group_aims),
        keep=keep,
        seed=random_state,
        m1=m1,
        m2=m2,
        augment=augment,
    )
    for name, fold in (("rows", rows), ("selection rows", selection)):
        if isinstance(fold, Rows):
            check_rows(name, fold, network)
        if group_aims and fold.group is None:
            expected = f"be empty, because the {name} have no groups"
            hint = "Give AnnotatedRows with `group`."
            raise parameter_error("group_aims", "train", expected, tuple(group_aims), hint)
    key = ""
    if checkpoint_file is not None or ranks.world() > 1:
        key = checkpoint.fingerprint(network, [rows, selection], settings)
        ranks.check_agreement(f"{key} {checkpoint_file is None}")
    devices = [] if rows.device.type == "cpu" else [rows.device]
    # the caller's random state stays as it was
    with torch.random.fork_rng(devices), flushed_denormals():
        torch.manual_seed(
            random_state + ranks.rank()
        )  # ranks draw other dropout, but one order of rows
        run = Run(network, rows, selection, settings)
        if checkpoint_file is not None:
            checkpoint.restore(checkpoint_file, run, key)
        while not run.history.stopped:
            run.one_epoch()
            with run.averaged_weights():
                asked = after_epoch is not None and after_epoch(run.history)
            if any(ranks.gather(bool(asked))) and not run.history.stopped:
                run.stop_early()
            if checkpoint_file is not None:
                checkpoint.write(checkpoint_file, run, key)
    network.load_state_dict(run.kept)
    network.eval()
    return run.history


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
        how = settings.optimisation
        self.optimiser = how.build(network.parameters())
        self.halved = how.bfloat16 and has_fast_bfloat16(rows.device)
        self.average = WeightAverage(network, how.averaging) if how.averaging else None
        self.generator = torch.Generator().manual_seed(settings.seed)
        threshold = NAN if settings.threshold is None else settings.threshold
        self.history = History(settings.alpha, threshold)
        self.constraint: JCWConstraint | None = None
        self.kept: dict[str, Tensor] = {}
        self.parts = parts_of(selection, settings.aim, settings.group_aims)

    def one_epoch(self) -> None:
        """Train one epoch, measure it, decide whether its weights are kept and whether to go on."""
        epoch = len(self.history.records) + 1
        stage = self.schedule.stage_of(epoch)
        if stage > 0 and self.constraint is None:  # the warm-up is over
            self.fix_threshold()
            self.constraint = self.build_constraint()
        tau = NAN if self.constraint is None else self.constraint.tau
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
        self.schedule.after_epoch(self)
        if epoch == self.schedule.epochs:
            self.history.stopped = self.history.stopped or "all epochs of the schedule are done"

    def fix_threshold(self) -> None:
        """Set the training threshold on the selection fold, unless it was given or none is needed."""
        if self.schedule.constrained and math.isnan(self.history.threshold):
            with self.averaged_weights():
                logits = evaluate_logits(self.network, self.selection.X)
            found = self.schedule.find_threshold(logits, self.selection.y, self.settings.aim)
            self.history.threshold = ranks.from_first(found)

    def build_constraint(self) -> JCWConstraint:
        """Return a fresh constraint for this run."""
        schedule, settings = self.schedule, self.settings
        rows: int | list[int] = self.rows.total
        if settings.group_aims and isinstance(self.rows, AnnotatedRows):
            counts = self.rows.group_rows(len(settings.group_aims))
            rows = [max(round(count), 1) for count in counts]
        constraint = JCWConstraint(
            settings.group_aims or settings.aim,
            self.history.threshold,
            groups=len(settings.group_aims) or None,
            rows=rows,
            tau=ranks.from_first(schedule.first_tau(self)),
            tau_min=schedule.tau_min,
            tau_decay=schedule.tau_decay,
            dual_rate=schedule.dual_rate,
            ema=schedule.ema,
            multiplier_max=schedule.multiplier_max,
            m1=settings.m1,
            m2=settings.m2,
        ).to(self.rows.device)
        constraint.set_multiplier(schedule.first_multiplier)
        return constraint

    def pass_over_batches(self, epoch: int) -> EpochMeans:
        """Update the weights once for every batch; return what the batches showed as they passed."""
        network, constraint, settings = self.network, self.constraint, self.settings
        parameters = list(network.parameters())
        tau = NAN if constraint is None else constraint.tau
        means = RunningMeans(self.history.threshold, tau, settings.m1, settings.m2)
        network.train()
        chain = find_chain(network) if type(self.objective) is Objective else None
        size, grouped, seen = settings.optimisation.batch_size, bool(settings.group_aims), 0
        for X, y, *groups in self.rows.batches(epoch, size, self.generator):
            X = augment_images(X, settings.augment)
            group = groups[0] if grouped else None
            self.set_pace(epoch - 1 + seen * ranks.world() / self.rows.total)
            seen += len(y)
            if chain is None:
                shown = self.through_graph(X, y, group, epoch)
            else:
                shown = self.through_chain(chain, X, y, group)
            means.add(shown, len(y))
            ranks.average_gradients(parameters, len(y))
            self.optimiser.descend()
            if self.average is not None:
                self.average.update()
            if constraint is not None:
                self.schedule.after_batch(constraint)
        # Running statistics are of each rank's own rows, and so is their average.
        ranks.share(network.buffers())
        ranks.share([] if self.average is None else self.average.average)
        return means.over_all_ranks(self.rows.device)

    def set_pace(self, epochs: float) -> None:
        """Set the learning rate after so many epochs, where it goes through a cycle."""
        how, schedule = self.settings.optimisation, self.settings.schedule
        if how.one_cycle and isinstance(self.optimiser, ClippedSGD):
            done = schedule.cycle_done(epochs, constrained=self.constraint is not None)
            self.optimiser.learning_rate = how.learning_rate * one_cycle(done)

    def through_graph(
        self, X: Tensor, y: Tensor, group: Tensor | None, epoch: int
    ) -> Tensor | StepGradient:
        """Set the gradients of a batch by autograd; return its loss, or what the constraint gave."""
        self.optimiser.zero_grad()
        with torch.autocast(X.device.type, torch.bfloat16) if self.halved else nullcontext():
            outputs = self.network(X)
        outputs = outputs.float() if self.halved else outputs
        if self.constraint is not None:
            return self.constraint.backward(outputs, y, group)
        loss = self.objective.loss(outputs, y, epoch)
        loss.backward()
        return loss.detach()

    def through_chain(
        self, chain: DenseChain | EnsembleChain, X: Tensor, y: Tensor, group: Tensor | None
    ) -> Tensor | StepGradient:
        """Do the same for a network that needs no graph, to the same bits."""
        logits = chain.forward(X)
        if self.constraint is not None:
            step = self.constraint.differentiate(logits, y, group)
            chain.backward(step.gradient)
            return step
        loss, gradient = cross_entropy_gradient(logits, y)
        chain.backward(gradient)
        return loss

    def measure(self, epoch: int, stage: int, tau: float, passed: EpochMeans) -> EpochRecord:
        """Evaluate the selection fold and put the epoch into one record."""
        settings, schedule = self.settings, self.schedule
        shown = look_at(
            self.selection,
            in_double(evaluate_logits(self.network, self.selection.X)),
            self.objective,
            schedule.epochs,
            self.history.threshold,
            self.parts,
            free=schedule.leaves_threshold_open(settings.threshold),
        )
        multipliers = (
            [0.0] if self.constraint is None else self.constraint.multiplier.flatten().tolist()
        )
        return EpochRecord(
            epoch=epoch,
            stage=stage,
            tau=tau,
            loss=passed.loss,
            psi=passed.psi,
            phi=passed.phi,
            gap=passed.phi + passed.psi - 1.0,
            jcw_train=passed.jcw,
            loss_selection=shown.loss,
            accuracy=shown.accuracy,
            jcw_selection=shown.jcw,
            coverage=shown.coverage,
            throughput=shown.throughput,
            multiplier=max(multipliers),
            inner_feasible=passed.psi <= settings.aim,
            feasible=shown.feasible,
            at_chance=shown.at_chance,
            attainable=shown.attainable,
            group_jcw=shown.group_jcw,
            group_multiplier=tuple(multipliers) if len(multipliers) > 1 else (),
        )

    def is_best(self, record: EpochRecord) -> bool:
        """Tell whether this epoch's weights replace those kept so far."""
        if self.objective.is_warmup(record.epoch) or not self.schedule.may_keep(record):
            return False
        if self.settings.keep == "last" or self.history.chosen_epoch == 0:
            return True
        return self.schedule.is_better(record, self.history.chosen())

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

    def averaged_weights(self) -> AbstractContextManager[None]:
        """Return a context in which the network has its average weights, if these are averaged."""
        return nullcontext() if self.average is None else self.average.in_place()

    def stop_early(self) -> None:
        """End the run where a callback asks for it."""
        self.history.stopped = "a callback asked for it"
        if not self.kept:  # in a warm-up, which may never be kept otherwise
            self.keep_weights()
        self.return_to_kept()
        self.fix_threshold()

    def diverged(self, epoch: int, stage: int, loss: float) -> TrainingDivergedError:
        """Say where and why a run diverged; its weights are never kept."""
        where = "in the warm-up" if stage == 0 else f"in constrained stage {stage}"
        rate = self.settings.optimisation.learning_rate
        return TrainingDivergedError(
            f"Training diverged in epoch {epoch} ({where}): the loss became {loss:g}. Likely "
            f"cause: a learning rate of {rate:g} is too high for inputs of up to "
            f"{self.rows.largest():.3g}. Lower learning_rate tenfold or scale the inputs."
        )
