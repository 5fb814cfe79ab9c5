"""Pipelines, searches and cross-validation around our methods and inside them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import reliablenet as rn
from reliablenet.datasets import SyntheticBand

BAND = SyntheticBand(random_state=0)
ROWS, CHOSEN, HELD = BAND.sample(1000), BAND.sample(300), BAND.sample(500)
FOLDS = {"selection": (CHOSEN.X, CHOSEN.y), "certification": (HELD.X, HELD.y)}
WRONG_ORDER = "is the last step of a Pipeline"

reuse = pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
PASSED_BY = "do not change the rows given as"
harmless = pytest.mark.filterwarnings(f"ignore:.*{PASSED_BY}:reliablenet.errors.FoldWarning")
routed = pytest.mark.parametrize("routing", [False, True], ids=["plain", "routed"])


def rule(routing: bool = False, **settings) -> rn.TemperatureScaling:
    model = rn.TemperatureScaling(LogisticRegression(), random_state=0, **settings)
    return model.set_fit_request(selection=True, certification=True) if routing else model


def as_step(model) -> Pipeline:
    """Put a rule behind a step that changes nothing: folds pass by it as they are."""
    return Pipeline([("same", FunctionTransformer()), ("rule", model)])


class TestFitParameters:
    """Folds of one's own reach `fit` through whatever scikit-learn puts around it."""

    EXPECTED = rule().fit(ROWS.X, ROWS.y, **FOLDS).certificate_

    @routed
    @harmless
    def test_through_a_pipeline(self, routing) -> None:
        names = FOLDS if routing else {f"rule__{name}": fold for name, fold in FOLDS.items()}
        with config_context(enable_metadata_routing=routing):
            found = as_step(rule(routing)).fit(ROWS.X, ROWS.y, **names)[-1]
        assert found.certificate_ == self.EXPECTED
        assert (found.evidence_.row == -1).all()

    @routed
    @reuse
    def test_through_a_search(self, routing) -> None:
        with config_context(enable_metadata_routing=routing):
            search = GridSearchCV(rule(routing), {"estimator__C": [1.0]}, cv=2)
            search.fit(ROWS.X, ROWS.y, **FOLDS)
        assert search.best_estimator_.certificate_ == self.EXPECTED

    @routed
    @reuse
    @harmless
    def test_through_a_search_around_a_pipeline(self, routing) -> None:
        names = FOLDS if routing else {f"rule__{name}": fold for name, fold in FOLDS.items()}
        with config_context(enable_metadata_routing=routing):
            search = GridSearchCV(as_step(rule(routing)), {"rule__estimator__C": [1.0]}, cv=2)
            search.fit(ROWS.X, ROWS.y, **names)
        assert search.best_estimator_[-1].certificate_ == self.EXPECTED

    @routed
    @reuse
    def test_through_cross_validation(self, routing) -> None:
        with config_context(enable_metadata_routing=routing):
            found = cross_validate(
                rule(routing), ROWS.X, ROWS.y, cv=3, params=FOLDS, return_estimator=True
            )
        for model in found["estimator"]:
            assert model.certificate_.n == len(HELD)
            assert (model.evidence_.row == -1).all()
        assert np.isfinite(found["test_score"]).all()

    def test_where_a_step_takes_columns_away_a_warning_explains_the_complaint(self) -> None:
        chosen = make_pipeline(SelectKBest(k=3), rule())
        folds = {f"temperaturescaling__{name}": fold for name, fold in FOLDS.items()}
        with (
            pytest.warns(rn.errors.FoldWarning, match=PASSED_BY),
            pytest.raises(ValueError, match="expecting 3 features"),
        ):
            chosen.fit(ROWS.X, ROWS.y, **folds)

    def test_without_a_request_routing_says_what_to_ask_for(self) -> None:
        with (
            config_context(enable_metadata_routing=True),
            pytest.raises(ValueError, match="certification"),
        ):
            as_step(rule()).fit(ROWS.X, ROWS.y, **FOLDS)

    @harmless
    def test_groups_of_a_certification_fold_go_with_it(self) -> None:
        person = np.arange(len(HELD)) // 5
        triple = (HELD.X, HELD.y, person)
        plain = rule().fit(ROWS.X, ROWS.y, selection=FOLDS["selection"], certification=triple)
        assert (plain.certificate_.unit, plain.certificate_.n) == ("group", 100)
        assert plain.grouped_
        names = {"rule__selection": FOLDS["selection"], "rule__certification": triple}
        piped = as_step(rule()).fit(ROWS.X, ROWS.y, **names)[-1]
        assert piped.certificate_ == plain.certificate_

    @pytest.mark.parametrize(
        ("name", "fold", "text"),
        [
            ("certification", (HELD.X,), r"be a pair \(X, y\) or a triple \(X, y, groups\)"),
            (
                "certification",
                (HELD.X, HELD.y, HELD.y, 1),
                r"be a pair .* or a triple .*got '4 parts'",
            ),
            ("selection", (HELD.X, HELD.y, HELD.y), r"be a pair \(X, y\); got '3 parts'"),
            ("certification", 3, r"be a pair .*got 'int'"),
        ],
    )
    def test_what_is_no_fold_is_refused_by_name(self, name, fold, text) -> None:
        with pytest.raises(rn.errors.InvalidParameterError, match=f"`{name}` of fit must {text}"):
            rule().fit(ROWS.X, ROWS.y, **FOLDS | {name: fold})

    def test_groups_beside_folds_that_are_all_given_say_where_they_belong(self) -> None:
        with pytest.raises(
            rn.errors.InvalidParameterError, match=r"certification=\(X, y, groups\)"
        ):
            rule().fit(ROWS.X, ROWS.y, groups=np.arange(len(ROWS)), **FOLDS)


class Learning(TransformerMixin, BaseEstimator):
    """A step of one's own."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


class TestOrder:
    """Steps before the rule have seen its certification rows (AUDIT A2)."""

    @pytest.mark.parametrize(
        "steps",
        [[StandardScaler()], [SelectKBest(k=1)], [Learning()], [Learning(), StandardScaler()]],
        ids=["scaler", "columns", "own", "two"],
    )
    def test_the_wrong_order_warns(self, steps) -> None:
        with pytest.warns(rn.errors.ReuseWarning, match=WRONG_ORDER) as caught:
            make_pipeline(*steps, rule()).fit(ROWS.X, ROWS.y)
        (found,) = [w for w in caught if WRONG_ORDER in str(w.message)]
        assert found.filename == __file__
        assert "CertifiedThreshold(make_pipeline(...))" in str(found.message)
        assert "TemperatureScaling is the last step" in str(found.message)

    @pytest.mark.parametrize("name", FOLDS)
    def test_a_fold_that_the_steps_before_do_not_transform_warns(self, name) -> None:
        """A scaler changes X and never sees the fold: the certificate would be about other rows."""
        piped = make_pipeline(StandardScaler(), rule())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            piped.fit(1000 * ROWS.X, ROWS.y, **{f"temperaturescaling__{name}": FOLDS[name]})
        (found,) = [w for w in caught if PASSED_BY in str(w.message)]
        assert found.category is rn.errors.FoldWarning
        assert f"`{name}`" in str(found.message)
        assert "CertifiedThreshold(make_pipeline(...))" in str(found.message)

    def test_no_warning_advises_to_pass_a_fold_by_the_steps(self) -> None:
        with pytest.warns(rn.errors.ReuseWarning, match=WRONG_ORDER) as caught:
            make_pipeline(StandardScaler(), rule()).fit(ROWS.X, ROWS.y)
        assert not any("certification=" in str(w.message) for w in caught)

    def test_it_warns_within_a_search_too(self) -> None:
        search = GridSearchCV(make_pipeline(StandardScaler(), rule()), {}, cv=2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(ROWS.X, ROWS.y)
        assert any(WRONG_ORDER in str(w.message) for w in caught)

    def test_a_network_as_the_last_step_warns(self) -> None:
        network = rn.ERMClassifier(epochs=1, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make_pipeline(StandardScaler(), network).fit(ROWS.X, ROWS.y)
        assert sum(WRONG_ORDER in str(w.message) for w in caught) == 1

    @pytest.mark.parametrize(
        "fit",
        [
            lambda: rn.TemperatureScaling(
                make_pipeline(StandardScaler(), LogisticRegression())
            ).fit(ROWS.X, ROWS.y),
            lambda: make_pipeline(rule()).fit(ROWS.X, ROWS.y),
            lambda: rn.CertifiedThreshold(GridSearchCV(LogisticRegression(), {"C": [1.0]})).fit(
                ROWS.X, ROWS.y
            ),
            lambda: rn.CertifiedThreshold(two_kinds_of_columns().fit(ROWS.X, ROWS.y)).fit(
                HELD.X, HELD.y
            ),
        ],
        ids=["inside", "alone", "search inside", "fitted before"],
    )
    def test_the_right_order_does_not(self, fit) -> None:
        fit()  # a warning would be an error

    def test_a_rule_that_is_fitted_for_itself_after_a_pipeline_does_not(self) -> None:
        with pytest.warns(rn.errors.ReuseWarning, match=WRONG_ORDER):
            piped = make_pipeline(StandardScaler(), rule()).fit(ROWS.X, ROWS.y)
        more = BAND.sample(600)
        piped[-1].fit(more.X, more.y)
        clone(piped[-1]).fit(more.X, more.y)

    def test_what_the_wrong_order_does_on_noise_and_the_right_one_does_not(self) -> None:
        """27 of 40 certificates of the wrong order were false; of the right order none."""
        acted = {"wrong": [], "right": []}
        select = SelectKBest(k=30)
        for seed in range(5):
            random = np.random.default_rng(seed)
            X, y = random.standard_normal((300, 1000)), random.integers(0, 2, 300)
            orders = {
                "wrong": make_pipeline(select, certified()),
                "right": certified(make_pipeline(select, LogisticRegression())),
            }
            for name, model in orders.items():
                with warnings.catch_warnings(action="ignore"):
                    model.fit(X, y)
                found = model[-1] if name == "wrong" else model
                acted[name].append(found.certificate_.coverage)
        assert np.mean(acted["wrong"]) > 2 * np.mean(acted["right"])


def certified(estimator=None) -> rn.CertifiedThreshold:
    return rn.CertifiedThreshold(estimator or LogisticRegression(), alpha=0.2, random_state=0)


def two_kinds_of_columns() -> Pipeline:
    both = FeatureUnion([("scaled", StandardScaler()), ("same", FunctionTransformer())])
    return make_pipeline(both, LogisticRegression())


class TestFrames:
    def test_the_names_of_columns_pass_through_a_pipeline_that_keeps_frames(self) -> None:
        frame = pd.DataFrame(ROWS.X, columns=[f"f{i}" for i in range(ROWS.X.shape[1])])
        held = pd.DataFrame(HELD.X, columns=frame.columns)
        keep = FunctionTransformer(feature_names_out="one-to-one").set_output(transform="pandas")
        piped = Pipeline([("same", keep), ("rule", certified())])
        with pytest.warns(rn.errors.FoldWarning, match=PASSED_BY):
            piped.fit(frame, ROWS.y, rule__certification=(held, HELD.y))
        assert piped[-1].feature_names_in_.tolist() == frame.columns.tolist()
        with pytest.raises(rn.errors.InvalidDataError, match="given to `fit` already"):
            piped[-1].certify(held, HELD.y)

    def test_a_search_measures_accuracy_and_a_frozen_model_survives_it(self) -> None:
        model = LogisticRegression().fit(ROWS.X, ROWS.y)
        search = GridSearchCV(rn.CertifiedThreshold(FrozenEstimator(model)), {"alpha": [0.1]}, cv=2)
        with warnings.catch_warnings(action="ignore", category=rn.errors.ReuseWarning):
            search.fit(HELD.X, HELD.y)
        expected = cross_val_score(FrozenEstimator(model), HELD.X, HELD.y, cv=2).mean()
        assert search.best_score_ == pytest.approx(expected)
