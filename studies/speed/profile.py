"""What comparing new rows with the input profile costs: `decide` with it over `decide` without.

Time of the processor, in turns: on a machine with other work the best of some wall-clock times still differed by a factor
of two between runs. The ratio is taken five times; its median counts, and the smallest and largest are kept beside it.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from reliablenet.datasets import load_dataset
from reliablenet.methods import ERMClassifier
from studies.runner import Block, Study

TARGET = "at most 1.1"
RATIOS, ROUNDS = 5, 9


@cache
def adult() -> tuple[Any, Any]:
    """Return a network of the paper's on Adult, and rows: 6 numbers and 8 categories."""
    train = load_dataset("adult", random_state=0).folds.train
    return fitted(train.X, train.y), train.X


@cache
def wide() -> tuple[Any, Any]:
    """Return the same network on 200 columns of numbers."""
    X, y = make_classification(20_000, 200, n_informative=20, random_state=0)
    return fitted(X, y), X


def fitted(X: Any, y: Any) -> Any:
    """Return a network, trained for as long as it takes to have one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ERMClassifier(epochs=1, random_state=0).fit(X, y)


def cost(table: Callable[[], tuple[Any, Any]], rows: int, texts: bool = False) -> dict[str, float]:
    """Return the ratio for so many rows."""
    model, X = table()
    bare = copy.copy(model)
    bare.source_ = None
    X = X[:rows]
    if texts:  # as a CSV file gives them
        X = X.astype(dict.fromkeys(model.encoder_.categories_, object))
    calls = max(1, 20 // rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sorted(cpu_ratio(model, bare, X, calls) for _ in range(RATIOS))
    low, value, high = (round(found[place], 3) for place in (0, RATIOS // 2, -1))
    return {"value": value, "least": low, "most": high}


def cpu_ratio(one: Any, other: Any, X: Any, calls: int) -> float:
    """Return the processor's time of one model's `decide` over another's, medians of rounds in turns."""
    spent: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for model, times in zip((one, other), spent, strict=True):
            start = time.process_time()
            for _ in range(calls):
                model.decide(X)
            times.append(time.process_time() - start)
    ours, theirs = (float(np.median(times)) for times in spent)
    return ours / theirs


def blocks() -> list[Block]:
    """Return the measures."""
    measures = {
        "Adult, 20,000 rows": partial(cost, adult, 20_000),
        "Adult, 20,000 rows, categories as texts": partial(cost, adult, 20_000, texts=True),
        "Adult, 1 row": partial(cost, adult, 1),
        "200 numbers, 20,000 rows": partial(cost, wide, 20_000),
        "200 numbers, 1 row": partial(cost, wide, 1),
    }
    return [
        Block.once({"what": what, "target": TARGET}, measure) for what, measure in measures.items()
    ]


STUDY = Study(
    "speed",
    "profile",
    about="What does comparing new rows with the input profile cost?",
    cost="two minutes; needs Adult's files",
    blocks=blocks,
)
