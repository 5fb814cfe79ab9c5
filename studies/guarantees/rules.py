"""Every rule around every estimator, one and two deep: whole fits on Synthetic Band, where JCW is known.

Counted are false certificates, of any rule; and the mean JCW of the rule as it acts, which
`ConformalRiskControl` promises to be within alpha. The fault that this must catch: an estimator that is trained anew on
training and selection rows together, though the rule around it computes its threshold on the selection rows.

A network is trained once for all rules that train it alike: on the same rows, with the same settings and
seed. Everything of a rule runs in each `fit`: it cuts its folds, fits what it fits to them, and certifies.
A test trains it anew for each rule, and finds the same JCW to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import joblib
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.neural_classifier import NeuralClassifier
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.tables import Fold
from studies.guarantees.fits import fit_on_band, true_jcw
from studies.runner import JOBS, Block, Record, Study

ALPHA, RHO, ROWS, FRESH = 0.1, 0.05, 600, 20_000
FITS, MANY_FITS, BLOCK = 1000, 7000, 50
SUMS = ("draws", "granted", "failures", "sum", "squares")  # over the fits of a trial

Estimator = Callable[[int], Any]  # a seed becomes an unfitted estimator
Rule = Callable[[Any, int], Any]  # so does an estimator with a rule around it


class Refitted(rn.ConformalRiskControl):
    """The fault: what is wrapped chooses and trains on all rows that the threshold is computed on."""

    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        self._own_rows = np.arange(len(selection))
        WrappingClassifier._fit_folds(self, train, selection, seed, keep_selection=False)


_known: ContextVar[dict[str, Any] | None] = ContextVar("known", default=None)


@contextmanager
def trained_once() -> Iterator[None]:
    """Train what is trained alike once meanwhile, and ask it once about the same rows."""
    token = _known.set({})
    try:
        yield
    finally:
        _known.reset(token)


class TrainedOnce(NeuralClassifier):
    """A network inside a rule that knows what one like it has learned, by all that decides it."""

    _trained_by: str | None = None

    def _fit_scores(
        self, train: Fold, selection: Fold, classes: NDArray[Any] | None, *, keep_selection: bool
    ) -> Self:
        known = _known.get()
        if known is None:
            return super()._fit_scores(train, selection, classes, keep_selection=keep_selection)
        name, settings = type(self).__name__, self.get_params()
        key = joblib.hash((name, settings, train, selection, classes, keep_selection))
        if key not in known:
            super()._fit_scores(train, selection, classes, keep_selection=keep_selection)
            known[key] = vars(self) | {"_trained_by": key}
        self.__dict__.update(known[key])
        return self

    def _outputs(self, X: Any) -> Outputs:
        known = _known.get()
        if known is None or self._trained_by is None:
            return super()._outputs(X)
        key = joblib.hash((self._trained_by, X))
        if key not in known:
            known[key] = super()._outputs(X)
        answer: Outputs = known[key]
        return answer


class Reliable(TrainedOnce, rn.ReliableClassifier):
    """Our default, trained once."""


class ERM(TrainedOnce, rn.ERMClassifier):
    """A plain network, trained once."""


class SelectiveNet(TrainedOnce, rn.SelectiveNetClassifier):
    """SelectiveNet, trained once."""


class DeepGamblers(TrainedOnce, rn.DeepGamblersClassifier):
    """Deep Gamblers, trained once."""


def temperature(estimator: Any, seed: int, threshold: str = "certified") -> rn.TemperatureScaling:
    """Return a temperature around an estimator."""
    return rn.TemperatureScaling(estimator, ALPHA, RHO, threshold=threshold, random_state=seed)


NETWORK = 'ReliableClassifier(members=("network",))'
STOPPED = 'ERMClassifier(epochs=20, checkpoint="selection")'
LOGISTIC = "LogisticRegression()"
ESTIMATORS: dict[str, Estimator] = {
    LOGISTIC: lambda seed: LogisticRegression(),
    "HistGradientBoostingClassifier(max_iter=20)": lambda seed: HistGradientBoostingClassifier(
        max_iter=20, random_state=seed
    ),
    "ERMClassifier(epochs=10)": lambda seed: ERM(ALPHA, RHO, epochs=10, random_state=seed),
    STOPPED: lambda seed: ERM(ALPHA, RHO, epochs=20, checkpoint="selection", random_state=seed),
    "SelectiveNetClassifier(epochs=10)": lambda seed: SelectiveNet(
        ALPHA, RHO, epochs=10, random_state=seed
    ),
    "DeepGamblersClassifier(epochs=10)": lambda seed: DeepGamblers(
        ALPHA, RHO, epochs=10, warmup_epochs=5, random_state=seed
    ),
    NETWORK: lambda seed: Reliable(ALPHA, RHO, members=("network",), random_state=seed),
}
CONFORMAL, CERTIFIED, FAULT = "ConformalRiskControl", "CertifiedThreshold", "conformal, refitted"
RULES: dict[str, Rule] = {
    CERTIFIED: lambda x, seed: rn.CertifiedThreshold(x, ALPHA, RHO, random_state=seed),
    CONFORMAL: lambda x, seed: rn.ConformalRiskControl(x, ALPHA, RHO, random_state=seed),
    "ConfidenceThreshold": lambda x, seed: rn.ConfidenceThreshold(x, ALPHA, RHO, random_state=seed),
    "TemperatureScaling": temperature,
    'TemperatureScaling(threshold="selection")': lambda x, seed: temperature(x, seed, "selection"),
    "CertifiedThreshold(TemperatureScaling)": lambda x, seed: rn.CertifiedThreshold(
        temperature(x, seed), ALPHA, RHO, random_state=seed
    ),
    "ConformalRiskControl(TemperatureScaling)": lambda x, seed: rn.ConformalRiskControl(
        temperature(x, seed), ALPHA, RHO, random_state=seed
    ),
    FAULT: lambda x, seed: Refitted(x, ALPHA, RHO, random_state=seed),
}


@dataclass(frozen=True)
class Trial:
    """A rule, an estimator, both by name, and how many fits."""

    rule: str
    estimator: str
    fits: int = FITS


TRIALS = [
    # One cell is quick, and its promise is about the mean and has no room to spare.
    Trial(rule, estimator, MANY_FITS if (rule, estimator) == (CONFORMAL, LOGISTIC) else FITS)
    for estimator in ESTIMATORS
    for rule in RULES
    if rule != FAULT or estimator == NETWORK
]


def fit_once(trial: Trial, seed: int, fresh: int = FRESH) -> tuple[bool, float]:
    """Fit on a band of its own; return whether it is certified, and the JCW of what it does."""
    model = RULES[trial.rule](ESTIMATORS[trial.estimator](seed), seed)
    model, band = fit_on_band(model, seed, ROWS)
    return model.certificate_.certified, true_jcw(model, band, fresh)


def fit_together(
    trials: Sequence[Trial], seed: int, fresh: int = FRESH
) -> list[tuple[bool, float]]:
    """Fit every rule around one estimator on the same band."""
    with trained_once():
        return [fit_once(trial, seed, fresh) for trial in trials]


def add_fits(
    trials: Sequence[Trial], fresh: int, jobs: int, known: Sequence[Record]
) -> list[Record]:
    """Return the records of trials of one estimator with the next fits of those that have fewest.

    They are so many at once that little is lost by a stop.
    """
    nothing: Record = dict.fromkeys(SUMS, 0)
    found = {trial.rule: nothing for trial in trials} | {one["rule"]: one for one in known}
    left = [trial for trial in trials if found[trial.rule]["draws"] < trial.fits]
    start = min(found[trial.rule]["draws"] for trial in left)
    due = [trial for trial in left if found[trial.rule]["draws"] == start]
    seeds = range(start, min(start + BLOCK, *(trial.fits for trial in left)))
    results = Parallel(n_jobs=jobs)(delayed(fit_together)(due, seed, fresh) for seed in seeds)
    for trial, outcomes in zip(due, zip(*results, strict=True), strict=True):
        added, before = add_up(outcomes), found[trial.rule]
        found[trial.rule] = {name: before[name] + added[name] for name in SUMS}
    return [{"rule": rule} | record for rule, record in found.items()]


def add_up(outcomes: Sequence[tuple[bool, float]]) -> Record:
    """Return the sums over the fits of a trial."""
    granted, jcw = (np.array(column) for column in zip(*outcomes, strict=True))
    return {
        "draws": len(jcw),
        "granted": int(granted.sum()),
        "failures": int((granted & (jcw > ALPHA)).sum()),
        "sum": float(jcw.sum()),
        "squares": float((jcw**2).sum()),
    }


def blocks(trials: Sequence[Trial] = TRIALS, fresh: int = FRESH, jobs: int = JOBS) -> list[Block]:
    """Return every estimator; its records grow by some fits in each step."""
    together: dict[str, list[Trial]] = {}
    for trial in trials:
        together.setdefault(trial.estimator, []).append(trial)
    return [
        Block(
            {"estimator": estimator, "rows": ROWS, "fresh": fresh, "alpha": ALPHA, "rho": RHO},
            partial(add_fits, own, fresh, jobs),
            partial(have_draws, own),
        )
        for estimator, own in together.items()
    ]


def have_draws(trials: Sequence[Trial], known: Sequence[Record]) -> bool:
    """Tell whether every growing record has as many draws as it should."""
    draws = {one["rule"]: one["draws"] for one in known}
    return all(draws.get(trial.rule, 0) >= trial.fits for trial in trials)


def mean(record: dict[str, Any]) -> tuple[float, float]:
    """Return the mean JCW of a record and its standard error."""
    n, average = record["draws"], record["sum"] / record["draws"]
    return average, math.sqrt(max(record["squares"] / n - average**2, 0.0) / max(n - 1, 1))


def keeps_mean(record: dict[str, Any]) -> bool:
    """Tell whether the mean JCW is within alpha plus three standard errors."""
    average, error = mean(record)
    return average <= record["alpha"] + 3 * error


STUDY = Study(
    "guarantees",
    "rules",
    about="Does every rule around every estimator keep its promise?",
    cost="a day",
    blocks=blocks,
)
