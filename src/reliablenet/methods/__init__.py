"""Who decides: every way to an act-or-defer classifier, each a scikit-learn estimator."""

from reliablenet.methods.base import SelectiveClassifier, SelectiveEstimator
from reliablenet.methods.comparison import Comparison, Recommendation
from reliablenet.methods.comparison_run import compare, default_methods
from reliablenet.methods.decisions import Decisions, NumberDecisions
from reliablenet.methods.deep_gamblers import DeepGamblersClassifier
from reliablenet.methods.erm import ERMClassifier
from reliablenet.methods.method_result import MethodResult
from reliablenet.methods.posthoc import (
    CertifiedThreshold,
    ConfidenceThreshold,
    ConformalRiskControl,
    TemperatureScaling,
)
from reliablenet.methods.regressor import ReliableRegressor, SelectiveRegressor
from reliablenet.methods.reliable import ReliableClassifier
from reliablenet.methods.selectivenet import SelectiveNetClassifier
from reliablenet.methods.tuned import TunedClassifier
from reliablenet.modelfile import load

__all__ = [
    "CertifiedThreshold",
    "Comparison",
    "ConfidenceThreshold",
    "ConformalRiskControl",
    "Decisions",
    "DeepGamblersClassifier",
    "ERMClassifier",
    "MethodResult",
    "NumberDecisions",
    "Recommendation",
    "ReliableClassifier",
    "ReliableRegressor",
    "SelectiveClassifier",
    "SelectiveEstimator",
    "SelectiveNetClassifier",
    "SelectiveRegressor",
    "TemperatureScaling",
    "TunedClassifier",
    "compare",
    "default_methods",
    "load",
]
