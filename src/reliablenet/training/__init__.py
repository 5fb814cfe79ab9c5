"""How a network is fitted: networks, constraint, schedule, loop."""

from reliablenet.training.constraint import JCWConstraint
from reliablenet.training.ensemble import BatchEnsemble, tabular
from reliablenet.training.history import EpochRecord, History
from reliablenet.training.loop import train
from reliablenet.training.networks import Network, cnn5, mlp, resnet18
from reliablenet.training.objective import Objective
from reliablenet.training.optimisation import Optimisation
from reliablenet.training.rows import Rows
from reliablenet.training.schedule import Schedule
from reliablenet.training.stream import Stream

__all__ = [
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
    "resnet18",
    "tabular",
    "train",
]
