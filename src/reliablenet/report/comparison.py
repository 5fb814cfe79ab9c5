"""The page of a comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from reliablenet.certificate import Certificate, Promise, RuleCertificate
from reliablenet.certificate.promise_wording import promise_text
from reliablenet.certificate.wording import acts_on
from reliablenet.methods import Comparison
from reliablenet.methods.method_result import MethodResult
from reliablenet.report import text
from reliablenet.report.certificate import counted_rows
from reliablenet.report.charts import Axis, Numbers, marked_numbers
from reliablenet.report.curves import distinct_curves, risk_coverage_chart
from reliablenet.report.page import render

MEASURES = {
    "accuracy": "Accuracy, all rows",
    "accuracy_accepted": "Accuracy where it acts",
    "ece": "Expected calibration error",
    "aurc": "AURC",
    "excess_aurc": "Excess AURC",
}


@dataclass(frozen=True)
class Standing:
    """One line of the ranking; places of dot and interval are in percent of their axis."""

    name: str
    kind: str
    throughput: str
    interval: str
    dot: float
    low: float
    high: float
    rule: float | None
    rule_certified: bool
    cells: tuple[str, ...]
    details: Numbers
    notes: tuple[str, ...]


def comparison_page(comparison: Comparison, *, title: str | None = None) -> str:
    """Return a page on a comparison: which method to use, how sure that is, and each in detail.

    Parameters
    ----------
    comparison : Comparison
        Fresh, or read from JSON.
    title : str, optional

    Returns
    -------
    str
        HTML that needs no other file and no network.

    Examples
    --------
    >>> from reliablenet.report import comparison_page
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import reliablenet as rn
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(2000)
    >>> found = rn.compare(rows.X, rows.y, methods={"bayes": GaussianNB()}, resamples=20)
    >>> "Use bayes: within alpha = 0.05" in comparison_page(found)
    True
    """
    best = comparison.best()
    first, _, rest = best.sentence.partition(". ")
    results = list(comparison.results.values())
    axis = _axis(comparison)
    unit = results[0].certificate.unit
    promise = comparison.promise or Promise.overall(comparison.alpha)
    return render(
        "comparison.html",
        title=title or "Comparison of methods",
        state="granted" if best.name else "refused",
        verdict=f"{first.rstrip('.')}.",
        rest=rest,
        best=best,
        alpha=comparison.alpha,
        rho=comparison.rho,
        n=results[0].certificate.n,
        counted=counted_rows(unit),
        limit=text.typeset(promise_text(promise, comparison.tolerance, unit)),
        acts_on="" if best.certificate is None else text.typeset(acts_on(best.certificate)),
        resamples=comparison.draws.shape[1],
        ends=[text.percent(end, 0) for end in (axis.low, axis.high)],
        ranking=[_standing(comparison, result, axis) for result in results],
        curves=risk_coverage_chart(
            distinct_curves({result.name: result.curve for result in results})
        ),
        failures=comparison.failures,
        text=text,
    )


def _axis(comparison: Comparison) -> Axis:
    """Return an axis that holds every dot, interval and diamond."""
    shares = [result.certified_throughput for result in comparison.results.values()]
    shares += [end for interval in comparison.intervals.values() for end in interval]
    shares += [r.rule.throughput for r in comparison.results.values() if r.rule is not None]
    low, high = math.floor(50 * min(shares)) / 50, math.ceil(50 * max(shares)) / 50
    return Axis("", low, high if high > low else low + 0.02, ())


def _standing(comparison: Comparison, result: MethodResult, axis: Axis) -> Standing:
    low, high = comparison.intervals[result.name]
    found, rule = result.certificate, result.rule
    return Standing(
        name=result.name,
        kind=result.kind,
        throughput=text.percent(result.certified_throughput),
        interval=f"{text.percent(low)} to {text.percent(high)}",
        dot=float(axis.place(result.certified_throughput)),
        low=float(axis.place(low)),
        high=float(axis.place(high)),
        rule=None if rule is None else float(axis.place(rule.throughput)),
        rule_certified=rule is not None and rule.certified,
        cells=(
            text.percent(found.coverage),
            text.percent(found.jcw, 2),
            text.percent_up(found.upper_bound, found.alpha),
            f"{found.errors:,} of {found.n:,}",
        ),
        details=_details(comparison, result),
        notes=result.notes,
    )


def _details(comparison: Comparison, result: MethodResult) -> Numbers:
    """Return a method at its certified threshold and by the rule fixed beforehand."""
    rules: dict[str, Certificate | RuleCertificate] = {"Certified threshold": result.certificate}
    if result.rule is not None:
        rules["Rule fixed beforehand"] = result.rule
    written = [_certificate_cells(one) for one in rules.values()]
    rows = [[name, *(cells[name] for cells in written)] for name in written[0]]
    for name, label in MEASURES.items():
        value = getattr(result.evaluation, name)
        share = name in ("accuracy", "accuracy_accepted", "ece")
        shown = text.percent(value, 2) if share else text.cell(round(value, 6))
        rows.append([label, shown, *([""] * (len(rules) - 1))])
    rows.append(["In the choice", _part(comparison, result), *([""] * (len(rules) - 1))])
    rows.append(["Time to fit", f"{result.seconds:.1f} s", *([""] * (len(rules) - 1))])
    return marked_numbers(["", *rules], rows)


def _part(comparison: Comparison, result: MethodResult) -> str:
    """Say at which part of rho a method is certified, or which method takes its place in the choice."""
    choice = comparison.choice
    if result.name not in choice.divisors:
        name = choice.family[result.name]
        return f"ranks rows as {name} does; only {name} is considered in the choice"
    best = ", the favourite of the selection fold" if result.name == choice.favourite else ""
    return f"certified at {text.confidence(choice.level(result.name, comparison.rho))}{best}"


def _certificate_cells(one: Certificate | RuleCertificate) -> dict[str, Any]:
    right = (one.accepted - one.errors) / one.accepted if one.accepted else math.nan
    return {
        "Certified": "yes" if one.certified else "no",
        "Threshold": text.threshold(one.threshold),
        "Acts on": text.percent(one.coverage),
        "Acts and is right": text.percent(one.throughput),
        "Acts and is wrong (JCW)": text.percent(one.jcw, 2),
        "Upper bound": text.percent_up(one.upper_bound, one.alpha),
        "K of n": f"{one.errors:,} of {one.n:,}",
        "Right, of rows acted on": text.percent(right, 2),
        "Why": one.reason,
    }
