"""`fit_temperature` against closed forms, a fine grid, and scipy's scalar minimiser."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logit, softmax

from reliablenet.errors import FoldWarning
from reliablenet.methods.posthoc import LARGEST_TEMPERATURE, LEAST_PROBABILITY, fit_temperature

OVER_AND_UNDER = [0.05, 0.3, 0.9, 1.0, 3.0, 20.0]
problems = pytest.mark.parametrize("sharpness", OVER_AND_UNDER)
sizes = pytest.mark.parametrize("n_classes", [2, 3, 5, 10, 20])


def problem(n_classes: int, sharpness: float, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities that are too sharp by a factor, and labels drawn from the true ones."""
    rng = np.random.default_rng([n_classes, int(100 * sharpness)])
    logits = 1.5 * rng.standard_normal((n, n_classes))
    truth = softmax(logits, axis=1)
    y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=n_classes - 1)
    return softmax(sharpness * logits, axis=1), y


def loss(temperature: float, proba: np.ndarray, y: np.ndarray) -> float:
    """Return the negative log-likelihood, zeros lifted to the least probability."""
    logits = np.log(np.maximum(proba, LEAST_PROBABILITY)) / temperature
    return float(-log_softmax(logits, axis=1)[np.arange(len(y)), y].mean())


def minimised(proba: np.ndarray, y: np.ndarray) -> float:
    """Return the temperature that scipy finds, searching its logarithm."""
    found = minimize_scalar(
        lambda power: loss(np.exp(power), proba, y),
        bounds=np.log([1 / LARGEST_TEMPERATURE, LARGEST_TEMPERATURE]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(np.exp(found.x))


@problems
@sizes
def test_as_scipy_minimises(n_classes, sharpness) -> None:
    proba, y = problem(n_classes, sharpness)
    temperature = fit_temperature(proba, y)
    expected = minimised(proba, y)
    assert temperature == pytest.approx(expected, rel=1e-5)
    assert loss(temperature, proba, y) <= loss(expected, proba, y) + 1e-14


@problems
@sizes
def test_no_point_of_a_fine_grid_is_better(n_classes, sharpness) -> None:
    proba, y = problem(n_classes, sharpness)
    temperature = fit_temperature(proba, y)
    grid = np.geomspace(0.01, 100, 2001)
    losses = [loss(t, proba, y) for t in grid]
    assert loss(temperature, proba, y) <= min(losses) + 1e-14
    nearest = grid[int(np.argmin(losses))]
    assert abs(np.log(temperature / nearest)) <= np.log(grid[1] / grid[0])


@pytest.mark.parametrize("sharpness", OVER_AND_UNDER[:-1])  # 20 times: the floor for zeros cuts
def test_the_factor_by_which_a_model_is_too_sharp_is_found(sharpness) -> None:
    proba, y = problem(4, sharpness, n=40_000)
    assert fit_temperature(proba, y) == pytest.approx(sharpness, rel=0.04)


@pytest.mark.parametrize("n_classes", [2, 4, 20])
@pytest.mark.parametrize("sharpness", [3.0, 20.0])
def test_probabilities_with_exact_zeros(n_classes, sharpness) -> None:
    proba, y = problem(n_classes, sharpness)
    proba = np.where(proba < 0.02, 0.0, proba)
    proba /= proba.sum(axis=1, keepdims=True)
    assert (proba[np.arange(len(y)), y] == 0.0).any()  # what was ruled out did happen
    temperature = fit_temperature(proba, y)
    assert temperature == pytest.approx(minimised(proba, y), rel=1e-5)
    assert temperature > 1.0


@pytest.mark.parametrize("confidence", [0.51, 0.6, 0.9, 0.999, 1 - 1e-9, 1 - 1e-15])
@pytest.mark.parametrize("accuracy", [0.51, 0.75, 0.9, 0.995])
def test_one_confidence_and_one_accuracy_have_a_closed_form(confidence, accuracy) -> None:
    """The scaled confidence must equal the accuracy: T = logit(confidence) / logit(accuracy)."""
    n = 1000
    proba = np.tile([confidence, 1 - confidence], (n, 1))
    y = (np.arange(n) >= round(accuracy * n)).astype(int)
    exact = (np.log(confidence) - np.log(1 - confidence)) / logit(accuracy)
    expected = np.clip(exact, 1 / LARGEST_TEMPERATURE, LARGEST_TEMPERATURE)
    assert fit_temperature(proba, y) == pytest.approx(expected, rel=1e-7)


def test_certainty_counts_as_the_least_probability() -> None:
    proba = np.tile([1.0, 0.0], (100, 1))
    y = (np.arange(100) >= 80).astype(int)
    expected = -np.log(LEAST_PROBABILITY) / logit(0.8)
    assert fit_temperature(proba, y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_classifier_worse_than_chance_gets_the_largest_temperature(n_classes) -> None:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(n_classes), 200)
    assert fit_temperature(proba, proba.argmin(axis=1)) == LARGEST_TEMPERATURE


def test_a_hair_of_information_stays_below_the_largest_temperature() -> None:
    """Right in 501 of 1,000 with confidence 0.9: T would be 549, more than is allowed."""
    proba = np.tile([0.9, 0.1], (1000, 1))
    right = [501, 520]
    found = [fit_temperature(proba, (np.arange(1000) >= k).astype(int)) for k in right]
    assert found[0] == LARGEST_TEMPERATURE
    assert found[1] == pytest.approx(logit(0.9) / logit(0.52), rel=1e-9)


@pytest.mark.parametrize("confidence", [0.501, 0.505, 0.6, 0.9, 0.9999, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_without_an_error_the_temperature_stays_1(confidence, n_classes) -> None:
    """The likelihood only grows towards temperature 0, in exact arithmetic; no bit may decide."""
    rest = (1 - confidence) / (n_classes - 1)
    proba = np.full((50, n_classes), rest)
    y = np.arange(50) % n_classes
    proba[np.arange(50), y] = confidence
    with pytest.warns(FoldWarning, match="gets all of them right"):
        assert fit_temperature(proba, y) == 1.0


def test_rows_of_many_confidences_without_an_error() -> None:
    top = np.random.default_rng(0).uniform(0.6, 1, 200)
    with pytest.warns(FoldWarning, match="gets all of them right"):
        assert fit_temperature(np.column_stack([top, 1 - top]), np.zeros(200, int)) == 1.0


def test_a_very_underconfident_classifier_with_errors_is_not_said_to_have_none() -> None:
    """Right in 90 of 100 with confidence 0.502: T would be 0.0036, less than is allowed."""
    proba = np.tile([0.502, 0.498], (100, 1))
    y = (np.arange(100) >= 90).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FoldWarning)
        temperature = fit_temperature(proba, y)
    assert temperature == pytest.approx(1 / LARGEST_TEMPERATURE)


def test_a_classifier_that_says_nothing_gets_one_answer_whatever_the_last_bit() -> None:
    """With uniform probabilities every temperature has the same likelihood."""
    rng = np.random.default_rng(0)
    found = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldWarning)
        warnings.filterwarnings("error", ".*gets all of them right")
        for n_classes in range(2, 21):
            proba = np.full((60, n_classes), 1 / n_classes)
            found.add(fit_temperature(proba, rng.integers(0, n_classes, 60)))
    assert len(found) == 1
