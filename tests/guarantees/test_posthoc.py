"""What the rules around a classifier promise, over many draws of the rows given to `fit`.

The classifier is fixed: confidence s is uniform on [1/2, 1], the prediction is wrong with probability
1 - s, so that JCW at a threshold t is (1 - t)^2 in closed form.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

import reliablenet as rn
from studies.guarantees.voids import Fixed

DRAWS, ALPHA, RHO = 400, 0.05, 0.1

FITTED = Fixed().fit(None, None)


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    top, predicted = rng.uniform(0.5, 1.0, n), rng.integers(0, 2, n)
    wrong = rng.random(n) < 1 - top
    X = np.column_stack([1 - top, top])
    return np.where(predicted[:, None] == 1, X, X[:, ::-1]), predicted ^ wrong


def true_jcw(threshold: Any) -> np.ndarray:
    return (1 - np.clip(threshold, 0.5, 1.0)) ** 2


def fits(rule: Any, estimator: Any, n: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rn.errors.NotCertifiedWarning)
        for number in range(DRAWS):
            model = rule(estimator, ALPHA, RHO, random_state=number)
            models.append(model.fit(*draw(rng, n)))
    return models


def limit(probability: float) -> float:
    """Return the probability plus three standard errors of a share of DRAWS draws."""
    return probability + 3 * math.sqrt(probability * (1 - probability) / DRAWS)


@pytest.mark.parametrize(
    ("estimator", "n"), [(FITTED, 400), (Fixed(), 1000)], ids=["fitted", "unfitted"]
)
def test_certified_threshold_breaks_its_promise_in_at_most_rho_of_draws(estimator, n) -> None:
    models = fits(rn.CertifiedThreshold, estimator, n, seed=1)
    certified = np.array([model.certificate_.certified for model in models])
    broken = true_jcw([model.threshold_ for model in models]) > ALPHA
    assert certified.mean() > 0.95
    assert np.mean(broken) <= limit(RHO)
    assert np.mean(broken) >= RHO / 4  # the promise is not kept by being far too careful


def test_a_certified_temperature_keeps_the_promise_though_two_folds_made_it() -> None:
    models = fits(rn.TemperatureScaling, FITTED, 800, seed=2)
    # For two classes a threshold on scaled confidences is one on confidences.
    plain = expit([model.temperature_ * logit(min(model.threshold_, 1.0)) for model in models])
    broken = np.mean(true_jcw(plain) > ALPHA)
    assert np.mean([model.temperature_ != 1.0 for model in models]) == 1.0
    assert broken <= limit(RHO)
    assert broken >= RHO / 4


def assert_certificates_are_true(models: list[Any], truth: np.ndarray) -> None:
    """A fold of its own certifies the fixed rule: certified and beyond alpha in at most rho."""
    certified = np.array([model.certificate_.certified for model in models])
    bound = np.array([model.certificate_.upper_bound for model in models])
    assert certified.any()
    assert np.mean(certified & (truth > ALPHA)) <= limit(RHO)
    assert np.mean(bound < truth) <= limit(RHO)
    assert np.mean(bound < truth) >= RHO / 4


def test_conformal_risk_control_keeps_jcw_within_alpha_on_average_and_spends_it() -> None:
    models = fits(rn.ConformalRiskControl, FITTED, 800, seed=3)
    assert models[0].certificate_.n == 400
    truth = true_jcw([model.threshold_ for model in models])
    error = truth.std(ddof=1) / math.sqrt(DRAWS)
    assert truth.mean() <= ALPHA + 3 * error
    assert truth.mean() >= ALPHA - 2 / 401 - 3 * error
    assert np.mean(truth > ALPHA) > 2 * RHO  # the mean is all it promises
    assert_certificates_are_true(models, truth)


def test_confidence_threshold_promises_nothing() -> None:
    """Its JCW exceeds alpha in nearly half of all draws: hence the others."""
    models = fits(rn.ConfidenceThreshold, FITTED, 800, seed=4)
    truth = true_jcw([model.threshold_ for model in models])
    assert 0.35 < np.mean(truth > ALPHA) < 0.6
    assert_certificates_are_true(models, truth)
