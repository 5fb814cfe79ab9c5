"""How a network is fitted: networks, constraint, schedule, loop."""

from reliablenet.training.adaptive import AdaptiveSchedule
from reliablenet.training.batches import Rows
from reliablenet.training.constraint import JCWConstraint
from reliablenet.training.history import EpochRecord, History
from reliablenet.training.loop import train
from reliablenet.training.networks import (
    BatchEnsemble,
    Network,
    cnn5,
    mlp,
    resnet9,
    resnet18,
    tabular,
)
from reliablenet.training.objective import Objective
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.schedule import Schedule
from reliablenet.training.stream import Stream

__all__ = [
    "AdaptiveSchedule",
    "BatchEnsemble",
    "EpochRecord",
    "History",
    "JCWConstraint",
    "Network",
    "Objective",
    "Optimisation",
    "Rows",
    "Schedule",
    "Stream",
    "cnn5",
    "mlp",
    "resnet9",
    "resnet18",
    "tabular",
    "train",
]
