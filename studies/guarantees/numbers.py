"""The promise for numbers, where the noise is normal and the chance of an error above the tolerance known."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import reliablenet as rn
from reliablenet.certificate.judgement import midway
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.scored import ScoredRows
from reliablenet.methods import ledger
from reliablenet.methods.error_model import ErrorModel
from studies.guarantees.fits import has_draws
from studies.runner import Block, Record, Study

ALPHA, RHO, TOLERANCE = 0.1, 0.05, 0.5
DRAWS, ROWS, BLOCK = 20_000, 400, 5_000
TOOTH = 321  # rows that afford as many errors as can be: certificates are false in just under 5 %
FITS, FEWER_FITS, FIT_ROWS, FIT_BLOCK = 300, 100, 500, 25
GRID = (np.arange(20_000) + 0.5) / 20_000  # rows are uniform: these stand for all
FRESH = GRID[::10, None]
AFFORDED, CELLS = largest_certifiable_errors(ROWS, ALPHA, RHO), 80

Values = NDArray[np.float64]


def spread(x: Values) -> Values:
    """Return the standard deviation of the noise."""
    return 0.1 + x


def miss(x: Values, value: Values, tolerance: float | Values) -> Values:
    """Return the chance that the truth, normal around 2 x, is further than the tolerance from the value."""
    noise, off = spread(x), value - 2 * x
    return np.asarray(1.0 - ndtr((tolerance - off) / noise) + ndtr((-tolerance - off) / noise))


def answer(x: Values, setting: str) -> tuple[Values, Values]:
    """Return value and score of rows: of a poor model, or of one that knows the chance of being right."""
    if setting == "poor":
        return 1.7 * x + 0.2, 1.0 - x + 0.3 * np.sin(40 * x)
    return 2 * x, 1.0 - miss(x, 2 * x, TOLERANCE)


def draw(
    setting: str, rows: int, rng: np.random.Generator, tolerances: Sequence[float]
) -> tuple[bool, bool]:
    """Return whether a fold of fresh rows certifies, and whether the rule is then over its budget.

    Of several tolerances the smallest is kept at which at least half of the rows are acted on: a choice
    after a look at the fold.
    """
    afforded = largest_certifiable_errors(rows, ALPHA, RHO)
    x = rng.random(rows)
    value, score = answer(x, setting)
    error = np.abs(rng.normal(2 * x, spread(x)) - value)
    for tolerance in tolerances:
        threshold = midway(ScoredRows(score, error > tolerance, -np.inf), afforded)
        if threshold < np.inf and (len(tolerances) == 1 or (score >= threshold).mean() >= 0.5):
            return True, true_jcw(setting, tolerance, threshold) > ALPHA
    return False, False


def draw_cells(rng: np.random.Generator) -> tuple[bool, bool]:
    """Return the same for a fault: the tolerance of each cell of x is its largest error in the fold."""
    x = rng.random(ROWS)
    error = np.abs(rng.normal(0.0, spread(x)))
    cell = (x * CELLS).astype(int)
    tolerance = np.full(CELLS, TOLERANCE)
    np.maximum.at(tolerance, cell, error)
    threshold = midway(ScoredRows(1.0 - x, error > tolerance[cell], -np.inf), AFFORDED)
    lost = miss(GRID, 2 * GRID, tolerance[(GRID * CELLS).astype(int)])
    return threshold < np.inf, bool((lost * (threshold <= 1.0 - GRID)).mean() > ALPHA)


def true_jcw(setting: str, tolerance: float, threshold: float) -> float:
    """Return the chance that a row is acted on and off by more than the tolerance."""
    scores, below = curve(setting, tolerance)
    return float(below[-1] - below[np.searchsorted(scores, threshold)])


@cache
def curve(setting: str, tolerance: float) -> tuple[Values, Values]:
    """Return all scores, ascending, and the chance of such an error below each of them."""
    value, score = answer(GRID, setting)
    order = np.argsort(score)
    lost = miss(GRID, value, tolerance)[order] / len(GRID)
    return score[order], np.concatenate([[0.0], np.cumsum(lost)])


def add_draws(
    setting: str, rows: int, tolerances: Sequence[float], known: Sequence[Record]
) -> list[Record]:
    """Return the record with the next draws."""
    record = dict(known[0]) if known else {"draws": 0, "granted": 0, "failures": 0}
    rng = np.random.default_rng([rows, len(setting), len(tolerances), record["draws"]])
    for _ in range(BLOCK):
        granted, false = draw(setting, rows, rng, tolerances) if tolerances else draw_cells(rng)
        record["draws"] += 1
        record["granted"] += granted
        record["failures"] += false
    return [{name: record[name] for name in ("draws", "granted", "failures")}]


class TrainingErrors(rn.CertifiedThreshold):
    """The same rule with a fault that costs power alone: errors are learned on training rows."""

    def _fit_folds(self, train: Any, selection: Any, seed: int, *, keep_selection: bool) -> None:
        super()._fit_folds(train, selection, seed, keep_selection=keep_selection)
        margin = self._numbers().tolerance.rows(train.X, "fit")
        value = self.estimator_.predict(train.X)
        self.errors_ = ErrorModel(random_state=seed).fit(train.X, value, train.y, margin)


def network(seed: int) -> rn.ReliableRegressor:
    """Return our network with few epochs."""
    settings: dict[str, Any] = {"network": "mlp", "epochs": 8, "learning_rate": 5e-3}
    return rn.ReliableRegressor(TOLERANCE, ALPHA, RHO, random_state=seed, **settings)


def around(kind: type, model: Callable[[], Any], seed: int) -> Any:
    """Return a rule around a regressor."""
    return kind(model(), ALPHA, RHO, tolerance=TOLERANCE, random_state=seed)


TREE = partial(DecisionTreeRegressor, random_state=0)
TRIALS: dict[str, tuple[Callable[[int], Any], int]] = {
    'ReliableRegressor(network="mlp")': (network, FITS),
    "CertifiedThreshold(LinearRegression())": (
        partial(around, rn.CertifiedThreshold, LinearRegression),
        FITS,
    ),
    "CertifiedThreshold(DecisionTreeRegressor())": (
        partial(around, rn.CertifiedThreshold, TREE),
        FEWER_FITS,
    ),
    "the same, its errors learned on training rows": (
        partial(around, TrainingErrors, TREE),
        FEWER_FITS,
    ),
}


def fit_once(make: Callable[[int], Any], seed: int) -> tuple[float | None, float]:
    """Return true JCW of a certified fit on rows of its own, None if refused, and its throughput."""
    rng = np.random.default_rng(seed)
    known = rng.random((FIT_ROWS, 1))
    y = rng.normal(2 * known[:, 0], spread(known[:, 0]))
    with warnings.catch_warnings(), ledger.closed():
        warnings.simplefilter("ignore")
        model = make(seed).fit(known, y)
        decided = model.decide(FRESH)
    wrong = miss(FRESH[:, 0], decided.value, TOLERANCE)
    jcw = float((decided.accepted * wrong).mean())
    return (jcw if model.certificate_.certified else None), float(
        (decided.accepted * (1 - wrong)).mean()
    )


def add_fits(make: Callable[[int], Any], fits: int, known: Sequence[Record]) -> list[Record]:
    """Return the record with the next fits."""
    done = known[0]["fits"] if known else []
    seeds = range(len(done), min(len(done) + FIT_BLOCK, fits))
    done = done + [list(fit_once(make, seed)) for seed in seeds]
    granted = [jcw for jcw, _ in done if jcw is not None]
    return [
        {
            "draws": len(done),
            "granted": len(granted),
            "failures": sum(jcw > ALPHA for jcw in granted),
            "throughput": float(np.mean([throughput for _, throughput in done])),
            "fits": done,
        }
    ]


def blocks() -> list[Block]:
    """Return folds with given scores, the fault that they must catch, and whole fits."""
    setting = {"alpha": ALPHA, "rho": RHO}
    looked = np.linspace(0.2, 1.2, 21).tolist()
    cases = [
        ("good", ROWS, [TOLERANCE]),
        ("poor", ROWS, [TOLERANCE]),
        ("good", TOOTH, [TOLERANCE]),
        ("good", ROWS, looked),
        ("good", ROWS, []),  # one for each cell, after a look
    ]
    return [
        *(
            Block(
                {"part": "rule", "setting": name, "rows": rows, "tolerances": tolerances} | setting,
                partial(add_draws, name, rows, tolerances),
                partial(has_draws, DRAWS),
            )
            for name, rows, tolerances in cases
        ),
        *(
            Block(
                {"part": "fit", "setting": name, "rows": FIT_ROWS} | setting,
                partial(add_fits, make, fits),
                partial(has_draws, fits),
            )
            for name, (make, fits) in TRIALS.items()
        ),
    ]


STUDY = Study(
    "guarantees",
    "numbers",
    about="Is the promise for numbers kept, and is a tolerance chosen after a look caught?",
    cost="about 30 minutes",
    blocks=blocks,
)
