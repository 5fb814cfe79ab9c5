"""What is decided of a rule before the certification fold is opened: its path, and the order of tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from reliablenet._checks import as_array
from reliablenet.certificate.path import Path, learn_path
from reliablenet.certificate.path_gain import class_scales_pay
from reliablenet.certificate.promise import Promise, plain_label
from reliablenet.certificate.promise_counter import PromiseCounter
from reliablenet.certificate.rule_checks import has_own_thresholds
from reliablenet.certificate.scored import ScoredRows

PLACES = 200  # on a learned order

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RulePlan:
    """All that is decided before the certification fold is opened.

    Attributes
    ----------
    promise : Promise
    path : Path
    places : array
        Places to be tested, from the first on; empty where none were learned.
    classes : list, optional
    """

    promise: Promise
    path: Path
    places: Floats = field(default_factory=lambda: np.empty(0))
    classes: list[Any] | None = None

    def counters(self) -> tuple[list[PromiseCounter], list[PromiseCounter]]:
        """Return what is counted: with thresholds of their own, and together on the path."""
        own: list[PromiseCounter] = []
        joint: list[PromiseCounter] = []
        for part in self.promise.simple():
            separate = has_own_thresholds(part, self.promise, self.classes)
            (own if separate else joint).append(PromiseCounter(part, self.classes))
        return own, joint


def plan_rule(
    promise: Promise,
    lowest: float,
    n: int,
    selection: ScoredRows | None = None,
    classes: Any = None,
) -> RulePlan:
    """Learn the path and the order of tests on a selection fold, if there is one.

    Under one overall budget a scale for each predicted class is learned only where it pays on that fold.

    Parameters
    ----------
    promise : Promise
    lowest : float
        A score at which every row is accepted.
    n : int
        Certification rows there will be, roughly.
    selection : ScoredRows, optional
    classes : sequence, optional

    Returns
    -------
    RulePlan
    """
    names = (
        None if classes is None else [plain_label(c) for c in as_array(classes, "classes").tolist()]
    )
    plan = RulePlan(promise, Path({}, lowest), classes=names)
    if selection is None or selection.n == 0:
        return plan
    _, counters = plan.counters()
    spending, teachers = np.zeros(selection.n), []
    for counter in counters:
        if counter.promise.kind == "by_group" and selection.by is None:
            continue  # nobody knows whose rows these are: the others alone teach the path
        teachers.append(counter.promise.kind)
        codes = counter.codes(selection)
        counter.look(selection, selection.score)
        # groups without a budget spend nothing
        weight = np.nan_to_num(1.0 / (np.maximum(counter.sizes, 1) * np.array(counter.budgets)))
        spent = counter.spending(selection, codes)
        spending += np.where(codes >= 0, spent * np.append(weight, 0.0)[codes], 0.0)
    predicted = named(selection.predicted, names)
    # one overall budget has an order without scales, the score itself, which they must beat
    alone = teachers == ["overall"]
    if (
        predicted is not None
        and teachers
        and (not alone or class_scales_pay(selection, predicted, spending))
    ):
        plan = replace(plan, path=learn_path(selection.score, predicted, spending, lowest))
    for counter in counters:
        if counter.promise.kind == "among_accepted":
            places = plan.path.places(selection.score, predicted)
            order = _learn_order(places, selection.wrong, counter.budgets[0], n)
            plan = replace(plan, places=order)
    return plan


def _learn_order(place: Floats, wrong: NDArray[np.bool_], alpha: float, n: int) -> Floats:
    """Return places to be tested in turn: from where the selection fold is surest, downwards."""
    order = np.argsort(-place)
    place, errors = place[order], np.cumsum(wrong[order])
    ends = np.flatnonzero(np.r_[place[1:] < place[:-1], True])  # ties go together
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, PLACES).astype(int))]
    # as many rows as will certify, with the shares that were seen here
    scale = n / len(place)
    rows, mistakes = (ends + 1) * scale, errors[ends] * scale
    chance = betaincc(mistakes + 1.0, np.maximum(rows - mistakes, 1e-9), alpha)
    start = int(np.argmin(chance))
    below = np.append(place[1:], -np.inf)[ends]
    middles = np.where(np.isfinite(below), place[ends] / 2 + below / 2, -np.inf)
    return np.asarray(middles[start:])


def named(values: NDArray[Any] | None, names: Sequence[Any] | None) -> Any:
    """Return labels instead of their places among the classes."""
    if values is None or names is None:
        return values
    return np.array(names, dtype=object)[values]
