"""`CertifiedThreshold` around regressors: where the score comes from, and that no row is used twice."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from contract_helpers import EXPECTED_WARNINGS
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier, is_regressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_regressor import noisy

import reliablenet as rn
from reliablenet.errors import (
    InvalidDataError,
    InvalidParameterError,
)
from reliablenet.methods.error_model import ErrorModel, normal_chance
from reliablenet.tables import TabularEncoder
from reliablenet.tables.tolerance import Margin

pytestmark = pytest.mark.filterwarnings(
    *(f"ignore::reliablenet.errors.{c.__name__}" for c in EXPECTED_WARNINGS)
)
LINE = make_pipeline(TabularEncoder(), LinearRegression())


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    return noisy(2000)


def around(estimator, tolerance=0.5, alpha=0.1, **settings) -> rn.CertifiedThreshold:
    return rn.CertifiedThreshold(estimator, alpha, tolerance=tolerance, random_state=0, **settings)


@parametrize_with_checks(
    [rn.CertifiedThreshold(LinearRegression(), 0.2, tolerance=0.5, random_state=0)],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learn_accepts_the_estimator(estimator, check) -> None:
    check(estimator)


def test_it_learns_where_the_errors_are_small(table) -> None:
    rule = around(LINE).fit(*table)
    X, y = noisy(4000, seed=1)
    loud = (X["room"] == "loud").to_numpy()
    assert rule.certificate_.certified
    assert isinstance(rule.errors_, ErrorModel)
    assert rule.accept(X)[~loud].mean() > 2 * rule.accept(X)[loud].mean()
    assert rule.evaluate(X, y).jcw <= 0.1 + 0.02
    np.testing.assert_array_equal(rule.predict(X), rule.estimator_.predict(X))
    assert is_regressor(rule)
    assert not is_classifier(rule)
    assert not hasattr(rule, "predict_proba")
    assert not hasattr(rule, "classes_")
    assert rule.score(X, y) == pytest.approx(rule.estimator_.score(X, y))


class Recording(RegressorMixin, BaseEstimator):
    """Answers the mean, and remembers each row that it was fitted on."""

    fits: ClassVar[list[set[float]]] = []
    predicted: ClassVar[list[set[float]]] = []

    def fit(self, X, y):
        type(self).fits.append(set(X[:, 0]))
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        type(self).predicted.append(set(X[:, 0]))
        return np.full(len(X), self.mean_)


def test_errors_are_those_of_rows_that_the_regressor_was_not_trained_on() -> None:
    Recording.fits, Recording.predicted = [], []
    X = np.arange(600.0)[:, None]
    around(Recording(), 1.0).fit(X, np.random.default_rng(0).normal(size=600))
    whole, *parts = Recording.fits
    assert len(parts) == 5
    for trained, asked in zip(parts, Recording.predicted, strict=False):
        assert trained | asked == whole
        assert not trained & asked
    held = Recording.predicted[5:]  # the certification fold
    assert all(not rows & whole for rows in held)


def test_a_fitted_regressor_teaches_its_errors_on_the_selection_fold(table) -> None:
    X, y = table
    model = LINE.fit(X[:1000], y[:1000])
    rule = around(model).fit(X[1000:], y[1000:])
    assert rule.estimator_ is model
    assert rule.errors_ is not None
    assert 400 < rule.certificate_.n < 700  # the others taught the errors


@pytest.mark.parametrize(
    "estimator", [BayesianRidge(), GaussianProcessRegressor(alpha=0.1, optimizer=None)]
)
def test_a_regressor_with_a_spread_needs_no_model_of_its_errors(estimator) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + rng.normal(scale=0.2, size=400)
    rule = around(estimator, 0.5).fit(X, y)
    assert rule.errors_ is None
    value, spread = rule.estimator_.predict(X, return_std=True)
    expected = normal_chance(value, spread, Margin(0.5))
    np.testing.assert_array_equal(rule.acceptance_score(X), expected)


def test_the_chance_of_a_normal_truth_is_that_of_simulation() -> None:
    rng = np.random.default_rng(0)
    for value, margin in ((3.0, Margin(0.7)), (3.0, Margin(0.2, True)), (-3.0, Margin(0.2, True))):
        truth = rng.normal(value, 0.5, 200_000)
        seen = margin.within(np.full(200_000, value), truth).mean()
        told = normal_chance(np.array([value]), np.array([0.5]), margin)[0]
        assert told == pytest.approx(seen, abs=0.005)


def test_around_our_own_regressor_its_score_is_taken(table) -> None:
    inner = rn.ReliableRegressor(0.5, 0.1, network="mlp", epochs=5, random_state=0)
    rule = around(inner, None).fit(*table)
    assert rule.certificate_.tolerance == "0.5"
    X = noisy(50, seed=1)[0]
    np.testing.assert_array_equal(rule.acceptance_score(X), rule.estimator_.acceptance_score(X))
    with pytest.raises(InvalidParameterError, match="that of the estimator inside"):
        around(inner, 0.7).fit(*table)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(TabularEncoder(), model)
        for model in (Ridge(), HistGradientBoostingRegressor(max_iter=5))
    ]
    + [make_pipeline(TabularEncoder(), RandomForestRegressor(10))],
    ids=lambda pipeline: type(pipeline[-1]).__name__,
)
def test_save_and_load_to_the_bit(table, estimator, tmp_path) -> None:
    rule = around(estimator).fit(*table)
    again = rn.load(rule.save(tmp_path / "m.rnet"))
    assert again.decide(table[0]).to_frame().equals(rule.decide(table[0]).to_frame())
    assert again.certificate_ == rule.certificate_
    assert again.evidence_ == rule.evidence_


def test_texts_and_sparse_rows_are_scored_by_their_value_alone() -> None:
    rng = np.random.default_rng(0)
    words = rng.choice(["calm", "wild"], 600)
    y = np.where(words == "calm", 1.0, 20.0) + rng.normal(scale=np.where(words == "calm", 0.1, 5.0))
    texts = [f"a {word} day" for word in words]
    rule = around(make_pipeline(TfidfVectorizer(), Ridge()), 1.0).fit(texts, y)
    assert rule.errors_.encoder_ is None
    assert rule.accept(["a calm day"])[0]
    assert not rule.accept(["a wild day"])[0]
    X = sparse.csr_array(np.column_stack([words == "calm", np.ones(600)]).astype(float))
    assert around(Ridge(), 1.0).fit(X, y).certificate_.certified


def test_what_cannot_serve_is_refused(table) -> None:
    X, y = table
    with pytest.raises(InvalidParameterError, match="be given around a regressor"):
        rn.CertifiedThreshold(LINE, 0.1).fit(X, y)
    with pytest.raises(InvalidParameterError, match="be a regressor with predict"):
        around(object()).fit(X, y)
    with pytest.raises(InvalidParameterError, match="be a classifier with predict_proba"):
        rn.ConfidenceThreshold(Ridge()).fit(X[["x"]], y)

    class Bad(Recording):
        def predict(self, X):
            return np.full((len(X), 2), np.nan)

    with pytest.raises((InvalidDataError, ValueError), match=r"one number for each|NaN"):
        around(Bad(), 1.0).fit(X[["x"]].to_numpy(), y)


def test_classifiers_are_wrapped_as_before(table) -> None:
    X, y = table
    rule = rn.CertifiedThreshold(LogisticRegression(), 0.1, random_state=0).fit(X[["x"]], y > 0)
    assert is_classifier(rule)
    assert rule.predict_proba(X[["x"]]).shape == (2000, 2)
    assert rule.errors_ is None
