"""`compare`: the same folds for all, real certificates, no method lost because of another."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from contract_helpers import QUICK, Scores, frame_of
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.validation import check_is_fitted

import reliablenet as rn
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.scored import score_rows
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.comparison_run import default_methods
from reliablenet.methods.shared_fits import selection_rows
from reliablenet.tables import Fold, Folds, cut_folds

pytestmark = pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")

BAND = SyntheticBand(random_state=0).sample(3000)
ALL = sorted(default_methods())


class Broken(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("out of luck")

    def predict_proba(self, X):
        raise AssertionError


def quick_methods() -> dict[str, object]:
    erm = rn.ERMClassifier(epochs=4)
    return {
        "reliablenet": rn.ReliableClassifier(schedule=QUICK),
        "erm": erm,
        "temperature": rn.TemperatureScaling(erm),
        "conformal": rn.ConformalRiskControl(erm),
        "logistic": LogisticRegression(),
    }


@pytest.fixture(scope="module")
def comparison() -> rn.methods.Comparison:
    return rn.compare(BAND.X, BAND.y, methods=quick_methods(), resamples=200)


def test_every_method_is_measured_on_the_same_rows(comparison) -> None:
    table = comparison.to_frame()
    assert set(table.index) == set(quick_methods())
    assert table["n"].nunique() == 1
    assert table["error"].eq("").all()
    folds = cut_folds(BAND.X, BAND.y, random_state=np.random.RandomState(0))
    assert table["n"].iloc[0] == len(folds.certification)
    for result in comparison.results.values():
        labels = result.model.predict(folds.certification.X)
        np.testing.assert_array_equal(labels != folds.certification.y, result.rows.wrong)


def test_the_frame_holds_what_the_certificates_say(comparison) -> None:
    table = comparison.to_frame()
    for name, result in comparison.results.items():
        row, found = table.loc[name], result.certificate
        assert found == judge(result.rows, 0.05, 0.05)
        assert (row["errors"], row["upper_bound"]) == (found.errors, found.upper_bound)
        assert row["throughput"] == (found.throughput if found.certified else 0)
        assert row["throughput_low"] <= row["throughput_high"]
        assert row["coverage"] == result.evaluation.coverage
        assert row["seconds"] > 0
        if result.rule is None:
            assert name == "logistic"
            assert math.isnan(row["rule_jcw"])
        else:
            assert row["rule_certified"] == result.rule.certified
            assert row["rule_within_alpha"] == (result.rule.jcw <= 0.05)
            assert result.rule.threshold == result.model.selection_threshold_
    assert table["throughput"].is_monotonic_decreasing


def test_methods_around_one_object_share_its_training(comparison) -> None:
    results = comparison.results
    base = results["erm"].model
    assert results["temperature"].model.estimator_ is base
    assert results["conformal"].model.estimator_ is base
    assert results["temperature"].seconds > results["erm"].seconds
    assert results["conformal"].rule.kind == "fixed"


def test_given_objects_are_left_as_they_were() -> None:
    methods = quick_methods()
    rn.compare(BAND.X[:600], BAND.y[:600], methods=methods, alpha=0.2, resamples=10)
    for model in methods.values():
        assert not hasattr(model, "classes_")
        assert getattr(model, "alpha", 0.05) == 0.05
        assert getattr(model, "random_state", None) is None


def test_same_seed_same_figures_and_another_seed_others() -> None:
    methods = {"erm": rn.ERMClassifier(epochs=2), "bayes": GaussianNB()}
    first, second, other = (
        rn.compare(BAND.X, BAND.y, methods=methods, resamples=50, random_state=seed)
        for seed in (3, 3, 4)
    )
    pd.testing.assert_frame_equal(
        first.to_frame().drop(columns="seconds"), second.to_frame().drop(columns="seconds")
    )
    np.testing.assert_array_equal(first.draws, second.draws)
    assert not np.array_equal(first.draws, other.draws)


def test_two_processes_give_what_one_gives() -> None:
    methods = quick_methods() | {"broken": Broken()}
    one, two = (
        rn.compare(BAND.X, BAND.y, methods=methods, resamples=50, n_jobs=jobs) for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(
        one.to_frame().drop(columns="seconds"),
        two.to_frame().drop(columns="seconds"),
        check_exact=True,
    )
    np.testing.assert_array_equal(one.draws, two.draws)
    for name, result in one.results.items():
        np.testing.assert_array_equal(result.rows.score, two.results[name].rows.score)


def test_a_failing_method_does_not_lose_the_others() -> None:
    erm = rn.ERMClassifier(epochs=0)
    methods = {
        "broken": Broken(),
        "erm": erm,
        "temperature": rn.TemperatureScaling(erm),
        "bayes": GaussianNB(),
        "nothing": object(),
    }
    comparison = rn.compare(BAND.X, BAND.y, methods=methods, resamples=20)
    assert list(comparison.results) == ["bayes"]
    assert comparison.failures["broken"] == "RuntimeError: out of luck"
    assert "`epochs`" in comparison.failures["erm"]
    assert "`epochs`" in comparison.failures["temperature"]
    assert "predict_proba" in comparison.failures["nothing"]
    table = comparison.to_frame()
    assert table.index.tolist() == ["bayes", "broken", "erm", "temperature", "nothing"]
    assert table.loc["broken", "error"] == "RuntimeError: out of luck"
    assert math.isnan(table.loc["broken", "throughput"])


def test_a_wrapper_survives_the_failure_of_another_around_the_same_classifier() -> None:
    shared = LogisticRegression()
    methods = {
        "bad": rn.TemperatureScaling(shared, threshold=7.0),
        "good": rn.ConfidenceThreshold(shared),
    }
    comparison = rn.compare(BAND.X, BAND.y, methods=methods, resamples=20)
    assert list(comparison.results) == ["good"]
    assert "`threshold`" in comparison.failures["bad"]


def test_if_all_fail_it_says_why() -> None:
    with pytest.raises(
        rn.errors.InvalidDataError, match=r"No method could be fitted\. broken: .*luck"
    ):
        rn.compare(BAND.X, BAND.y, methods={"broken": Broken()})


def test_fitted_classifiers_are_used_as_they_are() -> None:
    held_out = SyntheticBand(random_state=1).sample(6000)
    logistic = LogisticRegression().fit(BAND.X, BAND.y)
    weights = logistic.coef_.copy()
    network = rn.ERMClassifier(epochs=2, random_state=0).fit(BAND.X, BAND.y)
    comparison = rn.compare(
        held_out.X, held_out.y, methods={"logistic": logistic, "network": network}, resamples=20
    )
    assert comparison.results["logistic"].model.estimator_ is logistic
    assert comparison.results["network"].model.estimator_ is network
    np.testing.assert_array_equal(logistic.coef_, weights)
    check_is_fitted(network)


def test_folds_of_ones_own() -> None:
    folds = SyntheticBand(random_state=2).folds()
    comparison = rn.compare(folds=folds, methods={"bayes": GaussianNB()}, resamples=20)
    assert comparison.results["bayes"].certificate.n == len(folds.certification) == 3000


def test_tables_with_text_and_gaps_and_string_labels_of_ten_classes() -> None:
    table, y = frame_of(1500)
    names = ["boosting", "erm_early_stopped"]
    comparison = rn.compare(table, y, methods=names, alpha=0.1, resamples=20)
    assert not comparison.failures
    assert comparison.to_frame()["certified"].all()
    X, digit = load_digits(return_X_y=True)
    labels = np.array([f"digit {label}" for label in digit])
    methods = {"boosting": HistGradientBoostingClassifier(max_iter=20), "bayes": GaussianNB()}
    best = rn.compare(X, labels, methods=methods, alpha=0.1, resamples=20).best()
    assert set(best.model.decide(X[:50]).label) <= set(labels)


class Refusing(GaussianNB):
    """It trains, and refuses rows with a value above its limit."""

    def __init__(self, limit: float = 1e6, priors: object = None, var_smoothing: float = 1e-9):
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.limit = limit

    def predict_proba(self, X):
        if np.max(X) > self.limit:
            raise RuntimeError("out of range")
        return super().predict_proba(X)


def with_an_outlier(fold: Fold, value: float) -> Fold:
    X = np.array(fold.X)
    X[0, 0] = value
    return Fold(X, fold.y)


def test_a_method_that_fails_in_training_needs_no_part_of_rho() -> None:
    methods = {"broken": Broken(), "bayes": GaussianNB(), "nothing": object()}
    comparison = rn.compare(BAND.X, BAND.y, methods=methods, resamples=10)
    assert set(comparison.failures) == {"broken", "nothing"}
    assert comparison.choice.divisors == {"bayes": 1}
    assert comparison.best().certificate.rho == 0.05


def test_a_method_that_fails_on_selection_rows_needs_no_part_of_rho() -> None:
    cut = cut_folds(BAND.X, BAND.y, random_state=0)
    folds = Folds(cut.train, with_an_outlier(cut.selection, 2e6), cut.certification)
    methods = {"refusing": Refusing(), "bayes": GaussianNB()}
    comparison = rn.compare(folds=folds, methods=methods, resamples=10)
    assert comparison.failures == {"refusing": "RuntimeError: out of range"}
    assert comparison.choice.divisors == {"bayes": 1}


def test_a_method_that_fails_on_certification_rows_keeps_its_part_of_rho() -> None:
    """Or the parts of the others would depend on the fold that certifies them."""
    cut = cut_folds(BAND.X, BAND.y, random_state=0)
    methods = {"refusing": Refusing(), "logistic": LogisticRegression(), "bayes": GaussianNB()}
    whole = rn.compare(folds=cut, methods=methods, resamples=10)
    folds = Folds(cut.train, cut.selection, with_an_outlier(cut.certification, 2e6))
    broken = rn.compare(folds=folds, methods=methods, resamples=10)
    assert broken.failures == {"refusing": "RuntimeError: out of range"}
    assert broken.choice == whole.choice
    # Naive Bayes is the same method as the one that failed, and cannot take its place.
    assert whole.choice.family["bayes"] == "refusing"
    assert broken.best().name in ("logistic", "")


def test_a_method_that_cannot_read_certification_rows_might_have_been_the_favourite() -> None:
    cut = cut_folds(BAND.X, BAND.y, random_state=0)
    folds = Folds(cut.train, cut.selection, with_an_outlier(cut.certification, np.inf))
    trees = HistGradientBoostingClassifier(max_iter=5)
    methods = {"boosting": trees, "network": rn.ERMClassifier(epochs=1)}
    comparison = rn.compare(folds=folds, methods=methods, resamples=10)
    assert list(comparison.failures) == ["network"]
    assert comparison.choice.favourite == "network"
    assert comparison.choice.divisors == {"boosting": 2, "network": 2}


def test_parts_of_rho_are_the_same_whatever_the_certification_fold_holds() -> None:
    cut = cut_folds(BAND.X, BAND.y, random_state=0)
    other = SyntheticBand(random_state=1).sample(400)
    again = Folds(cut.train, cut.selection, Fold(other.X, 1 - other.y))
    methods = {
        "logistic": LogisticRegression(),
        "temperature": rn.TemperatureScaling(LogisticRegression()),
        "bayes": GaussianNB(),
    }
    first, second = (
        rn.compare(folds=folds, methods=methods, resamples=10) for folds in (cut, again)
    )
    assert first.choice == second.choice
    assert first.choice.family["temperature"] == "logistic"  # the same ranking of two classes
    for name, offer in first._offers.items():
        assert offer.rho == first.choice.level(name, 0.05)


def test_what_a_network_said_of_the_selection_fold_before_it_trained_on_it_decides() -> None:
    """A method that learned the selection rows by heart keeps what it said of them before."""

    class ByHeart(rn.CertifiedThreshold):
        def _uses_selection(self):
            return True

        def _fit_folds(self, train, selection, seed, **more):
            super()._fit_folds(train, selection, seed, **more)
            outputs = self._outputs(selection.X)
            rows = score_rows(outputs.proba, selection.y, owner="test")
            self._selection_rows = replace(rows, wrong=np.ones(rows.n, bool))

    for heart in (ByHeart(LogisticRegression()), rn.CertifiedThreshold(ByHeart(GaussianNB()))):
        methods = {"heart": heart, "logistic": LogisticRegression(C=0.1)}
        comparison = rn.compare(BAND.X, BAND.y, methods=methods, resamples=10)
        assert comparison.choice.favourite == "logistic"
    plain = {"heart": LogisticRegression(), "logistic": LogisticRegression(C=1e-9)}
    assert rn.compare(BAND.X, BAND.y, methods=plain, resamples=10).choice.favourite == "heart"
    # One that was given fitted keeps what it said of other rows, which is not about these.
    fitted = ByHeart(LogisticRegression(), random_state=0).fit(BAND.X, BAND.y)
    fresh = SyntheticBand(random_state=0).sample(600)
    given = {"heart": fitted, "poor": LogisticRegression(C=1e-9).fit(BAND.X, BAND.y)}
    assert rn.compare(fresh.X, fresh.y, methods=given, resamples=10).choice.favourite == "heart"


def test_of_no_selection_rows_nothing_is_known() -> None:
    empty = Fold(BAND.X[:0], BAND.y[:0])
    assert selection_rows(rn.CertifiedThreshold(GaussianNB()), empty, given=False) is None


def test_a_shared_fit_is_told_whether_a_rule_still_needs_the_selection_fold() -> None:
    seen = {}

    class Told(rn.ERMClassifier):
        def _fit_folds(self, train, selection, seed, **more):
            seen[self.epochs] = self._shares_selection
            super()._fit_folds(train, selection, seed, **more)

    alone, certified, tuned = Told(epochs=1), Told(epochs=2), Told(epochs=3)
    methods = {
        "alone": alone,
        "certified": certified,
        "threshold": rn.CertifiedThreshold(certified),
        "tuned": tuned,
        "temperature": rn.TemperatureScaling(tuned),
    }
    comparison = rn.compare(BAND.X, BAND.y, methods=methods, resamples=10)
    assert not comparison.failures
    assert seen == {1: False, 2: False, 3: True}


def test_default_methods_hold_the_papers_and_boosting() -> None:
    assert {"erm", "selectivenet", "deep_gamblers"} <= set(ALL)
    assert {"boosting", "boosting_tuned", "forest", "logistic"} <= set(ALL)
    ours, paper = (default_methods()[name] for name in ("reliablenet", "reliablenet_paper"))
    assert (ours.network, ours.schedule) == ("tabular", "adaptive")
    assert (paper.network, paper.schedule) == ("mlp", "paper")
    alone = default_methods()["reliablenet_network"]
    assert (ours.members, alone.members) == ("auto", ("network",))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 5}, r"`alpha` of compare must lie in \(0, 1\); got 5. Did you mean 0.05"),
        ({"rho": 0}, "`rho` of compare"),
        (
            {"methods": ["erm", "magic"]},
            r"`methods` of compare must name some of .*got \['magic'\]",
        ),
        ({"methods": {}}, "at least one method"),
        ({"methods": []}, "at least one method"),
        ({"resamples": 0}, "`resamples` of compare"),
        ({"verbose": "loud"}, "`verbose` of compare"),
        ({"folds": (1, 2, 3)}, "X and y, or folds, not both"),
        ({"fold_sizes": (0.5, 0.5)}, "`fold_sizes`"),
    ],
)
def test_bad_settings(settings, message) -> None:
    with pytest.raises(rn.errors.InvalidParameterError, match=message):
        rn.compare(BAND.X, BAND.y, **settings)


def test_bad_rows() -> None:
    with pytest.raises(rn.errors.InvalidParameterError, match="needs X and y, or folds"):
        rn.compare(BAND.X)
    with pytest.raises(rn.errors.InvalidParameterError, match="be a Folds record; got 'list'"):
        rn.compare(folds=[1, 2])
    with pytest.raises(rn.errors.InvalidDataError, match="missing value in row 1"):
        rn.compare(BAND.X[:3], ["a", None, "b"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        rn.compare(BAND.X, BAND.y[:-1])
    with pytest.raises(rn.errors.InvalidDataError, match="needs rows"):
        rn.compare(BAND.X[:0], BAND.y[:0])


def test_progress_goes_to_standard_error_and_names_the_method_at_work(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # or rich would print the end alone
    rn.compare(BAND.X, BAND.y, methods={"bayes": GaussianNB()}, resamples=10, verbose=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "bayes" in err
    assert "1/1 methods" in err
    rn.compare(BAND.X, BAND.y, methods={"bayes": GaussianNB()}, resamples=10)
    assert capsys.readouterr() == ("", "")


def folds_of(score: np.ndarray, wrong: np.ndarray) -> Folds:
    """Return folds in which `Scores` has these scores and is wrong on these rows."""
    number = np.arange(len(score))  # the same row twice would be refused
    parts = (np.column_stack([score, number + k / 3]) for k in range(3))
    return Folds(*(Fold(X, (~wrong).astype(int)) for X in parts))


def test_no_threshold_within_the_budget_recommends_nothing() -> None:
    folds = folds_of(np.linspace(0.6, 0.99, 500), np.ones(500, bool))
    comparison = rn.compare(folds=folds, methods={"wrong": Scores(0)}, resamples=20)
    assert comparison.to_frame().loc["wrong", "throughput"] == 0
    best = comparison.best()
    assert (best.name, best.model, best.certificate) == ("", None, None)
    assert "No method can be recommended: the best of 1 is wrong, and it acts rightly on no" in str(
        best
    )


def test_too_few_rows_recommend_nothing_and_say_how_many_it_takes() -> None:
    folds = folds_of(np.linspace(0.6, 0.99, 40), np.zeros(40, bool))
    best = rn.compare(folds=folds, methods={"right": Scores(0)}, resamples=20).best()
    assert best.model is None
    assert "0 confident mistakes in 40 rows" in str(best)
    assert "alpha = 5 % needs at least 59 fresh rows" in str(best)


def test_a_fold_without_errors_accepts_everything() -> None:
    folds = folds_of(np.linspace(0.6, 0.99, 500), np.zeros(500, bool))
    comparison = rn.compare(folds=folds, methods={"right": Scores(0)}, resamples=20)
    assert comparison.to_frame().loc["right", "throughput"] == 1
    assert comparison.best().certificate.accepted == 500
    assert math.isnan(comparison.best().sureness)


def test_constant_confidence_is_all_or_nothing() -> None:
    wrong = np.arange(1000) % 50 == 0
    folds = folds_of(np.full(1000, 0.8), wrong)
    few = rn.compare(folds=folds, methods={"same": Scores(0)}, alpha=0.05, resamples=20)
    assert few.to_frame().loc["same", "coverage"] == 1
    none = rn.compare(folds=folds, methods={"same": Scores(0)}, alpha=0.02, resamples=20)
    assert none.to_frame().loc["same", "coverage"] == 0
