"""Who decides: every way to an act-or-defer classifier, each a scikit-learn estimator."""

from reliablenet.methods.base import Decisions, SelectiveClassifier
from reliablenet.methods.erm import ERMClassifier
from reliablenet.methods.persistence import load
from reliablenet.methods.reliable import ReliableClassifier

__all__ = [
    "Decisions",
    "ERMClassifier",
    "ReliableClassifier",
    "SelectiveClassifier",
    "load",
]
