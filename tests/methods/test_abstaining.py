"""What SelectiveNet and Deep Gamblers share: a learned score beside the probabilities."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from contract_helpers import ABSTAINING, EXPECTED_WARNINGS, fit_quietly, quick
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from torch import nn

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.training import Network

DRAW = SyntheticBand(random_state=0)
BAND, FRESH = DRAW.sample(1500), DRAW.sample(1000)

each = pytest.mark.parametrize("kind", ABSTAINING)
quiet = pytest.mark.filterwarnings(
    *(f"ignore::reliablenet.errors.{c.__name__}" for c in EXPECTED_WARNINGS)
)


@pytest.fixture(scope="module")
def fitted():
    """Fitted models by class and score; do not change them."""
    return {
        (kind, score): fit_quietly(quick(kind, scored_by=score), BAND.X, BAND.y)
        for kind in ABSTAINING
        for score in ("native", "softmax")
    }


# The two scores


@each
def test_the_score_changes_what_is_accepted_and_not_the_probabilities(kind, fitted) -> None:
    native, soft = fitted[kind, "native"], fitted[kind, "softmax"]
    proba = native.predict_proba(FRESH.X)
    np.testing.assert_array_equal(proba, soft.predict_proba(FRESH.X))
    np.testing.assert_array_equal(soft.acceptance_score(FRESH.X), proba.max(axis=1))
    learned = native.acceptance_score(FRESH.X)
    assert learned.dtype == np.float64
    assert ((learned >= 0) & (learned <= 1)).all()
    assert np.abs(learned - proba.max(axis=1)).max() > 0.05
    assert native.threshold_ != soft.threshold_
    assert not np.array_equal(native.accept(FRESH.X), soft.accept(FRESH.X))


@each
@pytest.mark.parametrize("score", ["native", "softmax"])
def test_every_step_uses_the_same_score(kind, score, fitted) -> None:
    model = fitted[kind, score]
    values = model.acceptance_score(FRESH.X)
    accepted = values >= model.threshold_
    assert 0 < accepted.sum() < len(accepted)
    decisions = model.decide(FRESH.X)
    np.testing.assert_array_equal(decisions.confidence, values)
    np.testing.assert_array_equal(decisions.accepted, accepted)
    wrong = model.predict(FRESH.X) != FRESH.y
    certificate, result = model.certify(FRESH.X, FRESH.y), model.evaluate(FRESH.X, FRESH.y)
    assert certificate.errors == result.errors == (accepted & wrong).sum()
    assert certificate.accepted == result.accepted == accepted.sum()


@each
def test_a_fitted_rule_keeps_its_score_until_the_next_fit(kind, fitted) -> None:
    # A threshold for one score says nothing about the other, and neither does its certificate.
    for score, other in (("native", "softmax"), ("softmax", "native")):
        model = copy.deepcopy(fitted[kind, score])
        expected = model.decide(FRESH.X)
        model.set_params(scored_by=other)
        np.testing.assert_array_equal(model.decide(FRESH.X).accepted, expected.accepted)
        fit_quietly(model, BAND.X, BAND.y)
        assert model.threshold_ == fitted[kind, other].threshold_


# The parameter


@each
def test_score_is_scikit_learns_method(kind, fitted) -> None:
    model = fitted[kind, "softmax"]
    right = model.predict(FRESH.X) == FRESH.y
    assert model.score(FRESH.X, FRESH.y) == right.mean()
    weight = np.linspace(0, 1, len(FRESH))
    expected = np.average(right, weights=weight)
    assert model.score(FRESH.X, FRESH.y, sample_weight=weight) == pytest.approx(expected)
    assert model.get_params()["scored_by"] == model.get_params(deep=False)["scored_by"] == "softmax"
    assert callable(kind.score)
    assert kind.score(model, FRESH.X, FRESH.y) == right.mean()
    assert is_classifier(model)


@each
def test_the_parameter_goes_through_set_params_clone_repr_and_pickle(kind, fitted) -> None:
    model = kind(scored_by="softmax")
    assert "scored_by='softmax'" in repr(model)
    assert "scored_by" not in repr(kind())
    assert "softmax" in model._repr_html_()
    for twin in (clone(model), copy.copy(model), copy.deepcopy(model)):
        assert twin.get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()  # noqa: S301
    assert model.set_params(scored_by="native") is model
    assert model.get_params()["scored_by"] == "native"
    model.scored_by = "softmax"
    assert model.get_params()["scored_by"] == "softmax"
    assert kind().get_params()["scored_by"] == "native"  # one instance's setting is not another's
    trained = fitted[kind, "softmax"]
    again = pickle.loads(pickle.dumps(trained))  # noqa: S301
    np.testing.assert_array_equal(again.decide(FRESH.X).accepted, trained.decide(FRESH.X).accepted)
    assert again.score(FRESH.X, FRESH.y) == trained.score(FRESH.X, FRESH.y)


@each
def test_the_name_that_the_parameter_had_in_0_1_still_works(kind) -> None:
    with pytest.warns(DeprecationWarning, match="`score` is now called `scored_by`"):
        model = kind(score="softmax")
    assert model.get_params() == kind(scored_by="softmax").get_params()


@each
@quiet
def test_a_grid_search_over_the_score_measures_accuracy(kind) -> None:
    model = quick(kind, epochs=3)
    rows = BAND.X[:500], BAND.y[:500]
    search = GridSearchCV(model, {"scored_by": ["native", "softmax"]}, cv=2).fit(*rows)
    results = search.cv_results_["mean_test_score"]
    assert (
        results[0] == results[1] == cross_val_score(model, *rows, cv=2, scoring="accuracy").mean()
    )
    best = search.best_params_["scored_by"]
    assert search.best_estimator_.get_params()["scored_by"] == best


@each
def test_a_subclass_may_take_fewer_settings(kind) -> None:
    class Mine(kind):
        def __init__(self, alpha: float = 0.1, random_state: object = None) -> None:
            super().__init__(alpha=alpha, random_state=random_state)

    assert Mine(alpha=0.2).get_params() == {"alpha": 0.2, "random_state": None}
    assert clone(Mine(alpha=0.2)).alpha == 0.2


# Settings


@each
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "tabular"}, "`network` of {} must return one output per row"),
        (
            {"scored_by": "margin"},
            """`scored_by` of {} must be "native" or "softmax"; got 'margin'""",
        ),
        ({"scored_by": None}, '`scored_by` of {} must be "native" or "softmax"; got None'),
        ({"threshold": 0}, r"`threshold` of {} must lie in \(0, 1\]; got 0"),
        ({"threshold": 0.0}, r"`threshold` of {} must lie in \(0, 1\]; got 0.0"),
        (
            {"threshold": 1.5},
            r"`threshold` of {} must lie in \(0, 1\]; got 1.5. Did you mean 0.015",
        ),
        ({"threshold": -0.1}, r"`threshold` of {} must lie in \(0, 1\]; got -0.1"),
        ({"threshold": np.nan}, r"`threshold` of {} must lie in \(0, 1\]; got nan"),
        ({"threshold": "best"}, "`threshold` of {} must .* got 'best'"),
        ({"threshold": 0.3, "scored_by": "softmax"}, r"`threshold` of {} must lie in \(1/2, 1\]"),
        ({"epochs": 0}, "must be"),
        ({"checkpoint": "best"}, "`checkpoint` of {}"),
    ],
)
def test_bad_settings(kind, settings, message) -> None:
    with pytest.raises(rn.errors.InvalidParameterError, match=message.format(kind.__name__)):
        quick(kind, **settings).fit(BAND.X, BAND.y)


@each
def test_a_threshold_below_one_half_is_legal_for_a_learned_score_of_two_classes(kind) -> None:
    model = fit_quietly(quick(kind, threshold=0.3, alpha=0.5), BAND.X, BAND.y)
    assert model.threshold_ == model.certificate_.threshold == 0.3
    np.testing.assert_array_equal(
        model.accept(FRESH.X), model.acceptance_score(FRESH.X) >= model.threshold_
    )


@each
@quiet
def test_numbers_of_numpy_are_numbers(kind) -> None:
    own = (
        {"target_coverage": 0.5, "coverage_weight": 16.0, "mixing": 0.25}
        if kind is rn.SelectiveNetClassifier
        else {"reward": 1.5}
    )
    model = quick(kind, epochs=3, **own).fit(BAND.X, BAND.y)
    for number in (np.float64, np.float32):
        same = {name: number(value) for name, value in own.items()}
        twin = quick(kind, epochs=np.int64(3), **same).fit(BAND.X, BAND.y)
        np.testing.assert_array_equal(twin.predict_proba(FRESH.X), model.predict_proba(FRESH.X))


# Networks of one's own


def pictures(shape: tuple[int, ...], outputs: int) -> Network:
    body = nn.Sequential(
        nn.Conv2d(shape[0], 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 32), nn.ReLU()
    )
    return Network(body, nn.Linear(32, outputs))


@each
@pytest.mark.parametrize("score", ["native", "softmax"])
def test_a_network_of_ones_own_on_images_learns_and_comes_back_from_a_file(
    kind, score, tmp_path
) -> None:
    X, y = load_digits(return_X_y=True)
    images = X.reshape(-1, 1, 8, 8) / 16
    settings = {"alpha": 0.1, "learning_rate": 1e-2, "network": pictures, "scored_by": score}
    settings["fold_sizes"] = (0.8, 0.1, 0.1)
    if kind is rn.DeepGamblersClassifier:  # with ten classes, who gambles too early only abstains
        settings |= {"epochs": 12, "warmup_epochs": 6}
    model = fit_quietly(quick(kind, **settings), images, y)
    assert model.encoder_ is None
    assert model.input_shape_ == (1, 8, 8)
    assert model.score(images, y) > 0.8
    path = model.save(tmp_path / "model.rnet")
    with pytest.raises(rn.errors.ModelFileError, match=r"pictures.*load\(path, network=...\)"):
        rn.load(path)
    loaded = rn.load(path, network=pictures)
    assert type(loaded) is kind
    assert loaded.get_params()["scored_by"] == score
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))
    np.testing.assert_array_equal(loaded.acceptance_score(images), model.acceptance_score(images))
    np.testing.assert_array_equal(loaded.accept(images), model.accept(images))
    for name, tensor in model.network_.state_dict().items():
        assert torch.equal(tensor, loaded.network_.state_dict()[name]), name


@each
def test_a_rule_that_accepts_every_row_comes_back_from_a_file(kind, tmp_path) -> None:
    random = np.random.RandomState(0)
    y = np.arange(1500) % 2
    X = random.standard_normal((1500, 3)) + 8.0 * y[:, None]
    model = fit_quietly(quick(kind), X, y)
    assert model.threshold_ == -np.inf  # a learned score has no lowest value that is known
    loaded = rn.load(model.save(tmp_path / "model.rnet"))
    assert loaded.certificate_ == model.certificate_
    assert loaded.threshold_ == -np.inf
    assert loaded.accept(X).all()


# Interruptions


class Follower:
    """Tries the model after every epoch; stops or breaks off the training after a given one."""

    def __init__(self, stop_after: int = 0, break_after: int = 0) -> None:
        self.stop_after, self.break_after = stop_after, break_after
        self.scores: list[float] = []
        self.confidences: list[np.ndarray] = []

    def setup(self, estimator, context) -> None:
        pass

    def on_fit_task_begin(self, estimator, context) -> None:
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator) -> bool:
        if context.task_name != "epoch":
            return False
        self.scores.append(fitted_estimator.score(X, y))
        self.confidences.append(fitted_estimator.acceptance_score(FRESH.X))
        if len(self.scores) == self.break_after:
            raise KeyboardInterrupt
        return len(self.scores) == self.stop_after

    def teardown(self, estimator, context) -> None:
        pass


@each
@pytest.mark.parametrize("score", ["native", "softmax"])
def test_a_callback_sees_a_working_model_with_the_score_that_was_set(kind, score) -> None:
    follower = Follower()
    model = quick(kind, scored_by=score, checkpoint="last").set_callbacks(follower)
    fit_quietly(model, BAND.X, BAND.y)
    assert len(follower.scores) == 7
    assert follower.scores[-1] > 0.7
    np.testing.assert_array_equal(follower.confidences[-1], model.acceptance_score(FRESH.X))


@each
@pytest.mark.parametrize("checkpoint", ["selection", "last"])
@pytest.mark.parametrize("epoch", [2, 3, 4, 6])  # Deep Gamblers warms up for two
def test_a_broken_fit_goes_on_to_the_same_bits(kind, checkpoint, epoch, tmp_path) -> None:
    settings = {"checkpoint": checkpoint}
    undisturbed = fit_quietly(quick(kind, **settings), BAND.X, BAND.y)
    settings |= {"checkpoint_file": tmp_path / "run.safetensors"}
    broken = quick(kind, **settings).set_callbacks(Follower(break_after=epoch))
    with pytest.raises(KeyboardInterrupt):
        fit_quietly(broken, BAND.X, BAND.y)
    follower = Follower()
    resumed = quick(kind, **settings).set_callbacks(follower)
    fit_quietly(resumed, BAND.X, BAND.y)
    assert len(follower.scores) == 7 - epoch + 1  # it went on and did not begin again
    for name, tensor in undisturbed.network_.state_dict().items():
        assert torch.equal(tensor, resumed.network_.state_dict()[name]), name
    np.testing.assert_array_equal(
        resumed.acceptance_score(FRESH.X), undisturbed.acceptance_score(FRESH.X)
    )
    assert resumed.history_.to_frame().equals(undisturbed.history_.to_frame())
    assert resumed.history_.chosen_epoch == undisturbed.history_.chosen_epoch


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (rn.DeepGamblersClassifier, {"reward": 1.8}),
        (rn.DeepGamblersClassifier, {"warmup_epochs": 3}),
        (rn.SelectiveNetClassifier, {"target_coverage": 0.7}),
        (rn.SelectiveNetClassifier, {"coverage_weight": 16.0}),
        (rn.SelectiveNetClassifier, {"mixing": 0.4}),
    ],
)
def test_the_checkpoint_of_a_run_with_other_settings_is_refused(kind, change, tmp_path) -> None:
    settings = {"checkpoint_file": tmp_path / "run.safetensors"}
    broken = quick(kind, **settings).set_callbacks(Follower(break_after=4))
    with pytest.raises(KeyboardInterrupt):
        fit_quietly(broken, BAND.X, BAND.y)
    with pytest.raises(
        rn.errors.ModelFileError, match="belongs to a run with other data, settings"
    ):
        fit_quietly(quick(kind, **settings, **change), BAND.X, BAND.y)


@each
def test_another_score_may_go_on_from_the_same_checkpoint(kind, fitted, tmp_path) -> None:
    # The score decides how a network is used, not how it is trained.
    settings = {"checkpoint_file": tmp_path / "run.safetensors"}
    broken = quick(kind, **settings).set_callbacks(Follower(break_after=4))
    with pytest.raises(KeyboardInterrupt):
        fit_quietly(broken, BAND.X, BAND.y)
    model = fit_quietly(quick(kind, scored_by="softmax", **settings), BAND.X, BAND.y)
    expected = fitted[kind, "softmax"]
    np.testing.assert_array_equal(model.predict_proba(FRESH.X), expected.predict_proba(FRESH.X))
    assert model.threshold_ == expected.threshold_


@each
def test_a_callback_may_stop_it_after_any_epoch(kind) -> None:
    for epoch in (1, 2, 3):
        model = quick(kind, checkpoint="selection").set_callbacks(Follower(stop_after=epoch))
        fit_quietly(model, BAND.X, BAND.y)
        assert len(model.history_.records) == epoch
        assert "callback" in model.history_.stopped
        assert 1 <= model.history_.chosen_epoch <= epoch
        assert model.score(FRESH.X, FRESH.y) > 0.55
        assert np.isfinite(model.decide(FRESH.X).confidence).all()
