"""Methods around one classifier are fitted together: one training, and as many rules as there are."""

from __future__ import annotations

import copy
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from reliablenet._workers import end_with, one_thread
from reliablenet.certificate import Promise
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.record import Unit
from reliablenet.certificate.scored import ScoredRows
from reliablenet.methods.base import SelectiveEstimator
from reliablenet.methods.judging import Judged, Judging, with_tolerance
from reliablenet.methods.layers import layers
from reliablenet.methods.ledger import closed
from reliablenet.methods.method_result import MethodResult
from reliablenet.methods.posthoc import CertifiedThreshold
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.tables.folds import Fold, Folds

Method = tuple[str, SelectiveEstimator]


def prepare(
    chosen: dict[str, Any],
    alpha: float,
    rho: float,
    seed: int,
    promise: Promise | None = None,
    tolerance: Any = None,
) -> dict[str, SelectiveEstimator]:
    """Return copies under one budget or promise; what was one classifier in the original stays one.

    With a tolerance they predict numbers.
    """
    copies: dict[int, Any] = {}

    def copied(model: Any) -> Any:
        if id(model) not in copies:
            copies[id(model)] = _seeded(clone(model, safe=False), seed)
        return copies[id(model)]

    prepared = {}
    for name, model in chosen.items():
        method = model
        if not isinstance(model, SelectiveEstimator) or hasattr(model, "threshold_"):
            method = CertifiedThreshold(model)
        if isinstance(method, WrappingClassifier):
            method = copy.copy(method)
            predicts = "predict_proba" if tolerance is None else "predict"
            if hasattr(method.estimator, predicts) and not method._is_fitted():
                method.estimator = copied(method.estimator)
        else:
            method = copied(method)
        settings: dict[str, Any] = {"alpha": alpha, "rho": rho, "tolerance": tolerance}
        if promise is not None:
            settings |= {"promise": promise, "threshold": "certified"}
        known = method.get_params(deep=False)
        prepared[name] = method.set_params(**{k: v for k, v in settings.items() if k in known})
    return prepared


def _seeded(model: Any, seed: int) -> Any:
    """Give a seed to whatever has none, and let `compare` alone show progress."""
    if isinstance(model, BaseEstimator):
        settings = model.get_params()
        model.set_params(
            **{
                name: seed
                for name, value in settings.items()
                if name.split("__")[-1] == "random_state" and value is None
            }
        )
        if isinstance(model, SelectiveEstimator) and "verbose" in settings:
            model.set_params(verbose=False)
    return model


def put_together(methods: dict[str, SelectiveEstimator]) -> list[list[Method]]:
    """Put methods around the same classifier together, that classifier first if it is a method."""
    by_classifier: dict[int, list[Method]] = {}
    for name, method in methods.items():
        wraps = isinstance(method, WrappingClassifier)
        together = by_classifier.setdefault(id(method.estimator if wraps else method), [])
        together.insert(len(together) if wraps else 0, (name, method))
    return list(by_classifier.values())


@dataclass
class Fits:
    """What became of methods.

    Attributes
    ----------
    results, failures
        By name.
    selection : dict of str to ScoredRows or None
        The selection fold as each method sees it that needs a part of rho. A method that fails with
        training and selection rows alone can never be handed out, whatever the certification fold
        holds, and needs none. One that fails once the certification fold is there keeps its part, or
        the parts of the others would depend on that fold; None if it was not even trained.
    """

    results: dict[str, MethodResult] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    selection: dict[str, ScoredRows | None] = field(default_factory=dict)

    def add(self, more: Fits) -> None:
        """Take in what became of further methods."""
        self.results |= more.results
        self.failures |= more.failures
        self.selection |= more.selection


def fit_together_beside_others(
    together: list[Method],
    folds: Folds,
    unit: Unit,
    judging: Judging,
    rho: float,
    table: str,
    runner: int,
) -> Fits:
    """Do what `fit_together` does, in a process beside others, for the process `runner`."""
    end_with(runner)
    with one_thread():
        return fit_together(together, folds, unit, judging, rho, table)


def fit_together(
    together: list[Method], folds: Folds, unit: Unit, judging: Judging, rho: float, table: str
) -> Fits:
    """Fit methods that share a classifier, one training for all; a failure stays with its method.

    ``table`` is the fingerprint of the table that the folds were cut from, "" if they were given.
    """
    fits, held = Fits(), folds.certification
    # of a fold that has one row of each group, each row is a group
    certification = held if unit == "row" else (held.X, held.y, np.arange(len(held)))
    shared, shared_seconds = None, 0.0
    for number, (name, method) in enumerate(together):
        wraps = isinstance(method, WrappingClassifier)
        given = wraps and shared is None and method._is_trained()
        if wraps and shared is not None:
            method.estimator, method._shares_fit = shared, True
        method._shares_selection = _selection_still_needed(together[number + 1 :])
        method._cut_from = table
        start = time.perf_counter()
        rows, fitted, opened = None, False, False
        try:
            with warnings.catch_warnings(record=True) as caught, closed():
                warnings.simplefilter("always")
                method.fit(
                    folds.train.X,
                    folds.train.y,
                    selection=folds.selection,
                    certification=certification,
                )
                seconds, fitted = time.perf_counter() - start, True
                method._cut_from = ""  # whatever else it is fitted on
                notes = tuple(str(warning.message) for warning in caught)
                rows = selection_rows(method, folds.selection, given)
                opened = True
                taken = shared_seconds + seconds
                result = _measure(name, method, folds, unit, judging, rho, taken, notes)
            fits.results[name] = result
            if shared is None:
                shared, shared_seconds = method.estimator_ if wraps else method, seconds
        except Exception as error:  # whatever a method raises, the others go on
            fits.failures[name] = f"{type(error).__name__}: {error}"
            if not fitted and method._reached in ("folds", "certification"):
                opened = True
                with suppress(Exception), warnings.catch_warnings(action="ignore"):
                    rows = selection_rows(method, folds.selection, given)
        if opened:
            fits.selection[name] = rows
    return fits


def _selection_still_needed(later: list[Method]) -> bool:
    """Tell whether a rule around a fit that is to be shared computes something on the selection fold.

    The fit must then leave that fold alone: a rule may not be computed on rows that trained its model.
    """
    return any(method._needs_selection() for _, method in later)


def selection_rows(method: SelectiveEstimator, fold: Fold, given: bool) -> ScoredRows | None:
    """Return the selection fold as a method sees it, with labels for predictions; None if it is empty.

    A network that was trained on these rows in the end looks better there than it is. It keeps what
    it said of them before, and so does the classifier in a certified threshold, unless it was given
    fitted: then what it keeps is about other rows.
    """
    if len(fold) == 0:
        return None
    kept: ScoredRows | None = None
    for source in layers(method):
        kept = getattr(source, "_selection_rows", None)
        if kept is not None or given or not isinstance(source, CertifiedThreshold):
            break
    source, rows = (method, method.score_rows(fold.X, fold.y)) if kept is None else (source, kept)
    if rows.tolerance is not None:  # numbers are what they say
        return rows
    return replace(rows, predicted=np.asarray(source.classes_)[rows.predicted])


def _measure(
    name: str,
    method: SelectiveEstimator,
    folds: Folds,
    unit: Unit,
    judging: Judging,
    rho: float,
    seconds: float,
    notes: tuple[str, ...],
) -> MethodResult:
    """Open the certification fold for one fitted method."""
    held, fixed, chosen = folds.certification, None, None
    rows = method.score_rows(held.X, held.y)
    if judging.promise is not None:
        if method._learns_rule() and len(folds.selection):
            chosen = method.score_rows(folds.selection.X, folds.selection.y)
    elif not isinstance(method, CertifiedThreshold):
        given = (
            method.selection_threshold_ if isinstance(method.threshold, str) else method.threshold
        )
        fixed = judge(rows, judging.alpha, rho, float(given), unit=unit)
        fixed = with_tolerance(fixed, judging.tolerance)
    more: dict[str, Any] = {"model": method, "rule": fixed, "seconds": seconds, "notes": notes}
    return MethodResult.of(name, Judged(rows, chosen), judging, rho, unit, **more)
