"""`NeuralClassifier`: what all methods that train a network of their own have in common."""

from __future__ import annotations

import copy
import hashlib
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from sklearn.callback import with_callbacks
from torch import Tensor, nn

from reliablenet._checks import parameter_error
from reliablenet._warn import warn_user
from reliablenet.certificate import Promise
from reliablenet.errors import ConstraintWarning, InvalidDataError
from reliablenet.methods.architectures import (
    Architecture,
    NetworkFactory,
    build_network,
    check_inputs,
    find_architecture,
)
from reliablenet.methods.base import SelectiveClassifier
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.inputs import FitFolds
from reliablenet.methods.seen import fingerprint
from reliablenet.modelfile.network import NetworkParts
from reliablenet.tables.folds import Fold, Folds
from reliablenet.tables.tabular import TabularEncoder
from reliablenet.training import ranks
from reliablenet.training.batches import Rows, check_augment, check_images
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.history import History, progress
from reliablenet.training.loop import train
from reliablenet.training.objective import Objective
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.schedule import BaseSchedule, Schedule
from reliablenet.training.stream import Inputs, Source, Stream, is_source

ARRAY_ROWS, FRAME_ROWS = 2048, 65_536  # encoded together; a column of a frame costs more to begin
Auto = float | Literal["auto"]  # "auto": what suits the network
FoldOrStream = Fold | Stream
RowsOrStream = Rows | Stream


@dataclass(eq=False, repr=False)  # scikit-learn brings its own
class NeuralClassifier(SelectiveClassifier):
    """Encode rows, train a network by a schedule, and return its probabilities.

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
    fold_sizes: Any = "auto"
    device: str = "cpu"
    checkpoint_file: Any = None
    verbose: bool | str = "auto"
    random_state: Any = None

    network_: nn.Module = field(init=False)
    encoder_: TabularEncoder | None = field(init=False)
    input_shape_: tuple[int, ...] = field(init=False)
    history_: History = field(init=False)

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
        return self._from_factory(len(self.classes_), seed)

    def _constraint(self, selection_rows: int) -> dict[str, Any]:
        """Return the settings of `train` that only the constraint has."""
        return {}

    def _refits(self) -> bool:
        """Tell whether to train once more, on training and selection rows together."""
        return False

    def _tunes_on_selection(self) -> bool:
        schedule = self._schedule()
        return self.checkpoint == "selection" or schedule.constrained or schedule.chooses_epochs

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
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError, TypeError) as error:
            expected = "name a device that torch can use here"
            raise parameter_error("device", owner, expected, self.device) from error

    def _optimisation(self) -> Optimisation:
        """Return the settings of the optimiser: the network's own, but for what the user has set."""
        given: dict[str, Any] = {"batch_size": self.batch_size, "clip_norm": self.clip_norm}
        given |= {
            name: value
            for name in ("learning_rate", "weight_decay")
            if (value := getattr(self, name)) != "auto"
        }
        return replace(self._architecture().optimisation, **given)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        selection: Any = None,
        certification: Any = None,
        groups: Any = None,
        by: Any = None,
    ) -> Self:
        """Fit, choose the rule, and certify it.

        Where rows do not fit in memory, X is a `torch.utils.data.Dataset` or `DataLoader` and y is
        left out. It yields rows as float32, encoded already, and labels as class indices 0 to K-1.
        It is read once beforehand, to check it and to count its rows and classes. A Dataset is
        shuffled anew each epoch, by ``random_state``, in batches of ``batch_size``; a DataLoader
        brings its own order and batch size.

        In a `torch.distributed` group (`torchrun`) every rank calls `fit` alike and gets the same
        model. Each trains on its share of every batch, so that ``batch_size`` is that of one rank;
        a DataLoader must hold the rank's own part of the rows (`DistributedSampler`). Rank 0 writes
        ``checkpoint_file``.

        Parameters
        ----------
        X : array or data frame of shape (n, d), Dataset or DataLoader
            In a data frame, columns that are not numbers are categories, and values may be missing.
        y : array-like of shape (n,)
            Labels of any kind; None if X brings them.
        selection, certification : pair (X, y), optional
            Folds of your own. What is not given is cut from X and y by ``fold_sizes``: the
            certification fold at random, then the selection fold, stratified. A certification fold
            may be a triple (X, y, groups); one row of each group counts then.
            With a Dataset or DataLoader both are needed, and may be such as well, in a fixed order.
        groups : array-like of shape (n,), optional
            Whose row each is, such as a person's or a device's. A group stays in one fold, and of
            each group in the certification fold one row counts, drawn at random: the certificate
            is then about a random row of a random new group.
        by : array-like of shape (n,), or mapping or data frame of columns, optional
            Group of each row, where the promise speaks of groups; by default the column of X.

        Returns
        -------
        self
        """
        if is_source(X):
            if groups is not None:
                raise parameter_error(
                    "groups",
                    "fit",
                    f"be None: no fold is cut from a {type(X).__name__}",
                    type(groups).__name__,
                    "Keep each group in one of the folds you give, and certify on one row a group.",
                )
            if by is not None or (self.promise is not None and self.promise.columns):
                raise parameter_error(
                    "promise",
                    "fit",
                    f"not speak of groups: a {type(X).__name__} does not name them",
                    str(self.promise),
                    "Fit it with alpha, and certify by group with `CertifiedThreshold` around it.",
                )
            streamed: Self = self._fit_stream(X, y, selection, certification)
            return streamed
        for name, fold in (("selection", selection), ("certification", certification)):
            if is_source(fold):
                expected = "be a pair (X, y) if `X` is an array"
                raise parameter_error(name, "fit", expected, type(fold).__name__)
        fitted: Self = super().fit(
            X, y, selection=selection, certification=certification, groups=groups, by=by
        )
        return fitted

    @with_callbacks
    def _fit_stream(self, X: Source, y: Any, selection: Any, certification: Any) -> Self:
        """Fit on rows that are read batch by batch."""
        if y is not None:
            raise parameter_error("y", "fit", "be None: X yields the labels", type(y).__name__)
        given = {"selection": selection, "certification": certification}
        for name, fold in given.items():
            if fold is None:
                expected = f"be given: no fold can be cut from a {type(X).__name__}"
                raise parameter_error(name, "fit", expected, None)
        self._check_settings()
        random = self._random()
        rows = Stream(X, "X", device=self.device)
        self.classes_ = np.arange(rows.count_classes())
        if not isinstance(self.threshold, str):
            self._check_threshold(self.threshold)
        self.encoder_, self.input_shape_ = None, rows.shape
        self.n_features_in_ = rows.shape[0]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        chosen, held = (self._check_part(fold, name) for name, fold in given.items())
        folds = Folds(Fold(np.empty((0, 1)), np.empty(0, np.int64)), *map(_as_fold, (chosen, held)))
        self._target.warn_of_folds(self, folds)
        prints = [_fingerprint(part) for part in (rows, chosen, held)]
        self.fingerprint_ = hashlib.sha256(" ".join(prints).encode()).hexdigest()
        seed = int(random.randint(2**31 - 1))
        self.source_ = None  # rows that are read batch by batch are not described
        self._fit_folds(rows, chosen, seed, keep_selection=True)
        self._fix_rule(FitFolds(folds, np.full(len(folds.certification), -1), "row"), "")
        return self

    def _random(self) -> np.random.RandomState:
        return ranks.from_first(super()._random())  # all ranks cut the same folds

    def _check_rows(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        if not is_source(X):
            return super()._check_rows(X, y, reset=reset)
        return Inputs(X, self.input_shape_ if self.encoder_ is None else (self.n_features_in_,))

    def _check_part(self, fold: Any, name: str) -> FoldOrStream:
        """Return a fold to evaluate, given as arrays or to be read batch by batch."""
        if not is_source(fold):
            return self._check_fold(fold, name)
        part = Stream(fold, name, device=self.device, ordered=True)
        part.check_like(self.input_shape_, len(self.classes_))
        return part

    def _fit_folds(
        self, train_fold: FoldOrStream, selection: FoldOrStream, seed: int, *, keep_selection: bool
    ) -> None:
        ranks.check_agreement(getattr(self, "fingerprint_", ""))  # of the certification fold too
        if isinstance(train_fold, Fold):
            images = getattr(train_fold.X, "ndim", 2) > 2
            self.encoder_ = (
                None if images else self._architecture().encoder().fit(train_fold.X, train_fold.y)
            )
            data = {"X": train_fold.X, "y": self._target.decode(self, train_fold.y)}
        else:
            data = {"X": train_fold.source, "y": None}
        rows, chosen = (self._tensors(fold) for fold in (train_fold, selection))
        if isinstance(rows, Rows):
            self.input_shape_ = tuple(rows.X.shape[1:])
        self.network_ = self._build_network(seed).to(self.device)
        schedule = self._schedule()
        context = self._init_callback_context(max_subtasks=schedule.epochs)
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

            self.history_ = self._train(
                rows,
                chosen,
                seed,
                schedule=schedule,
                keep=self.checkpoint,
                after_epoch=after_epoch,
                checkpoint_file=Path(self.checkpoint_file) if self.checkpoint_file else None,
                **self._constraint(chosen.total),
            )
        again = self._refits() and not keep_selection
        if again and isinstance(rows, Rows) and isinstance(chosen, Rows):
            # what the selection fold shows of a network that was not trained on it
            self._selection_rows = self._outputs(selection.X).scored(_as_fold(selection).y)
            self._refit(rows, chosen, seed)
        context.call_on_fit_task_end(estimator=self, **data)
        advice = self.history_.advice()
        if advice:
            warn_user(advice, ConstraintWarning)

    def _refit(self, rows: Rows, chosen: Rows, seed: int) -> None:
        """Train a network anew, for as many epochs as served best, on the rows of both folds."""
        both = Rows(torch.cat([rows.X, chosen.X]), torch.cat([rows.y, chosen.y]))
        self.network_ = self._build_network(seed).to(self.device)
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
            seed=seed,
            **settings,
        )

    def _outputs(self, X: Any) -> Outputs:
        objective = self._objective()
        # float64: near 1, float32 would merge scores into ties
        outputs = evaluate_logits(self.network_, self._encoded_pieces(X)).double()
        proba, score = torch.softmax(objective.logits(outputs), -1), objective.score(outputs)
        return Outputs(proba.cpu().numpy(), None if score is None else score.cpu().numpy())

    def _encoded_pieces(self, X: Any) -> Iterator[Tensor]:
        """Yield encoded rows piece by piece, so that they never lie in memory all at once."""
        if isinstance(X, Inputs):
            yield from map(self._encode, X)
        elif self.encoder_ is None:
            yield self._encode(X)
        else:
            frame = isinstance(X, pd.DataFrame)
            rows, size = (X.iloc, FRAME_ROWS) if frame else (X, ARRAY_ROWS)
            for start in range(0, len(X), size):
                try:
                    piece = self._encode(rows[start : start + size])
                except InvalidDataError:
                    self._encode(X)  # says the same of the row, counted from the first
                    raise
                yield piece

    def _encode(self, X: Any) -> Tensor:
        matrix = np.asarray(X, np.float32) if self.encoder_ is None else self.encoder_.compact(X)
        return torch.from_numpy(matrix).to(self.device)

    def _tensors(self, fold: FoldOrStream) -> RowsOrStream:
        if isinstance(fold, Stream):
            return fold
        return Rows(self._encode(fold.X), torch.from_numpy(fold.y.astype(np.int64)).to(self.device))

    def _from_factory(self, outputs: int, seed: int) -> nn.Module:
        """Return a network with so many outputs and its first weights, a function of the seed."""
        shape, owner = self.input_shape_, type(self).__name__
        check_inputs(self.network, shape, owner)
        check_images(self.augment, shape, owner)
        bins = [] if self.encoder_ is None else self.encoder_.bins_
        factory = self._architecture().factory
        return build_network(factory, shape, bins, outputs, len(self.classes_), seed, owner)

    def _network_parts(self) -> NetworkParts:
        state = self.network_.state_dict()
        return NetworkParts(state, self.encoder_, self.history_, self.input_shape_)

    def _restore_network(self, parts: NetworkParts) -> None:
        self.encoder_, self.history_ = parts.encoder, parts.history
        self.input_shape_ = parts.input_shape
        self.network_ = self._build_network(seed=0)
        self.network_.load_state_dict(parts.weights)
        self.network_.to(self.device).eval()

    def _as_if_stopped_here(self) -> dict[str, Any]:
        """Return what a callback needs to try the network in mid-training; it defers every row."""
        names = ("classes_", "encoder_", "scored_by_", "n_features_in_", "feature_names_in_")
        state = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return state | {"network_": copy.deepcopy(self.network_), "threshold_": np.inf}


def _as_fold(part: FoldOrStream) -> Fold:
    return part if isinstance(part, Fold) else Fold(part.X, part.y.cpu().numpy())


def _fingerprint(part: FoldOrStream) -> str:
    return fingerprint(part.X, part.y) if isinstance(part, Fold) else part.fingerprint
