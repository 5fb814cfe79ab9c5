"""`NeuralClassifier`: what all methods that train a network of their own have in common."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from reliablenet._checks import parameter_error
from reliablenet._warn import warn_user
from reliablenet.data.folds import Fold
from reliablenet.data.tabular import TabularEncoder
from reliablenet.errors import ConstraintWarning, InvalidDataError
from reliablenet.methods.base import SelectiveClassifier
from reliablenet.methods.decisions import Outputs
from reliablenet.risk.surrogate import M1, M2
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.history import History
from reliablenet.training.loop import Optimisation, Rows, train
from reliablenet.training.networks import cnn5, mlp, resnet18
from reliablenet.training.objective import Objective
from reliablenet.training.progress import progress
from reliablenet.training.schedule import Schedule

NetworkFactory = Callable[[Any, int], nn.Module]
NETWORKS: dict[str, NetworkFactory] = {
    "cnn5": cnn5,
    "mlp": mlp,
    "resnet18": resnet18,
}


@dataclass(eq=False, repr=False)  # scikit-learn brings its own
class NeuralClassifier(SelectiveClassifier):
    """Encode rows, train a network by a schedule, and return its probabilities.

    Attributes
    ----------
    network_ : nn.Module
    encoder_ : TabularEncoder or None
        None for inputs with more than two axes, which go to the network as they are.
    input_shape_ : tuple of int
        Shape of one encoded row.
    history_ : History
        The course of training, epoch by epoch.
    """

    alpha: float = 0.05
    rho: float = 0.05
    threshold: str | float = "certified"
    _: KW_ONLY
    network: str | NetworkFactory = "mlp"
    checkpoint: str = "last"
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    clip_norm: float = 5.0
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
    def _schedule(self) -> Schedule:
        """Return the schedule to train by."""

    def _objective(self) -> Objective:
        """Return what unconstrained epochs minimise."""
        return Objective()

    def _build_network(self, seed: int) -> nn.Module:
        """Return a network with its first weights, a function of the seed."""
        return self._from_factory(len(self.classes_), seed)

    def _training_threshold(self) -> float | None:
        """Return the threshold of the constraint, None to take it from the selection fold."""
        return None

    def _surrogate(self) -> tuple[float, float]:
        """Return m1 and m2."""
        return M1, M2

    def _check_settings(self) -> None:
        super()._check_settings()
        owner = type(self).__name__
        self._optimisation()
        self._schedule()
        if self.checkpoint not in ("selection", "last"):
            raise parameter_error("checkpoint", owner, 'be "selection" or "last"', self.checkpoint)
        if self.verbose not in (True, False, "auto"):
            raise parameter_error("verbose", owner, 'be True, False or "auto"', self.verbose)
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError, TypeError) as error:
            raise parameter_error(
                "device", owner, "name a device that torch can use here", self.device
            ) from error
        if not callable(self.network) and self.network not in NETWORKS:
            raise parameter_error(
                "network",
                owner,
                f"be one of {sorted(NETWORKS)} or a function (n_features, n_classes) -> nn.Module",
                self.network,
            )

    def _optimisation(self) -> Optimisation:
        return Optimisation(self.batch_size, self.learning_rate, self.weight_decay, self.clip_norm)

    def _fit_folds(self, train_fold: Fold, selection: Fold, seed: int) -> None:
        if getattr(train_fold.X, "ndim", 2) > 2:
            self.encoder_ = None
        else:
            self.encoder_ = TabularEncoder().fit(train_fold.X)
        rows, chosen = (self._tensors(fold) for fold in (train_fold, selection))
        self.input_shape_ = tuple(rows.X.shape[1:])
        self.network_ = self._build_network(seed).to(self.device)
        schedule = self._schedule()
        m1, m2 = self._surrogate()
        data = {"X": train_fold.X, "y": self.classes_[train_fold.y]}
        context = self._init_callback_context(max_subtasks=schedule.epochs)
        context.call_on_fit_task_begin(estimator=self, **data)
        with progress(type(self).__name__, schedule.epochs, self.verbose) as show:

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

            self.history_ = train(
                self.network_,
                rows,
                chosen,
                alpha=self.alpha,
                schedule=schedule,
                objective=self._objective(),
                optimisation=self._optimisation(),
                threshold=self._training_threshold(),
                keep="last" if self.checkpoint == "last" else "selection",
                seed=seed,
                m1=m1,
                m2=m2,
                after_epoch=after_epoch,
                checkpoint_file=Path(self.checkpoint_file) if self.checkpoint_file else None,
            )
        context.call_on_fit_task_end(estimator=self, **data)
        advice = self.history_.advice()
        if advice:
            warn_user(advice, ConstraintWarning)

    def _outputs(self, X: Any) -> Outputs:
        objective = self._objective()
        # float64: near 1, float32 would merge scores into ties
        outputs = evaluate_logits(self.network_, self._encode(X)).double()
        proba, score = torch.softmax(objective.logits(outputs), -1), objective.score(outputs)
        return Outputs(proba.cpu().numpy(), None if score is None else score.cpu().numpy())

    def _encode(self, X: Any) -> Tensor:
        matrix = np.asarray(X, np.float32) if self.encoder_ is None else self.encoder_.transform(X)
        return torch.from_numpy(matrix).to(self.device)

    def _tensors(self, fold: Fold) -> Rows:
        return Rows(self._encode(fold.X), torch.from_numpy(fold.y.astype(np.int64)).to(self.device))

    def _from_factory(self, width: int, seed: int) -> nn.Module:
        """Return what the factory makes for a number of outputs, checked with one row of zeros."""
        shape = self.input_shape_
        factory = NETWORKS[self.network] if isinstance(self.network, str) else self.network
        owner = type(self).__name__
        with torch.random.fork_rng([]):  # initialisation draws from torch's global generator
            torch.manual_seed(seed)
            network = factory(shape[0] if len(shape) == 1 else shape, width)
            if not isinstance(network, nn.Module):
                raise parameter_error(
                    "network", owner, "return an nn.Module", type(network).__name__
                )
            # Convolutions take 0.6 to 0.8 of the time with the channels last; rows stay as they are.
            network = network.to(memory_format=torch.channels_last)
            returned = tuple(evaluate_logits(network, torch.zeros(1, *shape)).shape)
        if returned != (1, width):
            raise InvalidDataError(
                f"`network` of {owner} must return {width} outputs a row "
                f"({len(self.classes_)} classes); for 1 row it returned shape {returned}."
            )
        return network

    def _as_if_stopped_here(self) -> dict[str, Any]:
        """Return what a callback needs to try the network in mid-training; it defers every row."""
        names = ("classes_", "encoder_", "score_", "n_features_in_", "feature_names_in_")
        state = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return state | {"network_": copy.deepcopy(self.network_), "threshold_": np.inf}
