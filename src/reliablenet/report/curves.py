"""Charts of rules: JCW by operating point, and error rate by coverage."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from reliablenet.certificate.wording import rows_share
from reliablenet.metrics import RiskCoverageCurve
from reliablenet.report import text
from reliablenet.report.charts import (
    MOST_POINTS,
    STYLES,
    Axis,
    Band,
    Chart,
    Numbers,
    Rule,
    line,
    marked_numbers,
    percent_axis,
    thin,
)
from reliablenet.report.operating import OperatingPoints

HEADROOM = 6  # how many budgets high the explorer's chart is at most
SHOWN_FROM = 0.05  # of fewer rows than this share the error rate is noise
COLUMNS = {
    "threshold": "Threshold",
    "coverage": "Acts on",
    "jcw": "Acts and is wrong",
    "bound": "Upper bound",
    "accuracy": "Accuracy where it acts",
    "throughput": "Acts and is right",
    "accepted": "Rows acted on",
    "errors": "of them wrong",
    "status": "Certified",
}
CERTIFIED, UNCERTIFIED, IDLE = "yes", "no", "acts on nothing"


def written_points(points: OperatingPoints) -> dict[str, list[str]]:
    """Return every value of every operating point as the page shows it, by column."""
    status = [
        IDLE if limit == math.inf else CERTIFIED if granted else UNCERTIFIED
        for limit, granted in zip(points.threshold, points.certified, strict=True)
    ]
    return {
        "threshold": [text.threshold(value) for value in points.threshold.tolist()],
        "coverage": [text.percent(value) for value in points.coverage.tolist()],
        "jcw": [text.percent(value, 2) for value in points.jcw.tolist()],
        "bound": [text.percent_up(value, points.alpha) for value in points.upper_bound.tolist()],
        "accuracy": [text.percent(value, 2) for value in points.accuracy_accepted.tolist()],
        "throughput": [text.percent(value) for value in points.throughput.tolist()],
        "accepted": [text.count(value) for value in points.accepted.tolist()],
        "errors": [text.count(value) for value in points.errors.tolist()],
        "status": status,
    }


def explorer_chart(points: OperatingPoints, written: Mapping[str, list[str]], at: int) -> Chart:
    """Return JCW and its bound at each operating point, the certified region marked."""
    places = np.arange(len(points))
    last = len(points) - 1
    ticks = sorted({round(last * part / 4) for part in range(5)})
    labels = [
        f"{text.percent(float(points.coverage[i]), 0)}\n{text.threshold(float(points.threshold[i]))}"
        for i in ticks
    ]
    x = Axis(
        f"share of {points.unit}s acted on, and below it the threshold",
        0,
        last,
        tuple((100 * i / last, label) for i, label in zip(ticks, labels, strict=True)),
    )
    highest = min(float(points.upper_bound.max()), HEADROOM * points.alpha)
    y = percent_axis(f"share of all {points.unit}s", 0, 1.1 * max(highest, 1.5 * points.alpha))
    certified = np.flatnonzero(points.certified)
    bands: tuple[Band, ...] = ()
    if len(certified):
        wide = last - certified[0] > last / 4
        label = "certified" if wide else ""
        bands = (Band(float(x.place(certified[0])), 100.0, "good", label),)
    shown = sorted({*thin(len(points), 25), at, points.place(points.certified_from)})
    columns = list(COLUMNS)
    rows = [[written[name][i] for name in columns] for i in shown]
    alpha, steps = text.budget(points.alpha), len(points) < MOST_POINTS
    acted = rows_share(written["coverage"][at], points.unit)
    wrong = rows_share(written["jcw"][at], points.unit)
    return Chart(
        title="Acted on and wrong, by threshold",
        description=(
            f"Of {points.n:,} certification {points.unit}s. At the marked threshold "
            f"{written['threshold'][at]} the model acts on {acted}, and wrongly on {wrong}, with an upper bound of "
            f"{written['bound'][at]} against a budget of {alpha}."
        ),
        x=x,
        y=y,
        lines=(
            line("upper bound", 2, x, y, places, points.upper_bound, steps=steps),
            line("observed", 1, x, y, places, points.jcw, steps=steps),
        ),
        bands=bands,
        rules=(Rule(float(y.place(points.alpha)), f"budget {alpha}"),),
        numbers=marked_numbers([*COLUMNS.values()], rows, [shown.index(at)]),
    )


def risk_coverage_chart(
    curves: Mapping[str, RiskCoverageCurve], marks: Mapping[str, float] | None = None
) -> Chart:
    """Return the error rate of the accepted rows by coverage, one line a name.

    Parameters
    ----------
    curves : mapping of str to RiskCoverageCurve
    marks : mapping of str to float, optional
        Coverages to mark, by what stands beside them.

    Returns
    -------
    Chart
    """
    grid = np.linspace(SHOWN_FROM, 1.0, 20)
    seen = [curve.risk[curve.coverage >= SHOWN_FROM].max() for curve in curves.values()]
    x = percent_axis("coverage: share of rows acted on")
    y = percent_axis("error rate of these rows", 0, max(1.15 * max(seen), 0.01))
    lines = []
    for number, (name, curve) in enumerate(curves.items()):
        coverage = np.r_[curve.coverage[0], curve.coverage]
        risk = np.r_[curve.risk[0], curve.risk]
        from_here = coverage >= min(0.5 * SHOWN_FROM, coverage.max())
        lines.append(
            line(
                name,
                number + 1,
                x,
                y,
                coverage[from_here],
                risk[from_here],
                steps=len(risk) < MOST_POINTS,
            )
        )
    rows = [
        [text.percent(share, 0), *(text.percent(_at(curve, share), 2) for curve in curves.values())]
        for share in grid.tolist()
    ]
    rows.append(["AURC", *(f"{curve.aurc:.4f}" for curve in curves.values())])
    summary = "; ".join(f"{name} has an AURC of {curve.aurc:.4f}" for name, curve in curves.items())
    return Chart(
        title="Error rate by coverage",
        description=f"The lower the line, the better rows are ranked. {summary}.",
        x=x,
        y=y,
        lines=tuple(lines),
        rules=tuple(
            Rule(float(x.place(place)), label, upright=True)
            for label, place in (marks or {}).items()
        ),
        numbers=Numbers(("Coverage", *curves), tuple(tuple(row) for row in rows)),
    )


def distinct_curves(
    curves: Mapping[str, RiskCoverageCurve],
) -> dict[str, RiskCoverageCurve]:
    """Return the first curves without repeats: rules around one classifier may rank rows alike."""
    kept: dict[str, RiskCoverageCurve] = {}
    for name, curve in curves.items():
        if len(kept) < STYLES and not any(_alike(curve, other) for other in kept.values()):
            kept[name] = curve
    return kept


def _alike(one: RiskCoverageCurve, other: RiskCoverageCurve) -> bool:
    return np.array_equal(one.coverage, other.coverage) and np.array_equal(one.risk, other.risk)


def _at(curve: RiskCoverageCurve, share: float) -> float:
    """Return the error rate at the least coverage that reaches a share."""
    place = int(np.searchsorted(curve.coverage, share - 1e-12))
    return float(curve.risk[min(place, len(curve.risk) - 1)])
