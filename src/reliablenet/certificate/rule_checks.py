"""Whether the certificate of a rule fits together: its promise, its thresholds, its parts and their levels."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.promise import Promise
from reliablenet.certificate.promise_counter import limited_by
from reliablenet.certificate.record import Certificate, Population
from reliablenet.certificate.rule import ALL, Rule
from reliablenet.certificate.wording import threshold_text
from reliablenet.errors import InvalidDataError

if TYPE_CHECKING:
    from reliablenet.certificate.rule_certificate import RuleCertificate

POPULATIONS: dict[str, Population] = {
    "overall": "all",
    "among_accepted": "accepted",
    "by_group": "group",
    "by_class": "class",
    "by_predicted": "predicted",
    "cost": "all",
}
ROUNDING = 1e-9  # of a sum of shares


def part_name(promise: Promise, label: Any) -> str:
    """Return what a part of a certificate is called."""
    if promise.kind == "by_group":
        return f"{', '.join(promise.by)}={label}"
    return {"overall": "all", "among_accepted": "accepted", "cost": "cost"}.get(
        promise.kind, str(label)
    )


def deferred_name(promise: Promise, label: Any) -> str:
    """Return the name of the rows that the threshold of a population defers."""
    kinds = {"by_class": "predictions other than ", "by_predicted": "predictions of "}
    return kinds.get(promise.kind, "") + part_name(promise, label)


def has_own_thresholds(promise: Promise, whole: Promise, classes: Any) -> bool:
    """Tell whether each population of a promise has a threshold of its own, by what is known to decide.

    The group, if it is known, and the prediction are. A mistake in a true class is one in what was
    predicted instead, if there are two classes or if only one class has a budget. Where the share of
    mistakes among rows acted on is promised as well, all share one rule: or it would be another's share.

    Parameters
    ----------
    promise : Promise
        A part of the whole.
    whole : Promise
    classes : sequence or None
        Labels of the classes, if they are known.

    Returns
    -------
    bool
    """
    if any(part.kind == "among_accepted" for part in whole.simple()):
        return False
    if promise.kind == "by_class":
        one = isinstance(promise.alpha, dict) and len(promise.alpha) == 1
        return classes is not None and (len(classes) == 2 or one)
    return promise.kind == "by_predicted" or (promise.kind == "by_group" and not promise.common)


def check_whole(certificate: RuleCertificate) -> None:
    """Raise unless the parts are those of the promise, and were tested at rho in all."""
    c = certificate
    matched = _matched(c)
    for key in (table.key for table in c.rule.tables):
        groups = [part.by for part in c.promise.simple() if part.kind == "by_group"]
        if key not in ((ALL,), ("predicted",), *groups):
            raise InvalidDataError(
                f"The rule has thresholds for {' and '.join(key)}, which the promise does not name."
            )
    spent, together = 0.0, 0.0
    for promise, parts in zip(c.promise.simple(), matched, strict=True):
        _check_counts(c, promise, parts)
        own = has_own_thresholds(promise, c.promise, c.rule.classes)
        for part in parts:
            _check_threshold(c.rule, promise, part, own)
        tested = [part for part in parts if part.kind != "fixed" and _was_tested(part)]
        if own:
            spent += sum(part.rho for part in tested if not _accepts_all(part.threshold))
        else:
            together = max([together, *(part.rho for part in tested)])
    if spent + together > c.rho * (1 + ROUNDING):
        raise InvalidDataError(
            f"The parts were tested at {spent + together:g} in all, more than rho = {c.rho:g}."
        )


def unproved(rule: Rule, promise: Promise, parts: tuple[Certificate, ...]) -> list[str]:
    """Return the groups that a rule acts on though no row of theirs was seen."""
    known = {part.name for part in parts}
    found = []
    for whole in promise.simple():
        for table in rule.tables:
            if whole.kind == "by_group" and table.key == whole.by:
                names = (part_name(whole, k) for k, v in table.values.items() if v < math.inf)
                found += [name for name in names if name not in known]
    return found


@dataclass(frozen=True)
class Others:
    """Rows of groups that the promise does not name, where all groups share a threshold.

    The group of a row is not known when it is decided, so these rows are acted on like the rest.

    Attributes
    ----------
    promise : Promise
    n, accepted, errors : int
        Such rows of the certification fold, those acted on, and those acted on and wrong.
    of : int
        All rows of the fold.
    """

    promise: Promise
    n: int
    accepted: int
    errors: int
    of: int


def others(certificate: RuleCertificate) -> list[Others]:
    """Return what was counted of groups that promises with a common threshold do not name."""
    c = certificate
    return [
        Others(
            promise,
            c.n - sum(part.n for part in parts),
            c.accepted - sum(part.accepted for part in parts),
            c.errors - sum(part.errors for part in parts),
            c.n,
        )
        for promise, parts in zip(c.promise.simple(), _matched(c), strict=True)
        if promise.kind == "by_group" and promise.common and isinstance(promise.alpha, dict)
    ]


def _matched(c: RuleCertificate) -> list[list[Certificate]]:
    """Return the parts of each promise, or say which do not belong together."""
    promises = c.promise.simple()
    matched: list[list[Certificate]] = [[] for _ in promises]
    for part in c.parts:
        places = [i for i, promise in enumerate(promises) if _speaks_of(promise, part)]
        if not places:
            raise InvalidDataError(
                f"The part {part.name!r} has the budget {part.alpha:g} for the population "
                f"{part.population!r}, but the promise has no such part."
            )
        # two tables of costs may have the same budget as a share: their parts stand in their order
        open_places = [i for i in places if part.name not in {own.name for own in matched[i]}]
        if not open_places:
            raise InvalidDataError(f"The part {part.name!r} appears twice.")
        matched[open_places[0]].append(part)
    for promise, own in zip(c.promise.simple(), matched, strict=True):
        named = {part.name for part in own}
        labels = list(promise.alpha) if isinstance(promise.alpha, dict) else [ALL]
        open_ended = promise.kind.startswith("by_") and not isinstance(promise.alpha, dict)
        lacking = [
            part_name(promise, label)
            for label in labels
            if part_name(promise, label) not in named
            and not {part_name(promise, label), deferred_name(promise, label)} & set(c.deferred)
        ]
        if lacking and not open_ended:
            raise InvalidDataError(f"No part proves what is promised of {lacking[0]!r}.")
    return matched


def _speaks_of(promise: Promise, part: Certificate) -> bool:
    if part.population != POPULATIONS[promise.kind]:
        return False
    if isinstance(promise.alpha, dict):
        budgets = {part_name(promise, label): budget for label, budget in promise.alpha.items()}
        return budgets.get(part.name) == part.alpha
    largest = promise.largest_cost if promise.kind == "cost" else 1.0
    named = part.name == part_name(promise, ALL)
    if promise.kind == "by_group":
        named = part.name.startswith(part_name(promise, ""))
    return (named or promise.kind in ("by_class", "by_predicted")) and (
        part.alpha == promise.alpha / largest
    )


def _check_counts(c: RuleCertificate, promise: Promise, parts: list[Certificate]) -> None:
    """Raise unless the counts of the parts fit the counts of all rows."""
    kind = promise.kind
    for part in parts:
        fits = part.n <= c.n and part.accepted <= c.accepted and part.rho <= c.rho
        if kind in ("overall", "cost", "by_predicted"):
            fits = fits and part.n == c.n
        if kind in ("overall", "cost", "among_accepted"):
            fits = fits and part.accepted == c.accepted
        if kind in ("overall", "among_accepted"):
            fits = fits and part.errors == c.errors
        if kind == "among_accepted" and c.accepted:
            fits = fits and part.n == c.accepted
        if not fits or part.unit != c.unit:
            raise InvalidDataError(
                f"The part {part.name!r} does not fit the whole: {part.errors} mistakes in "
                f"{part.accepted} of {part.n} rows at rho {part.rho:g}, where the whole has {c.errors} "
                f"in {c.accepted} of {c.n} at rho {c.rho:g}."
            )
    if kind.startswith("by_"):
        rows = 0 if kind == "by_predicted" else sum(part.n for part in parts)
        accepted = sum(part.accepted for part in parts)
        if rows > c.n or accepted > c.accepted or sum(p.errors for p in parts) > c.errors:
            raise InvalidDataError(
                f"The parts of this promise count more rows than there are: {promise}."
            )


def _check_threshold(rule: Rule, promise: Promise, part: Certificate, own: bool) -> None:
    """Raise if a rule acts below the threshold that its part proves."""
    acts_from = rule.threshold
    key = promise.by if promise.kind == "by_group" else ("predicted",)
    if own and (promise.kind == "by_group" or part.kind != "fixed"):
        acts_from = min(
            (
                threshold
                for table in rule.tables
                if table.key == key
                for label, threshold in table.values.items()
                if part.name in _limiting(promise, label, rule.classes)
            ),
            default=math.inf,
        )
    proved = -math.inf if part.threshold <= -sys.float_info.max else part.threshold
    if acts_from < proved or (proved == math.inf and part.accepted):
        raise InvalidDataError(
            f"The rule acts {_from(acts_from)}, but the part {part.name!r} is proved {_from(part.threshold)}."
        )


def _from(threshold: float) -> str:
    """Say from which threshold on something holds."""
    if math.isinf(threshold):
        return "nowhere" if threshold > 0 else "everywhere"
    return f"from {threshold_text(threshold)} on"


def _limiting(promise: Promise, label: Any, classes: Any) -> list[str]:
    """Return the parts that the threshold of a label must heed."""
    if promise.kind == "by_group":
        return [part_name(promise, label)]
    budgets = list(promise.alpha) if isinstance(promise.alpha, dict) else list(classes or [label])
    found = limited_by(promise.kind, label, budgets)
    return [] if found is None else [part_name(promise, found)]


def _was_tested(part: Certificate) -> bool:
    return largest_certifiable_errors(part.n, part.alpha, part.rho) >= 0


def _accepts_all(threshold: float) -> bool:
    """Tell whether a threshold is the lowest there is: then its share of rho was passed on."""
    return threshold == 0.0 or threshold <= -sys.float_info.max
