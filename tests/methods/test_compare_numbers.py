"""`compare` for numbers: regressors on the same folds, at one tolerance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge

import reliablenet as rn
from reliablenet.errors import InvalidParameterError
from reliablenet.methods import Comparison
from reliablenet.methods.comparison_run import default_regressors
from reliablenet.report import comparison_page


@pytest.fixture(scope="module")
def table():
    """A line with noise, and a column that says nothing."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(size=1200), "b": rng.normal(size=1200)})
    return X, (2 * X["a"] + 0.2 * rng.normal(size=1200)).to_numpy()


class Blind(BayesianRidge):
    """Sees the column that says nothing."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.asarray(X)[:, 1:], y, sample_weight)

    def predict(self, X, return_std=False):
        return super().predict(np.asarray(X)[:, 1:], return_std)


def test_the_better_regressor_is_handed_out_with_its_tolerance(table) -> None:
    X, y = table
    methods = {"blind": Blind(), "ridge": BayesianRidge()}
    found = rn.compare(X, y, alpha=0.1, tolerance=0.3, methods=methods, resamples=50)
    assert not found.failures
    best = found.best()
    assert best.name == "ridge"
    assert "(right: off by no more than 0.3)" in best.sentence
    assert best.certificate.tolerance == "0.3"
    assert "with an error above 0.3 on at most 10 %" in str(best.certificate)
    ridge = found.results["ridge"]
    assert ridge.certified_throughput > found.results["blind"].certified_throughput
    decided = best.model.decide(X)
    wrong = decided.accepted & (np.abs(decided.value - y) > 0.3)
    assert wrong.mean() < 0.12
    again = Comparison.from_json(found.to_json())
    assert again.best().sentence == best.sentence
    assert again.results["ridge"].certificate == ridge.certificate
    assert "ridge" in comparison_page(again)


def test_a_promise_by_group_for_numbers(table) -> None:
    X, y = table
    X = X.assign(b=(X["b"] > 0).astype(int))
    promise = rn.Promise.by_group(0.15, by="b")
    found = rn.compare(
        X, y, promise=promise, tolerance=0.3, methods={"ridge": BayesianRidge()}, resamples=20
    )
    assert found.best().certificate.certified
    assert "in every group of b, at most 15 % of the rows are acted on with an error above 0.3" in found.best().sentence  # fmt: skip


def test_what_numbers_cannot_have_is_refused_before_anything_is_fitted(table) -> None:
    with pytest.raises(InvalidParameterError, match="`tolerance` of compare"):
        rn.compare(*table, tolerance=-1)
    with pytest.raises(InvalidParameterError, match="`promise` of compare"):
        rn.compare(*table, tolerance=1, promise=rn.Promise.by_class({1: 0.1}))
    with pytest.raises(InvalidParameterError, match=r"boosting.*forest.*reliablenet.*ridge"):
        rn.compare(*table, tolerance=1, methods=["erm"])


def test_the_default_regressors_are_ours_and_three_others() -> None:
    assert list(default_regressors(1.0)) == ["reliablenet", "ridge", "boosting", "forest"]
