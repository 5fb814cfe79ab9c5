"""`members=`: a team around the network keeps every promise of the network alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.modelfile import team_members as team_file
from reliablenet.training import AdaptiveSchedule
from reliablenet.training.growing import KINDS

ALL = ("network", *KINDS)
SHORT = AdaptiveSchedule(warmup_epochs=5, epochs_per_stage=2, patience=2)
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::reliablenet.errors.{name}")
    for name in (
        "ReuseWarning",
        "NotCertifiedWarning",
        "ConstraintWarning",
        "LabelWarning",
        "EmptyCertificateWarning",
    )
]


def classifier(members: Any = ALL, **settings: Any) -> rn.ReliableClassifier:
    settings = {"alpha": 0.3, "schedule": SHORT, "verbose": False} | settings
    return rn.ReliableClassifier(members=members, random_state=0, **settings)


def rows(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with gaps and a category, of which a label depends."""
    draw = np.random.default_rng(seed)
    X = pd.DataFrame(draw.normal(size=(n, 3)), columns=list("abc"))
    X["kind"] = draw.choice(["x", "y", "z"], n)
    y = np.where(X["a"] * np.where(X["kind"] == "x", -1, 1) + X["b"] > 0, "yes", "no")
    X.loc[draw.random(n) < 0.1, "c"] = np.nan
    return X, y


@pytest.fixture(scope="module")
def fitted() -> rn.ReliableClassifier:
    return classifier().fit(*rows())


def test_the_average_of_network_and_trees_decides(fitted) -> None:
    X, _ = rows(200, seed=1)
    team, matrix = fitted.team_, fitted.encoder_.compact(X)
    assert [member.kind for member in team.members] == list(KINDS)
    network = fitted._class_outputs(X).proba
    said = [network, *(member.probabilities(matrix, 2) for member in team.members)]
    average = sum(weight * one for weight, one in zip(team.weights, said, strict=True))
    assert np.allclose(fitted.predict_proba(X), average, atol=1e-15)
    assert np.array_equal(fitted.decide(X).confidence, fitted.predict_proba(X).max(1))
    assert fitted.certificate_.threshold == fitted.threshold_


def test_a_row_has_the_same_bits_alone_and_among_others(fitted) -> None:
    X, _ = rows(1500, seed=1)
    whole = fitted.predict_proba(X)
    for start, size in ((0, 1), (700, 1), (300, 77), (511, 600)):
        part = fitted.predict_proba(X.iloc[start : start + size])
        assert np.array_equal(part, whole[start : start + size])


def test_the_same_seed_gives_the_same_bits(fitted) -> None:
    again = classifier().fit(*rows())
    X, _ = rows(100, seed=1)
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.team_.weights == fitted.team_.weights


def test_a_file_holds_the_team(fitted, tmp_path) -> None:
    loaded = rn.load(fitted.save(tmp_path / "team.rnet"))
    X, _ = rows(100, seed=1)
    assert np.array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.certificate_ == fitted.certificate_
    assert loaded.members == ALL
    assert loaded.team_.weights == fitted.team_.weights


def test_a_forged_team_is_refused(fitted) -> None:
    files = team_file.team_to_members(fitted.team_)
    arrays = team_file.load_arrays(files[team_file.TEAM])

    def load(changed: dict[str, Any]) -> Any:
        content = team_file.save_arrays(changed)
        return team_file.team_from_members({team_file.TEAM: content}, "model.rnet")

    assert load(arrays).weights == fitted.team_.weights
    circle = arrays["0/children"].copy()
    circle[1] = 0
    missing = {name: array for name, array in arrays.items() if name != "1/roots"}
    story = arrays["story"].tobytes()
    for changed in (
        arrays | {"0/children": circle},
        missing,
        arrays | {"2/roots": arrays["0/roots"]},
        arrays | {"story": np.frombuffer(story.replace(b"forest", b"own"), np.uint8)},
    ):
        with pytest.raises(ModelFileError, match=r"model\.rnet holds a team"):
            load(changed)


def test_a_classifier_of_ones_own_may_be_a_member(tmp_path) -> None:
    own = LogisticRegression(C=0.5)
    fitted = classifier(("network", own)).fit(*rows())
    assert not hasattr(own, "coef_")  # a clone was fitted
    X, _ = rows(50, seed=1)
    loaded = rn.load(fitted.save(tmp_path / "own.rnet"))
    assert np.array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.members[0] == "network"
    assert loaded.members[1].C == 0.5
    assert np.array_equal(fitted.predict_proba(X.iloc[:1]), fitted.predict_proba(X)[:1])


def test_the_certification_fold_stays_unseen() -> None:
    """Other labels there leave weights, trees and network as they are."""
    X, y = rows()
    other = y[300:][::-1]
    one, two = (
        classifier().fit(
            X[:220], y[:220], selection=(X[220:300], y[220:300]), certification=(X[300:], held)
        )
        for held in (y[300:], other)
    )
    assert one.team_.weights == two.team_.weights
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_inside_a_rule_the_selection_rows_fit_nobody() -> None:
    """A temperature is computed on them: the members are those of the training fold."""
    X, y = rows()
    rule = rn.TemperatureScaling(classifier(), random_state=0).fit(X, y)
    alone = classifier().fit(X, y)
    assert rule.estimator_.history_.refitted_rows == 0 < alone.history_.refitted_rows
    assert rule.estimator_.team_ is not None


def test_a_fixed_threshold_is_that_of_the_team() -> None:
    X, y = rows()
    fitted = classifier(threshold="selection").fit(X, y)
    assert fitted.team_ is not None
    assert fitted.certificate_.threshold == fitted.selection_threshold_
    pure = classifier(("network",), threshold="selection").fit(X, y)
    assert pure.selection_threshold_ == pure.training_threshold_


def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path) -> None:
    X, y = rows()
    whole = classifier().fit(X, y)

    class StopError(Exception):
        pass

    class Interrupt:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, *given, **more): ...

        def on_fit_task_end(self, estimator, context, **more):
            if context.task_name == "epoch" and context.task_id == 1:
                raise StopError

    path = tmp_path / "run.safetensors"
    first = classifier(checkpoint_file=path).set_callbacks(Interrupt())
    with pytest.raises(StopError):
        first.fit(X, y)
    resumed = classifier(checkpoint_file=path).fit(X, y)
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize(
    "members", ["boosting", ("boosting",), (), ("network", "oak"), ("network", 3), ("network",) * 2]
)
def test_other_members_are_refused(members) -> None:
    with pytest.raises(InvalidParameterError, match="`members` of ReliableClassifier must"):
        classifier(members).fit(*rows(100))


def test_images_have_no_trees() -> None:
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(120, 1, 8, 8)).astype(np.float32), np.arange(120) % 2
    settings: dict[str, Any] = {"network": "cnn5", "alpha": 0.4}
    with pytest.raises(InvalidParameterError, match="rows of a table"):
        classifier(**settings).fit(X, y)


def test_the_automatic_team() -> None:
    """Trees join the default network of a table; whoever chooses a network or threshold has no others."""
    X, y = load_breast_cancer(return_X_y=True)
    assert classifier("auto").fit(X, y).team_ is not None
    for settings in ({"network": "mlp"}, {"threshold": 0.9}, {"schedule": "paper"}):
        assert classifier("auto", **settings)._beside_network() == []
