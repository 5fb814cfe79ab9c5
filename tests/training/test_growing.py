"""Trees that are grown: the probabilities of scikit-learn's own, stopped where held-out rows say so."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from reliablenet.errors import InvalidDataError
from reliablenet.training import growing
from reliablenet.training.growing import Grown, grow_boosting, grow_forest


def rows(n: int = 500, classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 4)).astype(np.float32)
    noisy = np.abs(X[:, 0]) + X[:, 1] + 0.5 * draw.normal(size=n)
    return X, (noisy > np.linspace(0, 2, classes - 1)[:, None]).sum(0)


def watch(monkeypatch: Any, name: str) -> list[Any]:
    """Keep the estimators that are made."""
    made: list[Any] = []
    kind = getattr(growing, name)

    def make(*given: Any, **settings: Any) -> Any:
        made.append(kind(*given, **settings))
        return made[-1]

    monkeypatch.setattr(growing, name, make)
    return made


@pytest.mark.parametrize("classes", [2, 4])
def test_boosting_says_what_scikit_learn_says(classes, monkeypatch) -> None:
    made = watch(monkeypatch, "HistGradientBoostingClassifier")
    X, y = rows(classes=classes)
    grown = grow_boosting(X, y, 0, rounds=15)
    assert isinstance(made[0], HistGradientBoostingClassifier)
    fresh = rows(300, seed=1)[0]
    assert np.abs(grown.probabilities(fresh, classes) - made[0].predict_proba(fresh)).max() < 1e-12


@pytest.mark.parametrize("classes", [2, 4])
def test_a_forest_says_what_scikit_learn_says(classes, monkeypatch) -> None:
    made = watch(monkeypatch, "ExtraTreesClassifier")
    X, y = rows(classes=classes)
    grown = grow_forest(X, y, 0)
    assert isinstance(made[0], ExtraTreesClassifier)
    fresh = rows(300, seed=1)[0]
    # shares in a leaf are kept to 14 binary digits
    assert np.abs(grown.probabilities(fresh, classes) - made[0].predict_proba(fresh)).max() < 1e-4


def test_boosting_stops_where_held_out_rows_gain_nothing(monkeypatch) -> None:
    made = watch(monkeypatch, "HistGradientBoostingClassifier")
    X, y = rows()
    held = rows(400, seed=1)
    grown = grow_boosting(X, y, 0, held=held)
    losses = [
        -np.log(p[np.arange(400), held[1]]).mean() for p in made[0].staged_predict_proba(held[0])
    ]
    assert len(grown.trees.roots) == 1 + int(np.argmin(losses)) < growing.MOST_ROUNDS
    again = grown.fit_again(X, y, 0, None)
    assert np.array_equal(again.trees.scores(X), grown.trees.scores(X))


def test_a_class_that_training_lacked_has_no_probability() -> None:
    X, y = rows(classes=2)
    for grown in (grow_boosting(X, 2 * y, 0, rounds=3), grow_forest(X, 2 * y, 0)):
        found = grown.probabilities(X, 3)
        assert np.all(found[:, 1] == 0.0)
        assert np.allclose(found.sum(1), 1.0)


def test_rows_of_hardly_any_weight_hardly_count() -> None:
    """Copies with the other label would leave nothing to learn."""
    X, y = rows()
    both, labels = np.concatenate([X, X]), np.concatenate([y, 1 - y])
    weight = np.repeat([1.0, 1e-9], len(y))
    for grown in (
        grow_boosting(both, labels, 0, rounds=20, weight=weight),
        grow_forest(both, labels, 0, weight=weight),
    ):
        assert np.mean(grown.probabilities(X, 2).argmax(1) == y) > 0.8


def test_classes_that_do_not_fit_the_trees_are_refused() -> None:
    grown = grow_boosting(*rows(), 0, rounds=2)
    for kind, classes in (
        ("boosting", [0]),
        ("boosting", [1, 0]),
        ("forest", [0, 1]),
        ("oak", [0, 1]),
    ):
        with pytest.raises(InvalidDataError, match="classes of trees"):
            Grown(kind, grown.trees, np.array(classes))


def test_a_forest_of_many_classes_takes_little_memory_beside_its_leaves() -> None:
    """The shares of all nodes of all trees as floats took eight times as much as the leaves that are kept."""
    X, y = rows(1000, classes=100)
    grow_forest(X, y, 0)  # whatever is set up once
    tracemalloc.start()
    grown = grow_forest(X, y, 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown.trees.values.nbytes < peak < 4 * grown.trees.values.nbytes
