"""The promise of a whole `fit`: train, choose the weights, choose the threshold, certify."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.methods import ledger
from studies.runner import JOBS, Block, Record, Study

ALPHA, RHO = 0.05, 0.05
FITS, FEWER_FITS, BLOCK = 1000, 300, 20
FRESH, FEWER_FRESH = 100_000, 20_000  # rows by which the true JCW is known
# What a fit may say here.
EXPECTED = (
    rn.errors.NotCertifiedWarning,
    rn.errors.EmptyCertificateWarning,
    rn.errors.ConstraintWarning,
    rn.errors.FoldWarning,
)
SHORT = rn.training.Schedule(warmup_epochs=5, epochs_per_stage=2, max_stages=3, tau=0.1)

Maker = Callable[[int], Any]  # a seed becomes an unfitted estimator


@dataclass(frozen=True)
class Trial:
    """An estimator, how many rows its `fit` gets, and how many fits it takes to see a failure."""

    name: str
    make: Maker
    rows: int
    fits: int = FITS
    fresh: int = FRESH


def reliable(threshold: str | float, seed: int) -> rn.ReliableClassifier:
    """Return our default, which stops early and may be refitted, and has trees beside it."""
    return rn.ReliableClassifier(ALPHA, RHO, threshold, random_state=seed)


def network(seed: int) -> rn.ReliableClassifier:
    """Return its network alone."""
    return reliable("certified", seed).set_params(members=("network",))


def paper(threshold: str | float, seed: int) -> rn.ReliableClassifier:
    """Return the paper's method with a short schedule."""
    return rn.ReliableClassifier(
        ALPHA, RHO, threshold, network="mlp", schedule=SHORT, random_state=seed
    )


TRIALS = (
    Trial('ReliableClassifier(members=("network",))', network, 1500),
    Trial('network="mlp", threshold="certified"', partial(paper, "certified"), 1500),
    # A threshold fixed beforehand is certified only where it keeps its budget with room to spare.
    Trial("ReliableClassifier(threshold=0.8)", partial(reliable, 0.8), 1500, FEWER_FITS),
    Trial('network="mlp", threshold=0.8', partial(paper, 0.8), 1500, FEWER_FITS),
    Trial('network="mlp", threshold="selection"', partial(paper, "selection"), 4000, FEWER_FITS),
    # Trees answer slowly. Fewer fresh rows blur the true JCW by 0.001, where fits differ by 0.008.
    Trial(
        'ReliableClassifier(threshold="certified")',
        partial(reliable, "certified"),
        1500,
        fresh=FEWER_FRESH,
    ),
)


def fit_once(trial: Trial, seed: int) -> float | None:
    """Return the JCW of a certified fit on a band of its own; None if it is refused."""
    model, band = fit_on_band(trial.make(seed), seed, trial.rows)
    return true_jcw(model, band, trial.fresh) if model.certificate_.certified else None


def fit_on_band(model: Any, seed: int, rows: int) -> tuple[Any, SyntheticBand]:
    """Fit on rows of a band with this seed; return model and band."""
    torch.set_num_threads(1)
    band = SyntheticBand(seed)
    known = band.sample(rows)
    # refusals are counted, and the same rows serve many trials
    with warnings.catch_warnings(), ledger.closed():
        for category in EXPECTED:
            warnings.simplefilter("ignore", category)
        model.fit(known.X, known.y)
    return model, band


def true_jcw(model: Any, band: SyntheticBand, fresh: int) -> float:
    """Return the JCW of a model on fresh rows whose chance of being wrong is known.

    A label is a coin toss in the band and certain outside, so that only the rows are drawn and not the
    labels: that leaves a fraction of the noise.
    """
    X = band.sample(fresh).X
    decided, distance = model.decide(X), X @ band.direction
    wrong = np.where(np.abs(distance) <= band.gamma, 0.5, decided.label != (distance > 0))
    return float((decided.accepted * wrong).mean())


def count(jcw: Sequence[float | None]) -> dict[str, int]:
    """Count certificates and those whose rule is over the budget in truth; None is a refusal."""
    granted = [value for value in jcw if value is not None]
    return {
        "draws": len(jcw),
        "granted": len(granted),
        "failures": sum(value > ALPHA for value in granted),
    }


def add_fits(trial: Trial, jobs: int, known: Sequence[Record]) -> list[Record]:
    """Return the record of a trial with the next fits, so many at once that little is lost by a stop."""
    jcw = known[0]["jcw"] if known else []
    seeds = range(len(jcw), min(len(jcw) + BLOCK, trial.fits))
    jcw = jcw + Parallel(n_jobs=jobs)(delayed(fit_once)(trial, seed) for seed in seeds)
    return [count(jcw) | {"jcw": jcw}]


def blocks(trials: Sequence[Trial] = TRIALS, jobs: int = JOBS) -> list[Block]:
    """Return every trial; its record grows by some fits in each step."""
    return [
        Block(
            {"estimator": trial.name, "rows": trial.rows, "fresh": trial.fresh}
            | {"alpha": ALPHA, "rho": RHO},
            partial(add_fits, trial, jobs),
            partial(has_draws, trial.fits),
        )
        for trial in trials
    ]


def has_draws(wanted: int, known: Sequence[Record]) -> bool:
    """Tell whether a growing record has as many draws as it should."""
    return bool(known) and known[0]["draws"] >= wanted


STUDY = Study(
    "guarantees",
    "fits",
    about="Is the promise of a whole `fit` kept?",
    cost="several hours",
    blocks=blocks,
)
