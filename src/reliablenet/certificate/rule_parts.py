"""The parts of a rule's certificate, made from what was counted of each population."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from reliablenet.certificate.cost import CostCertificate
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.promise_wording import NO_ROW
from reliablenet.certificate.record import Certificate, Kind
from reliablenet.certificate.rule import Rule
from reliablenet.certificate.rule_checks import POPULATIONS, deferred_name, part_name

if TYPE_CHECKING:
    from reliablenet.certificate.promise_counter import PromiseCounter
    from reliablenet.certificate.rule_search import Search


def make_parts(search: Search, rule: Rule) -> tuple[list[Certificate], dict[str, str]]:
    """Return a certificate for each population, and why groups are deferred."""
    parts: list[Certificate] = []
    deferred: dict[str, str] = {}
    for counter in (*search.own, *search.joint):
        separate = counter in search.own
        for code in _in_order(counter.labels):
            label, alpha = counter.labels[code], counter.budgets[code]
            name = part_name(counter.promise, label)
            if math.isnan(alpha):
                if separate:  # else nobody knows at decision time whose row it is
                    deferred[name] = "it has no budget"
                continue
            n = int(counter.sizes[code])
            if n == 0:
                deferred[name] = NO_ROW
                continue
            level = search.among_level if counter is search.among else search.steady_level
            threshold = rule.threshold
            if search.fixed:
                threshold = _fixed_threshold(rule, counter, label)
            elif separate:
                own = search.levels[search.own.index(counter)]
                level = own.each if code in own.tested else own.refused
                threshold = search.own_threshold(counter, code)
            if threshold == math.inf and search.fixed:
                deferred[deferred_name(counter.promise, label)] = "the rule defers it"
            elif threshold == math.inf and separate:
                few = largest_certifiable_errors(n, alpha, level) < 0
                why = f"too few rows: {n:,}" if few else "too many mistakes"
                deferred[deferred_name(counter.promise, label)] = why
            # rows of a true class are acted on where they are predicted right: no mistake is possible
            if threshold < math.inf or not counter.accepted[code]:
                parts.append(_part(search, counter, code, level, threshold, name))
    return parts, deferred


def _fixed_threshold(rule: Rule, counter: PromiseCounter, label: Any) -> float:
    """Return the threshold of a group in a rule; of whatever else the lowest."""
    for table in rule.tables:
        if table.key == counter.key and counter.promise.kind == "by_group":
            return table.values.get(label, math.inf)
    return rule.threshold


def _part(
    search: Search, counter: PromiseCounter, code: int, level: float, threshold: float, name: str
) -> Certificate:
    kind: Kind = "sequence" if counter is search.among else "monotone"
    kind = "fixed" if search.fixed else kind
    n, accepted = int(counter.sizes[code]), int(counter.accepted[code])
    if counter is search.among and accepted:
        n = accepted
    if threshold == -math.inf and accepted < n:  # another threshold defers some of them
        threshold = -sys.float_info.max
    values: dict[str, Any] = {
        "errors": int(counter.errors[code]),
        "accepted": accepted,
        "n": n,
        "alpha": counter.budgets[code],
        "rho": level,
        "threshold": threshold,
        "kind": kind,
        "unit": search.count.unit,
        "population": POPULATIONS[counter.promise.kind],
        "name": name,
    }
    if counter.promise.kind == "cost":
        largest = counter.promise.largest_cost
        spent: dict[str, Any] = {
            "cost": counter.cost,
            "largest": largest,
            "single": counter.counts,
            "guessing": counter.guessing,
        }
        return CostCertificate(**values, **spent)
    return Certificate(**values)


def _in_order(labels: list[Any]) -> list[int]:
    """Return the places of labels in their own order; texts and numbers do not mix."""
    return sorted(range(len(labels)), key=lambda code: (str(type(labels[code])), labels[code]))
