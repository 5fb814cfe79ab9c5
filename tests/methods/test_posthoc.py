"""The four rules: what they accept, what they do without a certificate, and at the edges."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from contract_helpers import RULES, certify_again, fit_quietly
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.posthoc import LARGEST_TEMPERATURE, fit_temperature, scale
from reliablenet.tables import Fold

# Folds made of a few probabilities hold the same rows again and again.
pytestmark = pytest.mark.filterwarnings("ignore:.* are copies of:reliablenet.errors.FoldWarning")

every_rule = pytest.mark.parametrize("rule", RULES)
acting = pytest.mark.parametrize("rule", [rn.ConfidenceThreshold, rn.ConformalRiskControl])
careful = pytest.mark.parametrize("rule", [rn.CertifiedThreshold, rn.TemperatureScaling])
selecting = pytest.mark.parametrize("rule", RULES[1:])


class Echo:
    """A fitted classifier whose rows are its probabilities."""

    def __init__(self, classes: Any = (0, 1)) -> None:
        self.classes_ = np.array(classes)

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X, float)


# Rows are drawn to try rules; whether they are odd for a model is not asked.
ANY_ROWS = pytest.mark.filterwarnings("ignore::reliablenet.errors.OddInputWarning")


def fold_of(confidence: Any, right: Any) -> Fold:
    """Return rows of a binary problem with these confidences, class 0 and 1 predicted in turn."""
    top, right = np.asarray(confidence, float), np.asarray(right, bool)
    predicted = np.arange(len(top)) % 2
    X = np.column_stack(
        [np.where(predicted == 0, top, 1 - top), np.where(predicted == 1, top, 1 - top)]
    )
    return Fold(X, np.where(right, predicted, 1 - predicted))


def drawn(n: int, seed: int = 0) -> Fold:
    """Return calibrated rows: wrong with probability 1 - confidence, JCW(t) = (1 - t)^2."""
    rng = np.random.default_rng(seed)
    top = rng.uniform(0.5, 1.0, n)
    return fold_of(top, rng.random(n) < top)


def around_echo(rule: Any, selection: Fold, certification: Fold, **more: Any) -> Any:
    """Fit a rule around a classifier that needs no training, with both folds given."""
    return rule(Echo(), **more).fit(
        certification.X, certification.y, selection=selection, certification=certification
    )


# The rules, against a search by hand and against the functions.

GRID = np.linspace(0.5, 1.0, 6)  # few values, so that ties are common, and 1.0 is one of them
rows = st.lists(st.tuples(st.sampled_from(GRID), st.booleans()), min_size=1, max_size=40)
alphas = st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.5])


def jcw_at(fold: Fold, threshold: float) -> float:
    top, wrong = fold.X.max(axis=1), fold.X.argmax(axis=1) != fold.y
    return float(np.mean(wrong & (top >= threshold)))


@ANY_ROWS
@settings(deadline=None, max_examples=100)
@given(rows, alphas)
def test_confidence_threshold_is_the_most_permissive_within_alpha(pairs, alpha) -> None:
    selection, certification = fold_of(*zip(*pairs, strict=True)), drawn(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = around_echo(rn.ConfidenceThreshold, selection, certification, alpha=alpha)
    assert model.threshold_ == rn.jcw_threshold(selection.X, selection.y, alpha)
    kept = [t for t in selection.X.max(axis=1) if jcw_at(selection, t) <= alpha]
    np.testing.assert_array_equal(
        model.accept(selection.X), selection.X.max(axis=1) >= min(kept, default=math.inf)
    )
    assert model.certificate_.kind == "fixed"
    assert certify_again(model, certification.X, certification.y) == model.certificate_


@ANY_ROWS
@settings(deadline=None, max_examples=100)
@given(rows, alphas)
def test_conformal_risk_control_accepts_at_or_above_its_threshold(pairs, alpha) -> None:
    selection, certification = fold_of(*zip(*pairs, strict=True)), drawn(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = around_echo(rn.ConformalRiskControl, selection, certification, alpha=alpha)
    threshold = rn.conformal_threshold(selection.X, selection.y, alpha)
    neighbours = np.nextafter(GRID, 0), GRID, np.nextafter(GRID, 1)
    top = np.clip(np.concatenate(neighbours), 0.5, 1.0)
    everything = np.concatenate([selection.X, np.column_stack([top, 1 - top])])
    np.testing.assert_array_equal(model.accept(everything), everything.max(axis=1) >= threshold)
    n = len(selection)
    if model.accept(selection.X).any():
        assert (n * jcw_at(selection, threshold) + 1) / (n + 1) <= alpha + 1e-12
    assert model.certificate_.kind == "fixed"
    assert certify_again(model, certification.X, certification.y) == model.certificate_


@ANY_ROWS
@settings(deadline=None, max_examples=100)
@given(rows, alphas, st.sampled_from([0.05, 0.3, 0.9]))
def test_certified_threshold_is_the_lowest_with_a_bound_within_alpha(pairs, alpha, rho) -> None:
    fold = fold_of(*zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = rn.CertifiedThreshold(Echo(), alpha, rho).fit(fold.X, fold.y)
    assert model.certificate_ == rn.certified_threshold(fold.X, fold.y, alpha, rho)
    assert (model.certificate_.kind, model.certificate_.n) == ("monotone", len(fold))
    top = fold.X.max(axis=1)
    kept = []
    for t in np.unique(top)[::-1]:  # from above, and no further than the first that breaks it
        errors = round(jcw_at(fold, t) * len(fold))
        if rn.clopper_pearson_upper(errors, len(fold), rho) > alpha:
            break
        kept.append(t)
    np.testing.assert_array_equal(model.accept(fold.X), top >= min(kept, default=math.inf))
    assert model.certificate_.certified == bool(kept)


def test_temperature_scaling_has_three_ways_to_its_threshold() -> None:
    selection, certification = drawn(600, 1), drawn(800, 2)
    models = {
        threshold: fit_quietly(
            rn.TemperatureScaling(Echo(), 0.05, threshold=threshold),
            *(certification.X, certification.y),
            selection=selection,
            certification=certification,
        )
        for threshold in ("certified", "selection", 0.95)
    }
    proba = models["certified"].predict_proba(certification.X)
    found = rn.certified_threshold(proba, certification.y, 0.05)
    assert models["certified"].certificate_ == found
    chosen = rn.jcw_threshold(models["selection"].predict_proba(selection.X), selection.y, 0.05)
    for threshold, value in (("selection", chosen), (0.95, 0.95)):
        expected = rn.certify(proba, certification.y, value, 0.05)
        assert models[threshold].certificate_ == expected
        assert models[threshold].threshold_ == (value if expected.certified else math.inf)
    assert models["certified"].certificate_.kind == "monotone"
    assert models["selection"].certificate_.kind == models[0.95].certificate_.kind == "fixed"


@pytest.mark.parametrize("threshold", [0.5, 0.0, 1.5, "best", math.nan])
def test_temperature_scaling_refuses_other_thresholds(threshold) -> None:
    fold = drawn(100)
    with pytest.raises(rn.errors.InvalidParameterError, match="`threshold` of TemperatureScaling"):
        rn.TemperatureScaling(Echo(), threshold=threshold).fit(fold.X, fold.y)


# With and without a certificate.


@acting
def test_a_rule_with_a_promise_of_its_own_acts_without_a_certificate_and_says_so(rule) -> None:
    selection, certification = drawn(400, 1), drawn(20, 2)  # twenty rows certify nothing
    with pytest.warns(
        rn.errors.NotCertifiedWarning, match=r"acts from 0\.\d+… on without it: .*rows"
    ):
        model = around_echo(rule, selection, certification)
    assert not model.certificate_.certified
    assert model.threshold_ == model.selection_threshold_ == model.certificate_.threshold < 1
    assert model.accept(selection.X).any()


@acting
def test_and_with_a_certificate_nothing_is_said(rule) -> None:
    selection, certification = drawn(400, 1), fold_of(np.full(200, 0.9), np.ones(200))
    model = around_echo(rule, selection, certification)  # a warning would be an error
    assert model.certificate_.certified


@careful
def test_the_others_defer_everything_without_a_certificate(rule) -> None:
    selection, certification = drawn(400, 1), drawn(20, 2)
    with pytest.warns(
        rn.errors.NotCertifiedWarning, match=r"defers every row: .* needs at least 59 fresh rows"
    ):
        model = around_echo(rule, selection, certification)
    assert model.threshold_ == math.inf
    assert not model.accept(selection.X).any()
    assert model.evaluate(selection.X, selection.y).coverage == 0.0
    assert set(model.predict(selection.X)) == {0, 1}


@pytest.mark.parametrize("threshold", ["selection", 0.51])
def test_temperature_scaling_defers_whatever_the_threshold_without_a_certificate(threshold) -> None:
    selection, certification = drawn(400, 1), drawn(20, 2)
    with pytest.warns(rn.errors.NotCertifiedWarning, match="defers every row"):
        model = around_echo(rn.TemperatureScaling, selection, certification, threshold=threshold)
    assert model.certificate_.threshold < 1
    assert not model.accept(selection.X).any()


# Answers at the edges.


@every_rule
@pytest.mark.parametrize("confidence", [0.8, 1.0])
def test_where_no_threshold_keeps_the_budget_nothing_is_accepted(rule, confidence) -> None:
    """Half of all rows are wrong and all look alike."""
    fold = fold_of(np.full(200, confidence), np.arange(200) % 4 < 2)
    model = fit_quietly(rule(Echo()), fold.X, fold.y, selection=fold, certification=fold)
    assert not model.accept(fold.X).any()
    assert not model.decide(fold.X).accepted.any()
    assert model.certificate_.errors == model.certificate_.accepted == 0
    evaluation = model.evaluate(fold.X, fold.y)
    assert (evaluation.coverage, evaluation.jcw) == (0.0, 0.0)
    assert math.isnan(evaluation.accuracy_accepted)
    assert certify_again(model, fold.X, fold.y).accepted == 0


@pytest.mark.parametrize("rule", [rn.CertifiedThreshold, rn.ConfidenceThreshold])
def test_and_the_reason_is_given(rule) -> None:
    fold = fold_of(np.full(200, 0.8), np.arange(200) % 4 < 2)
    with pytest.warns(
        rn.errors.NotCertifiedWarning, match=r"defers every row: .*(acts on no row|mistakes)"
    ):
        model = around_echo(rule, fold, fold)
    assert model.threshold_ == math.inf
    assert model.certificate_.reason


def test_conformal_risk_control_needs_enough_rows_to_accept_any() -> None:
    """With n < 1/alpha - 1 even no error is one too many."""
    certification = drawn(400)
    with pytest.warns(rn.errors.NotCertifiedWarning, match="defers every row"):
        few = around_echo(rn.ConformalRiskControl, fold_of([0.9] * 18, [True] * 18), certification)
    assert few.threshold_ == math.inf
    enough = fit_quietly(
        rn.ConformalRiskControl(Echo()),
        *(certification.X, certification.y),
        selection=fold_of([0.9] * 19, [True] * 19),
        certification=certification,
    )
    assert enough.accept(certification.X).all()


@pytest.mark.parametrize("rule", RULES[:3])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 1.0])
def test_without_errors_everything_is_accepted(rule, confidence) -> None:
    fold = fold_of(np.full(200, confidence), np.ones(200))
    model = around_echo(rule, fold, fold)
    assert model.certificate_.certified
    assert model.certificate_.coverage == 1.0
    lowest = np.array([[0.5, 0.5]])
    assert model.accept(np.concatenate([fold.X, lowest])).all()


@pytest.mark.parametrize("confidence", [0.501, 0.6, 0.9, 0.99, 1.0])
def test_without_errors_the_temperature_stays_1_and_says_so(confidence) -> None:
    fold = fold_of(np.full(200, confidence), np.ones(200))
    with pytest.warns(rn.errors.FoldWarning, match=r"None of the 200 selection rows .*stays 1"):
        model = around_echo(rn.TemperatureScaling, fold, fold)
    assert model.temperature_ == 1.0
    np.testing.assert_allclose(model.predict_proba(fold.X), fold.X, atol=1e-12)
    assert model.accept(fold.X).all()


def test_a_tree_that_makes_no_error_keeps_its_temperature() -> None:
    X = np.linspace(0, 1, 400)[:, None]
    y = (X[:, 0] > 0.5).astype(int)
    tree = DecisionTreeClassifier().fit(X, y)
    with pytest.warns(rn.errors.FoldWarning, match="stays 1"):
        model = rn.TemperatureScaling(tree, random_state=0).fit(X, y)
    assert model.temperature_ == 1.0


@every_rule
def test_a_budget_above_the_error_rate_accepts_everything(rule) -> None:
    rng = np.random.default_rng(0)
    top = rng.uniform(0.5, 1, 400)
    fold = fold_of(top, rng.random(400) > 0.1)
    chosen = fold_of(rng.uniform(0.5, 1, 400), rng.random(400) > 0.1)
    model = fit_quietly(rule(Echo(), 0.3), fold.X, fold.y, selection=chosen, certification=fold)
    assert model.accept(fold.X).all()
    assert model.certificate_.certified
    assert model.evaluate(fold.X, fold.y).coverage == 1.0


@pytest.mark.parametrize("rule", RULES[:3])
def test_scores_that_rounding_lifts_above_1(rule) -> None:
    """float32 rows sum to 1 within rounding only, and their top may exceed it."""
    rng = np.random.default_rng(0)
    above = rng.random(600) < 0.5
    top = np.where(above, np.float32(1.0000001), np.float32(1.0)).astype(float)
    X = np.column_stack([top, np.zeros(600)])
    fold = Fold(X, np.where(above, 0, rng.random(600) < 0.5).astype(int))
    model = fit_quietly(rule(Echo()), fold.X, fold.y, selection=fold, certification=fold)
    assert model.evaluate(fold.X, fold.y).jcw <= 0.05
    assert certify_again(model, fold.X, fold.y).errors == model.evaluate(fold.X, fold.y).errors


@selecting
@pytest.mark.filterwarnings(
    "ignore::reliablenet.errors.LabelWarning"
)  # of a fold that is all wrong
def test_the_certification_fold_never_moves_what_the_selection_fold_decides(rule) -> None:
    selection = drawn(400, 1)
    models = [
        fit_quietly(rule(Echo(), 0.1), fold.X, fold.y, selection=selection, certification=fold)
        for fold in (drawn(300, 2), fold_of(np.full(50, 0.7), np.zeros(50)))
    ]
    assert models[0].selection_threshold_ == models[1].selection_threshold_
    if rule is rn.TemperatureScaling:
        assert models[0].temperature_ == models[1].temperature_
    else:
        assert models[0].threshold_ == models[1].threshold_


# Temperature.


def nll(proba: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.maximum(proba[np.arange(len(y)), y], np.finfo(float).eps)).mean())


@pytest.mark.parametrize(
    "model", [GaussianNB(), LogisticRegression(C=1e4), LogisticRegression(C=1e-4)]
)
def test_the_temperature_lowers_the_loss_of_the_selection_fold(model) -> None:
    band = SyntheticBand(random_state=0)
    train, selection, certification = band.sample(60), band.sample(500), band.sample(500)
    fitted = model.fit(train.X, train.y)
    scaled = fit_quietly(
        rn.TemperatureScaling(fitted),
        *(train.X, train.y),
        selection=selection,
        certification=certification,
    )
    before, after = fitted.predict_proba(selection.X), scaled.predict_proba(selection.X)
    assert scaled.temperature_ != 1.0
    assert nll(after, selection.y) < nll(before, selection.y)
    for temperature in (0.99, 1.01):
        other = scale(before, scaled.temperature_ * temperature)
        assert nll(after, selection.y) < nll(other, selection.y)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.floats(0.05, 20), st.booleans())
def test_the_loss_is_never_above_that_of_temperature_1(seed, n_classes, sharpness, zeros) -> None:
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 1 / sharpness), 30)
    if zeros:
        proba = np.where(proba < 0.1, 0.0, proba)
        proba /= proba.sum(axis=1, keepdims=True)
    y = rng.integers(0, n_classes, 30)
    temperature = fit_temperature(proba, y)
    assert 1 / LARGEST_TEMPERATURE <= temperature <= LARGEST_TEMPERATURE
    assert nll(scale(proba, temperature), y) <= nll(scale(proba, 1.0), y) + 1e-12


@st.composite
def rows_with_ties(draw: Any) -> np.ndarray:
    """Draw one row of probabilities, often with zeros, exact ties or ties but for a few bits."""
    weights = draw(
        st.lists(
            st.one_of(
                st.sampled_from([0.0, 1.0, 1.0 + 2**-52, 1.0 - 2**-53, 1.0 + 1e-12, 1e-17, 0.5]),
                st.floats(0.0, 1.0),
            ),
            min_size=2,
            max_size=8,
        )
    )
    row = np.array(weights)
    if row.max() < 0.1:
        row[draw(st.integers(0, len(row) - 1))] = 1.0
    return row / row.sum() if draw(st.booleans()) else np.round(row / row.sum(), 4)


temperatures = st.floats(-2, 2).map(lambda power: 10.0**power)


@settings(deadline=None, max_examples=200)
@given(rows_with_ties(), temperatures)
def test_no_temperature_changes_a_label(row, temperature) -> None:
    proba = np.stack([row, row[::-1]])
    scaled = scale(proba, temperature)
    np.testing.assert_array_equal(scaled.argmax(axis=1), proba.argmax(axis=1))
    assert np.isfinite(scaled).all()
    assert scaled.min() >= 0.0
    assert scaled.max() <= 1.0
    np.testing.assert_allclose(scaled.sum(axis=1), 1.0, atol=1e-12)


def test_the_model_keeps_its_labels_where_two_classes_tie() -> None:
    near = np.nextafter(0.4, 1)
    X = np.array([[0.4, 0.4, 0.2], [0.4, near, 0.2], [near, 0.4, 0.2], [0.2, 0.4, 0.4]] * 30)
    y = np.array([0, 1, 0, 1] * 27 + [2] * 12)
    model = fit_quietly(rn.TemperatureScaling(Echo([0, 1, 2])), X, y)
    assert model.temperature_ != 1.0
    np.testing.assert_array_equal(model.predict(X), X.argmax(axis=1))
    assert model.predict(X[:4]).tolist() == [0, 1, 0, 1]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=20), temperatures)
def test_two_classes_keep_the_order_of_their_scores(first, temperature) -> None:
    p = np.array(first)
    proba = np.column_stack([1 - p, p])
    before, after = proba.max(axis=1), scale(proba, temperature).max(axis=1)
    order = np.argsort(before, kind="stable")
    assert (np.diff(after[order]) >= -1e-15).all()


@settings(deadline=None, max_examples=200)
@given(rows_with_ties(), temperatures, temperatures)
def test_temperatures_multiply_and_1_changes_nothing(row, first, second) -> None:
    proba = np.maximum(row, 1e-3)[None] / np.maximum(row, 1e-3).sum()
    np.testing.assert_allclose(scale(proba, 1.0), proba, rtol=1e-12)
    if scale(proba, first).min() > 1e-12:  # else the floor for zeros takes part
        np.testing.assert_allclose(
            scale(scale(proba, first), second), scale(proba, first * second), rtol=1e-9, atol=1e-12
        )


@pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
def test_for_two_classes_a_certified_temperature_accepts_what_the_plain_rule_accepts() -> None:
    """The order of the scores is the same, and so are the rows that a threshold can separate."""
    rng = np.random.default_rng(3)
    top = rng.uniform(0.5, 1, 1500)
    fold = fold_of(top, rng.random(1500) < 0.5 + (top - 0.5) * 0.8)
    selection, certification = Fold(fold.X[:500], fold.y[:500]), Fold(fold.X[500:], fold.y[500:])
    scaled = around_echo(rn.TemperatureScaling, selection, certification, alpha=0.1)
    plain = around_echo(rn.CertifiedThreshold, selection, certification, alpha=0.1)
    assert scaled.temperature_ > 1.1
    assert scaled.threshold_ != plain.threshold_
    np.testing.assert_array_equal(scaled.accept(fold.X), plain.accept(fold.X))
    assert 0 < plain.certificate_.accepted < 1000


@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a rule"])
def test_warnings_about_the_temperature_point_at_the_line_that_called_fit(nested) -> None:
    fold = fold_of(np.full(400, 0.501), np.ones(400))
    model = rn.TemperatureScaling(Echo(), random_state=0)
    clf = rn.CertifiedThreshold(model, random_state=0) if nested else model
    with pytest.warns(rn.errors.FoldWarning, match="temperature stays 1") as caught:
        clf.fit(fold.X, fold.y)
    assert {warning.filename for warning in caught} == {__file__}
