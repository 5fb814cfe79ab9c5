"""How trees are grown: boosted ones and forests, by scikit-learn, taken over as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from reliablenet.errors import InvalidDataError
from reliablenet.training.trees import FINE, Trees, in_units

Matrix = NDArray[np.float32]
Labels = NDArray[np.int64]
RowWeights = NDArray[np.float64] | None
Kind = Literal["boosting", "forest"]
KINDS: tuple[Kind, ...] = ("boosting", "forest")

# Of boosting: slow and shallow, on half of the columns a split, until held-out rows gain nothing more.
LEAVES = 15
LEARNING_RATE, FASTEST = 0.06, 0.2
MOST_ROUNDS, MOST_TREES, LEAST_ROUNDS = 300, 1200, 20  # with many classes fewer and faster rounds
PATIENCE = 10
COLUMN_SHARE = 0.5
# Of a forest: extremely random trees, grown until a leaf has one class.
FOREST_TREES = 50
ROWS_OF_A_TREE = (
    8000  # drawn for each if there are more, so that a model does not grow with its table
)
FOREST_DEPTH = 40
FOREST_DIGITS = 14  # of a share of rows in a leaf, in twos


@dataclass(frozen=True, eq=False)
class Grown:
    """Trees that tell classes apart.

    Parameters
    ----------
    kind : {"boosting", "forest"}
        Whether the leaves add up to log-odds or to shares.
    trees : Trees
    classes : int array
        The classes that training had rows of, ascending; any other has the probability 0.
    """

    kind: Kind
    trees: Trees
    classes: NDArray[np.int64]

    def __post_init__(self) -> None:
        classes = np.asarray(self.classes)
        scores = len(self.trees.start)
        wanted = 2 if self.kind == "boosting" and scores == 1 else scores
        ascends = classes.ndim == 1 and bool((np.diff(classes) > 0).all())
        if self.kind not in KINDS or not ascends or len(classes) != wanted or classes[0] < 0:
            raise InvalidDataError("The classes of trees do not fit their scores.")
        object.__setattr__(self, "classes", classes.astype(np.int64))

    @property
    def name(self) -> str:
        """The kind."""
        return self.kind

    def probabilities(self, X: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
        """Return class probabilities of rows, of shape (n, n_classes)."""
        scores = self.trees.scores(X)
        found: NDArray[np.float64]
        if self.kind == "forest":
            found = scores / scores.sum(1, keepdims=True)
        else:
            if scores.shape[1] == 1:
                scores = np.concatenate([np.zeros_like(scores), scores], 1)
            found = torch.softmax(torch.from_numpy(scores), -1).numpy()
        if len(self.classes) == n_classes:
            return found
        wide = np.zeros((len(found), n_classes))
        wide[:, self.classes] = found
        return wide

    def fit_again(self, X: Matrix, y: Labels, seed: int, weight: RowWeights) -> Grown:
        """Return trees grown on other rows, in as many rounds."""
        if self.kind == "forest":
            return grow_forest(X, y, seed, weight=weight)
        return grow_boosting(X, y, seed, rounds=len(self.trees.roots), weight=weight)


def grow_boosting(
    X: Matrix,
    y: Labels,
    seed: int,
    *,
    held: tuple[Matrix, Labels] | None = None,
    rounds: int | None = None,
    weight: RowWeights = None,
) -> Grown:
    """Return boosted trees.

    Parameters
    ----------
    X, y
        Rows without gaps, and their class indices; at least two classes.
    seed : int
    held : pair of arrays, optional
        Rows on which the number of rounds is chosen.
    rounds : int, optional
        That number, where it is known.
    weight : array of shape (n,), optional
        Of each row.
    """
    classes = np.unique(y)
    scores = 1 if len(classes) == 2 else len(classes)
    most = max(LEAST_ROUNDS, min(MOST_ROUNDS, MOST_TREES // scores))
    rate = min(FASTEST, LEARNING_RATE * MOST_ROUNDS / most)
    model = HistGradientBoostingClassifier(
        learning_rate=rate,
        max_leaf_nodes=LEAVES,
        max_features=COLUMN_SHARE,
        min_samples_leaf=max(2, min(20, len(y) // 50)),
        max_iter=rounds or most,
        early_stopping=held is not None,
        n_iter_no_change=PATIENCE,
        tol=0.0,
        random_state=seed,
    )
    stop: dict[str, Any] = {}
    if held is not None:
        known = np.isin(held[1], classes)
        stop = {"X_val": held[0][known], "y_val": held[1][known]}
    model.fit(X, y, sample_weight=weight, **stop)
    best = model.n_iter_
    if held is not None:  # the first score is that of no tree
        best = max(1, int(np.argmax(model.validation_score_)))
    grown = [tree.nodes for trees in model._predictors[:best] for tree in trees]
    leaves = [nodes["is_leaf"].astype(bool) for nodes in grown]
    return Grown(
        "boosting",
        _join(
            leaves,
            [nodes["feature_idx"] for nodes in grown],
            [nodes["num_threshold"] for nodes in grown],
            [np.stack([nodes["right"], nodes["left"]], 1) for nodes in grown],
            [
                in_units(nodes["value"][there])[:, None]
                for nodes, there in zip(grown, leaves, strict=True)
            ],
            columns=X.shape[1],
            each=scores,
            start=in_units(np.ravel(model._baseline_prediction)),
            digits=FINE,
        ),
        classes,
    )


def grow_forest(X: Matrix, y: Labels, seed: int, *, weight: RowWeights = None) -> Grown:
    """Return a forest of extremely random trees; rows, classes and weights as for `grow_boosting`."""
    many = len(y) > ROWS_OF_A_TREE
    model = ExtraTreesClassifier(
        FOREST_TREES,
        max_depth=FOREST_DEPTH,
        bootstrap=many,
        max_samples=ROWS_OF_A_TREE if many else None,
        random_state=seed,
    )
    model.fit(X, y, sample_weight=weight)
    grown = [one.tree_ for one in model.estimators_]
    leaves = [tree.children_left < 0 for tree in grown]
    return Grown(
        "forest",
        _join(
            leaves,
            [tree.feature for tree in grown],
            [tree.threshold for tree in grown],
            [np.stack([tree.children_right, tree.children_left], 1) for tree in grown],
            [
                _coarse_shares(tree.value[there, 0])
                for tree, there in zip(grown, leaves, strict=True)
            ],
            columns=X.shape[1],
            each=1,
            start=np.zeros(len(model.classes_), np.int64),
            digits=FOREST_DIGITS,
        ),
        model.classes_,
    )


def _coarse_shares(counts: NDArray[np.float64]) -> NDArray[np.int16]:
    """Return the shares of classes in leaves, of one tree at a time: with many classes they are large."""
    return in_units(counts / counts.sum(1, keepdims=True), FOREST_DIGITS).astype(np.int16)


def _join(
    leaves: Sequence[NDArray[np.bool_]],
    feature: Sequence[NDArray[Any]],
    threshold: Sequence[NDArray[Any]],
    children: Sequence[NDArray[Any]],
    values: Sequence[NDArray[Any]],
    *,
    columns: int,
    each: int,
    start: NDArray[np.int64],
    digits: int,
) -> Trees:
    """Return trees, given node by node, and by leaf what the leaves hold, in one piece."""
    sizes = [len(tree) for tree in leaves]
    begins = np.cumsum([0, *sizes[:-1]])
    is_leaf = np.concatenate(leaves)
    own = np.arange(len(is_leaf))
    below = np.concatenate(children).astype(np.int64) + np.repeat(begins, sizes)[:, None]
    return Trees(
        columns=np.array([columns]),
        roots=begins.reshape(-1, each),
        feature=np.where(is_leaf, 0, np.concatenate(feature)),
        threshold=np.where(is_leaf, 0.0, np.concatenate(threshold)),
        children=np.where(is_leaf[:, None], own[:, None], below),
        leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, 0),
        values=np.concatenate(values),
        start=start,
        digits=np.array([digits]),
    )
