"""Sources with a known truth for promises, and the rules that all draws of a fold give, computed at once.

A row is of one of a few kinds (its group, its true or its predicted class) and has one of a few scores. A rule is
a table of which kinds are acted on at which scores, so that every risk of a rule is a sum. The rules are found
here a second time, with scipy's binomial tail and without the library; `promises` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from reliablenet.certificate.cost import largest_certifiable_cost
from reliablenet.certificate.promise import Promise
from reliablenet.certificate.rule_plan import RulePlan, plan_rule
from reliablenet.certificate.rule_search import COVERAGES
from reliablenet.certificate.scored import ScoredRows

Array = NDArray[Any]
FOLDS = 100  # selection folds, each of which serves as many certification folds


@dataclass(frozen=True, eq=False)
class Source:
    """How often rows of each kind and score are right and wrong; the highest score comes first.

    Parameters
    ----------
    right, wrong : arrays of shape (kinds, scores)
        Chances; all of them sum to 1.
    """

    right: Array
    wrong: Array

    @classmethod
    def of(cls, shares: ArrayLike, risk: Any) -> Source:
        """Make a source from the share of each kind and P(acted and wrong | kind) at each score."""
        part = np.asarray(shares, float)[:, None]
        curve = np.atleast_2d(np.asarray(risk, float)) * np.ones_like(part)
        wrong = np.diff(curve, prepend=0.0) * part
        return cls(part / curve.shape[1] - wrong, wrong)

    @property
    def shares(self) -> Array:
        """Share of each kind."""
        return np.asarray((self.right + self.wrong).sum(axis=1))

    @property
    def scores(self) -> Array:
        """The scores, the highest first."""
        count = self.right.shape[1]
        return 1.0 - (np.arange(count) + 0.5) / count

    def draw(self, random: np.random.Generator, n: int, draws: int) -> tuple[Array, Array]:
        """Return how many rows of each kind and score are right and wrong, for each draw."""
        chances = np.stack([self.right, self.wrong]).ravel()
        found = random.multinomial(n, chances / chances.sum(), size=draws)
        right, wrong = found.reshape(draws, 2, *self.right.shape).swapaxes(0, 1)
        return right, wrong

    def coverage(self, accept: Array, right: Array | None = None) -> Array:
        """Return the share of rows that each rule acts on; ``right``: of those predicted right, if others."""
        wrong = np.einsum("dks,ks->d", accept, self.wrong)
        return np.asarray(
            wrong + np.einsum("dks,ks->d", accept if right is None else right, self.right)
        )

    def risks(self, promise: Promise, accept: Array) -> Array:
        """Return how far each rule goes beyond the budgets of a promise: the largest risk over its budget."""
        wrong = np.einsum("dks,ks->dk", accept, self.wrong)
        budgets = np.asarray(_budgets(promise, wrong.shape[1]))
        if promise.kind == "all_of":
            return np.max([self.risks(part, accept) for part in promise.parts], axis=0)
        if promise.kind == "cost":
            costs = np.asarray(promise.costs, float)
            return wrong @ costs[[0, 1], [1, 0]] / float(promise.alpha)  # type: ignore[arg-type]
        if promise.kind == "overall":
            return wrong.sum(axis=1) / budgets[0]
        if promise.kind == "among_accepted":
            return wrong.sum(axis=1) / np.maximum(self.coverage(accept), 1e-300) / budgets[0]
        of = 1.0 if promise.kind == "by_predicted" else self.shares
        return np.max(wrong / of / budgets, axis=1)


def rows_of(promise: Promise, source: Source, right: Array, wrong: Array) -> ScoredRows:
    """Return the rows of one draw as the library takes them; kinds are what the promise speaks of."""
    kinds, scores = right.shape
    counts = np.stack([right, wrong], axis=2).ravel()
    kind, place, miss = (
        np.repeat(index.ravel(), counts) for index in np.indices((kinds, scores, 2))
    )
    miss = miss.astype(bool)
    other = np.where(miss, (kind + 1) % kinds, kind)
    by_truth = any(part.kind in ("by_class", "cost") for part in promise.simple())
    truth, predicted = (kind, other) if by_truth else (other, kind)
    return ScoredRows(
        source.scores[place], miss, 0.0, truth=truth, predicted=predicted, by={"group": kind}
    )


def most_errors(n: Array, alpha: Any, level: Any) -> Array:
    """Return the most errors whose binomial tail is within the level, -1 if there are none."""
    rows = np.maximum(n, 1)
    k = binom.ppf(level, rows, alpha)
    k = np.where(binom.cdf(k, rows, alpha) <= level, k, k - 1)
    return np.where(n == 0, -1, k)


def own_thresholds(
    promise: Promise, rho: float, right: Array, wrong: Array, *, corrected: bool = True
) -> Array:
    """Return what is acted on where each kind has a threshold of its own, at shares of rho or each at rho."""
    errors = np.cumsum(wrong, axis=2)
    total = (right + wrong).sum(axis=2)
    sizes = total if promise.kind != "by_predicted" else total * 0 + total.sum(1, keepdims=True)
    alpha = np.asarray(_budgets(promise, sizes.shape[1]))
    tested, level = sizes > 0, np.full(len(sizes), rho)
    if corrected:
        chance = np.where(sizes > 0, (1.0 - alpha) ** sizes, 2.0)
        order = np.argsort(chance, axis=1, kind="stable")
        enough = np.take_along_axis(chance, order, 1) <= rho / np.arange(1, len(alpha) + 1)
        count = np.where(enough.any(1), len(alpha) - np.argmax(enough[:, ::-1], axis=1), 0)
        tested = np.argsort(order, axis=1) < count[:, None]
        done = np.zeros(len(sizes), int)
        for _ in range(len(alpha)):  # whoever accepts all passes its share on
            level = rho / np.maximum(count - done, 1)
            free = errors[:, :, -1] <= most_errors(sizes, alpha, level[:, None])
            done = np.maximum(done, (tested & free).sum(axis=1))
        level = rho / np.maximum(count - done, 1)
    most = np.where(tested, most_errors(sizes, alpha, level[:, None]), -1)
    return np.asarray(errors <= most[:, :, None])


def one_threshold(
    promise: Promise, rho: float, right: Array, wrong: Array, *, bounded: bool = True
) -> Array:
    """Return what is acted on where all share a threshold and each constraint is tested at rho.

    Not ``bounded``, a cost is only seen to be within its budget, which proves nothing.
    """
    kept = np.ones((len(wrong), wrong.shape[2]), bool)
    whole = (right + wrong).sum(axis=(1, 2))
    for part in promise.simple():
        if part.kind == "cost":
            costs = np.asarray(part.costs, float)[[0, 1], [1, 0]] / part.largest_cost
            spent = np.cumsum(np.einsum("dks,k->ds", wrong, costs), axis=1)
            share = float(part.alpha) / part.largest_cost  # type: ignore[arg-type]
            single = len(np.unique(costs[costs > 0])) == 1
            most: Any = share * whole[:, None]
            if bounded and single:
                most = most_errors(whole, share, rho)[:, None]
            elif bounded:
                most = largest_certifiable_cost(int(whole[0]), share, rho)
            kept &= spent <= most + 1e-9
        elif part.kind == "overall":
            errors = np.cumsum(wrong.sum(axis=1), axis=1)
            kept &= errors <= most_errors(whole, part.alpha, rho)[:, None]
        else:
            errors, sizes = np.cumsum(wrong, axis=2), (right + wrong).sum(axis=2)
            alpha = np.asarray(_budgets(part, sizes.shape[1]))
            kept &= (errors <= most_errors(sizes, alpha, rho)[:, :, None]).all(axis=1)
    return np.repeat(kept[:, None], wrong.shape[1], axis=1)


def together(promise: Promise, rho: float, right: Array, wrong: Array) -> Array:
    """Return what is acted on where the budget of each group or class is tested on all rows at once."""
    return one_threshold(Promise.overall(_budgets(promise, 1)[0]), rho, right, wrong)


def several(
    promise: Promise, rho: float, right: Array, wrong: Array, *, corrected: bool = True
) -> Array:
    """Return what is acted on under an overall promise and one by group, which share rho, or each at rho."""
    overall, by_group = promise.parts
    level = rho / 2 if corrected else rho
    return one_threshold(overall, level, right, wrong) & own_thresholds(
        by_group, level, right, wrong, corrected=corrected
    )


def coverages(
    promise: Promise, rho: float, right: Array, wrong: Array, *, corrected: bool = True
) -> Array:
    """Return what is acted on by the largest of ten coverages that passes at a tenth of rho, or at rho."""
    level = rho / len(COVERAGES) if corrected else rho
    rows, errors = (np.cumsum(c.sum(axis=1), axis=1) for c in (right + wrong, wrong))
    n, scores = rows[0, -1], rows.shape[1]
    kept = np.zeros(len(rows), int)  # scores acted on
    for coverage in COVERAGES:
        rank = int(np.ceil(coverage * n))
        # the score of the next row is the cut; what lies above it is acted on
        cut = (rows <= rank).sum(axis=1) if rank < n else np.full(len(rows), scores)
        at = np.maximum(cut - 1, 0)[:, None]
        count, miss = (np.take_along_axis(c, at, 1)[:, 0] for c in (rows, errors))
        passes = (cut > 0) & (count > 0)
        tail = binom.cdf(miss, np.maximum(count, 1), promise.alpha)
        passes &= tail <= level
        kept = np.where((kept == 0) & passes, cut, kept)
    return np.repeat((np.arange(scores) < kept[:, None])[:, None], wrong.shape[1], axis=1)


def learn(
    promise: Promise, source: Source, n: int, random: np.random.Generator, rows: int
) -> RulePlan:
    """Return what the library learns from a selection fold of the source."""
    right, wrong = source.draw(random, rows, 1)
    selection = rows_of(promise, source, right[0], wrong[0])
    return plan_rule(promise, 0.0, n, selection, np.arange(len(source.shares)))


def on_path(
    promise: Promise,
    rho: float,
    source: Source,
    plan: RulePlan,
    right: Array,
    wrong: Array,
    way: str = "",
) -> Array:
    """Return what is acted on along a learned path; ``way`` names another order of tests, for comparison."""
    kinds, scores = wrong.shape[1:]
    kind, score = np.indices((kinds, scores))
    place = plan.path.places(source.scores[score.ravel()], kind.ravel())
    levels = np.unique(place[place > -np.inf])[::-1]
    reached = place >= levels[:, None]
    if promise.kind == "among_accepted":
        steps = {"": plan.places, "blind": np.append(levels, -np.inf), "best": levels}[way]
        reached = place >= steps[:, None]
    errors = wrong.reshape(len(wrong), -1) @ reached.T
    count = (right + wrong).reshape(len(wrong), -1) @ reached.T
    whole = (right + wrong).sum(axis=(1, 2))
    if promise.kind == "among_accepted":
        passes = (count > 0) & (binom.cdf(errors, np.maximum(count, 1), promise.alpha) <= rho)
        if way == "best":  # the fault: the most permissive that passes, wherever it stands
            last = np.where(passes.any(1), passes.shape[1] - 1 - passes[:, ::-1].argmax(1), -1)
        else:
            last = np.where(passes.all(1), passes.shape[1], passes.argmin(1)) - 1
    else:
        last = (errors <= most_errors(whole, promise.alpha, rho)[:, None]).sum(axis=1) - 1
    accept = np.where(last[:, None] >= 0, reached[np.maximum(last, 0)], False)
    return np.asarray(accept.reshape(wrong.shape))


def _budgets(promise: Promise, kinds: int) -> list[float]:
    if promise.kind in ("all_of", "cost"):
        return []
    return [promise.budget_of(kind) or 1.0 for kind in range(kinds)]
