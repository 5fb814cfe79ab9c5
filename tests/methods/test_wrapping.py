"""Rules around any classifier: what they take, what they leave alone, which rows go where."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from contract_helpers import (
    EXPECTED_WARNINGS,
    RULES,
    certify_again,
    fit_quietly,
    frame_of,
    quick,
)
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.posthoc import scale
from reliablenet.tables import Fold
from reliablenet.tables.fold_sizes import fold_counts, holdout_counts
from reliablenet.tables.folds import cut_parts

every_rule = pytest.mark.parametrize("rule", RULES)
fitted_or_not = pytest.mark.parametrize("fitted", [False, True], ids=["unfitted", "fitted"])


class Echo:
    """A classifier that was never near scikit-learn: its rows are its probabilities."""

    def __init__(self, classes: Any = (0, 1)) -> None:
        self.classes_ = classes

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X, float)


def echo_rows(n: int, classes: Any = (0, 1), seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return calibrated probabilities and labels drawn from them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(len(classes), 0.4), n)
    column = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=len(classes) - 1)
    return proba, np.array(classes)[column]


def fit_but_for(category: type[Warning], model: Any, X: Any, y: Any) -> Any:
    """Fit without one kind of warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        return model.fit(X, y)


def check_agreement(model: Any, X: Any, y: Any) -> None:
    """Check that all answers about labelled rows follow from probabilities and threshold."""
    decisions, proba = model.decide(X), model.predict_proba(X)
    assert proba.shape == (len(y), len(model.classes_))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(decisions.label, model.classes_[proba.argmax(axis=1)])
    np.testing.assert_array_equal(decisions.label, model.predict(X))
    np.testing.assert_array_equal(decisions.confidence, model.acceptance_score(X))
    np.testing.assert_array_equal(decisions.accepted, decisions.confidence >= model.threshold_)
    np.testing.assert_array_equal(decisions.accepted, model.accept(X))
    errors = int((decisions.accepted & (decisions.label != np.asarray(y))).sum())
    evaluation, certificate = model.evaluate(X, y), certify_again(model, X, y)
    counts = (errors, int(decisions.accepted.sum()), len(y))
    assert (evaluation.errors, evaluation.accepted, evaluation.n) == counts
    assert (certificate.errors, certificate.accepted, certificate.n) == counts
    assert (certificate.kind, certificate.threshold) == ("fixed", model.threshold_)


# Any classifier.


def band_rows(n: int = 1200) -> tuple[np.ndarray, np.ndarray]:
    band = SyntheticBand(random_state=0).sample(n)
    return band.X, band.y


def documents(n: int = 900) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.choice(["ham", "spam"], n)
    words = {"ham": ["minutes", "meeting", "draft", "the"], "spam": ["win", "prize", "now", "the"]}
    other = {"ham": "spam", "spam": "ham"}
    texts = [
        " ".join(rng.choice(words[label if rng.random() < 0.8 else other[label]]) for _ in range(6))
        for label in y
    ]
    return texts, y


def gappy() -> tuple[np.ndarray, np.ndarray]:
    X, y = band_rows()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X, y


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X / 16, np.array([f"digit {label}" for label in y])


def text_model() -> Any:
    return make_pipeline(TfidfVectorizer(), LogisticRegression())


def frame_model() -> Any:
    columns = make_column_transformer(
        (SimpleImputer(), ["number"]), (OneHotEncoder(handle_unknown="ignore"), ["job", "flag"])
    )
    return make_pipeline(columns, LogisticRegression())


def frame_with_an_index() -> tuple[pd.DataFrame, pd.Series]:
    table, y = frame_of(900)
    index = [f"row {i}" for i in range(900)][::-1]
    return table.set_axis(index), pd.Series(y, index=index)


def sparse(kind: Any) -> tuple[Any, np.ndarray]:
    X, y = band_rows()
    return kind(np.where(np.abs(X) > 0.3, X, 0.0)), y


def dictionaries() -> tuple[list[dict[str, Any]], np.ndarray]:
    texts, y = documents()
    return [{"first": text.split()[0], "length": len(text)} for text in texts], y


CASES: dict[str, tuple[Any, Any, float]] = {
    "logistic": (LogisticRegression, band_rows, 0.75),
    "lists": (LogisticRegression, lambda: [part.tolist() for part in band_rows(400)], 0.75),
    "tensors": (LogisticRegression, lambda: [torch.from_numpy(p) for p in band_rows(400)], 0.75),
    "boosting with gaps": (lambda: HistGradientBoostingClassifier(max_iter=15), gappy, 0.7),
    "texts": (text_model, documents, 0.9),
    "series of texts": (text_model, lambda: [pd.Series(p) for p in documents()], 0.9),
    "array of texts": (text_model, lambda: [np.array(p, dtype=object) for p in documents()], 0.9),
    "dictionaries": (
        lambda: make_pipeline(DictVectorizer(), LogisticRegression(max_iter=1000)),
        dictionaries,
        0.7,
    ),
    "frame with categories": (frame_model, frame_with_an_index, 0.75),
    "ten text labels": (LogisticRegression, digits, 0.9),
    "sparse matrix": (LogisticRegression, lambda: sparse(csr_matrix), 0.75),
    "sparse array": (LogisticRegression, lambda: sparse(csr_array), 0.75),
    "grid search": (
        lambda: GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
        band_rows,
        0.75,
    ),
    "calibrated": (lambda: CalibratedClassifierCV(LinearSVC(), cv=2), band_rows, 0.75),
}


@cache
def case_rows(name: str) -> tuple[Any, Any]:
    X, y = CASES[name][1]()
    return X, y


@cache
def case_model(name: str) -> Any:
    """Return the case's classifier, fitted on the first third of its rows."""
    X, y = case_rows(name)
    labels = np.asarray(y)
    first = np.arange(len(labels) // 3)
    return CASES[name][0]().fit(_safe_indexing(X, first), labels[first])


@every_rule
@fitted_or_not
@pytest.mark.parametrize("name", CASES)
def test_any_classifier(rule, fitted, name) -> None:
    X, y = case_rows(name)
    labels = np.asarray(y)
    if fitted:
        held_out = np.arange(len(labels) // 3, len(labels))
        X, y = _safe_indexing(X, held_out), _safe_indexing(y, held_out)
        labels = np.asarray(y)
        inner = case_model(name)
    else:
        inner = CASES[name][0]()
    model = fit_quietly(rule(inner, alpha=0.1, random_state=0), X, y)
    assert model.score(X, labels) > CASES[name][2]
    assert model.classes_.tolist() == sorted(set(labels.tolist()))
    rows = np.asarray(X) if hasattr(X, "detach") else X
    own = model.estimator_.predict_proba(rows)
    if rule is rn.TemperatureScaling:
        np.testing.assert_array_equal(model.predict_proba(X).argmax(1), own.argmax(1))
    else:
        np.testing.assert_array_equal(model.predict_proba(X), own)
    check_agreement(model, X, labels)
    assert model.accept(X).any()
    few = [2, 5, 7]
    np.testing.assert_array_equal(
        model.decide(_safe_indexing(X, few)).label, model.decide(X).label[few]
    )


@every_rule
def test_an_object_that_only_has_probabilities_and_a_list_of_classes_in_its_own_order(rule) -> None:
    classes = ["b", "c", "a"]
    X, y = echo_rows(900, classes)
    model = fit_quietly(rule(Echo(classes), alpha=0.1, random_state=0), X, y.tolist())
    assert model.classes_.tolist() == classes
    np.testing.assert_array_equal(model.predict(X), np.array(classes)[X.argmax(axis=1)])
    check_agreement(model, X, y)
    assert model.accept(X).any()
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.accept(X), model.accept(X))
    assert "Echo" in repr(model)
    assert "Echo" in model._repr_html_()
    assert clone(model).estimator.classes_ == classes


class Floats(Echo):
    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X, np.float32)


class Tensors(Echo):
    def predict_proba(self, X: Any) -> Any:
        return torch.tensor(X, requires_grad=True)


class Frames(Echo):
    def predict_proba(self, X: Any) -> Any:
        return pd.DataFrame(X, columns=self.classes_)


class Lists(Echo):
    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X).tolist()


@pytest.mark.parametrize("kind", [Floats, Tensors, Frames, Lists])
def test_probabilities_of_any_container(kind) -> None:
    X, y = echo_rows(600, ["no", "yes"])
    expected = rn.CertifiedThreshold(Echo(["no", "yes"])).fit(X, y)
    model = fit_but_for(rn.errors.ReuseWarning, rn.CertifiedThreshold(kind(["no", "yes"])), X, y)
    assert model.predict_proba(X).dtype == np.float64
    assert model.certificate_.errors == expected.certificate_.errors
    np.testing.assert_allclose(model.threshold_, expected.threshold_, rtol=1e-5)
    np.testing.assert_array_equal(model.accept(X), expected.accept(X))


class Homemade:
    """A classifier with `fit` that knows nothing of scikit-learn."""

    def fit(self, X: Any, y: Any) -> Any:
        self.model = LogisticRegression().fit(X, y)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X)


class Terse(Homemade):
    """As many a home-made one, its `fit` returns nothing."""

    def fit(self, X: Any, y: Any) -> None:
        super().fit(X, y)


@every_rule
@fitted_or_not
@pytest.mark.parametrize("kind", [Homemade, Terse])
def test_a_homemade_classifier_with_fit(rule, fitted, kind) -> None:
    X, y = band_rows()
    given = kind()
    if fitted:
        given.fit(X[:400], y[:400])
        X, y = X[400:], y[400:]
    before = dict(vars(given))
    model = fit_quietly(rule(given, random_state=0), X, y)
    assert vars(given) == before
    assert (model.estimator_ is given) == fitted
    check_agreement(model, X, y)


OURS = [rn.ERMClassifier, rn.ReliableClassifier, rn.SelectiveNetClassifier]


@every_rule
@fitted_or_not
@pytest.mark.parametrize("kind", OURS)
def test_our_own_networks(rule, fitted, kind) -> None:
    X, y = band_rows(900)
    inner = quick(kind)
    if fitted:
        inner = fitted_network(kind)
    model = fit_quietly(rule(inner, alpha=0.1, random_state=0), X, y)
    assert (model.estimator_ is inner) == fitted
    check_agreement(model, X, y)
    if rule is not rn.TemperatureScaling:
        np.testing.assert_array_equal(
            model.acceptance_score(X), model.estimator_.acceptance_score(X)
        )
        native = kind is rn.SelectiveNetClassifier  # its selection head decides, not the softmax
        top = model.predict_proba(X).max(axis=1)
        assert np.array_equal(model.acceptance_score(X), top) != native
    if not fitted:
        with pytest.raises(NotFittedError):
            check_is_fitted(inner)
        assert not model.estimator_.accept(X).any()  # alone it has no certificate


@cache
def fitted_network(kind: type) -> Any:
    past = SyntheticBand(random_state=1).sample(900)
    return fit_quietly(quick(kind), past.X, past.y)


class WatchedERM(rn.ERMClassifier):
    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        self.rows_ = train.X[:, 0].copy(), selection.X[:, 0].copy()
        super()._fit_folds(train, selection, seed, keep_selection=keep_selection)


def test_our_own_networks_also_get_the_selection_fold_and_never_the_certification_fold() -> None:
    X, y = band_rows(900)
    model = fit_quietly(rn.ConfidenceThreshold(quick(WatchedERM), alpha=0.1, random_state=0), X, y)
    train, selection = model.estimator_.rows_
    assert (len(train), len(selection)) == fold_counts(900, "auto", 0.1, 0.05)[:2]
    assert not set(train) & set(selection)
    chosen = np.isin(X[:, 0], selection)
    proba = model.predict_proba(X[chosen])
    assert model.selection_threshold_ == rn.jcw_threshold(proba, y[chosen], 0.1)
    left = ~np.isin(X[:, 0], np.r_[train, selection])
    assert certify_again(model, X[left], y[left]) == model.certificate_


def test_a_rule_around_a_rule() -> None:
    X, y = band_rows(2000)
    given = rn.TemperatureScaling(LogisticRegression(C=100.0))
    model = rn.CertifiedThreshold(given, alpha=0.1, random_state=0).fit(X, y)
    inner = model.estimator_
    assert inner is not given
    assert not hasattr(given, "temperature_")
    own = inner.estimator_.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), scale(own, inner.temperature_))
    assert inner.temperature_ != 1.0
    assert model.certificate_.n == fold_counts(2000, "auto", 0.1, 0.05)[2]
    assert not inner.accept(X).any()
    check_agreement(model, X, y)


def test_a_rule_around_a_fitted_rule_uses_its_scores_and_certifies_with_all_rows() -> None:
    X, y = band_rows(2000)
    inner = rn.TemperatureScaling(LogisticRegression(), alpha=0.1, random_state=0).fit(
        X[:1000], y[:1000]
    )
    before = pickle.dumps(inner)
    model = rn.CertifiedThreshold(inner, alpha=0.1).fit(X[1000:], y[1000:])
    assert model.estimator_ is inner
    assert pickle.dumps(inner) == before
    assert model.certificate_.n == 1000
    np.testing.assert_array_equal(model.predict_proba(X), inner.predict_proba(X))


def test_a_fitted_classifier_two_rules_deep_is_used_as_it_is() -> None:
    """Retraining it on the rows that were held out for the rules would silently swap the model."""
    X, y = band_rows(2000)
    fitted = LogisticRegression().fit(X[:500], y[:500])
    model = rn.CertifiedThreshold(rn.TemperatureScaling(fitted), alpha=0.1, random_state=0)
    model.fit(X[500:], y[500:])
    np.testing.assert_array_equal(
        model.estimator_.estimator_.predict_proba(X), fitted.predict_proba(X)
    )


@every_rule
def test_a_frozen_classifier_survives_clone_and_grid_search(rule) -> None:
    X, y = band_rows(2000)
    fitted = LogisticRegression().fit(X[:500], y[:500])
    copy = clone(rule(FrozenEstimator(fitted), random_state=0))
    assert fit_quietly(copy, X[500:], y[500:]).estimator_.estimator is fitted
    search = GridSearchCV(copy, {"alpha": [0.1, 0.2]}, cv=2)
    fit_quietly(search, X[500:], y[500:])
    assert search.best_estimator_.estimator_.estimator is fitted


def test_without_the_freezer_a_clone_is_fitted_afresh() -> None:
    X, y = band_rows(2000)
    fitted = LogisticRegression().fit(X[:500], y[:500])
    model = clone(rn.CertifiedThreshold(fitted, random_state=0)).fit(X[500:], y[500:])
    assert model.certificate_.n == fold_counts(1500)[2]


# Which rows go where.


class Spy(ClassifierMixin, BaseEstimator):
    """Logistic regression that writes down the rows it meets; column 0 is the row's number."""

    def fit(self, X: Any, y: Any) -> Spy:
        self.fits_ = getattr(self, "fits_", 0) + 1
        self.trained_on_ = X[:, 0].astype(int)
        self.asked_for_: list[np.ndarray] = []
        self.model_ = LogisticRegression().fit(X[:, 1:], y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        self.asked_for_.append(X[:, 0].astype(int))
        return self.model_.predict_proba(X[:, 1:])


@pytest.fixture(scope="module")
def numbered() -> tuple[np.ndarray, np.ndarray]:
    X, y = band_rows(1600)
    return np.column_stack([np.arange(1600), X]), y


def rows_asked_for(spy: Spy) -> set[int]:
    return {int(row) for rows in spy.asked_for_ for row in rows}


def check_rule(model: Any, rule: Any, X: Any, y: Any, selection: Any, certification: Any) -> None:
    """Check threshold and certificate against the functions, given the rows of each fold."""
    folds = (selection, certification)
    outputs = [model.predict_proba(X[list(rows)]) if len(rows) else None for rows in folds]
    labels = [y[list(rows)] for rows in (selection, certification)]
    if rule is rn.ConformalRiskControl:
        expected = rn.conformal_threshold(outputs[0], labels[0], model.alpha)
    elif len(labels[0]):
        expected = rn.jcw_threshold(outputs[0], labels[0], model.alpha)
    else:
        expected = np.nan
    np.testing.assert_equal(model.selection_threshold_, expected)
    if rule in (rn.CertifiedThreshold, rn.TemperatureScaling):
        certificate = rn.certified_threshold(outputs[1], labels[1], model.alpha, model.rho)
    else:
        certificate = rn.certify(outputs[1], labels[1], expected, model.alpha, model.rho)
    assert model.certificate_ == certificate


@every_rule
@pytest.mark.parametrize("sizes", ["auto", (0.5, 0.3, 0.2)])
def test_an_unfitted_classifier_is_cloned_and_sees_the_training_fold_alone(
    rule, sizes, numbered
) -> None:
    X, y = numbered
    given = Spy()
    model = fit_quietly(rule(given, alpha=0.1, fold_sizes=sizes, random_state=3), X, y)
    assert not hasattr(given, "fits_")
    spy = model.estimator_
    assert spy.fits_ == 1
    trained_on, others = set(spy.trained_on_.tolist()), rows_asked_for(spy)
    chooses = rule is not rn.CertifiedThreshold
    counts = fold_counts(1600, sizes, 0.1, 0.05, selection=chooses)
    assert len(trained_on) == counts[0]
    assert not trained_on & others
    assert trained_on | others == set(range(1600))
    selection, certification = spy.asked_for_[0] if chooses else [], spy.asked_for_[-1]
    assert (len(selection), len(certification)) == counts[1:]
    assert not set(selection) & set(certification)
    check_rule(model, rule, X, y, selection, certification)


@every_rule
@pytest.mark.parametrize("sizes", ["auto", (0.4, 0.4, 0.2)])
def test_a_fitted_classifier_is_never_refitted_and_all_rows_choose_and_certify(
    rule, sizes, numbered
) -> None:
    X, y = numbered
    spy = Spy().fit(X[:600], y[:600])
    before = pickle.dumps(spy.model_)
    model = fit_quietly(rule(spy, alpha=0.1, fold_sizes=sizes, random_state=3), X[600:], y[600:])
    assert model.estimator_ is model.estimator is spy
    assert spy.fits_ == 1
    assert pickle.dumps(spy.model_) == before
    assert rows_asked_for(spy) == set(range(600, 1600))
    certification = spy.asked_for_[-1]
    if rule is rn.CertifiedThreshold:
        assert model.certificate_.n == len(certification) == 1000
        selection: Any = []
        assert np.isnan(model.selection_threshold_)
        assert model.certificate_ == rn.certified_threshold(
            model.predict_proba(X[600:]), y[600:], 0.1, 0.05
        )
    else:
        selection = spy.asked_for_[0]
        assert (0, len(selection), len(certification)) == holdout_counts(1000, sizes, 0.1, 0.05)
        assert not set(selection) & set(certification)
        check_rule(model, rule, X, y, selection, certification)


@every_rule
@fitted_or_not
@pytest.mark.parametrize(
    "given", [("selection",), ("certification",), ("selection", "certification")]
)
def test_given_folds_are_used_as_they_are(rule, fitted, given, numbered) -> None:
    X, y = numbered
    spy = Spy()
    if fitted:
        spy.fit(X[:300], y[:300])
    own = {"selection": range(300, 600), "certification": range(600, 1000)}
    folds = {name: (X[list(own[name])], y[list(own[name])]) for name in given}
    rest = range(1000, 1600)
    model = fit_quietly(rule(spy, alpha=0.1, random_state=3), X[1000:], y[1000:], **folds)
    seen = model.estimator_
    selection, certification = seen.asked_for_[0], seen.asked_for_[-1]
    trained_on = set() if fitted else set(seen.trained_on_.tolist())
    cut = {"selection": selection, "certification": certification}
    for name in given:
        assert cut[name].tolist() == list(own[name])
    missing = {"selection", "certification"} - set(given)
    if rule is rn.CertifiedThreshold and "selection" in missing and not fitted:  # it needs none
        selection, missing = [], missing - {"selection"}
    for name in missing:
        assert set(cut[name]) | trained_on == set(rest)
        assert not set(cut[name]) & trained_on
    if not missing and not fitted:
        assert trained_on == set(rest)
    check_rule(model, rule, X, y, selection, certification)


@every_rule
def test_a_fold_of_the_library_is_as_good_as_a_pair(rule, numbered) -> None:
    X, y = numbered
    pairs = {"selection": (X[300:600], y[300:600]), "certification": (X[600:1000], y[600:1000])}
    first = fit_quietly(rule(Spy()), X[:300], y[:300], **pairs)
    folds = {name: Fold(*pair) for name, pair in pairs.items()}
    assert fit_quietly(rule(Spy()), X[:300], y[:300], **folds).certificate_ == first.certificate_


@every_rule
def test_the_seed_decides_the_folds(rule, numbered) -> None:
    X, y = numbered
    models = [fit_quietly(rule(Spy(), random_state=s), X, y) for s in (0, 0, 1)]
    rows = [set(model.estimator_.trained_on_) for model in models]
    assert rows[0] == rows[1] != rows[2]
    assert models[0].certificate_ == models[1].certificate_


# Classes.


@every_rule
def test_labels_unknown_to_a_fitted_classifier(rule) -> None:
    X, y = echo_rows(100)
    with pytest.raises(rn.errors.InvalidDataError, match=r"not among the 2 known classes: 7"):
        rule(Echo()).fit(X, np.where(np.arange(100) == 4, 7, y))


@every_rule
def test_one_class_around_a_fitted_classifier_is_fine_with_a_warning(rule) -> None:
    X, y = echo_rows(2000)
    X, y = X[y == 1], y[y == 1]
    with (
        pytest.warns(rn.errors.FoldWarning, match=r"certification fold: \[0\]"),
        pytest.warns(rn.errors.EmptyCertificateWarning, match="wrong on 0 % of rows"),
    ):
        model = fit_but_for(
            rn.errors.NotCertifiedWarning, rule(Echo(), alpha=0.3, random_state=0), X, y
        )
    assert model.classes_.tolist() == [0, 1]
    assert model.accept(X).any()
    check_agreement(model, X, y)


@every_rule
def test_one_class_around_an_unfitted_classifier_is_refused(rule) -> None:
    X, _ = band_rows(100)
    with pytest.raises(rn.errors.InvalidDataError, match="at least two classes; got 1 class"):
        rule(LogisticRegression()).fit(X, np.ones(100))


def certification_row(n: int) -> int:
    """Return a row that seed 0 puts into the certification fold of 40 %, whatever its label."""
    return int(cut_parts(np.zeros(n), None, lambda n: (60 * n // 100, 0, 40 * n // 100), 0)[2][0])


@every_rule
def test_a_class_that_training_lacks_gets_a_column_of_zeros_in_its_place(rule) -> None:
    X, y = band_rows(100)
    labels = np.where(y == 1, "z", "a")
    labels[certification_row(100)] = "m"  # between the others
    model = rule(LogisticRegression(), alpha=0.3, fold_sizes=(0.3, 0.3, 0.4), random_state=0)
    with pytest.warns(rn.errors.FoldWarning, match=r"train fold: \['m'\]"):
        fit_but_for(rn.errors.NotCertifiedWarning, model, X, labels)
    assert model.estimator_.classes_.tolist() == ["a", "z"]
    assert model.classes_.tolist() == ["a", "m", "z"]
    proba, own = model.predict_proba(X), model.estimator_.predict_proba(X)
    assert proba[:, 1].max() < 1e-10
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))
    if rule is not rn.TemperatureScaling:
        np.testing.assert_array_equal(proba[:, [0, 2]], own)
    check_agreement(model, X, labels)


@every_rule
def test_a_training_fold_of_one_class_is_aligned_too(rule) -> None:
    """A tree takes one class and gives one column; the other class then has probability 0."""
    X, _ = band_rows(100)
    labels = np.where(np.arange(100) == certification_row(100), "rare", "usual")
    model = rule(DecisionTreeClassifier(), alpha=0.3, fold_sizes=(0.3, 0.3, 0.4), random_state=0)
    with pytest.warns(rn.errors.FoldWarning) as caught:
        fit_but_for(rn.errors.EmptyCertificateWarning, model, X, labels)
    assert "train fold: ['rare']" in str(caught[0].message)
    assert model.classes_.tolist() == ["rare", "usual"]
    assert set(model.predict(X)) == {"usual"}
    if rule is not rn.TemperatureScaling:
        np.testing.assert_array_equal(model.predict_proba(X), np.tile([0.0, 1.0], (100, 1)))
    check_agreement(model, X, labels)


@every_rule
@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([1.0, 2.0]),
        np.array([-1, 1], dtype=np.int8),
        np.array(["no", "yes"], dtype=object),
    ],
    ids=["booleans", "floats", "int8", "objects"],
)
def test_labels_of_any_kind(rule, labels) -> None:
    X, y = band_rows(600)
    model = fit_quietly(rule(LogisticRegression(), alpha=0.2, random_state=0), X, labels[y])
    assert model.classes_.tolist() == labels.tolist()
    assert set(model.predict(X).tolist()) == set(labels.tolist())
    check_agreement(model, X, labels[y])


# What goes wrong, and what is said.


class Broken(Echo):
    """Gives good answers until told otherwise."""

    answer: Any = None

    def predict_proba(self, X: Any) -> Any:
        good = super().predict_proba(X)
        return good if self.answer is None else self.answer(good)


def spoil(value: float) -> Any:
    def answer(proba: np.ndarray) -> np.ndarray:
        return np.where(np.arange(proba.size).reshape(proba.shape) == 5, value, proba)

    return answer


BAD_ANSWERS = {
    "NaN": (spoil(np.nan), r"must be finite; got nan in row 2, column 1"),
    "infinity": (spoil(np.inf), r"must be finite; got inf in row 2, column 1"),
    "negative": (lambda p: np.column_stack([p[:, 0] + 1, -p[:, 0]]), r"must lie in \[0, 1\]"),
    "logits": (lambda p: 9 * p - 4, r"must lie in \[0, 1\].*softmax"),
    "sums": (lambda p: 0.9 * p, r"must sum to 1; row \d+ sums to 0.9"),
    "too many columns": (lambda p: np.column_stack([p / 2, p / 2]), r"its 2 classes; got shape"),
    "too few columns": (lambda p: p[:, :1], r"its 2 classes; got shape \(\d+, 1\)"),
    "too few rows": (lambda p: p[:-1], r"one row for each of the \d+ rows .* got shape"),
    "one axis": (lambda p: p[:, 1], r"got shape \(\d+,\)"),
    "three axes": (lambda p: p[None], r"got shape \(1, \d+, 2\)"),
    "nothing": (lambda p: None, r"got shape \(\)"),
    "text": (lambda p: p.astype(str), r"must hold numbers"),
}


@every_rule
@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_probabilities_that_are_none(rule, name) -> None:
    answer, message = BAD_ANSWERS[name]
    X, y = echo_rows(600)
    broken = Broken()
    broken.answer = answer
    owner = rf"Broken in {rule.__name__}"
    with pytest.raises(rn.errors.InvalidDataError, match=f"{owner}.*{message}"):
        rule(broken, random_state=0).fit(X, y)
    later = Broken()
    model = fit_quietly(rule(later, alpha=0.2, random_state=0), X, y)
    later.answer = answer
    for method in (model.decide, model.predict, model.predict_proba, model.accept):
        with pytest.raises(rn.errors.InvalidDataError, match=f"{owner}.*{message}"):
            method(X)


@every_rule
@pytest.mark.parametrize(
    "inner",
    [LinearSVC(), make_pipeline(LinearSVC()), LogisticRegression, None, "LogisticRegression"],
)
def test_what_is_no_classifier_with_probabilities(rule, inner) -> None:
    X, y = band_rows(100)
    message = rf"`estimator` of {rule.__name__} must .*predict_proba.*CalibratedClassifierCV"
    with pytest.raises(rn.errors.InvalidParameterError, match=f"(?s){message}"):
        rule(inner).fit(X, y)


def test_probabilities_without_classes_or_fit() -> None:
    class Nameless:
        predict_proba = None

    with pytest.raises(
        rn.errors.InvalidParameterError, match=r"`estimator` .*`classes_`.*or `fit`"
    ):
        rn.CertifiedThreshold(Nameless()).fit(*band_rows(100))


def test_a_frozen_classifier_that_was_never_fitted() -> None:
    with pytest.raises(NotFittedError, match="LogisticRegression"):
        rn.CertifiedThreshold(FrozenEstimator(LogisticRegression())).fit(*band_rows(100))


@every_rule
@fitted_or_not
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 5}, r"`alpha` of {rule} must lie in \(0, 1\); got 5. Did you mean 0.05"),
        ({"rho": 0.0}, r"`rho` of {rule} must lie in"),
        ({"fold_sizes": (0.5, 0.5)}, r"`fold_sizes` of fit must"),
        ({"fold_sizes": "half"}, r"`fold_sizes` of fit must"),
    ],
)
def test_settings(rule, fitted, settings, message) -> None:
    X, y = echo_rows(300)
    inner = Echo() if fitted else LogisticRegression()
    with pytest.raises(rn.errors.InvalidParameterError, match=message.format(rule=rule.__name__)):
        fit_quietly(rule(inner, **settings), X, y)


@every_rule
@fitted_or_not
@pytest.mark.parametrize("nothing", [np.empty((0, 2)), [], pd.Series([], dtype=object)])
def test_no_rows(rule, fitted, nothing) -> None:
    with pytest.raises(ValueError, match="0 sample"):
        rule(Echo() if fitted else LogisticRegression()).fit(nothing, [])
    X, y = echo_rows(300)
    model = fit_quietly(rule(Echo() if fitted else LogisticRegression()), X, y)
    with pytest.raises(ValueError, match="0 sample"):
        model.decide(nothing)


@every_rule
def test_labels_that_do_not_fit_the_rows(rule) -> None:
    X, y = echo_rows(300)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        rule(Echo()).fit(X, y[:-1])
    with pytest.raises(ValueError, match="row 5"):
        rule(Echo()).fit(X, np.where(np.arange(300) == 5, np.nan, y))
    with pytest.raises(rn.errors.InvalidParameterError, match=r"`selection` of fit must be a pair"):
        rule(Echo()).fit(X, y, selection=3)
    with pytest.raises(rn.errors.InvalidDataError, match=r"the certification fold .*got 2;"):
        rule(Echo()).fit(X, y, certification=(X[:50], np.full(50, 2)))


@every_rule
def test_columns_that_differ_from_those_of_fit(rule) -> None:
    table, y = frame_of(600)
    model = fit_quietly(rule(frame_model(), alpha=0.2), table, y)
    assert model.feature_names_in_.tolist() == table.columns.tolist()
    with pytest.raises(ValueError, match=r"(?s)Feature names.*missing.*job"):
        model.decide(table.drop(columns="job"))


@every_rule
def test_using_before_fitting(rule) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        rule(LogisticRegression()).decide(band_rows(10)[0])


@every_rule
def test_ten_rows_around_an_unfitted_and_two_around_a_fitted_classifier(rule) -> None:
    X, y = echo_rows(10)
    y[:2] = 0, 1
    with pytest.warns(
        rn.errors.NotCertifiedWarning, match=r"needs at least \d+ fresh rows|acts on no row"
    ):
        fit_but_for(rn.errors.FoldWarning, rule(LogisticRegression(), random_state=0), X, y)
    with pytest.warns(
        rn.errors.NotCertifiedWarning, match=r"needs at least \d+ fresh rows|acts on no row"
    ):
        fit_but_for(rn.errors.FoldWarning, rule(Echo(), random_state=0), X[:2], y[:2])


@every_rule
def test_warnings_point_at_the_line_that_called_fit(rule) -> None:
    X, y = band_rows(300)
    with pytest.warns() as caught:
        rule(LogisticRegression(), alpha=0.001).fit(X, np.where(np.arange(300) == 0, 2, y))
    assert {warning.category for warning in caught} == {
        rn.errors.FoldWarning,
        rn.errors.NotCertifiedWarning,
    }
    assert {warning.filename for warning in caught} == {__file__}


def test_warnings_of_a_wrapped_network_point_there_too() -> None:
    X, y = band_rows(300)
    with pytest.warns() as caught:
        rn.CertifiedThreshold(quick(rn.ReliableClassifier), alpha=0.001, random_state=0).fit(X, y)
    assert {w.category for w in caught} == {
        rn.errors.ConstraintWarning,
        rn.errors.NotCertifiedWarning,
    }
    assert {warning.filename for warning in caught} == {__file__}


# As scikit-learn expects.


@parametrize_with_checks(
    [rule(LogisticRegression(), random_state=0) for rule in RULES],
    expected_failed_checks=lambda estimator: {},
)
@pytest.mark.filterwarnings(
    *(f"ignore::reliablenet.errors.{c.__name__}" for c in EXPECTED_WARNINGS)
)
def test_scikit_learn_accepts_the_estimator(estimator, check) -> None:
    check(estimator)


@every_rule
def test_settings_are_stored_cloned_and_shown(rule) -> None:
    model = rule(LogisticRegression(C=3.0), 0.1, 0.2, fold_sizes=(0.4, 0.3, 0.3), random_state=5)
    settings = model.get_params()
    assert settings["estimator__C"] == 3.0
    assert (settings["alpha"], settings["rho"]) == (0.1, 0.2)
    assert ("threshold" in settings) == (rule is rn.TemperatureScaling)
    copy = clone(model)
    assert copy.estimator is not model.estimator
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copy.get_params()["estimator__C"] == 3.0
    copy.set_params(estimator__C=7.0, alpha=0.3)
    assert (copy.estimator.C, copy.alpha) == (7.0, 0.3)
    assert model.estimator.C == 3.0
    assert repr(model).startswith(f"{rule.__name__}(")
    assert "LogisticRegression(C=3.0)" in repr(model)


@every_rule
def test_grid_search_over_a_setting_of_the_wrapped_classifier(rule) -> None:
    X, y = band_rows(600)
    search = GridSearchCV(
        rule(LogisticRegression(), random_state=0), {"estimator__C": [1e-6, 1.0]}, cv=2
    )
    fit_quietly(search, X, y)
    assert search.best_params_ == {"estimator__C": 1.0}
    assert search.best_estimator_.estimator_.C == 1.0


@every_rule
def test_a_fitted_rule_survives_pickle(rule) -> None:
    X, y = band_rows(1000)
    model = fit_quietly(rule(LogisticRegression(), alpha=0.1, random_state=0), X, y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert again.threshold_ == model.threshold_
    assert again.certificate_ == model.certificate_
    for name, values in vars(model.decide(X)).items():
        np.testing.assert_array_equal(getattr(again.decide(X), name), values)


@every_rule
def test_global_random_state_is_left_alone(rule) -> None:
    X, y = echo_rows(300)
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.get_state()[1].copy()  # noqa: NPY002
    fit_quietly(rule(Echo(), random_state=0), X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], expected)  # noqa: NPY002


@every_rule
def test_fitting_again_forgets_the_first_fit(rule) -> None:
    X, y = band_rows(600)
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    model = fit_quietly(rule(LogisticRegression(), alpha=0.2, random_state=0), frame, y)
    model.set_params(estimator=text_model())
    texts, labels = documents(300)
    fit_quietly(model, pd.Series(texts), labels)
    assert not hasattr(model, "feature_names_in_")
    assert set(model.decide(texts).label) == {"ham", "spam"}  # a list, where fit had a series
