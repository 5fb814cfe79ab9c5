"""`MethodResult`: one method on the certification fold, fresh or read from JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reliablenet.certificate import Certificate
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.record import Unit
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError
from reliablenet.metrics import Evaluation, RiskCoverageCurve, evaluate, risk_coverage_curve


@dataclass(frozen=True)
class MethodResult:
    """One method on the certification fold. `MethodResult.of` derives it from scored rows.

    Attributes
    ----------
    name : str
    model : SelectiveClassifier or None
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
    """

    name: str
    model: Any
    rule: Certificate | None
    certificate: Certificate
    evaluation: Evaluation
    curve: RiskCoverageCurve
    rows: ScoredRows
    seconds: float
    notes: tuple[str, ...]
    kind: str = ""

    def __post_init__(self) -> None:
        if self.model is not None:
            ours = (c for c in type(self.model).__mro__ if c.__module__.startswith("reliablenet."))
            object.__setattr__(self, "kind", next(ours).__name__)

    @classmethod
    def of(
        cls, name: str, rows: ScoredRows, alpha: float, rho: float, unit: Unit = "row", **more: Any
    ) -> MethodResult:
        """Return what scored rows say about a method; the fields that they do not tell come beside."""
        found = judge(rows, alpha, rho, unit=unit)
        return cls(
            name=name,
            certificate=found,
            evaluation=evaluate(rows, accepted=rows.score >= found.threshold, alpha=alpha),
            curve=risk_coverage_curve(rows),
            rows=rows,
            **more,
        )

    @property
    def certified_throughput(self) -> float:
        """Share of rows that are acted on and right at the certified threshold; 0 without one."""
        return worth(self.certificate)


def worth(certificate: Certificate) -> float:
    """Return the share of rows that a certificate lets a method act on rightly; 0 if it is refused."""
    return certificate.throughput if certificate.certified else 0.0


def result_to_story(result: MethodResult) -> dict[str, Any]:
    """Return all but the model as JSON can hold it."""
    measured = result.evaluation.to_dict().items()
    truth = result.rows.truth
    return {
        "name": result.name,
        "kind": result.kind,
        "rule": None if result.rule is None else json.loads(result.rule.to_json()),
        "certificate": json.loads(result.certificate.to_json()),
        "evaluation": {name: None if math.isnan(value) else value for name, value in measured},
        "score": result.rows.score.tolist(),
        "wrong": "".join("1" if wrong else "0" for wrong in result.rows.wrong),
        "truth": None if truth is None else truth.tolist(),
        "any_score": result.rows.lowest != 0.0,
        "seconds": result.seconds,
        "notes": list(result.notes),
    }


def result_from_story(story: dict[str, Any], alpha: float, rho: float) -> MethodResult:
    """Return what was stored, or raise if the certificate does not follow from the rows."""
    truth, rule, measured = story.get("truth"), story["rule"], story["evaluation"]
    rows = ScoredRows(
        np.array(story["score"], np.float64),
        np.array([mark == "1" for mark in story["wrong"]]),
        -math.inf if story["any_score"] else 0.0,
        truth=None if truth is None else np.array(truth),
    )
    if rows.truth is not None and rows.truth.dtype.kind == "i" and (rows.truth < 0).any():
        rows = replace(rows, unknown=rows.truth < 0)
    stored = Certificate.from_json(json.dumps(story["certificate"]))
    result = MethodResult.of(
        story["name"],
        rows,
        alpha,
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
