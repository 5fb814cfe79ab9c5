"""Protocol: which rules are made of a training, and what is measured of each.

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
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray

from reliablenet._version import __version__
from reliablenet.bench.profiles import Plan
from reliablenet.bench.store import settings_hash
from reliablenet.bench.trainings import find_eps, fit_models, fit_on, own_settings
from reliablenet.certificate import Certificate
from reliablenet.certificate.scored import ScoredRows, known_indices
from reliablenet.certificate.threshold import judge
from reliablenet.datasets import Dataset, load_dataset
from reliablenet.methods import ConformalRiskControl, SelectiveClassifier, TemperatureScaling
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.metrics import evaluate, risk_coverage_curve
from reliablenet.tables import Fold

WRAPPERS: dict[str, type[WrappingClassifier]] = {
    "temperature": TemperatureScaling,
    "conformal_risk_control": ConformalRiskControl,
}
GRID = np.linspace(0.005, 1.0, 200)  # coverages at which curves are stored
Run = tuple[dict[str, Any], NDArray[np.float32] | None]


def run_settings(plan: Plan, method: str, seed: int, rho: float) -> dict[str, Any]:
    """Return all that decides the outcome of a run, as JSON can hold it."""
    settings = {"method": method, "seed": seed, "rho": rho} | asdict(plan)
    return settings | own_settings(plan, method)


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
                fit_on(wrapped[name], dataset)
            model = wrapped[name]
        threshold = None
        if method.endswith("@eps"):
            threshold = find_eps(models, dataset.folds.selection)
        elif method == "erm":  # accepts everything, as the paper's table has it
            threshold = 0.0
        elif not method.endswith("+certified"):
            rule = model.model if isinstance(model, _Remembering) else model
            threshold = rule._selection_threshold(rule._check_fold(dataset.folds.selection, method))
        rows = _score(model, dataset.folds.certification)
        certificate = judge(rows, plan.alpha, rho, threshold)
        rules[method] = _Rule(model, certificate.threshold, certificate)
    return rules


def _measure_rules(
    plan: Plan, rules: dict[str, _Rule], dataset: Dataset, seed: int, rho: float
) -> dict[str, Run]:
    """Measure every rule on every fold; fold by fold, so that each is made and evaluated once."""
    measured: dict[str, dict[str, Any]] = {method: {} for method in rules}
    curves: dict[str, list[NDArray[np.float32]]] = {method: [] for method in rules}
    first_shift = next(iter(dataset.shifts))
    for part, key, fold in _folds(dataset):
        for method, rule in rules.items():
            rows = _score(rule.model, fold)
            accepted = rows.score >= rule.threshold
            values = _plain(evaluate(rows, accepted=accepted, alpha=plan.alpha).to_dict())
            if key is None:
                measured[method][part] = values
            else:
                measured[method].setdefault(part, {})[key] = values
            if part == "certification" or (part == "shifts" and key == first_shift):
                curves[method].append(_curve(rows))
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


def _score(model: Any, fold: Fold) -> ScoredRows:
    """Return what a model, remembering or not, says of the rows of a fold."""
    outputs: Outputs = model._checked_outputs(fold.X)
    return outputs.scored(known_indices(fold.y, model.classes_, "bench"))


def _curve(rows: ScoredRows) -> NDArray[np.float32]:
    """Return the error rate of accepted rows at each coverage of the grid."""
    curve = risk_coverage_curve(rows)
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
