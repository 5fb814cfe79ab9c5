"""`TunedClassifier`: settings by the selection fold, all rows but those of the certificate in the fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier

import reliablenet as rn
from reliablenet.errors import InvalidParameterError
from reliablenet.methods import TunedClassifier
from reliablenet.methods.tuned import BOOSTING_SEARCH, tuned_rivals
from reliablenet.tables import cut_folds

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::reliablenet.errors.{name}")
    for name in ("ReuseWarning", "NotCertifiedWarning", "EmptyCertificateWarning")
]
STRENGTHS = [{"C": 1e-5}, {"C": 1.0}, {"C": 1e-4}]


def rows(n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 3))
    chance = np.where((X[:, 0] > -0.5) & (X[:, 1] > -0.5), 0.95, 0.05)
    return X, np.where(draw.random(n) < chance, "yes", "no")


def test_the_setting_of_the_lowest_loss_is_fitted_on_both_folds() -> None:
    folds = cut_folds(*rows(), random_state=0)
    clf = TunedClassifier(LogisticRegression(), alpha=0.2, settings=STRENGTHS, random_state=0).fit(
        folds.train.X, folds.train.y, selection=folds.selection, certification=folds.certification
    )
    losses = []
    for strength in STRENGTHS:
        model = LogisticRegression(**strength).fit(folds.train.X, folds.train.y)
        proba = model.predict_proba(folds.selection.X)
        losses.append(log_loss(folds.selection.y, proba, labels=model.classes_))
    np.testing.assert_allclose(clf.losses_, losses, rtol=1e-6)
    assert clf.settings_ == STRENGTHS[int(np.argmin(losses))] == STRENGTHS[1]
    both = LogisticRegression().fit(
        np.concatenate([folds.train.X, folds.selection.X]),
        np.concatenate([folds.train.y, folds.selection.y]),
    )
    held = folds.certification
    np.testing.assert_array_equal(clf.predict_proba(held.X), both.predict_proba(held.X))
    found = rn.certified_threshold(both.predict_proba(held.X), held.y, 0.2, classes=both.classes_)
    assert clf.threshold_ == found.threshold


def test_a_rule_around_it_leaves_the_selection_fold_alone() -> None:
    folds = cut_folds(*rows(), random_state=0)
    tree = DecisionTreeClassifier(random_state=0, max_depth=2)
    clf = rn.TemperatureScaling(TunedClassifier(tree), alpha=0.2, random_state=0).fit(
        folds.train.X, folds.train.y, selection=folds.selection, certification=folds.certification
    )
    alone = DecisionTreeClassifier(random_state=0, max_depth=2).fit(folds.train.X, folds.train.y)
    np.testing.assert_array_equal(
        clf.estimator_.predict_proba(folds.certification.X),
        alone.predict_proba(folds.certification.X),
    )


def test_what_the_selection_fold_suggests_is_from_before_its_rows_were_learned_by_heart() -> None:
    folds = cut_folds(*rows(), random_state=0)
    by_heart = DecisionTreeClassifier(random_state=0)
    clf = TunedClassifier(by_heart, alpha=0.1, random_state=0).fit(
        folds.train.X, folds.train.y, selection=folds.selection, certification=folds.certification
    )
    assert (clf.predict(folds.selection.X) == folds.selection.y).all()
    assert clf.selection_threshold_ == np.inf  # a tree that is always sure and wrong too often


@pytest.mark.parametrize("kind", ["array", "frame", "sparse", "weights"])
def test_rows_of_every_kind_are_put_together(kind) -> None:
    X, y = rows(300)
    given = {"frame": pd.DataFrame(X), "sparse": sparse.csr_matrix(X)}.get(kind, X)
    more = {"sample_weight": np.where(y == "yes", 9.0, 1.0)} if kind == "weights" else {}
    clf = TunedClassifier(LogisticRegression(), alpha=0.4, random_state=0).fit(given, y, **more)
    yes = clf.predict_proba(given)[:, 1].mean()
    assert yes > 0.65 if kind == "weights" else 0.4 < yes < 0.6


def test_it_is_saved_with_its_settings(tmp_path) -> None:
    X, y = rows()
    clf = TunedClassifier(HistGradientBoostingClassifier(), alpha=0.2, random_state=0)
    clf.set_params(settings=[{"max_iter": 3}, {"max_iter": 40}]).fit(X, y)
    again = rn.load(clf.save(tmp_path / "model.rnet"))
    assert again.settings == [{"max_iter": 3}, {"max_iter": 40}]
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.certificate_ == clf.certificate_


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"settings": []}, "hold at least one mapping"),
        ({"settings": "max_iter"}, "hold at least one mapping"),
        ({"settings": [3]}, "hold at least one mapping"),
        ({"tolerance": 2.0}, "be None"),
    ],
)
def test_other_settings_are_refused(given, message) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        TunedClassifier(LogisticRegression(), **given).fit(*rows(100))


def test_a_fitted_classifier_is_refused() -> None:
    X, y = rows(100)
    with pytest.raises(InvalidParameterError, match="not be fitted yet"):
        TunedClassifier(DummyClassifier().fit(X, y)).fit(X, y)


def test_rivals_are_what_a_user_might_have_tried() -> None:
    rivals = tuned_rivals()
    assert {"boosting", "boosting_tuned", "forest", "logistic"} <= set(rivals)
    assert len(rivals["boosting_tuned"].settings) == len(BOOSTING_SEARCH) == 4
    frame = pd.DataFrame({"a": [1.0, 2.0, None] * 60, "b": ["x", "y", None] * 60})
    y = np.tile([0, 1, 1], 60)
    for name in ("boosting_tuned", "logistic"):
        clf = rivals[name].set_params(alpha=0.2, random_state=0).fit(frame, y)
        assert clf.certificate_.certified
