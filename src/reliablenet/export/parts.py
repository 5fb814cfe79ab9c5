"""`Parts`: what a graph must know about a fitted classifier; each method gives its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from torch import nn

from reliablenet.certificate import Rule
from reliablenet.tables.tabular import TabularEncoder
from reliablenet.training.objective import Objective
from reliablenet.training.team import Team

# What a column gives to a graph: the last three as texts.
NUMBER, DAYS, DATE, TEXT, CATEGORY = "number", "days", "date", "text", "category"
TOLERANCE = 1e-5  # by which the confidence of another program may differ from ours


@dataclass(frozen=True, eq=False)
class Parts:
    """A classifier of tables, from columns to decisions.

    Attributes
    ----------
    encoder : TabularEncoder
    network : nn.Module
        Takes what ``encoder.compact`` returns.
    objective : Objective
        How the network's outputs are to be read.
    classes : array of shape (K,)
    team : Team or None
        Who answers beside the network.
    temperatures : tuple of float
        By which logits are divided, one after the other.
    rule : Rule or None
        Which rows are accepted; None as long as that is for a method around it to say.
    """

    encoder: TabularEncoder
    network: nn.Module
    objective: Objective
    classes: NDArray[Any]
    team: Team | None = None
    temperatures: tuple[float, ...] = ()
    rule: Rule | None = None
