"""How good it is: metrics of act-or-defer rules. Never imports torch."""

from reliablenet.metrics.breakdowns import Breakdown, breakdown
from reliablenet.metrics.curves import JCWCurve, RiskCoverageCurve, jcw_curve, risk_coverage_curve
from reliablenet.metrics.importance import Importance, RowAnswers, permutation_importance
from reliablenet.metrics.measures import (
    area_under_risk_coverage,
    excess_area_under_risk_coverage,
    expected_calibration_error,
)
from reliablenet.metrics.scores import Evaluation, Interval, evaluate

__all__ = [
    "Breakdown",
    "Evaluation",
    "Importance",
    "Interval",
    "JCWCurve",
    "RiskCoverageCurve",
    "RowAnswers",
    "area_under_risk_coverage",
    "breakdown",
    "evaluate",
    "excess_area_under_risk_coverage",
    "expected_calibration_error",
    "jcw_curve",
    "permutation_importance",
    "risk_coverage_curve",
]
