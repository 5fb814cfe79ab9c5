"""One training serves several methods: its weights at several moments are those of trainings of their own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.bench import Plan
from reliablenet.bench.fitting import (
    PARTS,
    AblatedClassifier,
    adaptive_schedule,
    build_images,
    fit_boosting,
    fit_erm,
    fit_reliablenet,
    fit_tabular,
)
from reliablenet.datasets import SyntheticBand, load_dataset
from reliablenet.tables import PiecewiseEncoder, TabularEncoder
from reliablenet.training.adaptive import AdaptiveSchedule
from reliablenet.training.schedule import Schedule

PLAN = Plan("synthetic_band", epochs=4, warmup_epochs=2, epochs_per_stage=2, max_stages=2)
BAND = load_dataset("synthetic_band", 37)
SHORT = AdaptiveSchedule(warmup_epochs=2, epochs_per_stage=2, patience=1)
ROWS = SyntheticBand(random_state=0).sample(2000)


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings(action="ignore"):
        erm = fit_erm(PLAN, BAND, 37, 0.05)
        ours = fit_reliablenet(PLAN, BAND, 37, 0.05)
    assert erm.eps == ours.eps  # to the bit
    return {"erm": erm.model, "reliablenet": ours.model} | erm.others | ours.others


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
        fitted = fit_tabular(PLAN, BAND, 37, 0.05, constrained=True)
    paper = models["reliablenet"].training_threshold_
    assert fitted.model.training_threshold_ == fitted.eps == paper
    X = BAND.folds.certification.X
    np.testing.assert_array_equal(
        fitted.others["warmup"].predict_proba(X), models["warmup"].predict_proba(X)
    )


def test_boosting_may_have_the_selection_rows_too() -> None:
    with warnings.catch_warnings(action="ignore"):
        model = fit_boosting(PLAN, BAND, 37, 0.05, join=True).model
    trees = make_pipeline(TabularEncoder(), HistGradientBoostingClassifier(random_state=37))
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
        ours = build_images(plan, 3, 0.05)
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
    assert build_images(plan, 0, 0.05, augmented=True).augment == augment
    assert build_images(plan, 0, 0.05).augment is None


def traits(model):
    """Tell which parts a fitted model has."""
    inner = list(model.network_.modules())
    return {
        "encoding": isinstance(model.encoder_, PiecewiseEncoder),
        "ensemble": next(len(m.head) for m in inner if hasattr(m, "head")) > 1,
        "average": model._optimisation().averaging > 0,
        "folds": model.history_.refitted_rows > 0,
    }


@pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")
@pytest.mark.parametrize("part", PARTS)
def test_one_part_is_taken_away_and_no_other(part) -> None:
    settings = {"network": "tabular", "schedule": SHORT, "random_state": 0, "verbose": False}
    whole = rn.ReliableClassifier(**settings).fit(ROWS.X, ROWS.y)
    assert traits(whole) == dict.fromkeys(PARTS, True)
    model = AblatedClassifier(**settings, without=part).fit(ROWS.X, ROWS.y)
    assert traits(model) == dict.fromkeys(PARTS, True) | {part: False}


def test_an_unknown_part() -> None:
    with pytest.raises(rn.errors.InvalidParameterError, match="`without` of AblatedClassifier"):
        AblatedClassifier(without="luck").fit(ROWS.X, ROWS.y)
