"""How each training of the study is fitted: from a plan and a dataset to classifiers.

Every ``fit_*`` function takes a plan, a dataset, a seed and rho, and returns what it has `Fitted`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from torch import Tensor

from reliablenet._checks import parameter_error
from reliablenet.bench.profiles import Plan
from reliablenet.datasets import Dataset
from reliablenet.methods import (
    CertifiedThreshold,
    DeepGamblersClassifier,
    ERMClassifier,
    ReliableClassifier,
    SelectiveClassifier,
    SelectiveNetClassifier,
)
from reliablenet.methods.architectures import ARCHITECTURES, Architecture
from reliablenet.methods.ledger import closed
from reliablenet.tables import Fold, TabularEncoder
from reliablenet.training.adaptive import AdaptiveSchedule
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.networks import tabular
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.schedule import Schedule, training_threshold

ALONE = ("network",)  # a study of networks has no other members
PARTS = ("encoding", "ensemble", "average", "folds")  # of our default for tables
AUGMENT = {"coloured_mnist": "crops", "cifar10": "flips+crops"}  # a mirrored digit is none


@dataclass(frozen=True)
class Fitted:
    """What one fit gives.

    Parameters
    ----------
    model : SelectiveClassifier
    others : mapping
        Classifiers with the weights of other epochs of the same fit, by name.
    eps : float or None
        The paper's eps*, which a warmed-up network sets on the selection fold; None where there is
        no such network.
    """

    model: SelectiveClassifier
    others: Mapping[str, SelectiveClassifier] = field(default_factory=dict)
    eps: float | None = None


def fit_erm(plan: Plan, dataset: Dataset, seed: int, rho: float) -> Fitted:
    """Fit by cross-entropy: the last epoch, and besides the warmed-up network and the best epoch.

    ERM after the epochs of the warm-up is the warmed-up network of ReliableNet, to the bit.
    """
    settings = _shared(plan, seed, rho) | _network(plan)
    early = ERMClassifier(**settings, epochs=plan.epochs, checkpoint="selection")
    snapshots = Snapshots(plan.warmup_epochs)
    early.set_callbacks(snapshots)
    fit_on(early, dataset)
    warm = _with_weights(early, snapshots.early)
    return Fitted(
        _with_weights(early, snapshots.last),
        {"warmup": warm, "erm_early": early},
        _find_eps(warm, dataset.folds.selection),
    )


def fit_reliablenet(plan: Plan, dataset: Dataset, seed: int, rho: float) -> Fitted:
    """Fit as the paper does: the epoch that the selection fold chooses, and besides the last one."""
    schedule = Schedule(
        warmup_epochs=plan.warmup_epochs,
        epochs_per_stage=plan.epochs_per_stage,
        max_stages=plan.max_stages,
        above_floor=False,  # the stopping rule as the paper writes it
        dual_rate=plan.dual_rate,
    )
    model = ReliableClassifier(
        **_shared(plan, seed, rho), **_network(plan), members=ALONE, schedule=schedule
    )
    snapshots = Snapshots(plan.warmup_epochs)
    model.set_callbacks(snapshots)
    fit_on(model, dataset)
    last = _with_weights(model, snapshots.last)
    return Fitted(model, {"reliablenet_last": last}, model.training_threshold_)


def fit_selectivenet(plan: Plan, dataset: Dataset, seed: int, rho: float) -> Fitted:
    """Fit SelectiveNet."""
    settings = _shared(plan, seed, rho) | _network(plan)
    model = SelectiveNetClassifier(**settings, epochs=plan.epochs)
    fit_on(model, dataset)
    return Fitted(model)


def fit_deep_gamblers(plan: Plan, dataset: Dataset, seed: int, rho: float) -> Fitted:
    """Fit Deep Gamblers."""
    settings = _shared(plan, seed, rho) | _network(plan)
    model = DeepGamblersClassifier(**settings, epochs=plan.epochs, warmup_epochs=plan.warmup_epochs)
    fit_on(model, dataset)
    return Fitted(model)


def fit_boosting(
    plan: Plan, dataset: Dataset, seed: int, rho: float, *, join: bool = False
) -> Fitted:
    """Fit gradient-boosted trees; joined, on training and selection rows."""
    trees = HistGradientBoostingClassifier(random_state=seed)
    pipeline = make_pipeline(TabularEncoder(), trees)
    model = CertifiedThreshold(pipeline, plan.alpha, rho, random_state=seed)
    fit_on(model, dataset, join=join)
    return Fitted(model)


def fit_tabular(
    plan: Plan, dataset: Dataset, seed: int, rho: float, *, constrained: bool = False
) -> Fitted:
    """Fit the network of our default for tables; constrained, for the paper's eps* as a fixed threshold."""
    settings = _shared(plan, seed, rho)
    warm = ERMClassifier(**settings, **_network(plan), epochs=plan.warmup_epochs)
    fit_on(warm, dataset)
    eps = _find_eps(warm, dataset.folds.selection)
    schedule = adaptive_schedule(plan)
    model = ReliableClassifier(**settings, members=ALONE, network="tabular", schedule=schedule)
    if constrained:
        model.set_params(threshold=eps)
    fit_on(model, dataset)
    return Fitted(model, {"warmup": warm}, eps)


def fit_ablated(plan: Plan, dataset: Dataset, seed: int, rho: float, *, without: str) -> Fitted:
    """Fit the network of our default for tables without one of its parts."""
    model = AblatedClassifier(
        **_shared(plan, seed, rho),
        members=ALONE,
        network="tabular",
        schedule=adaptive_schedule(plan),
        without=without,
    )
    fit_on(model, dataset)
    return Fitted(model)


def fit_images(
    plan: Plan, dataset: Dataset, seed: int, rho: float, *, augmented: bool = False
) -> Fitted:
    """Fit our settings for images, with the network of the paper."""
    model = build_images(plan, seed, rho, augmented=augmented)
    fit_on(model, dataset)
    return Fitted(model)


def build_images(plan: Plan, seed: int, rho: float, *, augmented: bool = False) -> SizedClassifier:
    """Return the classifier for images, unfitted; augmented, it trains on images moved at random."""
    return SizedClassifier(
        **_shared(plan, seed, rho),
        network=plan.network,
        width=plan.width,
        schedule=adaptive_schedule(plan),
        augment=AUGMENT[plan.dataset] if augmented else None,
    )


def fit_on(model: SelectiveClassifier, dataset: Dataset, *, join: bool = False) -> None:
    """Fit on the folds of a dataset; joined, the selection rows are training rows too.

    A study certifies every method on the same rows by design, so that the ledger is closed.
    """
    folds = dataset.folds
    X, y = folds.train.X, folds.train.y
    if join:
        other = folds.selection
        X = pd.concat([X, other.X]) if isinstance(X, pd.DataFrame) else np.concatenate([X, other.X])
        y = np.concatenate([y, other.y])
    with closed():
        model.fit(X, y, selection=folds.selection, certification=folds.certification)


def adaptive_schedule(plan: Plan) -> AdaptiveSchedule:
    """Return our own schedule, with no phase longer than the training of ERM."""
    full = ARCHITECTURES[plan.network].schedule
    return replace(
        full,
        warmup_epochs=min(full.warmup_epochs, plan.epochs),
        epochs_per_stage=min(full.epochs_per_stage, plan.epochs),
    )


@dataclass(eq=False, repr=False)
class AblatedClassifier(ReliableClassifier):
    """`ReliableClassifier` with ``network="tabular"``, without one of its parts.

    Parameters
    ----------
    without : {"encoding", "ensemble", "average", "folds"}
        "encoding": numbers are standardised and categories one-hot encoded, as in the paper.
        "ensemble": one member. "average": the weights as they are. "folds": no second fit on
        training and selection rows together.
    """

    _: KW_ONLY
    without: str = "encoding"

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.without not in PARTS:
            raise parameter_error(
                "without", "AblatedClassifier", f"be one of {PARTS}", self.without
            )

    def _architecture(self) -> Architecture:
        full = super()._architecture()
        if self.without == "encoding":
            return replace(full, encoder=TabularEncoder)
        if self.without == "ensemble":
            return replace(full, factory=partial(tabular, members=1))
        if self.without == "average":
            return replace(full, optimisation=replace(full.optimisation, averaging=0.0))
        return full

    def _refits(self) -> bool:
        return self.without != "folds" and super()._refits()


@dataclass(eq=False, repr=False)
class SizedClassifier(ReliableClassifier):
    """`ReliableClassifier` whose named network has a width of one's own.

    Parameters
    ----------
    width : int, optional
    """

    _: KW_ONLY
    width: int | None = None

    def _architecture(self) -> Architecture:
        named = super()._architecture()
        if self.width is None:
            return named
        factory: Any = named.factory
        return replace(named, factory=partial(factory, width=self.width))


class Snapshots:
    """A callback of scikit-learn's kind that keeps the weights of an early and of the last epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.early: dict[str, Tensor] = {}
        self.last: dict[str, Tensor] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing to do before an epoch."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any) -> None:
        """Copy the weights after an epoch."""
        if context.task_name == "epoch":
            self.last = copy.deepcopy(estimator.network_.state_dict())
            if metadata["epoch"]["epoch"] == self.epoch:
                self.early = self.last

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to clear away."""


def _shared(plan: Plan, seed: int, rho: float) -> dict[str, Any]:
    return {"alpha": plan.alpha, "rho": rho, "random_state": seed, "verbose": False}


def _network(plan: Plan) -> dict[str, Any]:
    width = {} if plan.width is None else {"width": plan.width}
    factory = partial(ARCHITECTURES[plan.network].factory, **width)
    if not plan.bfloat16:
        return {"network": factory}
    return {"network": Architecture(factory, optimisation=Optimisation(bfloat16=True))}


def _with_weights(model: Any, weights: dict[str, Tensor]) -> Any:
    """Return the classifier with other weights; its rule does not hold for them, so it has none."""
    other = copy.copy(model)
    other.network_ = copy.deepcopy(model.network_)
    other.network_.load_state_dict(weights)
    other.threshold_ = math.inf
    return other


def _find_eps(warm: Any, selection: Fold) -> float:
    """Return eps*, which the warmed-up network of this seed sets on the selection fold."""
    logits = evaluate_logits(warm.network_, warm._encode(selection.X))
    labels = torch.from_numpy(np.searchsorted(warm.classes_, selection.y))
    return training_threshold(logits, labels, Schedule().threshold_quantile)
