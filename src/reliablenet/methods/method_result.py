"""`MethodResult`: one method on the certification fold, fresh or read from JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.certificate.promise import plain_label
from reliablenet.certificate.record import Unit
from reliablenet.certificate.rule_certify import read_certificate
from reliablenet.certificate.rule_search import accepted_by
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError
from reliablenet.methods.judging import Judged, Judging, worth
from reliablenet.metrics import Evaluation, RiskCoverageCurve, evaluate, risk_coverage_curve


@dataclass(frozen=True)
class MethodResult:
    """One method on the certification fold. `MethodResult.of` derives it from scored rows.

    Attributes
    ----------
    name : str
    model : SelectiveEstimator or None
        Fitted; it acts by its own rule. None in a comparison that was read from JSON.
    rule : Certificate or None
        Of the rule that was fixed before the certification fold was opened, where there is one.
    certificate : Certificate
        Of the certified threshold, chosen on the fold itself.
    evaluation : Evaluation
        At the certified threshold.
    curve : RiskCoverageCurve
    rows : ScoredRows
        Scores and verdicts, in the order of the fold.
    seconds : float
        Time to fit, that of a wrapped classifier included.
    notes : tuple of str
        Warnings that the fit gave.
    kind : str
        Name of the model's class, or of ours that it extends.
    selection : ScoredRows or None
        The selection fold, where the rule of a promise is learned on it.
    """

    name: str
    model: Any = field(repr=False)
    rule: Certificate | None
    certificate: Certificate | RuleCertificate
    evaluation: Evaluation = field(repr=False)
    curve: RiskCoverageCurve = field(repr=False)
    rows: ScoredRows = field(repr=False)
    seconds: float
    notes: tuple[str, ...]
    kind: str = ""
    selection: ScoredRows | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.model is not None:
            ours = (c for c in type(self.model).__mro__ if c.__module__.startswith("reliablenet."))
            object.__setattr__(self, "kind", next(ours).__name__)

    @classmethod
    def of(
        cls,
        name: str,
        method: Judged,
        judging: Judging,
        rho: float,
        unit: Unit = "row",
        **more: Any,
    ) -> MethodResult:
        """Return what scored rows say about a method; the fields that they do not tell come beside."""
        found, rows = judging.certificate(method, rho, unit), method.rows
        accepted = accepted_by(found, rows)
        return cls(
            name=name,
            certificate=found,
            evaluation=evaluate(rows, accepted=accepted, alpha=judging.alpha),
            curve=risk_coverage_curve(rows),
            rows=rows,
            selection=method.selection,
            **more,
        )

    @property
    def judged(self) -> Judged:
        """What it is judged by."""
        return Judged(self.rows, self.selection)

    @property
    def certified_throughput(self) -> float:
        """Share of rows that are acted on and right at the certified threshold; 0 without one."""
        return worth(self.certificate)


def result_to_story(result: MethodResult) -> dict[str, Any]:
    """Return all but the model as JSON can hold it."""
    measured = result.evaluation.to_dict().items()
    return {
        "name": result.name,
        "kind": result.kind,
        "rule": None if result.rule is None else json.loads(result.rule.to_json()),
        "certificate": json.loads(result.certificate.to_json()),
        "evaluation": {name: None if math.isnan(value) else value for name, value in measured},
        **_rows_to_story(result.rows),
        "selection": None if result.selection is None else _rows_to_story(result.selection),
        "seconds": result.seconds,
        "notes": list(result.notes),
    }


def _rows_to_story(rows: ScoredRows) -> dict[str, Any]:
    by = None if rows.by is None else {name: list(values) for name, values in rows.by.items()}
    return {
        "score": rows.score.tolist(),
        "wrong": "".join("1" if wrong else "0" for wrong in rows.wrong),
        "truth": None if rows.truth is None else rows.truth.tolist(),
        "predicted": None if rows.predicted is None else rows.predicted.tolist(),
        "tolerance": None if rows.tolerance is None else rows.tolerance.tolist(),
        "by": None if by is None else {k: [plain_label(v) for v in vs] for k, vs in by.items()},
        "any_score": rows.lowest != 0.0,
    }


def _rows_from_story(story: dict[str, Any]) -> ScoredRows:
    truth, predicted, by = story.get("truth"), story.get("predicted"), story.get("by")
    tolerance = story.get("tolerance")
    rows = ScoredRows(
        np.array(story["score"], np.float64),
        np.array([mark == "1" for mark in story["wrong"]]),
        -math.inf if story["any_score"] else 0.0,
        truth=None if truth is None else np.array(truth),
        predicted=None if predicted is None else np.array(predicted),
        tolerance=None if tolerance is None else np.array(tolerance, np.float64),
        by=None if by is None else {name: np.array(v, object) for name, v in by.items()},
    )
    if rows.truth is not None and rows.truth.dtype.kind == "i" and (rows.truth < 0).any():
        rows = replace(rows, unknown=rows.truth < 0)
    return rows


def result_from_story(story: dict[str, Any], judging: Judging, rho: float) -> MethodResult:
    """Return what was stored, or raise if the certificate does not follow from the rows."""
    rule, measured, chosen = story["rule"], story["evaluation"], story.get("selection")
    rows = _rows_from_story(story)
    stored = read_certificate(json.dumps(story["certificate"]))
    result = MethodResult.of(
        story["name"],
        Judged(rows, None if chosen is None else _rows_from_story(chosen)),
        judging,
        rho,
        stored.unit,
        model=None,
        rule=None if rule is None else Certificate.from_json(json.dumps(rule)),
        seconds=story["seconds"],
        notes=tuple(story["notes"]),
        kind=story["kind"],
    )
    if result.certificate != stored:
        raise InvalidDataError(
            f"The certificate of {result.name!r} does not follow from its rows: the text was altered."
        )
    # Confidences are not stored: what was measured of them is.
    calibration: dict[str, Any] = {
        name: math.nan if measured[name] is None else float(measured[name])
        for name in ("ece", "wce_accepted")
    }
    known = replace(result.evaluation, **calibration)
    return replace(result, certificate=stored, evaluation=known)
