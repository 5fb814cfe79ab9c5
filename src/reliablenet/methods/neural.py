"""`NeuralEstimator`: what all methods that train a network of their own have in common."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reliablenet._checks import parameter_error
from reliablenet._warn import warn_user
from reliablenet.certificate import Promise
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import ConstraintWarning, InvalidDataError
from reliablenet.methods.architectures import (
    Architecture,
    NetworkFactory,
    build_network,
    check_inputs,
    find_architecture,
)
from reliablenet.methods.base import SelectiveEstimator
from reliablenet.methods.decisions import Outputs
from reliablenet.modelfile.network import NetworkParts
from reliablenet.tables.column_arrays import ColumnArrays
from reliablenet.tables.folds import Fold
from reliablenet.tables.free_text import Embedding
from reliablenet.tables.tabular import TabularEncoder
from reliablenet.training import ranks
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.batches import AnnotatedRows, Rows, check_augment, check_images, join_rows
from reliablenet.training.devices import find_device, in_double
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.history import History, progress
from reliablenet.training.loop import train
from reliablenet.training.objective import Objective
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.schedule import Schedule
from reliablenet.training.stream import Inputs, Stream

ARRAY_ROWS, FRAME_ROWS = 2048, 65_536  # encoded together; a column of a frame costs more to begin
Auto = float | Literal["auto"]  # "auto": what suits the network
FoldOrStream = Fold | Stream
RowsOrStream = Rows | Stream


@dataclass(eq=False, repr=False)  # scikit-learn brings its own
class NeuralEstimator(SelectiveEstimator):
    """Encode rows, train a network by a schedule, and read its outputs.

    Attributes
    ----------
    network_ : nn.Module
    encoder_ : TabularEncoder or None
        None for inputs with more than two axes, and for those that are read batch by batch: they
        go to the network as they are.
    input_shape_ : tuple of int
        Shape of one encoded row.
    history_ : History
        The course of training, epoch by epoch: of the fit that decided how long to train. If the
        network was then trained once more, on training and selection rows together, `network_` has
        the weights of that second fit; ``history_.weights_in_use`` says which it is.
    """

    alpha: float = 0.05
    rho: float = 0.05
    threshold: str | float = "certified"
    _: KW_ONLY
    network: str | NetworkFactory = "mlp"
    checkpoint: str = "last"
    batch_size: int = 256
    learning_rate: Auto = "auto"
    weight_decay: Auto = "auto"
    clip_norm: float = 5.0
    promise: Promise | None = None
    augment: str | None = None
    text: Any = "auto"
    dates: Any = "auto"
    embedding: Embedding | None = None
    fold_sizes: Any = "auto"
    device: str = "cpu"
    checkpoint_file: Any = None
    verbose: bool | str = "auto"
    random_state: Any = None

    network_: nn.Module = field(init=False)
    encoder_: TabularEncoder | None = field(init=False)
    input_shape_: tuple[int, ...] = field(init=False)
    history_: History = field(init=False)

    @property
    def _device(self) -> torch.device:
        """Where the network lives."""
        return find_device(self.device, type(self).__name__)

    @abstractmethod
    def _schedule(self) -> BaseSchedule:
        """Return the schedule to train by."""

    def _architecture(self) -> Architecture:
        """Return what `network` stands for."""
        return find_architecture(self.network, type(self).__name__)

    def _objective(self) -> Objective:
        """Return what unconstrained epochs minimise."""
        return Objective()

    def _build_network(self, seed: int) -> nn.Module:
        """Return a network with its first weights, a function of the seed."""
        return self._from_factory(self._n_classes(), seed)

    @abstractmethod
    def _n_classes(self) -> int:
        """Return how many classes the network tells apart."""

    def _learn_classes(self, train_fold: FoldOrStream) -> None:
        """Learn from the training fold what the network's classes are, if they are not those of `y`."""

    def _with_classes(self, fold: FoldOrStream) -> FoldOrStream:
        """Return a fold as the network learns from it: its `y` are class indices."""
        return fold

    def _constraint(self, selection_rows: int) -> dict[str, Any]:
        """Return the settings of `train` that only the constraint has."""
        return {}

    def _refits(self) -> bool:
        """Tell whether to train once more, on training and selection rows together."""
        return False

    def _tunes_on_selection(self) -> bool:
        return self.checkpoint == "selection" or self._schedule().constrained

    def _check_settings(self) -> None:
        super()._check_settings()
        owner = type(self).__name__
        self._optimisation()
        self._schedule()
        check_augment(self.augment, owner)
        if self.checkpoint not in ("selection", "last"):
            raise parameter_error("checkpoint", owner, 'be "selection" or "last"', self.checkpoint)
        if self.verbose not in (True, False, "auto"):
            raise parameter_error("verbose", owner, 'be True, False or "auto"', self.verbose)
        find_device(self.device, owner)

    def _optimisation(self) -> Optimisation:
        """Return the settings of the optimiser: the network's own, but for what the user has set."""
        given: dict[str, Any] = {"batch_size": self.batch_size, "clip_norm": self.clip_norm}
        given |= {
            name: value
            for name in ("learning_rate", "weight_decay")
            if (value := getattr(self, name)) != "auto"
        }
        return replace(self._architecture().optimisation, **given)

    def _random(self) -> np.random.RandomState:
        return ranks.from_first(super()._random())  # all ranks cut the same folds

    def _fit_folds(
        self, train_fold: FoldOrStream, selection: FoldOrStream, seed: int, *, keep_selection: bool
    ) -> None:
        ranks.check_agreement(getattr(self, "fingerprint_", ""))  # of the certification fold too
        self._learn_classes(train_fold)
        learned, measured = (self._with_classes(fold) for fold in (train_fold, selection))
        if isinstance(train_fold, Fold):
            images = getattr(train_fold.X, "ndim", 2) > 2
            self.encoder_ = None
            if not images:
                encoder = self._architecture().encoder(
                    text=self.text, dates=self.dates, embedding=self.embedding
                )
                self.encoder_ = encoder.fit(train_fold.X, as_fold(learned).y)
            data = {"X": train_fold.X, "y": self._target.decode(self, train_fold.y)}
        else:
            data = {"X": train_fold.source, "y": None}
        rows, chosen = (self._tensors(fold) for fold in (learned, measured))
        if isinstance(rows, Rows):
            self.input_shape_ = tuple(rows.X.shape[1:])
        self.network_ = self._build_network(seed).to(self._device)
        schedule = self._schedule()
        context = self._init_callback_context(max_subtasks=schedule.epochs * self._fits())
        context.call_on_fit_task_begin(estimator=self, **data)
        verbose = self.verbose if ranks.rank() == 0 else False
        with progress(type(self).__name__, schedule.epochs, verbose) as show:

            def after_epoch(history: History) -> bool:
                show(history)
                task = context.subcontext(task_name="epoch")
                task.call_on_fit_task_begin(estimator=self)
                stop = task.call_on_fit_task_end(
                    estimator=self,
                    metadata={"epoch": vars(history.records[-1])},
                    reconstruction_attributes=self._as_if_stopped_here,
                    **data,
                )
                return bool(stop)

            settings = {
                "schedule": schedule,
                "keep": self.checkpoint,
                "after_epoch": after_epoch,
                "checkpoint_file": Path(self.checkpoint_file) if self.checkpoint_file else None,
            }
            rows, chosen = self._fit_network(rows, chosen, seed, settings)
        if isinstance(rows, Rows) and isinstance(chosen, Rows):
            self._add_members(rows, chosen, seed)
        again = self._refits() and not keep_selection
        if again and isinstance(rows, Rows) and isinstance(chosen, Rows):
            # what the selection fold shows of a network that was not trained on it
            shown = self._outputs(selection.X).scored(as_fold(selection).y)
            self._selection_rows: ScoredRows | None = shown
            self._refit(rows, chosen, seed)
        context.call_on_fit_task_end(estimator=self, **data)
        advice = self.history_.advice()
        if advice:
            warn_user(advice, ConstraintWarning)

    def _fits(self) -> int:
        """Return how many networks may be trained before one is chosen."""
        return 1

    def _fit_network(
        self, rows: RowsOrStream, chosen: RowsOrStream, seed: int, settings: dict[str, Any]
    ) -> tuple[RowsOrStream, RowsOrStream]:
        """Train `network_`, and return both folds as it was trained on them."""
        more = self._constraint(chosen.total)
        self.history_ = self._train(rows, chosen, seed, **settings, **more)
        return rows, chosen

    def _add_members(self, rows: Rows, chosen: Rows, seed: int) -> None:
        """Fit what answers beside the network, if anything does."""

    def _refit(self, rows: Rows, chosen: Rows, seed: int) -> None:
        """Train a network anew, for as many epochs as served best, on the rows of both folds."""
        both = join_rows(rows, chosen)
        self.network_ = self._build_network(seed).to(self._device)
        schedule = Schedule.erm(self.history_.chosen_epoch)
        self._train(both, chosen, seed, schedule=schedule, keep="last")
        self.history_.refitted_rows = both.total

    def _train(
        self, rows: RowsOrStream, chosen: RowsOrStream, seed: int, **settings: Any
    ) -> History:
        """Train `network_` by the settings of this estimator, and those that one fit has for itself."""
        return train(
            self.network_,
            rows,
            chosen,
            alpha=self._budget,
            objective=self._objective(),
            optimisation=self._optimisation(),
            augment=self.augment,
            random_state=seed,
            **settings,
        )

    def _class_outputs(self, X: Any) -> Outputs:
        """Return probabilities of the network's classes, and the scores of one that learned some."""
        return self._read_outputs(self._encoded_pieces(X))

    def _read_outputs(self, pieces: Iterator[Tensor]) -> Outputs:
        """Return the same of rows that are encoded already."""
        objective = self._objective()
        # float64: near 1, float32 would merge scores into ties
        outputs = in_double(evaluate_logits(self.network_, pieces))
        proba, score = torch.softmax(objective.logits(outputs), -1), objective.score(outputs)
        return Outputs(proba.cpu().numpy(), None if score is None else score.cpu().numpy())

    def _encoded_pieces(self, X: Any) -> Iterator[Tensor]:
        """Yield encoded rows piece by piece, so that they never lie in memory all at once."""
        if isinstance(X, Inputs):
            yield from map(self._encode, X)
        elif self.encoder_ is None or isinstance(X, ColumnArrays):
            yield self._encode(X)
        else:
            frame = isinstance(X, pd.DataFrame)
            rows, size = (X.iloc, FRAME_ROWS) if frame else (X, ARRAY_ROWS)
            for start in range(0, len(X), size):
                try:
                    piece = self._encode(rows[start : start + size] if len(X) > size else X)
                except InvalidDataError:
                    self._encode(X)  # says the same of the row, counted from the first
                    raise
                yield piece

    def _encode(self, X: Any) -> Tensor:
        matrix = np.asarray(X, np.float32) if self.encoder_ is None else self.encoder_.compact(X)
        return torch.from_numpy(matrix).to(self._device)

    def _tensors(self, fold: FoldOrStream) -> RowsOrStream:
        if isinstance(fold, Stream):
            return fold
        y = fold.y.astype(np.int64)
        X, labels = self._encode(fold.X), torch.from_numpy(y).to(self._device)
        weight = self._weigh_rows(y, fold.weight)
        if weight is None:
            return Rows(X, labels)
        return AnnotatedRows(X, labels, torch.from_numpy(weight / weight.mean()).to(self._device))

    def _weigh_rows(
        self, y: NDArray[np.int64], given: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return how much each row counts in training, None if all count alike."""
        return given

    def _from_factory(self, outputs: int, seed: int) -> nn.Module:
        """Return a network with so many outputs and its first weights, a function of the seed."""
        shape, owner = self.input_shape_, type(self).__name__
        check_inputs(self.network, shape, owner)
        check_images(self.augment, shape, owner)
        bins = [] if self.encoder_ is None else self.encoder_.bins_
        factory = self._architecture().factory
        return build_network(factory, shape, bins, outputs, self._n_classes(), seed, owner)

    def _network_parts(self) -> NetworkParts:
        state = self.network_.state_dict()
        return NetworkParts(state, self.encoder_, self.history_, self.input_shape_)

    def _restore_network(self, parts: NetworkParts) -> None:
        self.encoder_, self.history_ = parts.encoder, parts.history
        if self.encoder_ is not None:
            self.embedding = self.encoder_.embedding  # which no file holds
        self.input_shape_ = parts.input_shape
        self.network_ = self._build_network(seed=0)
        self.network_.load_state_dict(parts.weights)
        self.network_.to(self._device).eval()

    def _as_if_stopped_here(self) -> dict[str, Any]:
        """Return what a callback needs to try the network in mid-training; it defers every row."""
        names = ("classes_", "encoder_", "scored_by_", "n_features_in_", "feature_names_in_")
        state = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return state | {"network_": copy.deepcopy(self.network_), "threshold_": np.inf}


def as_fold(part: FoldOrStream) -> Fold:
    """Return the fold; a stream becomes a `Fold` of its reader and its labels."""
    return part if isinstance(part, Fold) else Fold(part.X, part.y.cpu().numpy())
