"""The page of one model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sklearn.utils.validation import check_is_fitted

from reliablenet._checks import parameter_error
from reliablenet.certificate import Certificate, RuleCertificate, promise_wording, wording
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.remedies import remedy
from reliablenet.certificate.shift_wording import survival
from reliablenet.methods import Comparison, SelectiveEstimator
from reliablenet.methods.layers import layers
from reliablenet.metrics import Importance, risk_coverage_curve
from reliablenet.modelfile import versions
from reliablenet.report import text
from reliablenet.report.bearing import bearing_parts, bearing_table, moves_table
from reliablenet.report.calibration import calibration_charts, reliability_bins
from reliablenet.report.certificate import (
    budget_scale,
    certificate_facts,
    counted_rows,
    parts_table,
    voids,
)
from reliablenet.report.charts import marked_numbers
from reliablenet.report.curves import (
    COLUMNS,
    distinct_curves,
    explorer_chart,
    risk_coverage_chart,
    written_points,
)
from reliablenet.report.explained import (
    fold_importance,
    fold_table,
    importance_bars,
    importance_table,
)
from reliablenet.report.inputs import hidden_columns, profile_table
from reliablenet.report.notable_rows import accepted_mistakes, fold_rows, group_table, least_sure
from reliablenet.report.operating import OperatingPoints, operating_points
from reliablenet.report.page import render
from reliablenet.report.training import history_charts


def model_page(
    model: SelectiveEstimator,
    *,
    table: Any = None,
    labels: Any = None,
    groups: Any = None,
    comparison: Comparison | None = None,
    importance: Importance | None = None,
    title: str | None = None,
) -> str:
    """Return a page on a fitted model: its verdict, certificate, operating points and mistakes.

    Parameters
    ----------
    model : SelectiveEstimator
        Fitted or loaded.
    table : data frame or array, optional
        The table given to `fit` (or the certification fold, if `fit` was given that by itself): the
        page then shows the columns of the rows it lists, and which columns the decisions rest on. Rows
        are the data; mind who reads it.
    labels : array-like, optional
        Labels of the table; with them it is checked that it is the one given to `fit`.
    groups : str, array-like or mapping, optional
        A column of the table, a group for each of its rows, or fresh rows (X, y) by group.
    comparison : Comparison, optional
        Whose methods are drawn beside the model.
    importance : Importance, optional
        Which columns the decisions rest on, as `fold_importance` or `permutation_importance` of the
        model found; by default it is measured on the certification rows of the table.
    title : str, optional
        By default the name of the class.

    Returns
    -------
    str
        HTML that needs no other file and no network.

    Examples
    --------
    >>> from reliablenet.report import model_page
    >>> from sklearn.linear_model import LogisticRegression
    >>> import reliablenet as rn
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(4000)
    >>> clf = rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(rows.X, rows.y)
    >>> page = model_page(clf, title="Band")
    >>> page[:15], "at most 5\u202f% of all rows" in page
    ('<!DOCTYPE html>', True)
    """
    if not isinstance(model, SelectiveEstimator):
        raise parameter_error(
            "model",
            "model_page",
            "be a method of this library",
            type(model).__name__,
            "Put CertifiedThreshold around an estimator of another kind.",
        )
    check_is_fitted(model, ["evidence_", "certificate_"])
    certificate, evidence = model.certificate_, model.evidence_
    rows = fold_rows(model, table, labels)
    fold = None if table is None else fold_table(model, table)
    if importance is None and fold is not None:
        importance = fold_importance(model, table)
    own = (certificate.threshold, model.threshold_, model.selection_threshold_)
    points = operating_points(
        evidence.scored(), certificate.alpha, certificate.rho, own, unit=certificate.unit
    )
    acts = model.threshold_ < math.inf
    mistakes, n_mistakes = accepted_mistakes(model, rows)
    bins = reliability_bins(evidence.top_probability, ~evidence.wrong)
    history = _history(model)
    sentence = promise_wording.verdict(certificate, "the model", acts)
    badge, _, verdict = sentence.partition(": ")
    return render(
        "model.html",
        title=title or type(model).__name__,
        method=type(model).__name__,
        certificate=certificate,
        state=_state(certificate, acts),
        badge=badge,
        verdict=text.sentence(verdict.rstrip(".")),
        reason=text.sentence(certificate.reason),
        acted_on=text.sentence(wording.acted_on(certificate)),
        notes=[text.sentence(note) for note in promise_wording.notes(certificate)],
        remedy=text.sentence(_remedy(model)),
        facts=certificate_facts(certificate),
        certificate_json=certificate.to_json(),
        certificate_hash=json.loads(certificate.to_json())["sha256"],
        scale=budget_scale(certificate),
        parts=parts_table(certificate),
        voids=voids(certificate),
        counted=counted_rows(certificate.unit),
        promise=""
        if model.promise is None
        else text.sentence(
            promise_wording.promise_text(model.promise, certificate.tolerance, certificate.unit)
        ),
        **_bearing(model),
        resting=[] if importance is None else importance_bars(importance),
        importance=importance,
        importance_table=None if importance is None else importance_table(importance),
        importance_failed=importance is None and table is not None,
        inputs=None if model.profile_ is None else profile_table(model.profile_),
        inputs_summary="" if model.profile_ is None else text.sentence(model.profile_.summary()),
        inputs_deferred=text.sentence(promise_wording.odd_deferred(model.promise)),
        inputs_hidden=0 if model.profile_ is None else hidden_columns(model.profile_),
        **_explorer(points, model.threshold_),
        curves=_curves(model, comparison),
        calibration=calibration_charts(bins),
        ece=text.percent(bins.ece, 2),
        history=None if history is None else history_charts(history),
        stopped="" if history is None else history.stopped,
        advice="" if history is None else history.advice(),
        mistakes=mistakes,
        n_mistakes=n_mistakes,
        least_sure=least_sure(model, rows, fold),
        explained=fold is not None,
        has_columns=rows.table is not None,
        given=bool((evidence.row < 0).any()),
        groups=None if groups is None else group_table(model, rows, groups),
        fresh_groups=isinstance(groups, Mapping),
        settings=_settings(model),
        versions=versions(),
        fingerprint=model.fingerprint_,
        classes=[str(name) for name in getattr(model, "classes_", [])],
        text=text,
    )


def _bearing(model: SelectiveEstimator) -> dict[str, Any]:
    """Return who bears the mistakes, and how far the source may move."""
    found = model.breakdown_
    shown = found.whole.errors > 0 and bool(found.cells)
    return {
        "borne": bearing_parts(found) if shown else [],
        "borne_clearly": found.is_clear_anywhere if shown else False,
        "borne_table": bearing_table(found) if shown else None,
        "survival": text.sentence(survival(model.certificate_)),
        "moves": moves_table(model.certificate_),
    }


def _state(certificate: Certificate | RuleCertificate, acts: bool) -> str:
    """Return the colour of a verdict, by name."""
    if certificate.certified:
        return "acting" if certificate.empty else "granted"
    return "acting" if acts else "refused"


def _remedy(model: SelectiveEstimator) -> str:
    """Return what would grant a refused certificate; of a fixed threshold also what the fold allows."""
    made = model.certificate_
    if isinstance(made, RuleCertificate) or made.certified or made.kind == "monotone":
        return remedy(made)
    allowed = judge(model.evidence_.scored(), made.alpha, made.rho, unit=made.unit)
    return remedy(made, allowed=allowed)


def _explorer(points: OperatingPoints, threshold: float) -> dict[str, Any]:
    """Return what the explorer shows: every point as text, and where it starts."""
    at = points.place(threshold)
    written = written_points(points)
    region = points.certified
    start = int(region.argmax()) if region.any() else len(points)
    return {
        "points": {"start": at, "columns": written},
        "now": {name: written[name][at] for name in COLUMNS},
        "at": at,
        "last": len(points) - 1,
        "region": 100 * start / (len(points) - 1),
        "marker": 100 * at / (len(points) - 1),
        "certified_from": text.threshold(points.certified_from) if region.any() else "",
        "certified_coverage": written["coverage"][min(start, len(points) - 1)],
        "explorer": explorer_chart(points, written, at),
    }


def _curves(model: SelectiveEstimator, comparison: Comparison | None) -> Any:
    curves = {"this model": risk_coverage_curve(model.evidence_.scored())}
    if comparison is not None:
        curves |= {name: result.curve for name, result in comparison.results.items()}
        curves = distinct_curves(curves)
    coverage = model.certificate_.coverage
    acts = 0.0 < coverage < 1.0 and model.threshold_ < math.inf
    return risk_coverage_chart(curves, {"acts up to here": coverage} if acts else None)


def _history(model: Any) -> Any:
    """Return the history of the network, also through rules around it."""
    found = (getattr(layer, "history_", None) for layer in layers(model))
    return next((history for history in found if getattr(history, "records", None)), None)


def _settings(model: Any) -> list[tuple[str, Any]]:
    """Return the settings of a method and of what it wraps, layer by layer."""
    shown = []
    for layer in layers(model):
        known = layer.get_params(deep=False) if hasattr(layer, "get_params") else {}
        rows = [[name, repr(value)] for name, value in known.items() if name != "estimator"]
        shown.append((type(layer).__name__, marked_numbers(["Setting", "Value"], rows)))
    return shown
