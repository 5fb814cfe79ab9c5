"""The page of a monitor: whether the promise is still kept, and what waits for a person."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from reliablenet.monitor.log import DecisionLog, Entry
from reliablenet.monitor.score_stream import ScoreStream, SourcePoint
from reliablenet.monitor.watched import DecisionCounts, Point, Watched, watch
from reliablenet.report import text
from reliablenet.report.charts import (
    Axis,
    Chart,
    Numbers,
    Rule,
    axis,
    line,
    marked_numbers,
    percent_axis,
    thin,
)
from reliablenet.report.page import render
from reliablenet.tables.tolerance import Margin, amount_text

MOST_LISTED = 25
MOST_ROWS = 25  # of the numbers below a chart
HIGHEST = 4.0  # decades of evidence that are drawn; more is no news


def monitor_page(
    log: DecisionLog,
    *,
    level: float = 0.05,
    title: str = "",
    live: bool = False,
    classes: Sequence[str] = (),
    watched: Watched | None = None,
) -> str:
    """Return the page of a decision log.

    Parameters
    ----------
    log : DecisionLog
    level : float
        Allowed probability of a false alarm.
    title : str
        By default the name of the model in force.
    live : bool
        Whether the page has forms that write outcomes to the server it came from, or is for reading alone.
    classes : sequence of str
        Labels that a person may choose from; none where the truth is a number.
    watched : Watched, optional
        What `watch` found, if that is known already.

    Returns
    -------
    str
        HTML that needs no other file, and no network but for the forms.
    """
    found = watch(log, level) if watched is None else watched
    rule = found.rules[-1]
    waiting = log.to_audit(MOST_LISTED, rule=rule.number, accepted=_of_acts_alone(found))
    deferred = log.deferred(MOST_LISTED)
    kept = log.features([entry.id for entry in (*waiting, *deferred)])
    now, monitor = found.now, found.monitor
    state, badge, verdict = _verdict(found)
    return render(
        "monitor.html",
        title=title or rule.name,
        live=live,
        classes=list(classes),
        state=state,
        badge=badge,
        verdict=verdict,
        why_not=found.why_not,
        facts=_facts(found),
        evidence=_evidence(found, level) if found.points else None,
        bound=_bound(found) if found.points else None,
        coverage=_coverage(found.points) if found.points else None,
        source=found.source,
        level=text.budget(level),
        source_chart=_source(found.source) if found.source and found.source.points else None,
        parts=_parts(found) if monitor and len(monitor.parts) > 1 else None,
        groups=_groups(found.groups) if found.groups else None,
        waiting=[_listed(entry, kept) for entry in waiting],
        waiting_count=now.waiting,
        deferred=[_listed(entry, kept) for entry in deferred],
        deferred_count=now.rows - now.accepted,
        history=_history(found),
        certificate=found.certificate,
        rule=rule,
        log=found.name,
        written=_moment(datetime.now(UTC).timestamp()),
    )


def _verdict(found: Watched) -> tuple[str, str, str]:
    """Return the state of the page, its badge and its headline."""
    if found.monitor is None:
        return "refused", "Not watched", "Whether the promise is kept is not known"
    if found.monitor.alarm:
        return "refused", "Alarm", text.typeset(str(found.monitor))
    if found.monitor.labels == 0:
        return "waiting", "No outcome yet", text.typeset(str(found.monitor))
    return "granted", "No alarm", text.typeset(str(found.monitor))


def _of_acts_alone(found: Watched) -> bool:
    """Tell whether the monitor asks for outcomes of rows acted on alone, as all but by true class do."""
    parts = found.monitor.parts.values() if found.monitor else ()
    return all(part.kind != "class" for part in parts)


def _facts(found: Watched) -> list[tuple[str, str, str]]:
    now, monitor = found.now, found.monitor
    facts = [
        ("Decisions", text.count(now.rows), f"since {_moment(found.rules[-1].time)}"),
        ("Acted on", text.percent(now.coverage), f"{text.count(now.accepted)} rows"),
        ("Picked for audit", text.count(now.audit), "by the coin"),
        (
            "Outcomes",
            text.count(now.labels),
            f"of audited rows acted on; {text.count(now.wrong)} of them wrong",
        ),
    ]
    if monitor is not None:
        alpha = min(part.alpha for part in monitor.parts.values())
        limit = 1 / monitor.level
        facts += [
            (
                "Evidence of a broken promise",
                _evidence_text(monitor.e_value),
                f"the alarm is at {limit:g}" + ", and was reached" * monitor.alarm,
            ),
            (
                "Upper bound",
                text.percent_up(monitor.upper_bound, alpha),
                f"of all rows, acted on wrongly; the budget is {text.budget(alpha)}",
            ),
            (
                "Waiting outcomes",
                text.count(monitor.pending),
                "each counts as wrong in the bound until it comes",
            ),
        ]
    return facts


def _evidence(found: Watched, level: float) -> Chart:
    points = found.points
    last = _evidence_text(points[-1].e_value)
    return _evidence_chart(
        points,
        level,
        title="Evidence against the promise",
        of="evidence that the promise is broken",
        description=f"After {points[-1].rows:,} rows the evidence is {last}; the alarm is at {1 / level:g}.",
        limit=f"alarm at {1 / level:g}",
        numbers=_thinned(
            ["Rows", "Time", "Evidence"],
            [[text.count(p.rows), _moment(p.time), _evidence_text(p.e_value)] for p in points],
        ),
    )


def _source(stream: ScoreStream) -> Chart:
    points, limit = stream.points, f"{1 / stream.level:g}"
    cells = [[text.count(point.rows), _evidence_text(point.e_value)] for point in points]
    return _evidence_chart(
        points,
        stream.level,
        title="Evidence of another source",
        of="evidence of another source",
        description=f"After {points[-1].rows:,} rows the evidence is {cells[-1][1]}; a change is reported at {limit}.",
        limit=f"a change is reported at {limit}",
        numbers=_thinned(["Rows", "Evidence"], cells),
    )


def _evidence_chart(
    points: Sequence[Point | SourcePoint],
    level: float,
    *,
    title: str,
    of: str,
    description: str,
    limit: str,
    numbers: Numbers,
) -> Chart:
    height = [_decades(point.e_value) for point in points]
    decades = math.log10(1 / level)
    low, high = math.floor(min(-1.0, *height)), math.ceil(max(decades + 0.2, *height))
    x, y = _rows_axis(points), axis(of, low, high, _power, min(high - low, 7))
    rows = [0, *(point.rows for point in points)]
    return Chart(
        title=title,
        description=description,
        x=x,
        y=y,
        lines=(line("evidence", 1, x, y, rows, [0.0, *height]),),
        rules=(Rule(float(y.place(decades)), limit),),
        numbers=numbers,
    )


def _bound(found: Watched) -> Chart:
    points, monitor = found.points, found.monitor
    alpha = min(part.alpha for part in monitor.parts.values()) if monitor else 0.05
    rows = [point.rows for point in points]
    bounds = np.array([point.upper_bound for point in points])
    seen = np.array([point.jcw for point in points])
    high = min(1.0, 1.15 * max(3 * alpha, float(bounds[-1]), float(np.nanmax(seen))))
    x, y = _rows_axis(points), percent_axis("share of all rows", 0.0, high, 4)
    cells = [
        [
            text.count(point.rows),
            _moment(point.time),
            text.percent(point.jcw, 2),
            text.percent_up(point.upper_bound, alpha),
        ]
        for point in points
    ]
    return Chart(
        title="Acted on and wrong",
        description=(
            f"After {rows[-1]:,} rows {cells[-1][2]} is estimated and at most {cells[-1][3]} is proved; the "
            f"budget is {text.budget(alpha)}."
        ),
        x=x,
        y=y,
        lines=(
            line("upper bound", 2, x, y, rows, bounds.clip(max=high)),
            line("estimated", 1, x, y, rows, seen.clip(max=high)),
        ),
        rules=(Rule(float(y.place(alpha)), f"budget {text.budget(alpha)}"),),
        numbers=_thinned(["Rows", "Time", "Estimated", "Upper bound"], cells),
    )


def _coverage(points: Sequence[Point]) -> Chart:
    x, y = _rows_axis(points), percent_axis("share acted on", 0.0, 1.0, 4)
    rows, shares = [point.rows for point in points], [point.coverage for point in points]
    cells = [[text.count(p.rows), _moment(p.time), text.percent(p.coverage)] for p in points]
    return Chart(
        title="Coverage",
        description=f"Of the last rows {text.percent(shares[-1])} were acted on.",
        x=x,
        y=y,
        lines=(line("acted on", 1, x, y, rows, shares),),
        numbers=_thinned(["Rows", "Time", "Acted on"], cells),
    )


def _rows_axis(points: Sequence[Point | SourcePoint]) -> Axis:
    return axis("rows decided", 0, points[-1].rows, lambda value: f"{value:,.0f}", 4)


def _thinned(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Numbers:
    return marked_numbers(columns, [cells[place] for place in thin(len(cells), MOST_ROWS)])


def _parts(found: Watched) -> Numbers:
    """Return each population with its own evidence."""
    columns = ["Population", "Budget", "Rows", "Outcomes", "Wrong", "Upper bound", "Alarm"]
    parts = found.monitor.parts if found.monitor else {}
    rows = [
        [
            name or "all rows",
            text.budget(part.alpha),
            text.count(part.rows),
            text.count(part.labels),
            text.count(part.errors),
            text.percent_up(part.upper_bound, part.alpha),
            f"row {part.alarm_row:,}" if part.alarm_row is not None else "no",
        ]
        for name, part in parts.items()
    ]
    marked = [place for place, part in enumerate(parts.values()) if part.alarm]
    return marked_numbers(columns, rows, marked)


def _groups(groups: Mapping[str, DecisionCounts]) -> Numbers:
    columns = ["Group", "Decisions", "Acted on", "Outcomes", "Wrong"]
    rows = [
        [
            name,
            text.count(counts.rows),
            text.percent(counts.coverage),
            text.count(counts.labels),
            text.count(counts.wrong),
        ]
        for name, counts in sorted(groups.items())
    ]
    return marked_numbers(columns, rows)


def _history(found: Watched) -> Numbers:
    columns = [
        "In force since",
        "Model",
        "Certificate",
        "Decisions",
        "Acted on",
        "Outcomes",
        "Wrong",
    ]
    rows = []
    for rule in reversed(found.rules):
        counts = found.by_rule.get(rule.number, DecisionCounts())
        acted = (
            [text.count(counts.rows), text.percent(counts.coverage)]
            if counts.rows
            else ["0", text.NONE]
        )
        rows.append(
            [
                _moment(rule.time),
                rule.model[:12],
                rule.certificate[:12],
                *acted,
                text.count(counts.labels),
                text.count(counts.wrong),
            ]
        )
    return marked_numbers(columns, rows, [0])


def _listed(entry: Entry, features: Mapping[str, str]) -> dict[str, Any]:
    asked = features.get(entry.id)
    return {
        "id": entry.id,
        "time": _moment(entry.time),
        "label": _answer(entry),
        "confidence": f"{entry.confidence:.4f}",
        "accepted": "acted on" if entry.accepted else "deferred",
        "group": entry.group,
        "features": {} if asked is None else json.loads(asked),
    }


def _answer(entry: Entry) -> str:
    """Return what the model said: a class, or a number and what it was held to."""
    if entry.tolerance is None:
        return entry.label
    margin = Margin.from_text(entry.tolerance)
    amount: Any = margin.amount
    allowed = amount_text(amount, relative=margin.relative)
    return f"{float(entry.label):.6g}, right within {allowed}"


def _decades(e_value: float) -> float:
    return min(math.log10(max(e_value, 1e-300)), HIGHEST)


def _evidence_text(value: float) -> str:
    if value >= 10.0**HIGHEST:
        return f"over {10**HIGHEST:,.0f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _power(value: float) -> str:
    number = 10.0**value
    return f"{number:,.0f}" if number >= 1 else f"{number:.2g}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
