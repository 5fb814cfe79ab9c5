"""What is measured of each method: its operating point is fixed, then every fold is scored.

The operating point is fixed before the certification fold is opened, except for the certified
threshold, whose certificate is valid for a choice on the fold itself.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray

from reliablenet._json import strict
from reliablenet._version import __version__
from reliablenet.bench.fitting import Fitted, fit_on
from reliablenet.bench.methods import Method, Point, Training
from reliablenet.bench.profiles import Plan
from reliablenet.bench.store import GRID, Curves, Record, settings_hash
from reliablenet.certificate import Certificate
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.labels import known_indices
from reliablenet.certificate.scored import ScoredRows
from reliablenet.datasets import Dataset, load_dataset
from reliablenet.errors import InvalidParameterError
from reliablenet.methods import SelectiveClassifier
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.metrics import evaluate, risk_coverage_curve
from reliablenet.tables import Fold

Run = tuple[Record, Curves | None]


def run_training(
    plan: Plan, training: Training, methods: Sequence[Method], seed: int, rho: float
) -> dict[str, Run]:
    """Fit once, and return the record and the curves of each method asked for, by name.

    Whatever goes wrong is recorded as the error of all of them.
    """
    try:
        dataset = _dataset(plan.dataset, seed, tuple(sorted(plan.data.items())))
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = training.fit(plan, dataset, seed, rho)
            shared = {
                "fit_seconds": round(time.perf_counter() - start, 3),
                "notes": sorted({str(warning.message) for warning in caught}),
            }
            rules = _fix_rules(plan, methods, fitted, dataset, rho)
            results = _measure_rules(plan, rules, dataset, seed, rho)
    except Exception as error:  # one broken run must not end the study
        return failed_runs(plan, methods, seed, rho, f"{type(error).__name__}: {error}")
    return {
        method: (record | {"timing": shared}, curves)
        for method, (record, curves) in results.items()
    }


def failed_runs(
    plan: Plan, methods: Sequence[Method], seed: int, rho: float, story: str
) -> dict[str, Run]:
    """Return the records of methods that could not be run, and why."""
    return {
        method.name: (describe_run(method.settings(plan, seed, rho)) | {"error": story}, None)
        for method in methods
    }


def describe_run(settings: dict[str, Any]) -> Record:
    """Return how a record begins: what was run, with which settings and versions."""
    return {
        **{name: settings[name] for name in ("method", "seed", "alpha", "rho")},
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


class _Remembering:
    """A fitted classifier that keeps its outputs on the rows it met last: many rules ask for them."""

    def __init__(self, model: SelectiveClassifier) -> None:
        self.model = model
        self.classes_ = model.classes_
        self._rows: Any = None

    def _checked_outputs(self, X: Any) -> Outputs:
        if X is not self._rows:
            self._rows = X
            self._outputs: Outputs = self.model._checked_outputs(X)
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

    method: Method
    model: Any
    threshold: float
    certificate: Certificate


def _fix_rules(
    plan: Plan, methods: Sequence[Method], fitted: Fitted, dataset: Dataset, rho: float
) -> list[_Rule]:
    """Fix the operating point of each method, then open its certification fold."""
    models: dict[str | None, Any] = {
        name: _Remembering(model) for name, model in fitted.others.items()
    }
    models[None] = _Remembering(fitted.model)
    wrapped: dict[tuple[str | None, type], WrappingClassifier] = {}
    rules = []
    for method in methods:
        model = models[method.weights]
        if method.wrapper is not None:
            key = method.weights, method.wrapper
            if key not in wrapped:
                wrapped[key] = method.wrapper(model, plan.alpha, rho)
                fit_on(wrapped[key], dataset)
            model = wrapped[key]
        threshold = _find_threshold(method, model, fitted, dataset.folds.selection)
        rows = _score(model, dataset.folds.certification)
        certificate = judge(rows, plan.alpha, rho, threshold)
        rules.append(_Rule(method, model, certificate.threshold, certificate))
    return rules


def _find_threshold(method: Method, model: Any, fitted: Fitted, selection: Fold) -> float | None:
    """Return where a method acts; None if the certification fold is to say."""
    if method.point is Point.CERTIFIED:
        return None
    if method.point is Point.EVERYTHING:
        return 0.0
    if method.point is Point.EPS:
        if fitted.eps is None:
            raise InvalidParameterError(
                f"The method {method.name} acts at eps*, and the training {method.training.name} sets "
                "none. Give it another operating point."
            )
        return fitted.eps
    rule = model.model if isinstance(model, _Remembering) else model
    threshold: float = rule._selection_threshold(rule._check_fold(selection, method.name))
    return threshold


def _measure_rules(
    plan: Plan, rules: Sequence[_Rule], dataset: Dataset, seed: int, rho: float
) -> dict[str, Run]:
    """Measure every rule on every fold; fold by fold, so that each is made and evaluated once."""
    measured: dict[str, dict[str, Any]] = {rule.method.name: {} for rule in rules}
    curves: dict[str, list[Curves]] = {name: [] for name in measured}
    first_shift = next(iter(dataset.shifts))
    for part, key, fold in _folds(dataset):
        for rule in rules:
            name = rule.method.name
            rows = _score(rule.model, fold)
            accepted = rows.score >= rule.threshold
            values = strict(evaluate(rows, accepted=accepted, alpha=plan.alpha).to_dict())
            if key is None:
                measured[name][part] = values
            else:
                measured[name].setdefault(part, {})[key] = values
            if part == "certification" or (part == "shifts" and key == first_shift):
                curves[name].append(_curve(rows))
    shared = {
        "info": strict(dict(dataset.info)),
        "rows": {name: len(part) for name, part in vars(dataset.folds).items()},
    }
    empty: dict[str, Any] = {"shifts": {}, "groups": {}, "sweeps": {}}
    return {
        rule.method.name: (
            describe_run(rule.method.settings(plan, seed, rho))
            | shared
            | {
                "threshold": strict(rule.threshold),
                "certificate": rule.certificate.to_dict(),
                "measured": empty | measured[rule.method.name],
            },
            np.stack(curves[rule.method.name]),
        )
        for rule in rules
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
    """Return what a model, remembering or not, says about the rows of a fold."""
    outputs: Outputs = model._checked_outputs(fold.X)
    return outputs.scored(known_indices(fold.y, model.classes_, "bench"))


def _curve(rows: ScoredRows) -> Curves:
    """Return the error rate of accepted rows at each coverage of the grid."""
    curve = risk_coverage_curve(rows)
    place = np.searchsorted(curve.coverage, GRID - 1e-12).clip(max=len(curve.coverage) - 1)
    risk: Curves = curve.risk[place].astype(np.float32)
    return risk
