"""The contract of `SelectiveClassifier`, kept by every estimator."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from contract_helpers import (
    ABSTAINING,
    EXPECTED_WARNINGS,
    NETWORKS,
    certify_again,
    fit_quietly,
    frame_of,
    quick,
)
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_classifiers_train, parametrize_with_checks

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.tables import Fold
from reliablenet.tables.fold_sizes import fold_counts
from reliablenet.training.adaptive import AdaptiveSchedule

each = pytest.mark.parametrize("kind", NETWORKS)


@pytest.fixture(scope="module")
def band() -> Fold:
    return SyntheticBand(random_state=0).sample(3000)


def learned_enough(kind: type) -> Any:
    """Return an estimator that goes all the ways of its defaults, in fewer epochs."""
    if kind is rn.ReliableClassifier:
        return kind(schedule=AdaptiveSchedule(warmup_epochs=12, patience=2), random_state=0)
    return kind(epochs=20, random_state=0)


@parametrize_with_checks(
    [learned_enough(kind) for kind in NETWORKS],
    expected_failed_checks=lambda estimator: {},
)
@pytest.mark.filterwarnings(
    *(f"ignore::reliablenet.errors.{c.__name__}" for c in EXPECTED_WARNINGS)
)
def test_scikit_learn_accepts_the_estimator(estimator, check) -> None:
    check(estimator)


def test_scikit_learn_accepts_what_the_default_learns_with_its_default_settings() -> None:
    with warnings.catch_warnings():
        for category in EXPECTED_WARNINGS:
            warnings.simplefilter("ignore", category)
        check_classifiers_train("ReliableClassifier", rn.ReliableClassifier(random_state=0))


@each
def test_same_seed_gives_the_same_bits(kind, band) -> None:
    first, second = (fit_quietly(quick(kind), band.X, band.y) for _ in range(2))
    other = fit_quietly(quick(kind, random_state=1), band.X, band.y)
    np.testing.assert_array_equal(first.predict_proba(band.X), second.predict_proba(band.X))
    assert first.threshold_ == second.threshold_
    assert first.certificate_ == second.certificate_
    assert not np.array_equal(first.predict_proba(band.X), other.predict_proba(band.X))


@each
def test_global_random_state_is_left_alone(kind, band) -> None:
    np.random.seed(7)  # noqa: NPY002
    torch.manual_seed(7)
    expected = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    fit_quietly(quick(kind), band.X, band.y)
    np.testing.assert_array_equal(np.random.get_state()[1], expected[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), expected[1])


@each
def test_a_row_gets_the_same_decision_alone_in_seven_and_in_twenty_thousand(kind, band) -> None:
    model = fit_quietly(quick(kind), band.X, band.y)
    many = SyntheticBand(random_state=1).sample(20_000).X
    together = model.predict_proba(many)
    np.testing.assert_array_equal(model.predict_proba(many[:7]), together[:7])
    for row in (0, 511, 512, 19_999):
        np.testing.assert_array_equal(model.predict_proba(many[row : row + 1]), together[[row]])
        np.testing.assert_array_equal(
            model.acceptance_score(many[row : row + 1]), model.acceptance_score(many)[[row]]
        )
    np.testing.assert_array_equal(model.accept(many)[3:9], model.accept(many[3:9]))


@each
def test_the_certificate_is_that_of_the_certification_fold(kind, band) -> None:
    draw = SyntheticBand(random_state=3)
    selection, certification = draw.sample(500), draw.sample(1000)
    model = fit_quietly(
        quick(kind),
        band.X,
        band.y,
        selection=(selection.X, selection.y),
        certification=certification,
    )
    proba, score = model.predict_proba(certification.X), model.acceptance_score(certification.X)
    assert model.certificate_ == rn.certified_threshold(proba, certification.y, score=score)
    assert model.certificate_.n == 1000
    result = model.evaluate(certification.X, certification.y)
    assert (result.errors, result.accepted) == (
        model.certificate_.errors,
        model.certificate_.accepted,
    )
    again = certify_again(model, certification.X, certification.y)
    assert (again.errors, again.kind) == (model.certificate_.errors, "fixed")


@each
def test_decisions_follow_the_threshold(kind, band) -> None:
    model = fit_quietly(quick(kind), band.X, band.y)
    decisions = model.decide(band.X)
    np.testing.assert_array_equal(decisions.confidence, model.acceptance_score(band.X))
    top = model.predict_proba(band.X).max(axis=1)
    assert np.array_equal(decisions.confidence, top) == (kind not in ABSTAINING)
    np.testing.assert_array_equal(decisions.accepted, decisions.confidence >= model.threshold_)
    np.testing.assert_array_equal(decisions.label, model.predict(band.X))
    assert 0 < decisions.accepted.sum() < len(decisions)
    frame = decisions.to_frame()
    assert frame.columns.tolist() == ["label", "confidence", "accepted"]
    assert len(frame) == len(band)


@each
def test_a_fixed_threshold_is_used_as_it_is(kind, band) -> None:
    model = fit_quietly(quick(kind, threshold=0.9, alpha=0.3), band.X, band.y)
    assert model.certificate_.kind == "fixed"
    assert model.certificate_.threshold == 0.9
    assert model.threshold_ == 0.9


def test_selection_threshold_of_reliable_is_the_training_threshold(band) -> None:
    model = fit_quietly(quick(rn.ReliableClassifier, threshold="selection"), band.X, band.y)
    assert model.certificate_.threshold == model.training_threshold_ == model.history_.threshold


@pytest.mark.parametrize("kind", [rn.ERMClassifier, *ABSTAINING])
def test_selection_threshold_of_the_others_is_the_most_permissive_within_alpha(kind, band) -> None:
    selection = SyntheticBand(random_state=5).sample(800)
    model = fit_quietly(quick(kind, threshold="selection"), band.X, band.y, selection=selection)
    proba, score = model.predict_proba(selection.X), model.acceptance_score(selection.X)
    expected = rn.jcw_threshold(proba, selection.y, 0.05, score=score)
    assert model.certificate_.threshold == model.selection_threshold_ == expected


@each
@pytest.mark.filterwarnings("ignore::reliablenet.errors.ConstraintWarning")
def test_without_a_certificate_everything_is_deferred_and_the_reason_is_given(kind, band) -> None:
    with pytest.warns(
        rn.errors.NotCertifiedWarning, match=r"alpha = 0.1 % needs at least [\d,]+ fresh rows"
    ):
        model = quick(kind, alpha=0.001).fit(band.X[:300], band.y[:300])
    assert model.threshold_ == math.inf
    assert not model.certificate_.certified
    assert not model.accept(band.X).any()
    assert set(model.predict(band.X)) == {0, 1}  # predict always answers


@each
@pytest.mark.filterwarnings("ignore::reliablenet.errors.ConstraintWarning")
def test_an_uncertified_fixed_threshold_acts_on_nothing(kind, band) -> None:
    with pytest.warns(rn.errors.NotCertifiedWarning, match="allows"):
        model = quick(kind, threshold=0.51, alpha=0.01).fit(band.X, band.y)
    assert model.certificate_.threshold == 0.51
    assert model.threshold_ == math.inf


@each
def test_string_labels_ten_classes(kind) -> None:
    X, y = load_digits(return_X_y=True)
    names = np.array([f"digit {label}" for label in y])
    model = fit_quietly(quick(kind, alpha=0.1, learning_rate=5e-3), X, names)
    assert model.score(X, names) > 0.8
    assert model.classes_.tolist() == [f"digit {k}" for k in range(10)]
    assert model.certificate_.certified
    assert set(model.decide(X).label) <= set(names)


@each
def test_data_frames_with_categories_and_missing_values(kind) -> None:
    table, y = frame_of(1500)
    model = fit_quietly(quick(kind), table, y)
    assert model.feature_names_in_.tolist() == table.columns.tolist()
    assert model.encoder_.dropped_ == ["constant"]
    assert model.score(table, y) > 0.75


@each
def test_an_unseen_category_is_as_good_as_none(kind) -> None:
    table, y = frame_of(600)
    model = fit_quietly(quick(kind), table, y)
    new = table.head(2).copy()
    new["job"] = ["never seen", "never seen"]
    assert np.isfinite(model.predict_proba(new)).all()


@each
def test_preprocessing_learns_from_the_training_fold_alone(kind, band) -> None:
    other = SyntheticBand(random_state=9)
    folds = {"selection": other.sample(400), "certification": other.sample(400)}
    scaled = {name: Fold(fold.X * 1000 + 7, fold.y) for name, fold in folds.items()}
    first = fit_quietly(quick(kind, checkpoint="last", threshold=0.9), band.X, band.y, **folds)
    second = fit_quietly(quick(kind, checkpoint="last", threshold=0.9), band.X, band.y, **scaled)
    np.testing.assert_array_equal(first.predict_proba(band.X), second.predict_proba(band.X))


@each
def test_clone_and_grid_search(kind, band) -> None:
    model = quick(kind)
    assert clone(model).get_params() == model.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(model, {"learning_rate": [1e-3, 1e-2]}, cv=2).fit(
            band.X[:400], band.y[:400]
        )
    assert search.best_params_["learning_rate"] in (1e-3, 1e-2)


def test_any_network_factory_and_inputs_with_more_axes() -> None:
    X, y = load_digits(return_X_y=True)
    images = X.reshape(-1, 1, 8, 8) / 16

    def small_cnn(shape: tuple[int, ...], n_classes: int) -> torch.nn.Module:
        assert shape == (1, 8, 8)
        return torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.Linear(288, n_classes),
        )

    model = fit_quietly(
        quick(rn.ReliableClassifier, alpha=0.1, network=small_cnn, fold_sizes=(0.8, 0.1, 0.1)),
        images,
        y,
    )
    assert model.score(images, y) > 0.7
    assert model.encoder_ is None


def test_real_table_from_frame_to_certificate() -> None:
    table, target = load_breast_cancer(return_X_y=True, as_frame=True)
    model = fit_quietly(rn.ReliableClassifier(random_state=0), table, target)
    assert model.certificate_.certified
    assert model.certificate_.n == fold_counts(len(table))[2]
    assert model.certificate_.upper_bound <= 0.05
