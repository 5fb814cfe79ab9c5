"""The search for a rule: the one mechanism behind every promise.

**The lemma.** A nested family of rules that was fixed without the certification fold is one score, a
path. Take several constraints on one path, each monotone, and the most permissive place at which the
bounds of *all* of them hold: with probability at least 1 - rho all are kept, without a correction. For at
the first place at which some constraint truly fails, that constraint's own test must have passed, which has
probability at most rho (an intersection-union test). Promises with thresholds of their own, such as those
of groups, and the path share rho alike; within such a promise its populations share what it has, and
one that may accept every row passes its share on to the others (Holm). The share of mistakes among rows
acted on is not monotone: places are tested in an order fixed on the selection fold, up to the first that
fails (Learn then Test); without a selection fold at ten coverages, which share rho.
docs/decisions/0025 has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_fraction
from reliablenet.certificate.bounds import clopper_pearson_upper
from reliablenet.certificate.judgement import Count
from reliablenet.certificate.merging import count_all, in_one
from reliablenet.certificate.promise import plain_label
from reliablenet.certificate.promise_counter import PromiseCounter, share_level
from reliablenet.certificate.record import Certificate, Provenance, Unit
from reliablenet.certificate.rule import ALL, Rule, Thresholds, merge_tables
from reliablenet.certificate.rule_certificate import RuleCertificate
from reliablenet.certificate.rule_parts import make_parts
from reliablenet.certificate.rule_plan import Floats, RulePlan, named
from reliablenet.certificate.scored import ScoredRows

COVERAGES = tuple(k / 10 for k in range(10, 0, -1))  # tried where no order was learned

Stage = Literal["mistakes", "above", "accepted", "as it stands"]  # what the next look is for


def certified_rule_batches(
    read: Callable[[], Iterable[ScoredRows]],
    plan: RulePlan,
    rho: float = 0.05,
    *,
    unit: Unit = "row",
    provenance: Provenance | None = None,
) -> RuleCertificate:
    """Do what `certified_rule` does, for rows that come in batches.

    Parameters
    ----------
    read : callable
        Returns the batches, the same rows whenever it is called; it is called up to three times. Where
        they say whose row each is, one row of each counts and is kept in memory.
    plan : RulePlan
        As `plan_rule` returns it.
    rho : float in (0, 1)
    unit : {"row", "group"}
        What a row stands for.
    provenance : Provenance, optional

    Returns
    -------
    RuleCertificate
        The same as in memory, to the bit. Memory is needed for the scores of mistakes; where rows acted
        on are promised and no order was learned, for all scores.
    """
    owner = "certified_rule_batches"
    level = check_fraction("rho", rho, owner)
    search = count_all(in_one(read), lambda _: Search(plan, level, unit), owner)
    return search.certificate(provenance)


def certify_rule_batches(
    batches: Iterable[ScoredRows],
    rule: Rule,
    plan: RulePlan,
    rho: float = 0.05,
    *,
    unit: Unit = "row",
    provenance: Provenance | None = None,
) -> RuleCertificate:
    """Certify a rule that was fixed beforehand, on rows that come in batches and are looked at once.

    Parameters
    ----------
    batches : iterable of ScoredRows
    rule : Rule
    plan : RulePlan
        Of the promise; nothing is learned for a fixed rule.
    rho : float in (0, 1)
    unit : {"row", "group"}
    provenance : Provenance, optional

    Returns
    -------
    RuleCertificate
    """
    owner = "certify_rule_batches"
    level = check_fraction("rho", rho, owner)
    search = count_all(in_one(lambda: batches), lambda _: Search(plan, level, unit, rule), owner)
    return search.certificate(provenance)


class Search:
    """The state of a search: what was counted, and from which places on each path accepts.

    Parameters
    ----------
    plan : RulePlan
    rho : float
    unit : {"row", "group"}
    rule : Rule, optional
        One that was fixed beforehand, to be counted as it stands.
    """

    def __init__(
        self, plan: RulePlan, rho: float, unit: Unit = "row", rule: Rule | None = None
    ) -> None:
        self.plan, self.rho, self.rule = plan, rho, rule
        self.fixed = rule is not None
        self.stage: Stage = "as it stands" if self.fixed else "mistakes"
        self.steady_level = self.among_level = rho  # where the rule is fixed, all must pass
        self.count = Count(unit=unit)
        self.own, joint = plan.counters()
        self._set_joint(joint)
        # with the second look; on a learned path the rule must be known first
        self.counted = not plan.path.scales
        self._above = np.zeros(len(plan.places) + 1, np.int64)  # rows at or above each place
        self._wrong_above = np.zeros(len(plan.places) + 1, np.int64)
        self._scores: list[tuple[Floats, NDArray[np.bool_]]] = []
        self._lowest = -math.inf
        self.own_excess: list[Floats] = []  # by promise and population
        self.own_next: list[Floats] = []
        self.excess, self.next = -math.inf, math.inf
        self.place = math.nan  # where it is fixed already

    def blank(self) -> Search:
        """Return the same search, as far as it is decided, with nothing counted."""
        empty = copy(self)
        empty.count = Count(unit=self.count.unit)
        empty.own = [counter.blank() for counter in self.own]
        empty._set_joint([counter.blank() for counter in self.joint])
        empty._above, empty._wrong_above = self._above * 0, self._wrong_above * 0
        empty._scores = []
        empty.own_next = [np.full(len(excess), math.inf) for excess in self.own_excess]
        return empty

    def _set_joint(self, counters: list[PromiseCounter]) -> None:
        """Keep the counters of the path: one may not be monotone, the others are steady."""
        self.joint = counters
        self.among = next((t for t in counters if t.promise.kind == "among_accepted"), None)
        self.steady = [counter for counter in counters if counter is not self.among]

    def add(self, rows: ScoredRows) -> None:
        """Take in rows: what is looked at depends on how far the search is."""
        if self.stage == "mistakes":
            self._look(rows)
        elif self.stage == "above":
            self._look_above(rows)
        else:
            assert self.rule is not None  # noqa: S101
            if self.stage == "as it stands":
                self._measure(rows)
            self._count_accepted(rows, accept_rows(self.rule, rows))

    def merge(self, later: Search) -> None:
        """Take in what was counted of later rows at the same stage."""
        self.count.merge(later.count)
        for counter, more in zip((*self.own, *self.joint), (*later.own, *later.joint), strict=True):
            counter.merge(more)
        self._above += later._above
        self._wrong_above += later._wrong_above
        self._scores += later._scores
        self._lowest = max(self._lowest, later._lowest)
        for nearest, other in zip(self.own_next, later.own_next, strict=True):
            np.minimum(nearest, other, out=nearest)
        self.next = min(self.next, later.next)

    def look_again(self) -> bool:
        """Decide what can be decided, and tell whether the rows must be looked at once more."""
        if self.stage == "mistakes":
            self.plan = replace(self.plan, path=replace(self.plan.path, lowest=self._lowest))
            self._decide()
            self.stage = "above"
            return True
        if self.stage == "above":
            self.rule = self._make_rule()
            self.stage = "accepted"
            if self.rule.threshold == math.inf:  # nor is a prediction without a budget acted on
                self._forget_accepted()
            return not self.counted
        return False

    def _look(self, rows: ScoredRows) -> None:
        """Take in rows: sizes of populations, places of mistakes."""
        self._lowest = rows.lowest
        self.count.n += rows.n
        self.count.look(rows)
        for counter in self.own:
            counter.look(rows, rows.score)
        place = self._places(rows)
        for counter in self.steady:
            counter.look(rows, place)
        if self.among is not None:
            self.among.sizes += rows.n
            if len(self.plan.places):
                # places fall; a row counts at the first that it reaches and at all later ones
                first = np.searchsorted(-self.plan.places, -place, side="left")
                length = len(self._above)
                self._above += np.bincount(first, minlength=length)
                self._wrong_above += np.bincount(first[rows.wrong], minlength=length)
            else:
                self._scores.append((place, rows.wrong))

    def _measure(self, rows: ScoredRows) -> None:
        """Take in sizes of populations alone."""
        self.count.n += rows.n
        self.count.look(rows)
        for counter in (*self.own, *self.joint):
            counter.measure(rows, counter.codes(rows))

    def _decide(self) -> None:
        """Find from which places on the rules accept: above the last mistake that is not affordable."""
        shares = len(self.own) + bool(self.joint)  # of rho: one a promise, one for the path
        self.levels = [share_level(counter, self.rho / shares) for counter in self.own]
        self.own_excess = [
            np.array(
                [
                    counter.excess(code, level.each) if code in level.tested else math.inf
                    for code in range(len(counter.labels))
                ]
            )
            for counter, level in zip(self.own, self.levels, strict=True)
        ]
        self.own_next = [np.full(len(excess), math.inf) for excess in self.own_excess]
        self.steady_level = self.among_level = self.rho / shares
        if self.among is not None and not len(self.plan.places):
            # coverages are tested apart from each other and from what else is promised
            self.steady_level /= 2 if self.steady else 1
            self.among_level = self.steady_level / len(COVERAGES)
        self.excess = max(
            (
                counter.excess(code, self.steady_level)
                for counter in self.steady
                for code in range(len(counter.labels))
                if not math.isnan(counter.budgets[code])
            ),
            default=-math.inf,
        )
        if self.among is not None:
            self.place = self._sequence() if len(self.plan.places) else self._coverages()

    def _look_above(self, rows: ScoredRows) -> None:
        """Find the nearest places above, and count what is accepted."""
        accepted = np.ones(rows.n, bool)
        for counter, excess, nearest in zip(self.own, self.own_excess, self.own_next, strict=True):
            whose = counter.limit_codes(rows)
            free = counter.promise.kind != "by_group" and bool((excess < math.inf).any())
            above = rows.score > np.append(excess, -math.inf if free else math.inf)[whose]
            own = above & (whose >= 0)
            np.minimum.at(nearest, whose[own], rows.score[own])
            accepted &= above
        place = self._places(rows)
        if self.joint:
            fixed = not math.isnan(self.place)
            above = place >= self.place if fixed else place > self.excess
            self.next = min(self.next, float(place[above].min(initial=math.inf)))
            accepted &= above
        if self.counted:
            self._count_accepted(rows, accepted)

    def _count_accepted(self, rows: ScoredRows, accepted: NDArray[np.bool_]) -> None:
        """Count the rows that the rule accepts, by population."""
        self.count.accepted += int(np.count_nonzero(accepted))
        self.count.errors += int(np.count_nonzero(accepted & rows.wrong))
        for counter in (*self.own, *self.joint):
            counter.count(rows, accepted, counter.codes(rows))

    def _forget_accepted(self) -> None:
        self.count.accepted = self.count.errors = 0
        for counter in (*self.own, *self.joint):
            counter.forget_accepted()

    def _make_rule(self) -> Rule:
        """Return the rule: thresholds midway between a mistake too many and the next row above."""
        path, tables = self.plan.path, []
        if self.joint:
            place = self.place
            if math.isnan(place):
                place = _midway(self.excess, self.next, -math.inf)
            if not path.scales:
                tables.append(Thresholds((ALL,), {ALL: max(place, path.lowest)}))
            else:
                found = path.thresholds(place)
                tables.append(
                    Thresholds(("predicted",), {plain_label(k): v for k, v in found.items()})
                )
        for counter in self.own:
            codes = enumerate(counter.labels)
            values = {label: self.own_threshold(counter, code) for code, label in codes}
            tables.append(counter.table(values, path.lowest))
        names = None if self.plan.classes is None else tuple(self.plan.classes)
        return Rule(merge_tables(tables), names)

    def own_threshold(self, counter: PromiseCounter, code: int) -> float:
        """Return the threshold of a population that has one of its own."""
        place = self.own.index(counter)
        low, high = self.own_excess[place][code], self.own_next[place][code]
        return _midway(float(low), float(high), self.plan.path.lowest)

    def certificate(self, provenance: Provenance | None = None) -> RuleCertificate:
        """Put the counts into certificates."""
        assert self.rule is not None  # noqa: S101
        labels = self.count.labels
        for counter in (*self.own, *self.joint):
            counter.check_labels(labels or ())
        parts, deferred = make_parts(self, self.rule)
        return RuleCertificate(
            promise=self.plan.promise,
            rule=self.rule,
            parts=tuple(parts),
            rho=self.rho,
            n=self.count.n,
            accepted=self.count.accepted,
            errors=self.count.errors,
            unit=self.count.unit,
            deferred=deferred,
            commonest=None if labels is None else max(labels.values(), default=0),
            unknown=self.count.unknown,
            provenance=replace(provenance or Provenance(), model=self.count.mark.text()),
        )

    def _places(self, rows: ScoredRows) -> Floats:
        if not self.plan.path.scales:
            return rows.score
        return self.plan.path.places(rows.score, named(rows.predicted, self.plan.classes))

    def _sequence(self) -> float:
        """Return the last place that passes, tested in the learned order; inf if none does."""
        assert self.among is not None  # noqa: S101
        rows, wrong = np.cumsum(self._above)[:-1], np.cumsum(self._wrong_above)[:-1]
        bound = clopper_pearson_upper(wrong, np.maximum(rows, 1), self.among_level)
        within = (rows > 0) & (bound <= self.among.budgets[0])
        if self.excess > -math.inf:
            within &= self.plan.places > self.excess
        passed = len(within) if within.all() else int(np.argmin(within))
        return float(self.plan.places[passed - 1]) if passed else math.inf

    def _coverages(self) -> float:
        """Return the most permissive of ten coverages that passes; they share the level.

        Given the score of a rank, the rows above it are independent draws from above it. The rule
        is "above that score": the share of mistakes would be another halfway to the next row.
        """
        assert self.among is not None  # noqa: S101
        place = np.concatenate([part for part, _ in self._scores])
        wrong = np.concatenate([part for _, part in self._scores])
        self._scores.clear()
        order = np.argsort(-place)  # a coverage holds all ties or none
        place, total = place[order], np.cumsum(wrong[order])
        for coverage in COVERAGES:
            rank = math.ceil(coverage * len(place))
            cut = -math.inf if rank == len(place) else place[rank]
            n = int(np.count_nonzero(place > cut))
            if n == 0:
                break
            bound = clopper_pearson_upper(int(total[n - 1]), n, self.among_level)
            if bound <= self.among.budgets[0] and place[n - 1] > self.excess:
                return (
                    self.plan.path.lowest if rank == len(place) else math.nextafter(cut, math.inf)
                )
        return math.inf


def _midway(excess: float, nearest: float, lowest: float) -> float:
    if excess == -math.inf:
        return lowest
    if math.isinf(excess) or math.isinf(nearest):
        return math.inf
    middle = excess / 2 + nearest / 2
    return middle if middle > excess else nearest


def accepted_by(certificate: Certificate | RuleCertificate, rows: ScoredRows) -> NDArray[np.bool_]:
    """Tell which scored rows the rule of a certificate of either kind accepts."""
    if isinstance(certificate, Certificate):
        return np.asarray(rows.score >= certificate.threshold)
    return accept_rows(certificate.rule, rows)


def accept_rows(rule: Rule, rows: ScoredRows) -> NDArray[np.bool_]:
    """Tell which scored rows a rule accepts; their predictions are places among its classes, if it has any."""
    predicted = named(rows.predicted, rule.classes)
    return rule.accept(by=rows.by, score=rows.score, predicted=predicted)
