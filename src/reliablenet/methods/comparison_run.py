"""`compare`: fit every method on the same folds and measure it on the same rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from reliablenet._checks import check_count, check_fraction, parameter_error
from reliablenet._workers import replaced_quietly
from reliablenet.certificate import Certificate, Promise, Provenance, RuleCertificate
from reliablenet.certificate.promise import plain_label
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.methods.base import SelectiveClassifier, SelectiveEstimator
from reliablenet.methods.choice import share_rho
from reliablenet.methods.comparison import Comparison
from reliablenet.methods.deep_gamblers import DeepGamblersClassifier
from reliablenet.methods.erm import ERMClassifier
from reliablenet.methods.held_out import warn_of_reuse
from reliablenet.methods.inputs import check_labels
from reliablenet.methods.judging import Judging
from reliablenet.methods.ledger import asked_of, count_uses
from reliablenet.methods.method_result import MethodResult
from reliablenet.methods.numbers import check_promise
from reliablenet.methods.posthoc import (
    CertifiedThreshold,
    ConfidenceThreshold,
    ConformalRiskControl,
    TemperatureScaling,
)
from reliablenet.methods.promised import check_setting, group_columns
from reliablenet.methods.regressor import ReliableRegressor
from reliablenet.methods.reliable import ReliableClassifier
from reliablenet.methods.selectivenet import SelectiveNetClassifier
from reliablenet.methods.shared_fits import (
    Fits,
    Method,
    fit_together,
    fit_together_beside_others,
    prepare,
    put_together,
)
from reliablenet.methods.tuned import tuned_rivals
from reliablenet.tables.digest import fingerprint
from reliablenet.tables.folds import Folds, cut_folds
from reliablenet.tables.tabular import TabularEncoder
from reliablenet.tables.tolerance import Tolerance


def default_methods() -> dict[str, SelectiveClassifier]:
    """Return the methods that `compare` runs if none are named; one ERM serves three of them."""
    erm = ERMClassifier()
    return {
        "reliablenet": ReliableClassifier(),
        "reliablenet_network": ReliableClassifier(members=("network",)),
        "reliablenet_paper": ReliableClassifier(network="mlp", schedule="paper"),
        "erm": erm,
        "erm_early_stopped": ERMClassifier(checkpoint="selection"),
        **tuned_rivals(),
        "selectivenet": SelectiveNetClassifier(),
        "deep_gamblers": DeepGamblersClassifier(),
        "temperature": TemperatureScaling(erm),
        "confidence_threshold": ConfidenceThreshold(erm),
        "conformal_risk_control": ConformalRiskControl(erm),
    }


def default_regressors(tolerance: Any) -> dict[str, SelectiveEstimator]:
    """Return the methods that `compare` runs for numbers if none are named."""
    regressors = {
        "ridge": BayesianRidge(),
        "boosting": HistGradientBoostingRegressor(),
        "forest": RandomForestRegressor(),
    }
    plain = {
        name: CertifiedThreshold(make_pipeline(TabularEncoder(), regressor), tolerance=tolerance)
        for name, regressor in regressors.items()
    }
    return {"reliablenet": ReliableRegressor(tolerance), **plain}


def compare(
    X: Any = None,
    y: Any = None,
    alpha: float = 0.05,
    rho: float = 0.05,
    methods: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    promise: Promise | None = None,
    tolerance: Any = None,
    folds: Folds | None = None,
    groups: Any = None,
    fold_sizes: Any = "auto",
    resamples: int = 1000,
    n_jobs: int | None = None,
    verbose: bool | str = "auto",
    random_state: Any = 0,
) -> Comparison:
    """Fit methods on the same folds and compare what each can be certified to do.

    Parameters
    ----------
    X, y
        Rows and labels, as for `ReliableClassifier.fit`; not with ``folds``.
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability; they replace those of the methods.
    methods : dict of name to classifier, or names, optional
        Names of the default methods, or classifiers of your own: methods of this library, or any
        classifier with `predict_proba`, which gets a certified threshold. A fitted one is used as it
        is, so it must not have seen the selection and certification rows. Methods around the same
        object share one fit.
    promise : Promise, optional
        What all methods are to keep, instead of the budget ``alpha``. Groups are columns of X. Methods
        with a rule of their own, such as conformal risk control, are left out.
    tolerance : float, str or None
        Where ``y`` holds numbers: how far one may be off, as for `ReliableRegressor`. Methods are then
        regressors.
    folds : Folds, optional
        Folds of your own, such as those of a dataset.
    groups : array-like of shape (n,), optional
        Whose row each row of X is, as for `ReliableClassifier.fit`.
    fold_sizes : "auto" or three shares
        Where folds are cut from X and y.
    resamples : int
        Paired bootstrap resamples of the certification fold, for the intervals in the frame.
    n_jobs : int, optional
        Methods fitted at the same time, each in a process of its own with one thread; -1 for all
        cores. Bits are those of one process with one thread (``torch.set_num_threads(1)``).
    verbose : bool or "auto"
        Shows on standard error which method is at work; "auto" does if that is a terminal.
    random_state : int, RandomState or None
        For folds, resamples, and methods that have none of their own.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from reliablenet import compare
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(4000)
    >>> models = {"logistic": LogisticRegression(), "bayes": GaussianNB()}
    >>> comparison = compare(rows.X, rows.y, alpha=0.05, methods=models)
    >>> comparison.to_frame()["certified"].tolist()
    [True, True]
    >>> comparison.best().name in models
    True
    """
    owner = "compare"
    alpha, rho = check_fraction("alpha", alpha, owner), check_fraction("rho", rho, owner)
    check_count("resamples", resamples, owner)
    if verbose not in (True, False, "auto"):
        raise parameter_error("verbose", owner, 'be True, False or "auto"', verbose)
    check_setting(promise, "certified", owner)
    words = ""
    if tolerance is not None:
        words = str(Tolerance.of(tolerance, owner))
        check_promise(promise, owner)
    chosen = _resolve(methods, default_methods() if not words else default_regressors(tolerance))
    alpha = alpha if promise is None else promise.strictest
    random = check_random_state(random_state)
    table = "" if X is None else fingerprint(X, y)
    if folds is None:
        promises = any(getattr(m, "_promises_on_selection", False) for m in chosen.values())
        random_selection = promises or bool(words)  # numbers have no classes to be shared out
        folds = _cut(X, y, groups, alpha, rho, fold_sizes, random, stratified=not random_selection)
    elif X is not None or y is not None:
        raise InvalidParameterError("compare takes X and y, or folds, not both.")
    elif groups is not None:
        raise InvalidParameterError("compare takes groups with X and y; from folds nothing is cut.")
    elif not isinstance(folds, Folds):
        raise parameter_error("folds", owner, "be a Folds record", type(folds).__name__)
    held = X if X is not None else folds.certification.X
    group_columns(promise, held, None, owner, missing=False, own=False)
    seed = int(random.randint(2**31 - 1))
    prepared = prepare(chosen, alpha, rho, seed, promise, tolerance)
    fits, unit = Fits(), "row" if groups is None else "group"
    if promise is not None:
        own = [name for name, m in prepared.items() if "promise" not in m.get_params(deep=False)]
        fits.failures = dict.fromkeys(own, "It has a rule of its own and keeps no other promise.")
        prepared = {name: method for name, method in prepared.items() if name not in own}
    fits_to_do = put_together(prepared)
    learned = folds.train if len(folds.train) else folds.certification
    named = promise is not None and not words
    labels = tuple(map(plain_label, np.unique(learned.y).tolist())) if named else None
    judging = Judging(alpha, promise, labels, words)
    jobs = effective_n_jobs(n_jobs)
    fit = fit_together if jobs == 1 else partial(fit_together_beside_others, runner=os.getpid())
    with replaced_quietly(), _progress(fits_to_do, jobs, verbose) as show:
        for done in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            delayed(fit)(together, folds, unit, judging, rho, table) for together in fits_to_do
        ):
            fits.add(done)
            show([*fits.results, *fits.failures])
    if not fits.results:
        stories = "; ".join(f"{name}: {story}" for name, story in fits.failures.items())
        raise InvalidDataError(f"No method could be fitted. {stories}")
    listed = [fits.results[name] for name in chosen if name in fits.results]
    listed = _count_looks(listed)
    listed.sort(key=lambda result: -result.certified_throughput)  # stable: as given where equal
    draws = judging.resample([result.judged for result in listed], rho, resamples, random)
    seen = {name: fits.selection[name] for name in chosen if name in fits.selection}
    return Comparison(
        alpha,
        rho,
        {result.name: result for result in listed},
        {name: fits.failures[name] for name in chosen if name in fits.failures},
        draws,
        share_rho(seen, alpha, rho, len(folds.certification)),
        promise,
        labels,
        words,
    )


def _resolve(methods: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the methods by name, as they were given."""
    if methods is None:
        return dict(known)
    if isinstance(methods, Mapping):
        chosen = dict(methods)
    else:
        names = [methods] if isinstance(methods, str) else list(methods)
        strangers = [name for name in names if name not in known]
        if strangers:
            raise parameter_error(
                "methods",
                "compare",
                f"name some of {sorted(known)}",
                strangers,
                "Pass a dict of name to classifier for methods of your own.",
            )
        chosen = {name: known[name] for name in names}
    if not chosen:
        raise parameter_error("methods", "compare", "hold at least one method", methods)
    return chosen


def _cut(
    X: Any,
    y: Any,
    groups: Any,
    alpha: float,
    rho: float,
    sizes: Any,
    random: Any,
    *,
    stratified: bool,
) -> Folds:
    if X is None or y is None:
        raise InvalidParameterError("compare needs X and y, or folds.")
    rows = X if hasattr(X, "shape") else np.asarray(X)
    if _num_samples(rows) == 0:
        raise InvalidDataError("compare needs rows; got 0.")
    labels = check_labels(rows, y, "y")
    return cut_folds(
        rows,
        labels,
        groups=groups,
        fold_sizes=sizes,
        alpha=alpha,
        rho=rho,
        random_state=random,
        stratified=stratified,
    )


def _count_looks(results: list[MethodResult]) -> list[MethodResult]:
    """Write one entry for all methods into the ledger: the choice among them is allowed for."""
    seen = results[0].model.seen_
    models = "".join(_made(result.certificate).model for result in results)
    asked = asked_of(results[0].certificate)
    uses = count_uses(None if seen is None else seen.certified, models, asked)
    warn_of_reuse(uses)
    for result in results:
        certificate = result.model.certificate_
        made = replace(_made(certificate), uses=uses)
        result.model.certificate_ = replace(certificate, provenance=made)
    return [
        replace(
            result,
            certificate=replace(
                result.certificate,
                provenance=replace(
                    _made(result.model.certificate_), model=_made(result.certificate).model
                ),
            ),
        )
        for result in results
    ]


def _made(certificate: Certificate | RuleCertificate) -> Provenance:
    return certificate.provenance or Provenance()


@contextmanager
def _progress(
    fits_to_do: list[list[Method]], jobs: int, verbose: bool | str
) -> Iterator[Callable[[list[str]], None]]:
    """Yield a function that takes the names done so far and shows those at work."""
    if not (sys.stderr.isatty() if verbose == "auto" else verbose):
        yield lambda finished: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(bar_width=12),
        TextColumn("{task.completed}/{task.total} methods"),
        TextColumn("[dim]{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:

        def at_work(finished: list[str]) -> str:
            waiting = [together[0][0] for together in fits_to_do if together[0][0] not in finished]
            return ", ".join(waiting[:jobs])

        task = bar.add_task(at_work([]), total=sum(len(together) for together in fits_to_do))
        yield lambda finished: bar.update(
            task, completed=len(finished), description=at_work(finished)
        )
