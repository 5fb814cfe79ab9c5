"""Training for a promise by group: whose rows are whose, the ways to train, and the choice among them.

Where all groups share one threshold, the worst of them sets it, and training decides what that costs. The
ways are a constraint for each group, groups that count alike, or both; the selection fold chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from reliablenet._checks import parameter_error
from reliablenet.certificate import Promise
from reliablenet.certificate.promise import plain_label
from reliablenet.certificate.rule import crossed, factorize
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.batches import AnnotatedRows, Rows
from reliablenet.training.history import History

# A group without a budget of its own may be wrong as often as it likes.
NO_BUDGET = 1.0 - 1e-6
# Throughput over all rows that may be given up for the group that does worst.
LARGEST_LOSS = 0.02


class Way(NamedTuple):
    """How groups are trained for: whether they count alike, and whether each has a constraint."""

    balanced: bool
    constrained: bool


WAYS = {
    "plain": Way(balanced=False, constrained=False),
    "constraint": Way(balanced=False, constrained=True),
    "weights": Way(balanced=True, constrained=False),
    "both": Way(balanced=True, constrained=True),
}


def ways_to_try(setting: Any, schedule: BaseSchedule, owner: str) -> tuple[str, ...]:
    """Return the ways that a setting stands for.

    Where weights of the warm-up may be kept, because the constraint does not serve, two ways try all four.
    """
    if isinstance(setting, str) and setting in WAYS:
        return (setting,)
    if not isinstance(setting, str) or setting != "auto":
        raise parameter_error("group_training", owner, f'be "auto" or one of {list(WAYS)}', setting)
    return ("constraint", "both") if schedule.keeps_warmup else ("constraint",)


@dataclass(frozen=True)
class TrainingGroups:
    """Groups of the training and selection rows, as indices, and the budget of each.

    Attributes
    ----------
    names : list of str
    budgets : tuple of float
    train, selection : integer arrays
    """

    names: list[str]
    budgets: tuple[float, ...]
    train: NDArray[np.int64]
    selection: NDArray[np.int64]

    def aims(self, schedule: BaseSchedule, rho: float) -> tuple[float, ...]:
        """Return the JCW that training is to keep in each group of the selection fold."""
        counts = np.bincount(self.selection, minlength=len(self.names))
        return tuple(
            budget if budget == NO_BUDGET else schedule.aim(budget, rho, max(int(n), 1))
            for budget, n in zip(self.budgets, counts, strict=True)
        )

    def annotate_folds(self, rows: Rows, chosen: Rows, *, balanced: bool) -> tuple[Rows, Rows]:
        """Return the rows of both folds with their groups."""
        first = self.annotate(rows, self.train, balanced=balanced)
        return first, self.annotate(chosen, self.selection, balanced=balanced)

    def annotate(self, rows: Rows, group: NDArray[np.int64], *, balanced: bool) -> Rows:
        """Return rows that know their groups, which count alike if they are to be balanced."""
        index = torch.from_numpy(group).to(rows.device)
        weight = rows.weight
        if balanced:
            counts = torch.bincount(index, weight, minlength=len(self.names)).clamp(min=1e-12)
            each = counts.double().reciprocal()[index]
            weight = each if weight is None else each * weight
            weight = weight / weight.mean()
        return AnnotatedRows(rows.X, rows.y, weight, index)


def find_groups(promise: Promise | None, train_by: Any, selection_by: Any) -> TrainingGroups | None:
    """Return the groups to train for; None if no promise by group has a common threshold, or nobody knows.

    Parameters
    ----------
    promise : Promise or None
    train_by, selection_by : dict of arrays or None
        Columns of the promise's groups, for the rows of both folds.
    """
    parts = [] if promise is None else promise.simple()
    common = next((part for part in parts if part.kind == "by_group" and part.common), None)
    if common is None or not train_by or not selection_by:
        return None
    both = {
        name: np.concatenate([np.asarray(by[name], object) for by in (train_by, selection_by)])
        for name in common.by
    }
    codes, labels = factorize(crossed(both, common.by))
    if len(labels) < 2 or (codes < 0).any():
        return None
    found = [common.budget_of(plain_label(label)) for label in labels]
    n = len(next(iter(train_by.values())))
    return TrainingGroups(
        names=[str(label) for label in labels],
        budgets=tuple(NO_BUDGET if budget is None else budget for budget in found),
        train=codes[:n].astype(np.int64),
        selection=codes[n:].astype(np.int64),
    )


class Served(NamedTuple):
    """What a way of training gives on the selection fold, at the threshold that keeps every budget there."""

    threshold: float
    worst: float
    overall: float

    @property
    def shares(self) -> dict[str, float]:
        """Rows acted on rightly, in the worst group and overall."""
        return {"worst": self.worst, "overall": self.overall}


def serve(
    score: NDArray[np.float64],
    right: NDArray[np.bool_],
    group: NDArray[np.int64],
    aims: Sequence[float],
) -> Served:
    """Return the common threshold of the groups, and the share of rows rightly acted on with it.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.group_training import serve
    >>> score, right = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, True, False, True])
    >>> serve(score, right, np.array([0, 0, 1, 1]), [0.1, 0.1]).overall
    0.5
    """
    members = [group == number for number in range(len(aims))]
    held = [(mask, aim) for mask, aim in zip(members, aims, strict=True) if mask.any()]
    # a group may be kept by a threshold that is the score of another group's row
    thresholds = np.append(np.unique(score), np.inf)
    kept = np.ones(len(thresholds), bool)
    for mask, aim in held:
        mistakes = np.sort(score[mask & ~right])
        kept &= len(mistakes) - np.searchsorted(mistakes, thresholds) <= aim * mask.sum()
    threshold = float(thresholds[kept.argmax()])
    acted_rightly = (score >= threshold) & right
    worst = min(float(acted_rightly[mask].mean()) for mask, _ in held)
    return Served(threshold, worst, float(acted_rightly.mean()))


def choose_way(tried: dict[str, Served]) -> str:
    """Return the way that serves the worst group best, among those that serve all rows nearly best.

    Examples
    --------
    >>> from reliablenet.methods.group_training import Served, choose_way
    >>> choose_way({"plain": Served(0.9, 0.2, 0.70), "weights": Served(0.8, 0.4, 0.69)})
    'weights'
    >>> choose_way({"plain": Served(0.9, 0.2, 0.70), "weights": Served(0.8, 0.4, 0.60)})
    'plain'
    """
    most = max(served.overall for served in tried.values())
    allowed = {
        way: served for way, served in tried.items() if most - served.overall <= LARGEST_LOSS
    }
    return max(allowed, key=lambda way: allowed[way].worst)


def way_taken(tried: str, history: History) -> str:
    """Return the way by which the weights came about: without the constraint, where it did not serve."""
    way = WAYS[tried]
    if way.constrained and history.chosen().stage == 0:
        way = way._replace(constrained=False)
    return next(name for name, one in WAYS.items() if one == way)


def schedule_of(way: Way, schedule: BaseSchedule) -> BaseSchedule:
    """Return the schedule of a way: without stages, where there is no constraint."""
    return schedule if way.constrained else schedule.without_constraint()
