"""Trainings: what is fitted in the study, and the names of the methods that are made of each fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from torch import nn

from reliablenet.bench import ablations
from reliablenet.bench.ablations import AblatedClassifier
from reliablenet.bench.profiles import Plan
from reliablenet.bench.snapshots import Snapshots, with_weights
from reliablenet.datasets import Dataset
from reliablenet.methods import (
    CertifiedThreshold,
    DeepGamblersClassifier,
    ERMClassifier,
    ReliableClassifier,
    SelectiveClassifier,
    SelectiveNetClassifier,
)
from reliablenet.methods.architectures import Architecture
from reliablenet.methods.ledger import closed
from reliablenet.tables import Fold, TabularEncoder
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.networks import cnn5, mlp, resnet18
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.schedule import AdaptiveSchedule, Schedule, training_threshold

# Training: the methods made of it. "@eps" acts at eps*, "+certified" at a certified threshold.
# "tabular" is our default for tables, "tabular_constrained" the same at eps* as a fixed threshold;
# "images" are our settings for images, with the network of the paper.
TRAININGS = {
    "erm": (
        "erm",
        "erm@eps",
        "erm+certified",
        "temperature",
        "temperature@eps",
        "confidence_threshold",
        "conformal_risk_control",
        "warmup@eps",
        "erm_early+certified",
    ),
    "selectivenet": ("selectivenet",),
    "deep_gamblers": ("deep_gamblers",),
    "reliablenet": (
        "reliablenet@eps",
        "reliablenet+certified",
        "reliablenet_last@eps",
        "reliablenet_last+certified",
    ),
    "boosting": ("boosting+certified",),
    "boosting_all": ("boosting_all+certified",),  # on training and selection rows
    "tabular": ("tabular+certified", "tabular_free@eps"),
    "tabular_constrained": ("tabular@eps", "tabular_constrained+certified"),
    "images": ("images+certified",),
    "images_augmented": ("images_augmented+certified",),
}
# Only run when they are named.
ABLATIONS = {f"tabular-{part}": (f"tabular-{part}+certified",) for part in ablations.PARTS}
METHODS = tuple(method for methods in TRAININGS.values() for method in methods)
NEED_A_TABLE = ("boosting", "tabular")  # what the names of such trainings and methods begin with
NEED_IMAGES = ("images",)
AUGMENT = {"coloured_mnist": "crops", "cifar10": "flips+crops"}  # a mirrored digit is none
NETWORKS: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "cnn5": cnn5, "resnet18": resnet18}


def suits(name: str, plan: Plan) -> bool:
    """Tell whether a training or method is for the kind of rows of a plan."""
    return not name.startswith(NEED_IMAGES if plan.boosting else NEED_A_TABLE)


def fit_models(
    plan: Plan, training: str, dataset: Dataset, seed: int, rho: float
) -> dict[str, SelectiveClassifier]:
    """Fit once; return by name the classifiers that the weights of several epochs make.

    ERM after the epochs of the warm-up is the warmed-up network, to the bit.
    """
    model = build(plan, training, seed, rho)
    if training in ("tabular", "tabular_constrained"):
        warm = build(plan, "warmup", seed, rho)
        fit_on(warm, dataset)
        if training == "tabular_constrained":
            model.set_params(threshold=find_eps({"warmup": warm}, dataset.folds.selection))
        fit_on(model, dataset)
        return {training: model, "warmup": warm}
    snapshots = Snapshots(plan.warmup_epochs)
    if training in ("erm", "reliablenet"):
        model.set_callbacks(snapshots)
    fit_on(model, dataset, join=training == "boosting_all")
    if training == "erm":
        return {
            "erm": with_weights(model, snapshots.last),
            "warmup": with_weights(model, snapshots.early),
            "erm_early": model,
        }
    if training == "reliablenet":
        return {"reliablenet": model, "reliablenet_last": with_weights(model, snapshots.last)}
    return {training: model}


def build(plan: Plan, training: str, seed: int, rho: float) -> Any:
    """Return the estimator of a training, unfitted; it keeps the weights that selection chooses."""
    shared: dict[str, Any] = {"alpha": plan.alpha, "rho": rho, "random_state": seed}
    if training.startswith("boosting"):
        trees = HistGradientBoostingClassifier(random_state=seed)
        return CertifiedThreshold(make_pipeline(TabularEncoder(), trees), **shared)
    if training.startswith("tabular"):
        shared |= {"network": "tabular", "schedule": adaptive_schedule(plan), "verbose": False}
        part = training.partition("-")[2]
        return AblatedClassifier(**shared, without=part) if part else ReliableClassifier(**shared)
    if training.startswith("images"):
        return SizedClassifier(
            **shared,
            network=plan.network,
            width=plan.width,
            schedule=adaptive_schedule(plan),
            augment=AUGMENT[plan.dataset] if training == "images_augmented" else None,
            verbose=False,
        )
    width = {} if plan.width is None else {"width": plan.width}
    shared |= {"network": partial(NETWORKS[plan.network], **width), "verbose": False}
    if training == "reliablenet":
        schedule = Schedule(
            warmup_epochs=plan.warmup_epochs,
            epochs_per_stage=plan.epochs_per_stage,
            max_stages=plan.max_stages,
            above_floor=False,  # the stopping rule as the paper writes it
        )
        return ReliableClassifier(**shared, schedule=schedule)
    if training == "selectivenet":
        return SelectiveNetClassifier(**shared, epochs=plan.epochs)
    if training == "deep_gamblers":
        return DeepGamblersClassifier(
            **shared, epochs=plan.epochs, warmup_epochs=plan.warmup_epochs
        )
    if training == "warmup":
        return ERMClassifier(**shared, epochs=plan.warmup_epochs)
    return ERMClassifier(**shared, epochs=plan.epochs, checkpoint="selection")


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
        return replace(named, factory=partial(NETWORKS[str(self.network)], width=self.width))


def own_settings(plan: Plan, method: str) -> dict[str, Any]:
    """Return the settings of our own methods, which may still change."""
    kinds = {"tabular": Optimisation.tabular(), "images": Optimisation.images()}
    for kind, optimisation in kinds.items():
        if method.startswith(kind):
            schedule = adaptive_schedule(plan)
            return {"optimisation": asdict(optimisation), "schedule": asdict(schedule)}
    return {}


def adaptive_schedule(plan: Plan) -> AdaptiveSchedule:
    """Return our own schedule, with no phase longer than the training of ERM."""
    full = Schedule.adaptive()
    return replace(
        full,
        warmup_epochs=min(full.warmup_epochs, plan.epochs),
        epochs_per_stage=min(full.epochs_per_stage, plan.epochs),
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


def find_eps(models: dict[str, Any], selection: Fold) -> float:
    """Return eps*, which the warmed-up network of this seed sets on the selection fold."""
    if "reliablenet" in models:
        threshold: float = models["reliablenet"].training_threshold_
        return threshold
    warm = models["warmup"]
    logits = evaluate_logits(warm.network_, warm._encode(selection.X))
    labels = torch.from_numpy(np.searchsorted(warm.classes_, selection.y))
    return training_threshold(logits, labels, Schedule().threshold_quantile)
