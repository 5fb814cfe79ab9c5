"""Oracle: MAPIE's risk control, for the test behind a certificate and the scan of `certified_threshold`.

A certificate rejects "JCW > alpha" where P(Bin(n, alpha) <= K) <= rho. MAPIE's binary
Hoeffding-Bentkus p-value is the smaller of that tail and its Chernoff bound, but its K is
ceil(n * (K / n)) in floats, which may come out as K + 1: the (7, 100) of PEERS.md. So its p-value is
never below ours, and equal to it where the rounding returns K, as it always does if n is a power
of two. Chernoff's bound exceeds the tail, so that it matters only where K came out one too large.

`certified_threshold` goes from strict to permissive thresholds until the bound fails: fixed-sequence
testing. MAPIE's controllers compare with "at or above" as we do, and take 1 - confidence_level for
rho, which is 0.050000000000000044 for 0.95; the tests give us the same number.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from mapie.risk_control import (
    BinaryClassificationController,
    BinaryRisk,
    MultiClassificationLTTController,
    control_fwer,
)
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

from reliablenet.certificate import certified_threshold, certify, rows_for_errors
from reliablenet.certificate.planning import binomial_cdf

SIZES = [1, 2, 7, 49, 58, 59, 64, 100, 128, 400, 1000, 1024, 2000]
ALPHAS = [0.01, 0.05, 0.1, 0.3]


def mapie_p_values(errors, n: int, alpha: float, binary: bool = True) -> np.ndarray:
    return compute_hoeffding_bentkus_p_value(np.asarray(errors) / n, n, alpha, binary)[:, 0]


def survives_rounding(errors, n: int) -> np.ndarray:
    """Tell for which counts K MAPIE's ceil(n * (K / n)) is K."""
    return np.ceil(n * (np.asarray(errors) / n)) == errors


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", SIZES)
def test_p_value_is_never_above_mapies_and_equal_where_its_rounding_returns_the_count(n, alpha):
    errors = np.arange(n + 1)
    ours, theirs = binomial_cdf(errors, n, alpha), mapie_p_values(errors, n, alpha)
    assert (theirs >= ours - 1e-12).all()
    same = survives_rounding(errors, n)
    # Below 1e-200 the binom.cdf that MAPIE calls loses digits; rational arithmetic agrees with us.
    np.testing.assert_allclose(theirs[same], ours[same], rtol=1e-9, atol=1e-200)
    # Their p-value for losses that are not binary is larger still.
    assert (mapie_p_values(errors, n, alpha, binary=False) >= ours - 1e-12).all()


def test_the_rounding_is_exact_for_powers_of_two_and_overshoots_elsewhere():
    """Else the equalities of this module would compare nothing."""
    counts = {n: survives_rounding(np.arange(n + 1), n) for n in SIZES}
    assert all(counts[n].all() for n in (1, 2, 64, 128, 1024))
    assert min(same.mean() for same in counts.values()) > 0.8
    assert not counts[100].all()


@pytest.mark.parametrize("rho", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [64, 128, 1024])
def test_certify_grants_exactly_the_counts_that_mapie_rejects(n, alpha, rho):
    errors = np.arange(n // 2)
    granted = [
        certify(
            None,
            np.zeros(n, int),
            0.5,
            alpha,
            rho,
            score=np.ones(n),
            predicted=(np.arange(n) < k).astype(int),
        ).certified
        for k in errors
    ]
    assert granted == (mapie_p_values(errors, n, alpha) <= rho).tolist()


def scan(score, wrong, alpha, rho):
    """Return observed scores from strict to permissive, errors at each, and which we certify."""
    thresholds = np.unique(score)[::-1]
    errors = np.array([np.count_nonzero(wrong & (score >= t)) for t in thresholds])
    certificate = certified_threshold(
        None, np.zeros(len(score), int), alpha, rho, score=score, predicted=wrong.astype(int)
    )
    return errors, np.flatnonzero(thresholds >= certificate.threshold).tolist()


def check_scan(score, wrong, alpha, rho):
    """Compare with fixed-sequence testing on our p-values, then on MAPIE's own."""
    n = len(score)
    errors, certified = scan(score, wrong, alpha, rho)
    ours = control_fwer(binomial_cdf(errors, n, alpha), rho, "fixed_sequence")
    assert certified == ours.tolist()
    theirs = control_fwer(mapie_p_values(errors, n, alpha), rho, "fixed_sequence")
    assert set(theirs.tolist()) <= set(certified)
    if survives_rounding(errors, n).all():
        assert certified == theirs.tolist()
    return len(certified), len(errors)


# No budget and level with P(Bin(n, alpha) <= K) = rho exactly: there an ulp decides, see below.
LEVEL = st.sampled_from([0.013, 0.051, 0.103, 0.207, 0.311])


@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9)), min_size=1, max_size=120),
    alpha=LEVEL,
    rho=LEVEL,
)
def test_scan_of_tied_scores_is_fixed_sequence_testing(rows, alpha, rho):
    score, luck = np.array(rows, float).T
    check_scan(score, luck + score < 6, alpha, rho)


@pytest.mark.parametrize("n", [200, 512, 999])
@pytest.mark.parametrize("digits", [15, 2], ids=["no ties", "ties"])
@pytest.mark.parametrize("seed", range(5))
def test_scan_of_calibrated_scores_is_fixed_sequence_testing(n, digits, seed):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.5, 1.0, n)
    wrong = rng.random(n) > score
    score = score.round(digits)
    certified, candidates = check_scan(score, wrong, 0.05, 0.1)
    assert 0 < certified < candidates
    assert (candidates == n) == (digits == 15)


ACCEPTED_AND_WRONG = BinaryRisk(
    risk_occurrence=lambda y, predicted: ~np.isnan(predicted) & (predicted != y),
    risk_condition=lambda y, _: np.ones(len(y), bool),
    higher_is_better=False,
)
POSITIVE_AND_WRONG = BinaryRisk(
    risk_occurrence=lambda y, predicted: (predicted == 1) & (y == 0),
    risk_condition=lambda y, _: np.ones(len(y), bool),
    higher_is_better=False,
)


def abstaining_controller(proba, y, alpha, confidence_level):
    """Let MAPIE choose when to abstain; its prediction is the argmax, as ours is."""
    return MultiClassificationLTTController(
        lambda rows: proba[rows],
        [ACCEPTED_AND_WRONG],
        [alpha],
        confidence_level,
        list_predict_params=np.unique(proba.max(axis=1)),
        classes=np.arange(proba.shape[1]),
        fwer_method="fixed_sequence",
    ).calibrate(np.arange(len(y)), y)


def selective_controller(proba, y, alpha, confidence_level):
    """The same as a binary problem: class 1 means "right", predicted where confidence suffices."""
    confidence = proba.max(axis=1)
    return BinaryClassificationController(
        lambda rows: np.column_stack([1 - confidence, confidence])[rows],
        POSITIVE_AND_WRONG,
        alpha,
        confidence_level,
        best_predict_param_choice="predicted_positive_fraction",
        list_predict_params=np.unique(confidence),
        fwer_method="fixed_sequence",
    ).calibrate(np.arange(len(y)), (proba.argmax(axis=1) == y).astype(int))


def problem(seed: int, n: int, n_classes: int, digits: int = 15):
    """Return probabilities and labels drawn from them: calibrated, some rows very sure."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.4), n)
    y = (rng.random((n, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(max=n_classes - 1)
    proba = proba.round(digits)
    return proba / proba.sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("controller", [abstaining_controller, selective_controller])
@pytest.mark.parametrize("digits", [15, 2], ids=["no ties", "ties"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [512, 500, 650])
def test_controllers_are_never_less_conservative(controller, digits, n_classes, n):
    """Of 512 rows their counts are exact; of 650 they take the last affordable, 24, for 25."""
    for seed in range(3):
        proba, y = problem(seed, n, n_classes, digits)
        theirs = controller(proba, y, 0.05, 0.9)
        ours = certified_threshold(proba, y, 0.05, 1 - 0.9)
        grid = np.unique(proba.max(axis=1))
        certified = grid[grid >= ours.threshold]
        assert 0 < len(certified) < len(grid)
        assert theirs.valid_predict_params.size
        assert np.isin(theirs.valid_predict_params, certified).all()
        if n == 512:
            assert len(theirs.valid_predict_params) == len(certified)
            accepted = proba.max(axis=1) >= theirs.valid_predict_params.min()
            assert accepted.sum() == ours.accepted


@pytest.mark.parametrize("controller", [abstaining_controller, selective_controller])
def test_where_nothing_can_be_certified_the_controllers_find_nothing(controller):
    """40 rows cannot certify 0.05 at 0.95; MAPIE warns, and we return a threshold of infinity."""
    proba, y = problem(0, 40, 2)
    with pytest.warns(UserWarning, match="No predict parameters were found to control the risk"):
        theirs = controller(proba, y, 0.05, 0.95)
    assert theirs.valid_predict_params.size == 0
    assert certified_threshold(proba, y, 0.05, 1 - 0.95).threshold == math.inf


@pytest.mark.parametrize("controller", [abstaining_controller, selective_controller])
def test_where_all_may_be_accepted_the_controllers_accept_all(controller):
    proba, _ = problem(0, 128, 3)
    y = proba.argmax(axis=1)
    with pytest.warns(UserWarning, match="All provided predict_params control the risk"):
        theirs = controller(proba, y, 0.05, 0.95)
    assert len(theirs.valid_predict_params) == 128
    assert certified_threshold(proba, y, 0.05, 1 - 0.95).accepted == 128


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("n", range(1, 30))
def test_at_an_exact_tie_certificate_and_planner_agree(n, alpha):
    """P(Bin(n, alpha) <= 0) = (1 - alpha)^n = rho: rounding decides, but once for all."""
    rho = (1 - alpha) ** n
    rows = {"score": np.ones(n), "predicted": np.zeros(n, int)}
    certified = certified_threshold(None, np.zeros(n, int), alpha, rho, **rows).certified
    assert rows_for_errors(0, alpha, rho) == (n if certified else n + 1)
    assert abs(mapie_p_values([0], n, alpha)[0] - rho) <= 1e-12
