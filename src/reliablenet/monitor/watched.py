"""A log as the monitor sees it: whether the promise is kept since the rule in force began, and how it came."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.certificate.rule_certify import read_certificate
from reliablenet.errors import DecisionLogError, ReliableNetError
from reliablenet.monitor.monitor import Monitor
from reliablenet.monitor.score_stream import ScoreStream, read_scores

if TYPE_CHECKING:
    from reliablenet.monitor.log import DecisionLog, Entry, Rule

POINTS = 120  # of a line on the page
CHUNK = 5_000


@dataclass
class DecisionCounts:
    """Counts of decisions: all, acted on, picked for audit; and what outcomes say about those acted on."""

    rows: int = 0
    accepted: int = 0
    audit: int = 0
    labels: int = 0
    wrong: int = 0
    waiting: int = 0

    def add(self, entry: Entry) -> None:
        """Count a decision; of outcomes only those that the coin asked for are a fair sample."""
        self.rows += 1
        self.accepted += entry.accepted
        self.audit += entry.audit
        if entry.audit and entry.accepted:
            if entry.wrong is None:
                self.waiting += 1
            else:
                self.labels += 1
                self.wrong += entry.wrong

    @property
    def coverage(self) -> float:
        """Share of rows acted on; 0 without rows."""
        return self.accepted / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class Point:
    """What was known after so many rows.

    Attributes
    ----------
    rows : int
        Since the rule in force began.
    time : float
        Of the last of them.
    e_value, upper_bound, jcw : float
        Of the monitor; JCW as estimated.
    coverage : float
        Share acted on among the rows since the point before.
    """

    rows: int
    time: float
    e_value: float
    upper_bound: float
    jcw: float
    coverage: float


@dataclass
class Watched:
    """What a log says about the rule in force.

    Attributes
    ----------
    name : str
        Of the log.
    rules : list of Rule
        All that were in force; the last one is.
    by_rule : dict from number of rule to DecisionCounts
    groups : dict from name of group to DecisionCounts
        Of the rule in force, where the log knows groups.
    certificate : Certificate or RuleCertificate
        In force.
    monitor : Monitor or None
    why_not : str
        Why there is no monitor.
    points : list of Point
        At most about a hundred, from the first row of the rule to the last.
    source : ScoreStream or None
        Whether confidences still look like those of the certification rows, where the log has them.
    """

    name: str
    rules: list[Rule]
    certificate: Certificate | RuleCertificate
    by_rule: dict[int, DecisionCounts] = field(default_factory=dict)
    groups: dict[str, DecisionCounts] = field(default_factory=dict)
    monitor: Monitor | None = None
    why_not: str = ""
    points: list[Point] = field(default_factory=list)
    source: ScoreStream | None = None

    @property
    def now(self) -> DecisionCounts:
        """Counts of the rule in force."""
        return self.by_rule.get(self.rules[-1].number, DecisionCounts())


def watch(
    log: DecisionLog,
    level: float = 0.05,
    alpha: float | None = None,
    before: Watched | None = None,
) -> Watched:
    """Return what a log says about the rule in force.

    All is computed anew, so that an outcome counts where its decision stands, however late it came.
    Outcomes of rows that the coin did not pick do not count: nobody knows why they are there.

    Decisions are taken in the order in which they were made, and outcomes stand where their decision
    stood, whenever they came. Until it comes, an outcome counts as right for the alarm and as wrong
    for the bound.

    Parameters
    ----------
    log : DecisionLog
    level : float
        Allowed probability of a false alarm, ever.
    alpha : float, optional
        A budget instead of that of the certificate in force.
    before : Watched, optional
        An earlier view of the same log: its confidences need not be looked at again.

    Returns
    -------
    Watched
    """
    rules = log.rules()
    if not rules:
        raise DecisionLogError(
            f"The decision log {log.name} is empty: nothing has been decided yet."
        )
    force = rules[-1]
    found = Watched(log.name, rules, read_certificate(force.document))
    found.source = _source(force, level, before)
    share = 1.0
    total = 0
    scores = array("d")
    for entry in log.entries():
        found.by_rule.setdefault(entry.rule, DecisionCounts()).add(entry)
        if entry.rule == force.number:
            total += 1
            scores.append(entry.confidence)
            share = min(share, entry.share)
            if entry.group is not None:
                found.groups.setdefault(entry.group, DecisionCounts()).add(entry)
    if found.source is not None:
        found.source.update(np.array(scores[found.source.rows :]))
    try:
        _watch(found, log, force, level, share, total, alpha)
    except ReliableNetError as error:
        found.monitor, found.why_not = None, str(error)
    return found


def _source(force: Rule, level: float, before: Watched | None) -> ScoreStream | None:
    """Return the watch over confidences: as far as it had come, or from the first row."""
    if before is not None and before.source is not None and before.rules[-1] == force:
        return before.source
    return None if force.scores is None else ScoreStream(read_scores(force.scores), level)


def _watch(
    found: Watched,
    log: DecisionLog,
    force: Rule,
    level: float,
    share: float,
    total: int,
    alpha: float | None,
) -> None:
    if share == 0.0:
        found.why_not = "No decision is audited, so nothing can be known about mistakes. Serve with a share of audits above 0."
        return
    found.monitor = Monitor(found.certificate if alpha is None else alpha, level, share)
    if total == 0:
        return
    size = min(max(-(-total // POINTS), 1), CHUNK)
    step = max(round(total / POINTS), 1)
    kept = 0
    since = DecisionCounts()
    for part in _parts(log, force.number, size):
        _update(found.monitor, part)
        for entry in part:
            since.add(entry)
        kept += len(part)
        last = kept >= total
        if since.rows >= step or last:
            jcw = _jcw(found.monitor)
            point = Point(
                kept,
                part[-1].time,
                found.monitor.e_value,
                found.monitor.upper_bound,
                jcw,
                since.coverage,
            )
            found.points.append(point)
            since = DecisionCounts()


def _parts(log: DecisionLog, rule: int, size: int) -> Iterator[list[Entry]]:
    part: list[Entry] = []
    for entry in log.entries():
        if entry.rule == rule:
            part.append(entry)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def _update(monitor: Monitor, part: list[Entry]) -> None:
    kinds: Counter[str] = Counter(known.kind for known in monitor.parts.values())
    more: dict[str, Any] = {}
    if kinds["group"]:
        more["by"] = [entry.group or "" for entry in part]
    if kinds["predicted"]:
        more["predicted"] = [entry.label for entry in part]
    if kinds["class"]:
        more["truth"] = [entry.truth or "" for entry in part]
    monitor.update(
        [entry.accepted for entry in part],
        [bool(entry.wrong) for entry in part],
        [entry.audit for entry in part],
        pending=[entry.accepted and entry.audit and entry.wrong is None for entry in part],
        probability=[entry.share for entry in part],
        **more,
    )


def _jcw(monitor: Monitor) -> float:
    """Return the estimate of the population that is nearest to its budget, or past it."""
    return max(monitor.parts.values(), key=lambda part: part.jcw / part.alpha).jcw
