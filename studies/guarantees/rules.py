"""Every rule around every estimator, one and two deep: whole fits on Synthetic Band, where JCW is known.

Counted are false certificates, of any rule; and the mean JCW of the rule as it acts, which
`ConformalRiskControl` promises to be within alpha. The fault that this must catch: an estimator that is trained anew on
training and selection rows together, though the rule around it computes its threshold on the selection rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.tables import Fold
from studies.guarantees.fits import fit_on_band, has_draws, true_jcw
from studies.runner import JOBS, Block, Record, Study

ALPHA, RHO, ROWS, FRESH = 0.1, 0.05, 600, 20_000
MANY_FITS, FITS, SOME_FITS, FEW_FITS, BLOCK = 7000, 1000, 250, 100, 50
SUMS = ("draws", "granted", "failures", "sum", "squares")  # over the fits of a trial

Estimator = Callable[[int], Any]  # a seed becomes an unfitted estimator
Rule = Callable[[Any, int], Any]  # so does an estimator with a rule around it


class Refitted(rn.ConformalRiskControl):
    """The fault: what is wrapped chooses and trains on all rows that the threshold is computed on."""

    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        self._own_rows = np.arange(len(selection))
        WrappingClassifier._fit_folds(self, train, selection, seed, keep_selection=False)


def temperature(estimator: Any, seed: int, threshold: str = "certified") -> rn.TemperatureScaling:
    """Return a temperature around an estimator."""
    return rn.TemperatureScaling(estimator, ALPHA, RHO, threshold=threshold, random_state=seed)


ESTIMATORS: dict[str, Estimator] = {
    "LogisticRegression()": lambda seed: LogisticRegression(),
    "HistGradientBoostingClassifier(max_iter=20)": lambda seed: HistGradientBoostingClassifier(
        max_iter=20, random_state=seed
    ),
    'ReliableClassifier(members=("network",))': lambda seed: rn.ReliableClassifier(
        ALPHA, RHO, members=("network",), random_state=seed
    ),
    "ERMClassifier(epochs=10)": lambda seed: rn.ERMClassifier(
        ALPHA, RHO, epochs=10, random_state=seed
    ),
    'ERMClassifier(epochs=20, checkpoint="selection")': lambda seed: rn.ERMClassifier(
        ALPHA, RHO, epochs=20, checkpoint="selection", random_state=seed
    ),
    "SelectiveNetClassifier(epochs=10)": lambda seed: rn.SelectiveNetClassifier(
        ALPHA, RHO, epochs=10, random_state=seed
    ),
    "DeepGamblersClassifier(epochs=10)": lambda seed: rn.DeepGamblersClassifier(
        ALPHA, RHO, epochs=10, warmup_epochs=5, random_state=seed
    ),
}
NETWORK = 'ReliableClassifier(members=("network",))'
STOPPED = 'ERMClassifier(epochs=20, checkpoint="selection")'
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
    fits: int = SOME_FITS


MAIN = [
    Trial(CONFORMAL, NETWORK, FITS),
    Trial(FAULT, NETWORK),
    Trial(CONFORMAL, STOPPED, FITS),
    Trial(CERTIFIED, NETWORK),
    Trial(CONFORMAL, "LogisticRegression()", MANY_FITS),  # quick, and no room to spare
]
CHEAP = ("LogisticRegression()", "HistGradientBoostingClassifier(max_iter=20)")


def fits_of(rule: str, estimator: str) -> int:
    """Return how many fits: many where they are cheap, and where the mean itself is promised."""
    return FITS if rule == CONFORMAL or estimator in CHEAP else FEW_FITS


TRIALS = MAIN + [
    Trial(rule, estimator, fits_of(rule, estimator))
    for estimator in ESTIMATORS
    for rule in RULES
    if rule != FAULT and (rule, estimator) not in [(one.rule, one.estimator) for one in MAIN]
]


def fit_once(trial: Trial, seed: int, fresh: int = FRESH) -> tuple[bool, float]:
    """Fit on a band of its own; return whether it is certified, and the JCW of what it does."""
    model = RULES[trial.rule](ESTIMATORS[trial.estimator](seed), seed)
    model, band = fit_on_band(model, seed, ROWS)
    return model.certificate_.certified, true_jcw(model, band, fresh)


def add_fits(trial: Trial, fresh: int, jobs: int, known: Sequence[Record]) -> list[Record]:
    """Return the record of a trial with the next fits, so many at once that little is lost by a stop."""
    before = known[0] if known else dict.fromkeys(SUMS, 0)
    start = before["draws"]
    seeds = range(start, min(start + BLOCK, trial.fits))
    results = Parallel(n_jobs=jobs)(delayed(fit_once)(trial, seed, fresh) for seed in seeds)
    granted, jcw = (np.array(column) for column in zip(*results, strict=True))
    added = {
        "draws": len(jcw),
        "granted": int(granted.sum()),
        "failures": int((granted & (jcw > ALPHA)).sum()),
        "sum": float(jcw.sum()),
        "squares": float((jcw**2).sum()),
    }
    return [{name: before[name] + added[name] for name in SUMS}]


def blocks(trials: Sequence[Trial] = TRIALS, fresh: int = FRESH, jobs: int = JOBS) -> list[Block]:
    """Return every trial; its record grows by some fits in each step."""
    return [
        Block(
            {"rule": trial.rule, "estimator": trial.estimator, "rows": ROWS}
            | {"fresh": fresh, "alpha": ALPHA, "rho": RHO},
            partial(add_fits, trial, fresh, jobs),
            partial(has_draws, trial.fits),
        )
        for trial in trials
    ]


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
