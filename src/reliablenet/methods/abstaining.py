"""`AbstainingClassifier`: what methods that learn when to abstain have in common."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from sklearn.base import ClassifierMixin

from reliablenet._checks import check_threshold, parameter_error
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.neural import FoldOrStream, NeuralClassifier
from reliablenet.modelfile.network import NetworkParts
from reliablenet.training.schedule import BaseSchedule, Schedule


class _ScoreSetting:
    """A parameter that shares its name with scikit-learn's method `score`.

    Setting it stores the parameter, reading it gives the method; `get_params` reads the stored one.
    """

    def __set__(self, instance: Any, value: str) -> None:
        vars(instance)["score"] = value

    def __get__(self, instance: Any, owner: type) -> Any:
        method = ClassifierMixin.score
        return method if instance is None else method.__get__(instance, owner)


@dataclass(eq=False, repr=False)
class AbstainingClassifier(NeuralClassifier):
    """A network with an acceptance score of its own, trained without the constraint.

    With ``score="softmax"`` the top class probability takes the place of the learned score.

    Attributes
    ----------
    score_ : str
        The score that the threshold belongs to.
    """

    _: KW_ONLY
    epochs: int = 100
    score: Any = "native"

    score_: str = field(init=False)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""
        settings: dict[str, Any] = super().get_params(deep)
        if "score" in settings:  # a subclass may fix it
            settings["score"] = vars(self)["score"]
        return settings

    def _check_settings(self) -> None:
        super()._check_settings()
        score = vars(self)["score"]
        if score not in ("native", "softmax"):
            raise parameter_error("score", type(self).__name__, 'be "native" or "softmax"', score)
        if self.network == "tabular":
            raise parameter_error(
                "network",
                type(self).__name__,
                "have one output a row while it is trained, not one for each member",
                "tabular",
                'Use "mlp".',
            )

    def _check_threshold(self, threshold: float) -> None:
        if vars(self)["score"] == "softmax":
            super()._check_threshold(threshold)
        else:  # the learned score may take any value from 0 to 1
            check_threshold("threshold", threshold, type(self).__name__)

    def _schedule(self) -> BaseSchedule:
        return Schedule.erm(self.epochs)

    def _fit_folds(
        self, train_fold: FoldOrStream, selection: FoldOrStream, seed: int, *, keep_selection: bool
    ) -> None:
        self.score_ = vars(self)["score"]
        super()._fit_folds(train_fold, selection, seed, keep_selection=keep_selection)

    def _restore_network(self, parts: NetworkParts) -> None:
        self.score_ = vars(self)["score"]
        super()._restore_network(parts)

    def _outputs(self, X: Any) -> Outputs:
        outputs = super()._outputs(X)
        return outputs if self.score_ == "native" else Outputs(outputs.proba)


AbstainingClassifier.score = _ScoreSetting()
