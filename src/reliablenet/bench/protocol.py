"""Protocol: what is trained, which rules are made of it, and what is measured of each.

A *training* is one fit; a *method* is a rule made of it. All methods of a training share its fit.
The operating point of a method is fixed before its certification fold is opened, except for the
certified threshold, whose certificate is valid for a choice on the fold itself.
"""

from __future__ import annotations

import math
import platform
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
import sklearn
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from torch import nn

from reliablenet._version import __version__
from reliablenet.bench import ablations
from reliablenet.bench.ablations import AblatedClassifier
from reliablenet.bench.profiles import Plan
from reliablenet.bench.snapshots import Snapshots, with_weights
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
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.metrics import evaluate, risk_coverage_curve
from reliablenet.training.forward import evaluate_logits
from reliablenet.training.networks import cnn5, mlp, resnet18
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.schedule import Schedule
from reliablenet.training.thresholds import training_threshold

# Training: the methods made of it. "@eps" acts at eps*, "+certified" at a certified threshold.
# "tabular" is our default for tables, "tabular_constrained" the same at eps* as a fixed threshold.
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
}
# Only run when they are named.
ABLATIONS = {f"tabular-{part}": (f"tabular-{part}+certified",) for part in ablations.PARTS}
WRAPPERS: dict[str, type[WrappingClassifier]] = {
    "temperature": TemperatureScaling,
    "conformal_risk_control": ConformalRiskControl,
}
METHODS = tuple(method for methods in TRAININGS.values() for method in methods)
NEED_A_TABLE = ("boosting", "tabular")  # what the names of such trainings and methods begin with
GRID = np.linspace(0.005, 1.0, 200)  # coverages at which curves are stored
NETWORKS: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "cnn5": cnn5, "resnet18": resnet18}
Run = tuple[dict[str, Any], NDArray[np.float32] | None]


def run_settings(plan: Plan, method: str, seed: int, rho: float) -> dict[str, Any]:
    """Return all that decides the outcome of a run, as JSON can hold it."""
    own = {}
    if method.startswith("tabular"):  # its settings may still change
        own = {"optimisation": asdict(Optimisation.tabular()), "schedule": asdict(_adaptive(plan))}
    return {"method": method, "seed": seed, "rho": rho} | asdict(plan) | own


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
            models = fit_models(plan, training, dataset, seed, rho)
            shared = {
                "fit_seconds": round(time.perf_counter() - start, 3),
                "notes": sorted({str(warning.message) for warning in caught}),
            }
            rules = _fix_rules(plan, methods, models, dataset, rho)
            results = _measure_rules(plan, rules, dataset, seed, rho)
    except Exception as error:  # one broken run must not end the study
        return failed_runs(plan, methods, seed, rho, f"{type(error).__name__}: {error}")
    return {
        method: (record | {"timing": shared}, curves)
        for method, (record, curves) in results.items()
    }


def failed_runs(
    plan: Plan, methods: list[str], seed: int, rho: float, story: str
) -> dict[str, Run]:
    """Return the records of methods that could not be run, and why."""
    return {
        method: (_frame_of(plan, method, seed, rho) | {"error": story}, None) for method in methods
    }


def fit_models(
    plan: Plan, training: str, dataset: Dataset, seed: int, rho: float
) -> dict[str, SelectiveClassifier]:
    """Fit once; return by name the classifiers that the weights of several epochs make.

    ERM after the epochs of the warm-up is the warmed-up network, to the bit.
    """
    model = build(plan, training, seed, rho)
    if training in ("tabular", "tabular_constrained"):
        warm = build(plan, "warmup", seed, rho)
        _fit(warm, dataset)
        if training == "tabular_constrained":
            model.set_params(threshold=_eps({"warmup": warm}, dataset.folds.selection))
        _fit(model, dataset)
        return {training: model, "warmup": warm}
    snapshots = Snapshots(plan.warmup_epochs)
    if training in ("erm", "reliablenet"):
        model.set_callbacks(snapshots)
    _fit(model, dataset, join=training == "boosting_all")
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
        shared |= {"network": "tabular", "schedule": _adaptive(plan), "verbose": False}
        part = training.partition("-")[2]
        return AblatedClassifier(**shared, without=part) if part else ReliableClassifier(**shared)
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


def _adaptive(plan: Plan) -> Schedule:
    """Return our own schedule, with no phase longer than the training of ERM."""
    full = Schedule.adaptive()
    return replace(
        full,
        warmup_epochs=min(full.warmup_epochs, plan.epochs),
        epochs_per_stage=min(full.epochs_per_stage, plan.epochs),
    )


class _Remembering:
    """A fitted classifier that keeps its outputs on the rows it met last: many rules ask for them."""

    def __init__(self, model: SelectiveClassifier) -> None:
        self.model = model
        self.classes_ = model.classes_
        self._rows: Any = None

    def _checked_outputs(self, X: Any) -> Outputs:
        if X is not self._rows:
            self._rows, self._outputs = X, self.model._checked_outputs(X)
        return self._outputs

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities, for a rule that wraps this classifier."""
        return self._checked_outputs(X).proba


@lru_cache(maxsize=1)  # a worker runs the trainings of one dataset and seed one after the other
def _dataset(name: str, seed: int, settings: tuple[tuple[str, Any], ...]) -> Dataset:
    return load_dataset(name, seed, **dict(settings))


def _fit(model: SelectiveClassifier, dataset: Dataset, *, join: bool = False) -> None:
    """Fit on the folds of a dataset; joined, the selection rows are training rows too."""
    folds = dataset.folds
    X, y = folds.train.X, folds.train.y
    if join:
        other = folds.selection
        X = pd.concat([X, other.X]) if isinstance(X, pd.DataFrame) else np.concatenate([X, other.X])
        y = np.concatenate([y, other.y])
    model.fit(X, y, selection=folds.selection, certification=folds.certification)


@dataclass(frozen=True)
class _Rule:
    """A model that decides, its threshold, and the certificate of both."""

    model: Any
    threshold: float
    certificate: Certificate


def _fix_rules(
    plan: Plan,
    methods: list[str],
    models: dict[str, SelectiveClassifier],
    dataset: Dataset,
    rho: float,
) -> dict[str, _Rule]:
    """Fix the operating point of each method, then open its certification fold."""
    remembering = {name: _Remembering(model) for name, model in models.items()}
    wrapped: dict[str, WrappingClassifier] = {}
    rules = {}
    for method in methods:
        name = re.split("[@+]", method)[0]
        model: Any = remembering.get(name) or next(iter(remembering.values()))
        if name in WRAPPERS:
            if name not in wrapped:
                wrapped[name] = WRAPPERS[name](model, plan.alpha, rho)
                _fit(wrapped[name], dataset)
            model = wrapped[name]
        threshold = None
        if method.endswith("@eps"):
            threshold = _eps(models, dataset.folds.selection)
        elif method == "erm":  # accepts everything, as the paper's table has it
            threshold = 0.0
        elif not method.endswith("+certified"):
            rule = model.model if isinstance(model, _Remembering) else model
            threshold = rule._selection_threshold(rule._check_fold(dataset.folds.selection, method))
        fold = dataset.folds.certification
        outputs = model._checked_outputs(fold.X)
        rows = score_rows(
            outputs.proba, fold.y, score=outputs.score, classes=model.classes_, owner=method
        )
        if threshold is None:
            certificate = certify_monotone(rows, plan.alpha, rho)
        else:
            certificate = count_rows(rows, threshold, plan.alpha, rho, "fixed")
        rules[method] = _Rule(model, certificate.threshold, certificate)
    return rules


def _eps(models: dict[str, Any], selection: Fold) -> float:
    """Return eps*, which the warmed-up network of this seed sets on the selection fold."""
    if "reliablenet" in models:
        threshold: float = models["reliablenet"].training_threshold_
        return threshold
    warm = models["warmup"]
    logits = evaluate_logits(warm.network_, warm._encode(selection.X))
    labels = torch.from_numpy(np.searchsorted(warm.classes_, selection.y))
    return training_threshold(logits, labels, Schedule().threshold_quantile)


def _measure_rules(
    plan: Plan, rules: dict[str, _Rule], dataset: Dataset, seed: int, rho: float
) -> dict[str, Run]:
    """Measure every rule on every fold; fold by fold, so that each is made and evaluated once."""
    measured: dict[str, dict[str, Any]] = {method: {} for method in rules}
    curves: dict[str, list[NDArray[np.float32]]] = {method: [] for method in rules}
    first_shift = next(iter(dataset.shifts))
    for part, key, fold in _folds(dataset):
        for method, rule in rules.items():
            outputs = rule.model._checked_outputs(fold.X)
            values = _measure(outputs, fold, rule, plan.alpha)
            if key is None:
                measured[method][part] = values
            else:
                measured[method].setdefault(part, {})[key] = values
            if part == "certification" or (part == "shifts" and key == first_shift):
                curves[method].append(_curve(outputs, fold, rule))
    shared = {
        "info": _plain(dict(dataset.info)),
        "rows": {name: len(part) for name, part in vars(dataset.folds).items()},
    }
    empty: dict[str, Any] = {"shifts": {}, "groups": {}, "sweeps": {}}
    return {
        method: (
            _frame_of(plan, method, seed, rho)
            | shared
            | {
                "threshold": _plain(rule.threshold),
                "certificate": rule.certificate.to_dict(),
                "measured": empty | measured[method],
            },
            np.stack(curves[method]),
        )
        for method, rule in rules.items()
    }


def _folds(dataset: Dataset) -> Iterator[tuple[str, str | None, Fold]]:
    """Yield every fold to measure on, and where its numbers belong."""
    yield "certification", None, dataset.folds.certification
    if dataset.test is not None:
        yield "test", None, dataset.test
    for part in ("shifts", "groups", "sweeps"):
        for key, fold in getattr(dataset, part).items():
            yield part, f"{key:g}" if part == "sweeps" else key, fold


def _measure(outputs: Outputs, fold: Fold, rule: _Rule, alpha: float) -> dict[str, Any]:
    result = evaluate(
        outputs.proba,
        fold.y,
        accepted=outputs.acceptance() >= rule.threshold,
        score=outputs.score,
        classes=rule.model.classes_,
        alpha=alpha,
    )
    return dict(_plain(result.to_dict()))


def _curve(outputs: Outputs, fold: Fold, rule: _Rule) -> NDArray[np.float32]:
    """Return the error rate of accepted rows at each coverage of the grid."""
    curve = risk_coverage_curve(
        outputs.proba, fold.y, score=outputs.score, classes=rule.model.classes_
    )
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
