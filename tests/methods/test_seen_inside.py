"""A method of ours inside estimators of scikit-learn goes on knowing its rows."""

from __future__ import annotations

import numpy as np
import pytest
from contract_helpers import fit_quietly
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.layers import methods_inside

BAND = SyntheticBand(random_state=0)
PAST, FRESH, NEW = BAND.sample(1500), BAND.sample(800), BAND.sample(600)
SCALER = StandardScaler().fit(PAST.X)
GIVEN = "rows were given to `fit` already"


def fitted(X: np.ndarray) -> rn.TemperatureScaling:
    return rn.TemperatureScaling(LogisticRegression(), random_state=0).fit(X, PAST.y)


@pytest.fixture(scope="module")
def behind() -> rn.TemperatureScaling:
    """Trained on rows as a step before it leaves them."""
    return fitted(SCALER.transform(PAST.X))


@pytest.fixture(scope="module")
def plain() -> rn.TemperatureScaling:
    return fitted(PAST.X)


@pytest.fixture(
    params=["fitted pipeline", "frozen behind a step", "calibrated", "nested", "voting"]
)
def wrapped(request, behind, plain):
    return {
        "fitted pipeline": lambda: make_pipeline(SCALER, behind),
        "frozen behind a step": lambda: make_pipeline(
            FrozenEstimator(SCALER), FrozenEstimator(behind)
        ),
        "calibrated": lambda: CalibratedClassifierCV(FrozenEstimator(plain)),
        "nested": lambda: make_pipeline(
            "passthrough", CalibratedClassifierCV(FrozenEstimator(plain))
        ),
        "voting": lambda: VotingClassifier(
            [("ours", FrozenEstimator(plain)), ("other", LogisticRegression())], voting="soft"
        ),
    }[request.param]()


def test_its_rows_are_refused(wrapped) -> None:
    with pytest.raises(rn.errors.InvalidDataError, match=GIVEN):
        rn.CertifiedThreshold(wrapped, random_state=1).fit(PAST.X, PAST.y)
    with pytest.raises(rn.errors.InvalidDataError, match=GIVEN):
        rn.CertifiedThreshold(wrapped, random_state=0).fit(
            FRESH.X, FRESH.y, certification=(PAST.X, PAST.y)
        )


def test_and_again_when_the_rule_is_certified(wrapped) -> None:
    rule = fit_quietly(rn.CertifiedThreshold(wrapped, random_state=0), FRESH.X, FRESH.y)
    for rows in (PAST, FRESH):
        with pytest.raises(rn.errors.InvalidDataError, match=GIVEN):
            rule.certify(rows.X[:500], rows.y[:500])
    assert rule.certify(NEW.X, NEW.y).n == 600


def test_a_method_that_is_trained_anew_knows_no_old_rows(plain) -> None:
    """scikit-learn clones what is not frozen."""
    rule = rn.CertifiedThreshold(CalibratedClassifierCV(plain), random_state=0)
    assert fit_quietly(rule, PAST.X, PAST.y).certificate_.n


def test_fitted_twice_a_rule_forgets_what_it_knew() -> None:
    rule = rn.CertifiedThreshold(LogisticRegression(), random_state=0)
    for _ in range(2):
        assert rule.fit(PAST.X, PAST.y).certificate_.certified


def test_nothing_is_found_where_nothing_of_ours_is_inside() -> None:
    for estimator in (
        None,
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        FrozenEstimator(LogisticRegression().fit(PAST.X, PAST.y)),
        rn.ERMClassifier(),
        rn.CertifiedThreshold(LogisticRegression()),
    ):
        assert list(methods_inside(estimator, PAST.X)) == []


def test_rows_that_certified_it_may_certify_a_rule_around_it() -> None:
    """They had no part in making the model; the ledger counts them."""
    inner = fitted(PAST.X)
    held = inner.evidence_.row
    rule = rn.TemperatureScaling(make_pipeline("passthrough", FrozenEstimator(inner)))
    with pytest.warns(rn.errors.ReuseWarning, match="used for 2 certificates"):
        rule.fit(FRESH.X, FRESH.y, certification=(PAST.X[held], PAST.y[held]))
