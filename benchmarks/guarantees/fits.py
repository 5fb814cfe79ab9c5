"""The promise of a whole `fit`: train, choose the weights, choose the threshold, certify."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

import reliablenet as rn
from reliablenet.datasets import SyntheticBand

ALPHA, RHO = 0.05, 0.05
FITS, FEWER_FITS, FRESH, BLOCK = 1000, 300, 100_000, 20
SHORT = rn.training.Schedule(warmup_epochs=5, epochs_per_stage=2, max_stages=3, tau=0.1)

Maker = Callable[[int], Any]  # a seed becomes an unfitted estimator


@dataclass(frozen=True)
class Trial:
    """An estimator, how many rows its `fit` gets, and how many fits it takes to see a failure."""

    name: str
    make: Maker
    rows: int
    fits: int = FITS


def reliable(threshold: str | float, seed: int) -> rn.ReliableClassifier:
    """Return our default, which stops early and may be refitted."""
    return rn.ReliableClassifier(ALPHA, RHO, threshold, random_state=seed)


def paper(threshold: str | float, seed: int) -> rn.ReliableClassifier:
    """Return the paper's method with a short schedule."""
    return rn.ReliableClassifier(
        ALPHA, RHO, threshold, network="mlp", schedule=SHORT, random_state=seed
    )


TRIALS = (
    Trial('ReliableClassifier(threshold="certified")', partial(reliable, "certified"), 1500),
    Trial('network="mlp", threshold="certified"', partial(paper, "certified"), 1500),
    # A threshold fixed beforehand is certified only where it keeps its budget with room to spare.
    Trial("ReliableClassifier(threshold=0.8)", partial(reliable, 0.8), 1500, FEWER_FITS),
    Trial('network="mlp", threshold=0.8', partial(paper, 0.8), 1500, FEWER_FITS),
    Trial('network="mlp", threshold="selection"', partial(paper, "selection"), 4000, FEWER_FITS),
)


def fit_once(trial: Trial, seed: int, fresh: int = FRESH) -> tuple[bool, float]:
    """Fit on a band of its own; return whether it is certified, and its JCW on fresh rows."""
    torch.set_num_threads(1)
    band = SyntheticBand(seed)
    known = band.sample(trial.rows)
    model = trial.make(seed)
    with warnings.catch_warnings():  # refusals are counted
        for category in (
            rn.errors.NotCertifiedWarning,
            rn.errors.EmptyCertificateWarning,
            rn.errors.ConstraintWarning,
        ):
            warnings.simplefilter("ignore", category)
        model.fit(known.X, known.y)
    if not model.certificate_.certified:
        return False, 0.0  # it defers every row
    return True, true_jcw(model, band, fresh)


def true_jcw(model: Any, band: SyntheticBand, fresh: int) -> float:
    """Return the JCW of a model on fresh rows whose chance of being wrong is known.

    A label is a coin toss in the band and certain outside, so that only the rows are drawn and not the
    labels: that leaves a fraction of the noise.
    """
    X = band.sample(fresh).X
    decided, distance = model.decide(X), X @ band.direction
    wrong = np.where(np.abs(distance) <= band.gamma, 0.5, decided.label != (distance > 0))
    return float((decided.accepted * wrong).mean())


def run(
    trials: Sequence[Trial] = TRIALS,
    fits: int | None = None,
    fresh: int = FRESH,
    jobs: int = 2,
    done: Sequence[dict[str, Any]] = (),
) -> Iterator[list[dict[str, Any]]]:
    """Yield what is known after each block of fits; what was ``done`` before is not done again."""
    found = {record["estimator"]: record for record in done if record["fresh"] == fresh}
    for trial in trials:
        known = found.get(trial.name, {"jcw": []})["jcw"]
        setting = {"estimator": trial.name, "rows": trial.rows, "fresh": fresh}
        setting |= {"alpha": ALPHA, "rho": RHO}
        wanted = trial.fits if fits is None else fits
        while len(known) < wanted:
            seeds = range(len(known), min(len(known) + BLOCK, wanted))
            results = Parallel(n_jobs=jobs)(delayed(fit_once)(trial, s, fresh) for s in seeds)
            known = known + [jcw if certified else None for certified, jcw in results]
            found[trial.name] = setting | count(known) | {"jcw": known}
            yield list(found.values())


def count(jcw: Sequence[float | None]) -> dict[str, int]:
    """Count certificates and those whose rule is over the budget in truth; None is a refusal."""
    granted = [value for value in jcw if value is not None]
    return {
        "draws": len(jcw),
        "granted": len(granted),
        "failures": sum(value > ALPHA for value in granted),
    }
