"""How folds are drawn: a stratified fold is as its model's training rows are, and no fresh sample.

Four models whose answers hang on how common each class was in training, and whose true JCW is known.
In the first three, classes come in pairs that look alike. The model answers with the one of a pair that
training saw more often, and acts on a share of rows that puts its JCW hardly over alpha, whichever it answers.
So every certificate is a false one. The fourth is a logistic regression whose slopes are shrunk; the threshold on
its confidence is chosen.

A fold that is stratified holds few rows of a class of which training saw few: of the classes, that is, on which
the model errs. The same goes for a selection fold on which a conformal threshold is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from reliablenet.certificate import certified_threshold, conformal_threshold
from reliablenet.tables.fold_sizes import fold_counts
from reliablenet.tables.folds import cut_parts, cut_rows
from studies.guarantees.curves import EXCESS
from studies.guarantees.validity import largest_certifiable
from studies.runner import JOBS, Block, Study

Array = NDArray[Any]
DRAWS, CHUNK = 20_000, 500
CLASS_SHARES = np.array([0.1, 0.1, 0.8])
PLACES = np.array([[-3.0], [3.0], [6.0]])  # of the common class, and of the rare ones: near, far
FAR = 0.3  # share of the rare classes' rows
AT_PLACE = np.array([[0.0, 1 - FAR, FAR], [0.0, 1 - FAR, FAR], [1.0, 0.0, 0.0]])
MOST_ROWS = 5  # of a group

Cut = Callable[[Array, Any, tuple[int, int, int], int], list[Array]]


def drawn_first(y: Array, groups: Any, counts: tuple[int, int, int], seed: int) -> list[Array]:
    """Cut as the library does: the certification fold at random, and first."""
    return cut_parts(y, groups, lambda n: counts, seed)


def all_at_random(y: Array, groups: Any, counts: tuple[int, int, int], seed: int) -> list[Array]:
    """Cut as the library does for a promise about the selection fold: that is random, too."""
    return cut_parts(y, groups, lambda n: counts, seed, stratified=False)


def stratified(y: Array, groups: Any, counts: tuple[int, int, int], seed: int) -> list[Array]:
    """Give every fold its share of every class, as the library did and the paper does."""
    if groups is None:
        return cut_rows(y, counts, seed)
    random = np.random.RandomState(seed)
    order = random.permutation(len(y))
    one_row = order[np.unique(groups[order], return_index=True)[1]]
    *whole, last = cut_rows(y[one_row], counts, random)  # a group has one label
    return [*(np.flatnonzero(np.isin(groups, part)) for part in whole), one_row[last]]


CUTS: dict[str, Cut] = {
    "certification drawn first": drawn_first,
    "all folds at random": all_at_random,
    "all folds stratified": stratified,
}


@dataclass(frozen=True)
class Setting:
    """A source and a model: ``draw`` gets a generator, a seed and a cut."""

    name: str
    draw: Callable[[Setting, np.random.Generator, int, Cut], float]
    rows: int
    alpha: float
    rho: float
    cuts: tuple[str, ...]
    fold_sizes: Any = "auto"

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """How many rows or groups each fold gets."""
        return fold_counts(self.rows, self.fold_sizes, self.alpha, self.rho)


def pairs(
    setting: Setting,
    random: np.random.Generator,
    seed: int,
    cut: Cut,
    *,
    classes: int,
    grouped: bool = False,
) -> float:
    """Return 1 if a model that answers with the commoner class of each pair gets its certificate."""
    label, groups = random.integers(classes, size=setting.rows), None
    if grouped:
        size = random.integers(1, MOST_ROWS + 1, setting.rows)
        groups = np.repeat(np.arange(setting.rows), size)
        label = label[groups]
    acts = random.random(len(label)) < 2 * EXCESS * setting.alpha
    train, _, certification = cut(label, groups, setting.counts, seed)
    wrong = acts & (answers(label[train], classes)[label // 2] != label % 2)
    limit = largest_certifiable(len(certification), setting.alpha, setting.rho)
    return float(wrong[certification].sum() <= limit)


def answers(training: Array, classes: int) -> Array:
    """Return 0 or 1 for each pair of classes: the one that is commoner."""
    return np.asarray(np.bincount(training, minlength=classes).reshape(-1, 2).argmax(axis=1))


def shrunken(setting: Setting, random: np.random.Generator, seed: int, cut: Cut) -> float:
    """Return 1 if the chosen threshold on a shrunken logistic regression has JCW over alpha."""
    joint = CLASS_SHARES[:, None] * AT_PLACE
    label, place = np.divmod(random.choice(9, setting.rows, p=joint.ravel()), 3)
    train, _, certification = cut(label, None, setting.counts, seed)
    seen = np.bincount(3 * label[train] + place[train], minlength=9)
    model = LogisticRegression(C=0.01).fit(
        PLACES[np.arange(9) % 3], np.arange(9) // 3, sample_weight=seen
    )
    proba = model.predict_proba(PLACES)
    found = certified_threshold(
        proba[place[certification]], label[certification], setting.alpha, setting.rho
    )
    wrong = joint.sum(axis=0) - joint[proba.argmax(axis=1), np.arange(3)]
    jcw = wrong[proba.max(axis=1) >= found.threshold].sum()
    return float(found.certified and jcw > setting.alpha)


def conformal(
    setting: Setting, random: np.random.Generator, seed: int, cut: Cut, *, classes: int
) -> float:
    """Return the true JCW of the conformal threshold on a score that says nothing, for pairs."""
    label, score = random.integers(classes, size=setting.rows), random.random(setting.rows)
    train, selection, _ = cut(label, None, setting.counts, seed)
    wrong = answers(label[train], classes)[label // 2] != label % 2
    threshold = conformal_threshold(
        None,
        np.zeros(len(selection), int),
        setting.alpha,
        score=score[selection],
        predicted=wrong[selection].astype(int),
    )
    return 0.5 * (1.0 - min(max(threshold, 0.0), 1.0))


FIRST, RANDOM, STRATIFIED = CUTS
SETTINGS = (
    Setting("2 classes", partial(pairs, classes=2), 383, 0.05, 0.05, (FIRST, STRATIFIED)),
    Setting("10 classes", partial(pairs, classes=10), 383, 0.05, 0.05, (FIRST, STRATIFIED)),
    Setting(
        "10 classes, groups of 1 to 5 rows",
        partial(pairs, classes=10, grouped=True),
        383,
        0.05,
        0.05,
        (FIRST, STRATIFIED),
    ),
    Setting(
        "shrunken logistic regression",
        shrunken,
        304,
        0.1 * FAR / EXCESS,
        0.2,
        (FIRST, STRATIFIED),
        (0.3, 0.1, 0.6),
    ),
    Setting(
        "conformal threshold, 10 classes",
        partial(conformal, classes=10),
        400,
        0.05,
        math.nan,
        (RANDOM, FIRST),
        (0.25, 0.5, 0.25),
    ),
)


def run_part(place: int, cut: str, start: int, draws: int) -> tuple[float, float]:
    """Return the sum and the sum of squares over some draws of a setting, named by its place."""
    setting = SETTINGS[place]
    found = np.array(
        [
            setting.draw(setting, np.random.default_rng([place, seed]), seed, CUTS[cut])
            for seed in range(start, start + draws)
        ]
    )
    return float(found.sum()), float((found**2).sum())


def count(place: int, cut: str, draws: int, jobs: int, chunk: int) -> dict[str, Any]:
    """Count failures of a setting with a cut; the mean where the promise is about that."""
    parts = Parallel(n_jobs=jobs)(
        delayed(run_part)(place, cut, start, min(chunk, draws - start))
        for start in range(0, draws, chunk)
    )
    total, squares = np.sum(parts, axis=0)
    if not math.isnan(SETTINGS[place].rho):
        return {"failures": int(total)}
    error = math.sqrt((squares / draws - (total / draws) ** 2) / draws)
    return {"mean": total / draws, "standard_error": error}


def blocks(draws: int = DRAWS, jobs: int = JOBS, chunk: int = CHUNK) -> list[Block]:
    """Return every setting with every cut of its own."""
    found = []
    for place, setting in enumerate(SETTINGS):
        for cut in setting.cuts:
            fields = {"source": setting.name, "cut": cut, "rows": setting.rows}
            fields |= {"counts": list(setting.counts), "alpha": setting.alpha, "draws": draws}
            if not math.isnan(setting.rho):
                fields["rho"] = setting.rho
            found.append(Block.once(fields, partial(count, place, cut, draws, jobs, chunk)))
    return found


STUDY = Study(
    "guarantees",
    "folds",
    about="Is a certificate exact, however its folds are drawn?",
    cost="half an hour",
    blocks=blocks,
)
