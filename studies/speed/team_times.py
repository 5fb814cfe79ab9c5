"""What the default costs beside scikit-learn's boosting, `decide` beside its members, and the constraint in a loop of one's own.

Time of the processor on one thread, in turns, so that other work on the machine disturbs little. Boosting has its defaults and gets all
rows, encoded as `TabularEncoder` does; ours divides the same rows into its folds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from torch import nn
from torch.nn.functional import cross_entropy

import reliablenet as rn
from reliablenet.datasets import adult
from reliablenet.tables import TabularEncoder
from studies.default.fitting import quietly
from studies.runner import Block, Study
from studies.speed.peers import ALPHA, PAPER, THRESHOLD, new_network
from studies.speed.ratios import Figure, adult as encoded_adult

Table = tuple[pd.DataFrame, np.ndarray]
SMALL, LARGE, MANY = 10_000, 100_000, 1_000_000
FITS = {SMALL: 2, LARGE: 1}  # of each model
ROUNDS, BATCHES = 15, 60  # of steps in a loop
OURS = "the default"


def made(n: int) -> Table:
    """Return rows of eight numbers and six categories, whose label depends on a few of each."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(n, 8)).round(2)
    numbers[:, 6:] = random.exponential(30.0, (n, 2)).round()
    levels = (2, 3, 5, 8, 16, 30)
    places = np.stack([random.integers(0, count, n) for count in levels], 1)
    effects = [np.random.default_rng(count).normal(size=count) for count in levels]
    score = numbers[:, 0] * numbers[:, 1] + np.sin(2.0 * numbers[:, 2]) + 0.02 * numbers[:, 6]
    score += sum(effect[places[:, number]] for number, effect in enumerate(effects))
    y = (random.logistic(scale=0.7, size=n) < score - np.median(score)).astype(int)
    X = pd.DataFrame(numbers).add_prefix("number")
    for number, column in enumerate(places.T):
        X[f"category{number}"] = np.array([f"level {value}" for value in range(30)])[column]
    return X, y


def people(n: int) -> Table:
    """Return so many rows of Adult."""
    X, y = adult.read()
    chosen = np.random.default_rng(0).permutation(len(X))[:n]
    return X.iloc[chosen], y[chosen]


def times(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return the processor's time of each piece of work, the best of rounds in turns."""
    spent: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, found in zip(works, spent, strict=True):
            start = time.process_time()
            work()
            found.append(time.process_time() - start)
    return [min(found) for found in spent]


def fits(name: str, table: Callable[[int], Table], n: int) -> Iterator[Figure]:
    """Compare fits with one of boosting."""
    X, y = table(n)
    boosting = make_pipeline(TabularEncoder(), HistGradientBoostingClassifier(random_state=0))
    models: dict[str, dict[str, Any]] = {OURS: {}, "its network alone": {"members": ("network",)}}
    ours = [
        rn.ReliableClassifier(random_state=0, verbose=False, **kind) for kind in models.values()
    ]
    for model in (boosting, *ours):
        model.fit(X[:500], y[:500])  # whatever is imported and set up once
    theirs, *taken = times([partial(model.fit, X, y) for model in (boosting, *ours)], FITS[n])
    for label, seconds in zip(models, taken, strict=True):
        target = f"at most {5 if n == SMALL else 8}" if label == OURS else ""
        yield Figure(f"fit of {label} / boosting, {n:,} rows of {name}", seconds / theirs, target)


def decisions() -> Iterator[Figure]:
    """Compare `decide` on a million rows with what its members need for the encoded rows."""
    X, y = made(MANY)
    model = rn.ReliableClassifier(random_state=0, verbose=False).fit(X[:SMALL], y[:SMALL])
    matrix = model.encoder_.compact(X)

    def members() -> None:
        with torch.inference_mode():
            for part in torch.from_numpy(matrix).split(512):
                model.network_(part)
        for start in range(0, MANY, 65_536):
            model.team_.listen(matrix[start : start + 65_536], 2)

    ours, theirs = times([lambda: model.decide(X), members], 1)
    label = f"decide / passes of its members, {MANY:,} mixed rows"
    yield Figure(label, ours / theirs, "at most 1.5")


def loop_of_ones_own() -> Iterator[Figure]:
    """Compare steps with the constraint and without, as a user writes them."""
    rows, _ = encoded_adult()
    batches = list(zip(*(part.split(PAPER.batch_size) for part in rows), strict=True))[:BATCHES]

    def steps(way: str) -> Callable[[], None]:
        network = new_network(rows)
        optimiser = torch.optim.Adam(network.parameters(), lr=PAPER.learning_rate)
        constraint = rn.JCWConstraint(ALPHA, THRESHOLD, rows=rows.total)

        def run() -> None:
            for X, y in batches:
                logits = network(X)
                optimiser.zero_grad()
                if way == "plain":
                    cross_entropy(logits, y).backward()
                elif way == "penalty":
                    (cross_entropy(logits, y) + constraint.penalty(logits, y)).backward()
                else:
                    constraint.backward(logits, y)
                nn.utils.clip_grad_norm_(network.parameters(), PAPER.clip_norm)
                optimiser.step()
                if way != "plain":
                    constraint.step()

        return run

    plain, penalty, backward = times(
        [steps(way) for way in ("plain", "penalty", "backward")], ROUNDS
    )
    label = "constrained step / plain step, in a loop of one's own"
    yield Figure(f"{label}, with `penalty`", penalty / plain, "at most 1.15")
    yield Figure(f"{label}, with `backward`", backward / plain, "at most 1.15")


PARTS: dict[str, Callable[[], Iterator[Figure]]] = {
    "loop": loop_of_ones_own,
    "adult, small": partial(fits, "Adult", people, SMALL),
    "made, small": partial(fits, "made data", made, SMALL),
    "decisions": decisions,
    "made, large": partial(fits, "made data", made, LARGE),
}


def measure(figures: Callable[[], Iterator[Figure]]) -> list[dict[str, Any]]:
    """Return a record for each figure, measured on one thread."""
    default = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with quietly():
            return [asdict(figure) | {"met": figure.met} for figure in figures()]
    finally:
        torch.set_num_threads(default)


def blocks() -> list[Block]:
    """Return the parts."""
    return [
        Block.once({"part": part}, partial(measure, figures)) for part, figures in PARTS.items()
    ]


STUDY = Study(
    "speed",
    "team_times",
    about="What does the default cost beside boosting, and its decisions beside its members?",
    cost="ten minutes, with OMP_NUM_THREADS=1; needs Adult's files",
    blocks=blocks,
)
