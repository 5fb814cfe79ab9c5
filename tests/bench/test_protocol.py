"""One training serves several methods: its weights at several moments are those of trainings of their own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

import reliablenet as rn
from reliablenet.bench import Plan
from reliablenet.bench.trainings import adaptive_schedule, build, fit_models
from reliablenet.datasets import load_dataset
from reliablenet.training.schedule import Schedule

PLAN = Plan("synthetic_band", epochs=4, warmup_epochs=2, epochs_per_stage=2, max_stages=2)
BAND = load_dataset("synthetic_band", 37)


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings(action="ignore"):
        return {
            name: model
            for training in ("erm", "reliablenet")
            for name, model in fit_models(PLAN, training, BAND, 37, 0.05).items()
        }


@pytest.mark.parametrize(
    ("name", "alone"),
    [
        ("erm", rn.ERMClassifier(epochs=4)),
        ("erm_early", rn.ERMClassifier(epochs=4, checkpoint="selection")),
        ("warmup", rn.ERMClassifier(epochs=2)),
        ("reliablenet", rn.ReliableClassifier(network="mlp", checkpoint="selection")),
        ("reliablenet_last", rn.ReliableClassifier(network="mlp", checkpoint="last")),
    ],
)
def test_shared_trainings_equal_trainings_of_their_own_to_the_bit(models, name, alone) -> None:
    alone.set_params(random_state=37)
    if name.startswith("reliablenet"):
        schedule = Schedule(warmup_epochs=2, epochs_per_stage=2, max_stages=2, above_floor=False)
        alone.set_params(schedule=schedule)
    folds = BAND.folds
    with warnings.catch_warnings(action="ignore"):
        alone.fit(
            folds.train.X,
            folds.train.y,
            selection=folds.selection,
            certification=folds.certification,
        )
    np.testing.assert_array_equal(
        models[name].predict_proba(folds.certification.X),
        alone.predict_proba(folds.certification.X),
    )


def test_a_moment_without_a_rule_defers_everything(models) -> None:
    for name in ("erm", "warmup", "reliablenet_last"):
        assert not models[name].accept(BAND.folds.certification.X).any()


def test_our_network_for_tables_acts_at_the_papers_threshold(models) -> None:
    with warnings.catch_warnings(action="ignore"):
        fitted = fit_models(PLAN, "tabular_constrained", BAND, 37, 0.05)
    paper = models["reliablenet"].training_threshold_
    assert fitted["tabular_constrained"].training_threshold_ == paper
    X = BAND.folds.certification.X
    np.testing.assert_array_equal(
        fitted["warmup"].predict_proba(X), models["warmup"].predict_proba(X)
    )


def test_boosting_may_have_the_selection_rows_too() -> None:
    with warnings.catch_warnings(action="ignore"):
        [model] = fit_models(PLAN, "boosting_all", BAND, 37, 0.05).values()
    trees = build(PLAN, "boosting_all", 37, 0.05).estimator
    X, y = (
        np.concatenate([getattr(BAND.folds.train, name), getattr(BAND.folds.selection, name)])
        for name in "Xy"
    )
    rows = BAND.folds.certification.X
    np.testing.assert_array_equal(model.predict_proba(rows), trees.fit(X, y).predict_proba(rows))


def test_our_settings_for_images_are_those_of_the_classifier_in_the_width_of_the_plan() -> None:
    digits = load_digits()
    images = (digits.images[:400, None] / 16).astype("float32")
    sizes = {}
    for width in (None, 4):
        plan = Plan("coloured_mnist", network="cnn5", width=width, epochs=2, warmup_epochs=2)
        ours = build(plan, "images", 3, 0.05)
        named = rn.ReliableClassifier(
            network="cnn5", schedule=adaptive_schedule(plan), random_state=3, verbose=False
        )
        with warnings.catch_warnings(action="ignore"):
            for model in (ours, named):
                model.fit(images, digits.target[:400])
        sizes[width] = sum(weights.numel() for weights in ours.network_.parameters())
        equal = np.array_equal(ours.predict_proba(images), named.predict_proba(images))
        assert equal == (width is None)
    assert sizes[4] < sizes[None]


@pytest.mark.parametrize(
    ("dataset", "augment"), [("coloured_mnist", "crops"), ("cifar10", "flips+crops")]
)
def test_images_are_changed_only_where_that_leaves_their_class(dataset, augment) -> None:
    plan = Plan(dataset, network="cnn5")
    assert build(plan, "images_augmented", 0, 0.05).augment == augment
    assert build(plan, "images", 0, 0.05).augment is None
