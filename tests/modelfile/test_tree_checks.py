"""Trees that compiled code would follow out of its memory, or for ever, are refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import reliablenet as rn
from reliablenet.errors import ModelFileError
from reliablenet.modelfile.tree_checks import check_trees


@pytest.fixture(scope="module")
def boosting() -> HistGradientBoostingClassifier:
    """Trees that split both on numbers and on sets of categories."""
    draw = np.random.default_rng(0)
    X = np.column_stack([draw.normal(size=400), draw.integers(6, size=400)])
    y = (X[:, 0] > 0) ^ np.isin(X[:, 1], [1, 4])
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[1], random_state=0)
    model.fit(X, y)
    nodes = model._predictors[0][0].nodes
    inner = nodes["is_leaf"] == 0
    assert set(nodes["is_categorical"][inner]) == {0, 1}
    return model


def test_categories_beside_numbers_come_back_from_a_file(boosting, tmp_path) -> None:
    """Boosting puts categories first, wherever they stand in the table."""
    draw = np.random.default_rng(1)
    X = np.column_stack([draw.normal(size=500), draw.integers(7, size=500)])  # 6 is unknown
    y = (X[:, 0] > 0) ^ np.isin(X[:, 1], [1, 4])
    rule = rn.CertifiedThreshold(boosting, alpha=0.2).fit(X, y)
    loaded = rn.load(rule.save(tmp_path / "rule.rnet"))
    assert np.array_equal(loaded.predict_proba(X), rule.predict_proba(X))
    assert loaded.certificate_ == rule.certificate_


def first(model: HistGradientBoostingClassifier) -> Any:
    return model._predictors[0][0]


def root(model: HistGradientBoostingClassifier, **values: int) -> None:
    for name, value in values.items():
        first(model).nodes[name][0] = value


def no_tree(model: Any) -> None:
    model._predictors[1][0] = "a tree"


def no_node(model: Any) -> None:
    first(model).nodes = first(model).nodes[:0]


def a_narrow_set(model: Any) -> None:
    first(model).raw_left_cat_bitsets = first(model).raw_left_cat_bitsets[:, :4]


def a_set_of_other_numbers(model: Any) -> None:
    first(model).binned_left_cat_bitsets = first(model).binned_left_cat_bitsets.astype(np.int64)


def a_set_that_is_not_there(model: Any) -> None:
    nodes = first(model).nodes
    nodes["bitset_idx"][(nodes["is_categorical"] == 1) & (nodes["is_leaf"] == 0)] = 1000


def a_number_for_a_category(model: Any) -> None:
    model._bin_mapper.is_categorical_[:] = 0


def a_feature_less(model: Any) -> None:
    model._bin_mapper.is_categorical_ = model._bin_mapper.is_categorical_[:1]


def bins_of_a_feature_less(model: Any) -> None:
    del model._bin_mapper.bin_thresholds_[1]


def a_category(value: float) -> Callable[[Any], None]:
    def spoil(model: Any) -> None:
        model._bin_mapper.bin_thresholds_[0][0] = value  # categories come first there

    return spoil


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (no_tree, "holds something that is not a tree"),
        (no_node, "A tree has no node"),
        (lambda model: root(model, left=0), "a child that is not there"),
        (lambda model: root(model, right=10_000), "a child that is not there"),
        (lambda model: root(model, feature_idx=2), "a feature that is not there"),
        (lambda model: root(model, feature_idx=-1), "a feature that is not there"),
        (a_narrow_set, "raw_left_cat_bitsets of a tree is not a table of category sets"),
        (a_set_of_other_numbers, "binned_left_cat_bitsets of a tree is not a table"),
        (a_set_that_is_not_there, "names a set of categories that is not there"),
        (a_number_for_a_category, "takes a number for a category"),
        (a_feature_less, "disagree on the number of features"),
        (bins_of_a_feature_less, "disagree on the number of features"),
        (a_category(256.0), "outside 0 to 255"),
        (a_category(-1.0), "outside 0 to 255"),
        (a_category(np.nan), "outside 0 to 255"),
    ],
)
def test_boosted_trees_that_lead_astray(boosting, spoil, message) -> None:
    spoiled = copy.deepcopy(boosting)
    check_trees(spoiled)
    spoil(spoiled)
    with pytest.raises(ModelFileError, match=message):
        check_trees(make_pipeline(StandardScaler(), spoiled))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("left_child", 0, "a child that is not there"),
        ("right_child", 10_000, "a child that is not there"),
        ("feature", 2, "a feature that is not there"),
    ],
)
def test_a_single_tree_that_leads_astray(name, value, message) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    for model in (DecisionTreeClassifier(), RandomForestClassifier(n_estimators=2)):
        model.fit(X, X[:, 0] > 0)
        check_trees(model)
        tree = model if isinstance(model, DecisionTreeClassifier) else model.estimators_[1]
        state = tree.tree_.__getstate__()
        state["nodes"][name][0] = value
        tree.tree_.__setstate__(state)
        with pytest.raises(ModelFileError, match=message):
            check_trees(model)
