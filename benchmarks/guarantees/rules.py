"""Every rule around every estimator, one and two deep: whole fits on Synthetic Band, where JCW is known.

Counted are false certificates, of any rule; and the mean JCW of the rule as it acts, which
`ConformalRiskControl` promises to be within alpha. The fault that this must catch: an estimator that is trained anew on
training and selection rows together, though the rule around it computes its threshold on the selection rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from benchmarks.guarantees.fits import true_jcw
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.methods import ledger
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.tables import Fold

ALPHA, RHO, ROWS, FRESH = 0.1, 0.05, 600, 20_000
FITS, SOME_FITS, FEW_FITS, BLOCK = 1000, 250, 100, 50

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
    "ReliableClassifier()": lambda seed: rn.ReliableClassifier(ALPHA, RHO, random_state=seed),
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
NETWORK, STOPPED = "ReliableClassifier()", 'ERMClassifier(epochs=20, checkpoint="selection")'
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
]
CHEAP = {"LogisticRegression()": FITS, "HistGradientBoostingClassifier(max_iter=20)": SOME_FITS}
TRIALS = MAIN + [
    Trial(rule, estimator, CHEAP.get(estimator, FEW_FITS))
    for estimator in ESTIMATORS
    for rule in RULES
    if rule != FAULT and (rule, estimator) not in [(one.rule, one.estimator) for one in MAIN]
]


def fit_once(trial: Trial, seed: int, fresh: int = FRESH) -> tuple[bool, float]:
    """Fit on a band of its own; return whether it is certified, and the JCW of what it does."""
    torch.set_num_threads(1)
    band = SyntheticBand(seed)
    known = band.sample(ROWS)
    model = RULES[trial.rule](ESTIMATORS[trial.estimator](seed), seed)
    # refusals are counted, and the same rows serve many trials
    with warnings.catch_warnings(), ledger.closed():
        for category in (
            rn.errors.NotCertifiedWarning,
            rn.errors.EmptyCertificateWarning,
            rn.errors.ConstraintWarning,
            rn.errors.FoldWarning,
        ):
            warnings.simplefilter("ignore", category)
        model.fit(known.X, known.y)
    return model.certificate_.certified, true_jcw(model, band, fresh)


def run(
    trials: Sequence[Trial] = TRIALS,
    fresh: int = FRESH,
    jobs: int = 2,
    done: Sequence[dict[str, Any]] = (),
) -> Iterator[list[dict[str, Any]]]:
    """Yield what is known after each block of fits; what was ``done`` before is not done again."""
    found = {(record["rule"], record["estimator"]): record for record in done}
    for trial in trials:
        place = trial.rule, trial.estimator
        known = found.get(
            place, {"draws": 0, "granted": 0, "failures": 0, "sum": 0.0, "squares": 0.0}
        )
        while (start := known["draws"]) < trial.fits:
            seeds = range(start, min(start + BLOCK, trial.fits))
            results = Parallel(n_jobs=jobs)(delayed(fit_once)(trial, seed, fresh) for seed in seeds)
            known = add_up(known, results)
            setting = {"rule": trial.rule, "estimator": trial.estimator, "rows": ROWS}
            setting |= {"fresh": fresh, "alpha": ALPHA, "rho": RHO}
            found[place] = setting | known
            yield list(found.values())


def add_up(known: dict[str, Any], results: Sequence[tuple[bool, float]]) -> dict[str, Any]:
    """Return the counts of earlier fits and of these: certificates, false ones, and sums of JCW."""
    granted, jcw = (np.array(column) for column in zip(*results, strict=True))
    return {
        "draws": known["draws"] + len(jcw),
        "granted": known["granted"] + int(granted.sum()),
        "failures": known["failures"] + int((granted & (jcw > ALPHA)).sum()),
        "sum": known["sum"] + float(jcw.sum()),
        "squares": known["squares"] + float((jcw**2).sum()),
    }


def mean(record: dict[str, Any]) -> tuple[float, float]:
    """Return the mean JCW of a record and its standard error."""
    n, average = record["draws"], record["sum"] / record["draws"]
    return average, math.sqrt(max(record["squares"] / n - average**2, 0.0) / max(n - 1, 1))


def keeps_mean(record: dict[str, Any]) -> bool:
    """Tell whether the mean JCW is within alpha plus three standard errors."""
    average, error = mean(record)
    return average <= record["alpha"] + 3 * error
