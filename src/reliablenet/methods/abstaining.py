"""`AbstainingClassifier`: what methods that learn when to abstain have in common."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from reliablenet._checks import check_threshold, parameter_error
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.neural import FoldOrStream
from reliablenet.methods.neural_classifier import NeuralClassifier
from reliablenet.modelfile.network import NetworkParts
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.schedule import Schedule


@dataclass(eq=False, repr=False)
class AbstainingClassifier(NeuralClassifier):
    """A network with an acceptance score of its own, trained without the constraint.

    With ``scored_by="softmax"`` the top class probability takes the place of the learned score.

    Attributes
    ----------
    scored_by_ : str
        The score that the threshold belongs to.
    """

    _: KW_ONLY
    epochs: int = 100
    scored_by: str = "native"

    scored_by_: str = field(init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.scored_by not in ("native", "softmax"):
            raise parameter_error(
                "scored_by", type(self).__name__, 'be "native" or "softmax"', self.scored_by
            )
        if self.network == "tabular":
            raise parameter_error(
                "network",
                type(self).__name__,
                "return one output per row in training; networks with several members are not supported here",
                "tabular",
                'Use "mlp".',
            )

    def _check_threshold(self, threshold: float) -> None:
        if self.scored_by == "softmax":
            super()._check_threshold(threshold)
        else:  # the learned score may take any value from 0 to 1
            check_threshold("threshold", threshold, type(self).__name__)

    def _schedule(self) -> BaseSchedule:
        return Schedule.erm(self.epochs)

    def _fit_folds(
        self, train_fold: FoldOrStream, selection: FoldOrStream, seed: int, *, keep_selection: bool
    ) -> None:
        self.scored_by_ = self.scored_by
        super()._fit_folds(train_fold, selection, seed, keep_selection=keep_selection)

    def _restore_network(self, parts: NetworkParts) -> None:
        self.scored_by_ = self.scored_by
        super()._restore_network(parts)

    def _outputs(self, X: Any) -> Outputs:
        outputs = super()._outputs(X)
        return outputs if self.scored_by_ == "native" else Outputs(outputs.proba)
