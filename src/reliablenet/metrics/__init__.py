"""How good it is: metrics of act-or-defer rules. Never imports torch."""

from reliablenet.metrics.scores import (
    Evaluation,
    area_under_risk_coverage,
    evaluate,
    expected_calibration_error,
)

__all__ = [
    "Evaluation",
    "area_under_risk_coverage",
    "evaluate",
    "expected_calibration_error",
]
