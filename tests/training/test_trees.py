"""Trees as arrays: what they add up to, the same for a row in any company, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reliablenet.errors import InvalidDataError
from reliablenet.training.growing import grow_boosting, grow_forest
from reliablenet.training.trees import Trees, in_units


def rows(n: int = 400, classes: int = 3) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n, 5)).astype(np.float32)
    return X, (np.abs(X[:, 0]) + X[:, 1] > np.linspace(0, 2, classes - 1)[:, None]).sum(0)


@pytest.fixture(scope="module")
def boosting() -> Trees:
    return grow_boosting(*rows(), 0, rounds=12).trees


@pytest.fixture(scope="module")
def forest() -> Trees:
    return grow_forest(*rows(), 0).trees


def walk(trees: Trees, row: Any) -> Any:
    """Go from every root to its leaf, one node after the other."""
    total = trees.start.copy()
    for round_ in trees.roots:
        found = []
        for place in round_:
            while trees.children[place][0] != place:
                left = row[trees.feature[place]] <= trees.threshold[place]
                place = trees.children[place][int(left)]
            found += trees.values[trees.leaf[place]].tolist()
        total += np.array(found)
    return total / 2.0 ** trees.digits[0]


@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_scores_are_those_of_a_walk_node_by_node(kind, request) -> None:
    trees, X = request.getfixturevalue(kind), rows()[0][:40]
    assert np.array_equal(trees.scores(X), [walk(trees, row) for row in X])


@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_a_row_has_the_same_bits_in_any_company(kind, request) -> None:
    trees, X = request.getfixturevalue(kind), rows(3000)[0]
    whole = trees.scores(X)
    for size in (1, 7, 513):
        assert np.array_equal(trees.scores(X[1000 : 1000 + size]), whole[1000 : 1000 + size])


def test_arrays_come_back(boosting) -> None:
    again = Trees.from_arrays(boosting.to_arrays())
    assert np.array_equal(again.scores(rows()[0]), boosting.scores(rows()[0]))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("children", lambda a: a.__setitem__((0, 0), 0)),  # a circle, of an inner node
        ("children", lambda a: a.__setitem__((0, 1), len(a))),
        ("children", lambda a: a.__setitem__((0, 1), -1)),
        ("children", lambda a: a.__setitem__((2, 1), 1)),  # back to the beginning
        ("feature", lambda a: a.__setitem__(0, 5)),
        ("feature", lambda a: a.__setitem__(0, -1)),
        ("roots", lambda a: a.__setitem__((0, 0), 10**6)),
        ("leaf", lambda a: a.__setitem__(0, 10**6)),
        ("threshold", lambda a: a.__setitem__(0, np.nan)),
        ("values", lambda a: a.__setitem__(0, 2**62)),
        ("start", lambda a: a.__setitem__(0, -(2**63))),
        ("columns", lambda a: a.__setitem__(0, 1)),
        ("digits", lambda a: a.__setitem__(0, -1)),
    ],
)
def test_trees_that_lead_nowhere_are_refused(boosting, name, spoil) -> None:
    arrays = {one: array.copy() for one, array in boosting.to_arrays().items()}
    spoil(arrays[name])
    with pytest.raises(InvalidDataError, match=r"tree"):
        Trees.from_arrays(arrays)


def test_a_chain_that_is_too_deep_is_refused() -> None:
    n = 600  # inner node i leads to i + 2 or to the leaf 1 + i
    own = np.arange(n)
    inner = (own % 2 == 0) & (own < n - 2)
    children = np.where(inner[:, None], np.stack([own + 2, own + 1], 1), own[:, None])
    with pytest.raises(InvalidDataError, match="deeper than"):
        Trees(
            columns=np.array([1]),
            roots=np.array([[0]]),
            feature=np.zeros(n, int),
            threshold=np.zeros(n),
            children=children,
            leaf=np.zeros(n, int),
            values=in_units([[1.0]]),
            start=in_units([0.0]),
            digits=np.array([44]),
        )


@pytest.mark.parametrize("name", ["feature", "roots", "values", "start"])
def test_arrays_that_do_not_fit_together_are_refused(boosting, name) -> None:
    arrays = boosting.to_arrays()
    with pytest.raises(InvalidDataError, match="fit together"):
        Trees.from_arrays(arrays | {name: arrays[name][:0]})
    with pytest.raises(InvalidDataError, match=rf"{name} of trees must hold"):
        Trees.from_arrays(arrays | {name: arrays[name].astype(np.complex128)})
    del arrays[name]
    with pytest.raises(InvalidDataError, match="Trees have the arrays"):
        Trees.from_arrays(arrays)


def test_rows_of_other_columns_are_refused(boosting) -> None:
    with pytest.raises(InvalidDataError, match="grown on 5 columns"):
        boosting.scores(np.zeros((3, 4), np.float32))
