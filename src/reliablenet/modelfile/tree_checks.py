"""Trees from a file: what scikit-learn's compiled code takes on trust is checked once, on loading.

A child that is not there, a feature that is not there or a circle would make `predict` read foreign
memory or never end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree._tree import Tree

from reliablenet.errors import ModelFileError

LARGEST_CATEGORY = 255  # boosting keeps a set of categories in 256 bits


def check_trees(model: Any) -> None:
    """Raise if a tree anywhere in a loaded estimator could lead out of itself."""
    for part in _parts(model, set()):
        if isinstance(part, Tree):
            state = part.__getstate__()
            nodes = state["nodes"]
            leaves = nodes["left_child"] == -1
            _check(nodes, "left_child", "right_child", "feature", leaves, part.n_features)
        elif hasattr(part, "_predictors"):  # gradient boosting
            _check_boosting(part)


def _check_boosting(model: Any) -> None:
    mapper = model._bin_mapper  # its columns have another order than the user's: categories first
    categorical = np.asarray(mapper.is_categorical_, bool)
    if not categorical.shape == (model.n_features_in_,) == (len(mapper.bin_thresholds_),):
        raise ModelFileError("Boosted trees and their bins disagree on the number of features.")
    for number in np.flatnonzero(categorical):
        known = np.asarray(mapper.bin_thresholds_[number])
        if not np.all((known >= 0) & (known <= LARGEST_CATEGORY)):
            raise ModelFileError("A category of boosted trees lies outside 0 to 255.")
    for predictor in (tree for trees in model._predictors for tree in trees):
        if not isinstance(predictor, TreePredictor):
            raise ModelFileError("A model of boosted trees holds something that is not a tree.")
        nodes = predictor.nodes
        leaves = nodes["is_leaf"].astype(bool)
        _check(nodes, "left", "right", "feature_idx", leaves, model.n_features_in_)
        by_category = nodes[nodes["is_categorical"].astype(bool) & ~leaves]
        if not categorical[by_category["feature_idx"]].all():
            raise ModelFileError("A node of a tree takes a number for a category.")
        for name in ("raw_left_cat_bitsets", "binned_left_cat_bitsets"):
            table = getattr(predictor, name)
            if table.dtype != np.uint32 or table.ndim != 2 or table.shape[1] != 8:
                raise ModelFileError(f"{name} of a tree is not a table of category sets.")
            if np.any(by_category["bitset_idx"] >= len(table)):
                raise ModelFileError(
                    "A node of a tree names a set of categories that is not there."
                )


def _check(
    nodes: NDArray[Any], left: str, right: str, feature: str, leaves: NDArray[np.bool_], width: int
) -> None:
    """Raise unless every inner node has two later nodes for children and a feature that exists."""
    if len(nodes) == 0:
        raise ModelFileError("A tree has no node.")
    places = np.arange(len(nodes))[~leaves]
    for side in (left, right):
        child = nodes[side][~leaves].astype(np.int64)
        if np.any(child <= places) or np.any(child >= len(nodes)):
            raise ModelFileError("A node of a tree has a child that is not there.")
    used = nodes[feature][~leaves].astype(np.int64)
    if np.any(used < 0) or np.any(used >= width):
        raise ModelFileError("A node of a tree asks for a feature that is not there.")


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield an object and all that it is made of, each once."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | None):
        return
    seen.add(id(value))
    yield value
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list | tuple | set) or (
        isinstance(value, np.ndarray) and value.dtype == object
    ):
        inner = list(value.flat) if isinstance(value, np.ndarray) else value
    elif hasattr(value, "__dict__"):
        inner = vars(value).values()
    for part in inner:
        yield from _parts(part, seen)
