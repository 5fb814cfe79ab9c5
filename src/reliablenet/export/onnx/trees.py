"""Trees as nodes of a graph: which leaf a row reaches, and what leaves add up to.

Sums are the same to the bit as those of `Trees`: whole numbers that a float of the type in use holds exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper

from reliablenet.export.onnx.graph import ML, Graph
from reliablenet.training.growing import Grown
from reliablenet.training.trees import Trees

LESS_OR_EQUAL, LESS = 0, 1  # how a node compares, in ONNX
SUM = 1
LARGEST_32 = 2**24  # up to which 32 bits hold every whole number


@dataclass(frozen=True, eq=False)
class Nodes:
    """Inner nodes of several trees, as ONNX has them; leaves are counted apart.

    Attributes
    ----------
    roots : int array of shape (trees,)
        The inner node that each tree begins with.
    feature, threshold : arrays of shape (nodes,)
    children : int array of shape (nodes, 2)
        Where a row goes whose number is larger, and where if it is not.
    ends : boolean array of shape (nodes, 2)
        Which of these are leaves.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[Any]
    children: NDArray[np.int64]
    ends: NDArray[np.bool_]

    @classmethod
    def of(cls, trees: Trees) -> Nodes:
        """Take the leaves out; a tree that is nothing but a leaf gets a node before it."""
        own = np.arange(len(trees.feature))
        is_leaf = (trees.children == own[:, None]).all(1)
        inner = np.flatnonzero(~is_leaf)
        number = np.where(is_leaf, trees.leaf, np.cumsum(~is_leaf) - 1)
        below = trees.children[inner]
        roots = trees.roots.ravel()
        bare = roots[is_leaf[roots]]
        stubs = np.repeat(trees.leaf[bare][:, None], 2, axis=1)
        begins = number[roots]
        begins[is_leaf[roots]] = len(inner) + np.arange(len(bare))
        return cls(
            begins,
            np.append(trees.feature[inner], np.zeros(len(bare), np.int64)),
            np.append(trees.threshold[inner], np.zeros(len(bare))),
            np.concatenate([number[below], stubs]),
            np.concatenate([is_leaf[below], np.ones(stubs.shape, bool)]),
        )


def tree_of_leaf(trees: Trees) -> NDArray[np.int64]:
    """Return for each row of ``values`` the tree that it is a leaf of."""
    found = np.zeros(len(trees.values), np.int64)
    here, tree = trees.roots.ravel(), np.arange(trees.roots.size)
    while len(here):
        ends = (trees.children[here] == here[:, None]).all(1)
        found[trees.leaf[here[ends]]] = tree[ends]
        here, tree = trees.children[here[~ends]].ravel(), np.repeat(tree[~ends], 2)
    return found


def add_trees(
    graph: Graph,
    matrix: str,
    nodes: Nodes,
    leaf_target: NDArray[Any],
    leaf_weight: NDArray[Any],
    n_targets: int,
    mode: int = LESS_OR_EQUAL,
) -> str:
    """Return for each row and target the sum of the leaves reached, of the type of the weights."""
    kind = leaf_weight.dtype
    larger, smaller = nodes.children.T
    larger_ends, smaller_ends = nodes.ends.T
    return graph.add(
        "TreeEnsemble",
        matrix,
        domain=ML,
        aggregate_function=SUM,
        post_transform=0,
        n_targets=n_targets,
        tree_roots=nodes.roots.tolist(),
        nodes_featureids=nodes.feature.tolist(),
        nodes_splits=numpy_helper.from_array(nodes.threshold.astype(kind), "splits"),
        nodes_modes=numpy_helper.from_array(np.full(len(nodes.feature), mode, np.uint8), "modes"),
        nodes_truenodeids=smaller.tolist(),
        nodes_trueleafs=smaller_ends.astype(int).tolist(),
        nodes_falsenodeids=larger.tolist(),
        nodes_falseleafs=larger_ends.astype(int).tolist(),
        leaf_targetids=leaf_target.tolist(),
        leaf_weights=numpy_helper.from_array(leaf_weight, "weights"),
    )


def add_search(graph: Graph, numbers: str, borders: Sequence[Sequence[float]]) -> str:
    """Return for each column of 64-bit numbers how many of its borders lie at or below the number.

    A border is counted on from those of the columns before, each of which counts one more than it has
    borders: the result is a place in a table of all pieces of all columns.
    """
    feature: list[int] = []
    threshold: list[float] = []
    children: list[list[int]] = []
    ends: list[list[bool]] = []
    roots: list[int] = []
    target: list[int] = []

    def grow(column: int, low: int, high: int, first: int) -> int:
        """Add a tree that finds one of the pieces from low to high, and return its root."""
        middle, place = (low + high) // 2, len(feature)
        feature.append(column)
        threshold.append(borders[column][middle])
        children.append([0, 0])
        ends.append([False, False])
        for side, (begin, end) in enumerate([(middle + 1, high), (low, middle)]):
            ends[place][side] = begin == end
            children[place][side] = (
                first + begin if begin == end else grow(column, begin, end, first)
            )
        return place

    for column, own in enumerate(borders):
        first = len(target)
        target += [column] * (len(own) + 1)
        if own:
            roots.append(grow(column, 0, len(own), first))
        else:  # one piece alone
            roots.append(len(feature))
            feature.append(column)
            threshold.append(0.0)
            children.append([first, first])
            ends.append([True, True])
    nodes = Nodes(
        np.array(roots),
        np.array(feature),
        np.array(threshold),
        np.array(children),
        np.array(ends),
    )
    places = np.arange(len(target), dtype=np.float64)
    found = add_trees(graph, numbers, nodes, np.array(target), places, len(borders), LESS)
    return graph.cast(found, np.int64)


def add_grown(graph: Graph, matrix: str, grown: Grown, n_classes: int) -> str:
    """Return the class probabilities of a forest or of boosted trees, in 64 bits."""
    scores = (
        _forest_scores(graph, matrix, grown.trees)
        if grown.kind == "forest"
        else _boosting_scores(graph, matrix, grown.trees)
    )
    if grown.kind == "forest":
        axis = graph.constant(np.array([1]))
        whole = graph.add("ReduceSum", scores, axis, keepdims=1)
        found = graph.add("Div", scores, whole)
    else:
        if len(grown.trees.start) == 1:
            nothing = graph.add("Mul", scores, graph.constant(np.zeros((1, 1))))
            scores = graph.join([nothing, scores])
        found = graph.add("Softmax", scores, axis=1)
    if len(grown.classes) == n_classes:
        return found
    wide = np.zeros((len(grown.classes), n_classes))
    wide[np.arange(len(grown.classes)), grown.classes] = 1.0
    return graph.add("MatMul", found, graph.constant(wide))


def _boosting_scores(graph: Graph, matrix: str, trees: Trees) -> str:
    """Each tree adds to one score; leaves are multiples of a power of two, which 64 bits add exactly."""
    unit = 2.0 ** -int(trees.digits[0])
    weight = trees.values[:, 0].astype(np.float64) * unit
    scores = trees.roots.shape[1]
    numbers = graph.cast(matrix, np.float64)
    target = tree_of_leaf(trees) % scores
    found = add_trees(graph, numbers, Nodes.of(trees), target, weight, scores)
    return graph.add("Add", found, graph.constant(trees.start[None] * unit))


def _forest_scores(graph: Graph, matrix: str, trees: Trees) -> str:
    """Each leaf adds to all scores: it is looked up by its number."""
    nodes = Nodes.of(trees)
    # of a number in 32 bits: at most a threshold means at most the 32-bit number below that
    near = nodes.threshold.astype(np.float32)
    near = np.where(near > nodes.threshold, np.nextafter(near, np.float32(-np.inf)), near)
    nodes = Nodes(nodes.roots, nodes.feature, near, nodes.children, nodes.ends)
    leaf, target = np.arange(len(trees.values)), tree_of_leaf(trees)
    wide = len(leaf) > LARGEST_32
    numbers, kind = (graph.cast(matrix, np.float64), np.float64) if wide else (matrix, np.float32)
    found = add_trees(graph, numbers, nodes, target, leaf.astype(kind), trees.roots.size)
    reached = graph.cast(found, np.int64)
    units = graph.add("Gather", graph.constant(trees.values), reached, axis=0)
    most = np.abs(trees.values.astype(np.float64)).max() * trees.roots.size
    units = graph.cast(units, np.float64 if most > LARGEST_32 else np.float32)
    sums = graph.add("ReduceSum", units, graph.constant(np.array([1])), keepdims=0)
    start = graph.constant(trees.start[None].astype(np.float64))
    whole = graph.add("Add", graph.cast(sums, np.float64), start)
    return graph.add("Mul", whole, graph.constant(np.array(2.0 ** -int(trees.digits[0]))))
