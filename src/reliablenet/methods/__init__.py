"""Who decides: every way to an act-or-defer classifier, each a scikit-learn estimator."""

from reliablenet.methods.base import Decisions, SelectiveClassifier
from reliablenet.methods.deep_gamblers import DeepGamblersClassifier
from reliablenet.methods.erm import ERMClassifier
from reliablenet.methods.persistence import load
from reliablenet.methods.posthoc import (
    CertifiedThreshold,
    ConfidenceThreshold,
    ConformalRiskControl,
    TemperatureScaling,
)
from reliablenet.methods.reliable import ReliableClassifier
from reliablenet.methods.selectivenet import SelectiveNetClassifier

__all__ = [
    "CertifiedThreshold",
    "ConfidenceThreshold",
    "ConformalRiskControl",
    "Decisions",
    "DeepGamblersClassifier",
    "ERMClassifier",
    "ReliableClassifier",
    "SelectiveClassifier",
    "SelectiveNetClassifier",
    "TemperatureScaling",
    "load",
]
