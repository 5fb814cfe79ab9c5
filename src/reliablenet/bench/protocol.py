"""Protocol: what is trained, which rules are made of it, and what is measured of each.

A *training* is one fit; a *method* is a rule made of it. All methods of a training share its fit.
The operating point of a method is fixed before its certification fold is opened, except for the
certified threshold, whose certificate is valid for a choice on the fold itself.
"""

from __future__ import annotations

import math
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from torch import nn

from reliablenet._version import __version__
from reliablenet.bench.profiles import Plan
from reliablenet.bench.store import settings_hash
from reliablenet.certificate import Certificate
from reliablenet.certificate.certify import count_rows
from reliablenet.certificate.scored import score_rows
from reliablenet.certificate.threshold import certify_monotone
from reliablenet.data import Dataset, Fold, TabularEncoder, load_dataset
from reliablenet.methods import (
    CertifiedThreshold,
    ConformalRiskControl,
    DeepGamblersClassifier,
    ERMClassifier,
    ReliableClassifier,
    SelectiveClassifier,
    SelectiveNetClassifier,
    TemperatureScaling,
)
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.metrics import evaluate, risk_coverage_curve
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.loop import training_threshold
from reliablenet.training.networks import cnn5, mlp, resnet18
from reliablenet.training.schedule import Schedule

# Training: the methods made of it. "@eps" acts at eps*, "+certified" at a certified threshold.
TRAININGS = {
    "erm": (
        "erm",
        "erm@eps",
        "erm+certified",
        "temperature",
        "temperature@eps",
        "confidence_threshold",
        "conformal_risk_control",
    ),
    "warmup": ("warmup@eps",),
    "erm_early": ("erm_early+certified",),
    "selectivenet": ("selectivenet",),
    "deep_gamblers": ("deep_gamblers",),
    "reliablenet": ("reliablenet@eps", "reliablenet+certified"),
    "reliablenet_last": ("reliablenet_last@eps", "reliablenet_last+certified"),
    "boosting": ("boosting+certified",),
}
METHODS = tuple(method for methods in TRAININGS.values() for method in methods)
GRID = np.linspace(0.005, 1.0, 200)  # coverages at which curves are stored
NETWORKS: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "cnn5": cnn5, "resnet18": resnet18}
Run = tuple[dict[str, Any], NDArray[np.float32] | None]


def run_settings(plan: Plan, method: str, seed: int, rho: float) -> dict[str, Any]:
    """Return all that decides the outcome of a run, as JSON can hold it."""
    return {"method": method, "seed": seed, "rho": rho} | asdict(plan)


def run_training(
    plan: Plan, training: str, methods: list[str], seed: int, rho: float
) -> dict[str, Run]:
    """Fit once, and return the record and the curves of each method asked for.

    Whatever goes wrong is recorded as the error of all of them.
    """
    try:
        dataset = _dataset(plan.dataset, seed, tuple(sorted(plan.data.items())))
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = build(plan, training, seed, rho)
            _fit(model, dataset)
            shared = {
                "fit_seconds": round(time.perf_counter() - start, 3),
                "notes": sorted({str(warning.message) for warning in caught}),
            }
            results = {
                method: _run_method(plan, method, model, dataset, seed, rho) for method in methods
            }
    except Exception as error:  # one broken run must not end the study
        story = f"{type(error).__name__}: {error}"
        return {
            method: (_frame_of(plan, method, seed, rho) | {"error": story}, None)
            for method in methods
        }
    return {
        method: (record | {"timing": shared}, curves)
        for method, (record, curves) in results.items()
    }


def build(plan: Plan, training: str, seed: int, rho: float) -> SelectiveClassifier:
    """Return the estimator of a training, unfitted."""
    shared: dict[str, Any] = {"alpha": plan.alpha, "rho": rho, "random_state": seed}
    if training == "boosting":
        trees = HistGradientBoostingClassifier(random_state=seed)
        return CertifiedThreshold(make_pipeline(TabularEncoder(), trees), **shared)
    width = {} if plan.width is None else {"width": plan.width}
    shared |= {"network": partial(NETWORKS[plan.network], **width), "verbose": False}
    if training.startswith("reliablenet"):
        schedule = Schedule(
            warmup_epochs=plan.warmup_epochs,
            epochs_per_stage=plan.epochs_per_stage,
            max_stages=plan.max_stages,
            above_floor=False,  # the stopping rule as the paper writes it
        )
        keep = "last" if training.endswith("last") else "selection"
        return ReliableClassifier(**shared, schedule=schedule, checkpoint=keep)
    if training == "warmup":
        return ERMClassifier(**shared, epochs=plan.warmup_epochs)
    if training == "erm_early":
        return ERMClassifier(**shared, epochs=plan.epochs, checkpoint="selection")
    if training == "selectivenet":
        return SelectiveNetClassifier(**shared, epochs=plan.epochs)
    if training == "deep_gamblers":
        return DeepGamblersClassifier(
            **shared, epochs=plan.epochs, warmup_epochs=plan.warmup_epochs
        )
    return ERMClassifier(**shared, epochs=plan.epochs)


@lru_cache(maxsize=1)  # a worker runs the trainings of one dataset and seed one after the other
def _dataset(name: str, seed: int, settings: tuple[tuple[str, Any], ...]) -> Dataset:
    return load_dataset(name, seed, **dict(settings))


def _fit(model: SelectiveClassifier, dataset: Dataset) -> None:
    folds = dataset.folds
    model.fit(
        folds.train.X,
        folds.train.y,
        selection=folds.selection,
        certification=folds.certification,
    )


def _run_method(
    plan: Plan,
    method: str,
    trained: SelectiveClassifier,
    dataset: Dataset,
    seed: int,
    rho: float,
) -> Run:
    """Fix the operating point of one method, then measure it everywhere."""
    model, threshold = _operating_point(plan, method, trained, dataset, seed, rho)
    fold = dataset.folds.certification
    outputs = model._checked_outputs(fold.X)
    rows = score_rows(
        outputs.proba, fold.y, score=outputs.score, classes=model.classes_, owner=method
    )
    certificate: Certificate
    if threshold is None:
        certificate = certify_monotone(rows, plan.alpha, rho)
        threshold = certificate.threshold
    else:
        certificate = count_rows(rows, threshold, plan.alpha, rho, "fixed")
    parts: dict[str, Any] = {"certification": _measure(model, fold, threshold, plan.alpha)}
    if dataset.test is not None:
        parts["test"] = _measure(model, dataset.test, threshold, plan.alpha)
    for name, folds in (("shifts", dataset.shifts), ("groups", dataset.groups)):
        parts[name] = {
            key: _measure(model, part, threshold, plan.alpha) for key, part in folds.items()
        }
    parts["sweeps"] = {
        f"{level:g}": _measure(model, part, threshold, plan.alpha)
        for level, part in dataset.sweeps.items()
    }
    record = _frame_of(plan, method, seed, rho) | {
        "info": _plain(dict(dataset.info)),
        "rows": {name: len(part) for name, part in vars(dataset.folds).items()},
        "threshold": _plain(threshold),
        "certificate": certificate.to_dict(),
        "measured": parts,
    }
    shift = next(iter(dataset.shifts.values()))
    return record, np.stack([_curve(model, part) for part in (fold, shift)])


def _operating_point(
    plan: Plan,
    method: str,
    trained: SelectiveClassifier,
    dataset: Dataset,
    seed: int,
    rho: float,
) -> tuple[SelectiveClassifier, float | None]:
    """Return the model that decides and its threshold; None for a certified one."""
    wrappers: dict[str, type[WrappingClassifier]] = {
        "temperature": TemperatureScaling,
        "conformal_risk_control": ConformalRiskControl,
    }
    model = trained
    if wrapper := wrappers.get(method.split("@")[0]):
        model = wrapper(trained, plan.alpha, rho)
        _fit(model, dataset)
    if method.endswith("+certified"):
        return model, None
    if method.endswith("@eps"):
        return model, _eps(plan, trained, dataset, seed, rho)
    if method == "erm":  # accepts everything, as the paper's table has it
        return model, 0.0
    return model, model.selection_threshold_


def _eps(
    plan: Plan, trained: SelectiveClassifier, dataset: Dataset, seed: int, rho: float
) -> float:
    """Return eps*, which the warmed-up network of this seed sets on the selection fold."""
    if isinstance(trained, ReliableClassifier):
        return trained.training_threshold_
    warm: Any = trained
    if not (isinstance(trained, ERMClassifier) and trained.epochs == plan.warmup_epochs):
        warm = build(plan, "warmup", seed, rho)
        _fit(warm, dataset)
    selection = dataset.folds.selection
    logits = evaluate_logits(warm.network_, warm._encode(selection.X))
    labels = torch.from_numpy(np.searchsorted(warm.classes_, selection.y))
    return training_threshold(logits, labels, Schedule().threshold_quantile)


def _measure(
    model: SelectiveClassifier, fold: Fold, threshold: float, alpha: float
) -> dict[str, Any]:
    outputs = model._checked_outputs(fold.X)
    result = evaluate(
        outputs.proba,
        fold.y,
        accepted=outputs.acceptance() >= threshold,
        score=outputs.score,
        classes=model.classes_,
        alpha=alpha,
    )
    return dict(_plain(result.to_dict()))


def _curve(model: SelectiveClassifier, fold: Fold) -> NDArray[np.float32]:
    """Return the error rate of accepted rows at each coverage of the grid."""
    outputs = model._checked_outputs(fold.X)
    curve = risk_coverage_curve(outputs.proba, fold.y, score=outputs.score, classes=model.classes_)
    place = np.searchsorted(curve.coverage, GRID - 1e-12).clip(max=len(curve.coverage) - 1)
    risk: NDArray[np.float32] = curve.risk[place].astype(np.float32)
    return risk


def _frame_of(plan: Plan, method: str, seed: int, rho: float) -> dict[str, Any]:
    settings = run_settings(plan, method, seed, rho)
    return {
        "method": method,
        "seed": seed,
        "alpha": plan.alpha,
        "rho": rho,
        "settings": settings,
        "hash": settings_hash(settings),
        "versions": {
            "reliablenet": __version__,
            "torch": torch.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def _plain(value: Any) -> Any:
    """Return a value as strict JSON can hold it; NaN becomes null, infinities become text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
