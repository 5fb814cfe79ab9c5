"""Ablations: our default for tables with one of its parts taken away."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

from reliablenet._checks import parameter_error
from reliablenet.methods import ReliableClassifier
from reliablenet.methods.architectures import Architecture
from reliablenet.tables import TabularEncoder
from reliablenet.training.networks import tabular

PARTS = ("encoding", "ensemble", "average", "folds")


@dataclass(eq=False, repr=False)
class AblatedClassifier(ReliableClassifier):
    """`ReliableClassifier` with ``network="tabular"``, without one of its parts.

    Parameters
    ----------
    without : {"encoding", "ensemble", "average", "folds"}
        "encoding": numbers are standardised and categories one-hot encoded, as in the paper.
        "ensemble": one member. "average": the weights as they are. "folds": no second fit on
        training and selection rows together.
    """

    _: KW_ONLY
    without: str = "encoding"

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.without not in PARTS:
            raise parameter_error(
                "without", "AblatedClassifier", f"be one of {PARTS}", self.without
            )

    def _architecture(self) -> Architecture:
        full = super()._architecture()
        if self.without == "encoding":
            return replace(full, encoder=TabularEncoder)
        if self.without == "ensemble":
            return replace(full, factory=partial(tabular, members=1))
        if self.without == "average":
            return replace(full, optimisation=replace(full.optimisation, averaging=0.0))
        return full

    def _refits(self) -> bool:
        return self.without != "folds" and super()._refits()
