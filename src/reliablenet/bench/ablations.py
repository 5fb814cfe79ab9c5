"""Ablations: our default for tables with one of its parts taken away."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

from reliablenet._checks import parameter_error
from reliablenet.data import TabularEncoder
from reliablenet.methods import ReliableClassifier
from reliablenet.methods.neural import NetworkFactory
from reliablenet.training.ensemble import tabular
from reliablenet.training.optimisation import Optimisation

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
    network: str | NetworkFactory = "tabular"
    without: str = "encoding"

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.without not in PARTS:
            raise parameter_error(
                "without", "AblatedClassifier", f"be one of {PARTS}", self.without
            )

    def _encoder(self) -> TabularEncoder:
        return TabularEncoder() if self.without == "encoding" else super()._encoder()

    def _factory(self) -> NetworkFactory:
        return partial(tabular, members=1) if self.without == "ensemble" else super()._factory()

    def _optimisation(self) -> Optimisation:
        full = super()._optimisation()
        return replace(full, averaging=0.0) if self.without == "average" else full

    def _refits(self) -> bool:
        return self.without != "folds" and super()._refits()
