"""The promises of certificates, kept on simulated rows whose true JCW is known in closed form.

Every test also shows that it could fail: the promise is nearly exhausted, so a rule that is a little
too permissive would break it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from reliablenet.certificate import (
    certified_threshold,
    certify,
    conformal_threshold,
    largest_certifiable_errors,
)

DRAWS, ROWS, ALPHA, RHO = 2000, 400, 0.05, 0.1


class SmoothCurve:
    """Uniform scores on [0, 1], wrong with probability (1 - s) / 2: JCW(t) = (1 - t)^2 / 4."""

    def draw(self, rng):
        score = rng.random((DRAWS, ROWS))
        return score, rng.random((DRAWS, ROWS)) < (1 - score) / 2

    def jcw(self, threshold):
        return (1 - np.clip(threshold, 0, 1)) ** 2 / 4


@dataclass
class CurveWithAtoms:
    """Scores on ten atoms; from 0.6 on JCW exceeds ALPHA by a hair: accepting that atom is a failure."""

    atoms: np.ndarray
    mass: np.ndarray
    error_rate: np.ndarray

    def draw(self, rng):
        place = rng.choice(len(self.atoms), p=self.mass, size=(DRAWS, ROWS))
        return self.atoms[place], rng.random((DRAWS, ROWS)) < self.error_rate[place]

    def jcw(self, threshold):
        return (self.atoms >= np.asarray(threshold)[..., None]) @ (self.mass * self.error_rate)


def curve_with_atoms():
    atoms = np.linspace(0.1, 1.0, 10)
    error_rate = np.linspace(0.6, 0.02, 10)
    mass = np.full(10, 0.1)
    from_6 = np.arange(10) >= 5
    error_rate[from_6] *= 1.001 * ALPHA / (mass * error_rate)[from_6].sum()
    return CurveWithAtoms(atoms, mass, error_rate)


CURVES = pytest.mark.parametrize(
    "curve", [SmoothCurve(), curve_with_atoms()], ids=["smooth", "atoms"]
)


def limit(probability):
    """Return the probability plus three standard errors of a share of DRAWS draws."""
    return probability + 3 * math.sqrt(probability * (1 - probability) / DRAWS)


def each_draw(curve, seed):
    """Yield the arguments that describe each drawn fold."""
    scores, wrongs = curve.draw(np.random.default_rng(seed))
    truth = np.zeros(ROWS, int)
    for score, wrong in zip(scores, wrongs, strict=True):
        yield {"proba": None, "y": truth, "score": score, "predicted": wrong.astype(int)}


@CURVES
def test_certified_threshold_breaks_its_budget_in_at_most_rho_of_all_draws(curve):
    certificates = [
        certified_threshold(alpha=ALPHA, rho=RHO, **fold) for fold in each_draw(curve, 1)
    ]
    certified = np.array([certificate.certified for certificate in certificates])
    truth = curve.jcw(np.array([certificate.threshold for certificate in certificates]))
    broken = np.mean(certified & (truth > ALPHA))
    assert certified.mean() > 0.99
    assert broken <= limit(RHO)
    # Choosing on the fold costs nothing, and wastes little: the failures are nearly used up.
    assert broken >= RHO / 2


@CURVES
def test_certify_grants_a_rule_beyond_its_budget_in_at_most_rho_of_all_draws(curve):
    """The hardest rule: a fixed threshold whose true JCW is just above alpha."""
    threshold = 0.55 if isinstance(curve, CurveWithAtoms) else 1 - math.sqrt(4 * 1.001 * ALPHA)
    truth = float(curve.jcw(threshold))
    assert ALPHA < truth < 1.01 * ALPHA
    certificates = [
        certify(threshold=threshold, alpha=ALPHA, rho=RHO, **f) for f in each_draw(curve, 3)
    ]
    granted = np.mean([certificate.certified for certificate in certificates])
    failed = np.mean([certificate.upper_bound < truth for certificate in certificates])
    assert granted <= limit(RHO)
    assert failed <= limit(RHO)
    # The exact probability of a certificate is a binomial sum; the share must agree with it.
    exact = binom.cdf(largest_certifiable_errors(ROWS, ALPHA, RHO), ROWS, truth)
    assert exact > RHO / 2
    assert granted == pytest.approx(exact, abs=limit(exact) - exact)


@CURVES
def test_conformal_threshold_keeps_jcw_within_alpha_on_average(curve):
    thresholds = [conformal_threshold(alpha=ALPHA, **fold) for fold in each_draw(curve, 4)]
    truth = curve.jcw(np.array(thresholds))
    error = truth.std(ddof=1) / math.sqrt(DRAWS)
    assert truth.mean() <= ALPHA + 3 * error
    # It promises the mean alone: single draws exceed alpha far more often than RHO.
    assert np.mean(truth > ALPHA) > 2 * RHO


def test_conformal_threshold_spends_its_budget():
    """For continuous scores the mean is at least alpha - 2 / (n + 1)."""
    curve = SmoothCurve()
    truth = curve.jcw([conformal_threshold(alpha=ALPHA, **fold) for fold in each_draw(curve, 5)])
    error = truth.std(ddof=1) / math.sqrt(DRAWS)
    assert truth.mean() >= ALPHA - 2 / (ROWS + 1) - 3 * error
