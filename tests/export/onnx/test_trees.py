"""Trees in a graph reach the same leaves and give the same sums."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from graphs import run_part
from onnx import TensorProto

from reliablenet.export.onnx.graph import Graph
from reliablenet.export.onnx.trees import add_grown, add_search
from reliablenet.training.growing import Grown, grow_boosting, grow_forest
from reliablenet.training.trees import Trees, in_units

DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(300, 3)).round(1).astype(np.float32)
TWO = (ROWS[:, 0] > ROWS[:, 1]).astype(np.int64)
THREE = TWO + (ROWS[:, 2] > 0.5)


def matrix(graph: Graph, width: int = 3) -> str:
    return graph.cast(graph.join([graph.number(column) for column in range(width)]), np.float32)


@pytest.mark.parametrize("classes", [TWO, THREE, THREE + 1], ids=["two", "three", "a gap"])
@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_probabilities_are_those_of_the_trees(kind, classes) -> None:
    if kind == "boosting":
        grown = grow_boosting(ROWS, classes, 0, rounds=8)
    else:
        grown = grow_forest(ROWS, classes, 0)
    K = int(classes.max()) + 1
    # the thresholds themselves, and the numbers of 32 bits around them
    near = grown.trees.threshold.astype(np.float32)
    near = np.concatenate(
        [near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9))]
    )
    rows = np.concatenate([ROWS, DRAW.choice(near, (500, 3))])
    graph = Graph()
    found = run_part(
        graph, add_grown(graph, matrix(graph), grown, K), TensorProto.DOUBLE, pd.DataFrame(rows)
    )
    expected = grown.probabilities(rows, K)
    if kind == "forest":
        assert np.array_equal(found, expected)
    assert np.allclose(found, expected, rtol=0.0, atol=1e-15)


def test_a_tree_of_one_leaf_is_a_tree() -> None:
    trees = Trees(
        columns=np.array([3]),
        roots=np.array([[0], [1]]),
        feature=np.array([0, 2, 0, 0]),
        threshold=np.array([0.0, 0.25, 0.0, 0.0]),
        children=np.array([[0, 0], [3, 2], [2, 2], [3, 3]]),
        leaf=np.array([0, 0, 1, 2]),
        values=in_units([[0.5], [1.0], [-1.0]]),
        start=in_units([0.125]),
        digits=np.array([44]),
    )
    grown = Grown("boosting", trees, np.array([0, 1]))
    graph = Graph()
    value = add_grown(graph, matrix(graph), grown, 2)
    found = run_part(graph, value, TensorProto.DOUBLE, pd.DataFrame(ROWS))
    assert np.allclose(found, grown.probabilities(ROWS, 2), rtol=0.0, atol=1e-15)


def test_a_search_counts_the_borders_at_or_below() -> None:
    borders = [[0.0, 0.1, 0.3], [], [2.0], list(np.linspace(-1, 1, 17))]
    exact = np.array([0.0, 0.1, 0.3, 2.0, -1.0, 1.0, 0.25])
    values = np.concatenate([exact, np.nextafter(exact, 9), np.nextafter(exact, -9)])
    rows = pd.DataFrame(np.repeat(values[:, None], 4, axis=1))
    graph = Graph()
    numbers = graph.join([graph.number(column) for column in range(4)])
    found = run_part(graph, add_search(graph, numbers, borders), TensorProto.INT64, rows)
    first = np.cumsum([0, *(len(own) + 1 for own in borders[:-1])])
    expected = [np.searchsorted(own, values, side="right") for own in borders]
    assert np.array_equal(found, np.stack(expected, 1) + first)
