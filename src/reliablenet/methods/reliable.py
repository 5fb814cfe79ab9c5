"""`ReliableClassifier`: a network trained under a budget for confident mistakes, and its certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from reliablenet._checks import parameter_error
from reliablenet.methods.architectures import NetworkFactory
from reliablenet.methods.neural_classifier import NeuralClassifier
from reliablenet.modelfile import stored_as
from reliablenet.risk.surrogate import M1, M2, check_smoothing
from reliablenet.tables.folds import Fold
from reliablenet.training.schedule import BaseSchedule, Schedule


@stored_as("network")
@dataclass(eq=False, repr=False)
class ReliableClassifier(NeuralClassifier):
    """A network trained so that it is rarely confident and wrong, with a certified rule to act.

    Parameters
    ----------
    alpha : float in (0, 1)
        Budget for the share of all rows on which the model acts and is wrong.
    rho : float in (0, 1)
        Allowed probability, over the draw of the certification fold, that the certificate fails.
    threshold : {"certified", "selection"} or float in (1/K, 1]
        "certified": the smallest threshold that the certification fold can certify. "selection":
        the training threshold, set on the selection fold before constrained training. A number:
        that threshold, in training and afterwards.
    network : "tabular", "mlp", "cnn5", "resnet18" or callable (n_features, n_classes) -> nn.Module
        For tables an ensemble on quantile bins (`tabular`, `PiecewiseEncoder`) or the paper's network,
        "mlp"; the others are for images. For inputs with more than two axes the first argument of a
        callable is their shape.
    schedule : "adaptive", "paper", AdaptiveSchedule or Schedule
        See `AdaptiveSchedule` and, for the paper's, `Schedule`. An adaptive one trains the network once
        more in the end if the threshold is "certified" and the constraint was not needed: on training
        and selection rows together. It does not where a rule around it, such as a temperature, still
        computes something on the selection fold.
    checkpoint : {"selection", "last"}
        Which epoch's weights to keep: the lowest selection-fold loss among the epochs that keep the
        budget on the selection fold, or the last.
    promise : Promise, optional
        What must hold, if it is another promise than that of ``alpha``: by group, by class, among rows
        acted on, by cost, or several. Training then aims at its smallest budget.
    batch_size, clip_norm
        Of the optimiser, Adam.
    learning_rate, weight_decay : float or "auto"
        "auto": the paper's, 1e-3 and 1e-4; for "tabular" those of `Optimisation.tabular`. It and the
        networks for images also average the weights.
    augment : {"flips", "crops", "flips+crops"}, optional
        What happens at random to training images: mirrored left to right, moved by up to an eighth.
    m1, m2 : float
        Shape of the surrogate; 0 < m2 < m1 / (1 + m1).
    fold_sizes : "auto" or three shares
        For training, selection and certification, where `fit` cuts folds of its own.
    device : str
        Where the network lives.
    checkpoint_file : path, optional
        Keeps the state of training after every epoch; a later `fit` with the same data and settings
        continues from it to the same bits.
    verbose : bool or "auto"
        Progress bar; "auto" shows one if standard error is a terminal.
    random_state : int, RandomState or None
        An int makes everything reproducible on one machine, bit by bit.

    Attributes
    ----------
    threshold_ : float
    certificate_ : Certificate
    history_ : History
        Of the fit that decided how long to train; ``history_.weights_in_use`` says whether the weights
        are from it or from a second one.
    training_threshold_ : float
        The threshold at which the constraint acted.
    classes_, network_, encoder_, n_features_in_, feature_names_in_
        See `NeuralClassifier` and `SelectiveClassifier`.

    Examples
    --------
    >>> from reliablenet import ReliableClassifier
    >>> from reliablenet.datasets import SyntheticBand
    >>> band = SyntheticBand(random_state=0)
    >>> rows, new = band.sample(4000), band.sample(5)
    >>> clf = ReliableClassifier(alpha=0.05, random_state=0).fit(rows.X, rows.y)
    >>> clf.certificate_.certified, clf.certificate_.upper_bound <= 0.05
    (True, True)
    >>> clf.decide(new.X).to_frame().columns.tolist()
    ['label', 'confidence', 'accepted']
    """

    _: KW_ONLY
    network: str | NetworkFactory = "tabular"
    schedule: str | BaseSchedule = "adaptive"
    checkpoint: str = "selection"
    m1: float = M1
    m2: float = M2

    def _check_settings(self) -> None:
        super()._check_settings()
        check_smoothing(0.5, self.m1, self.m2, "ReliableClassifier")
        if self._schedule().chooses_epochs and self.checkpoint == "last":
            raise parameter_error(
                "checkpoint",
                "ReliableClassifier",
                'be "selection" with a schedule that adapts, which returns to its best weights',
                "last",
                'Or use schedule="paper".',
            )

    def _schedule(self) -> BaseSchedule:
        named: dict[str, Callable[[], BaseSchedule]] = {
            "paper": Schedule.paper,
            "adaptive": Schedule.adaptive,
        }
        if isinstance(self.schedule, str) and self.schedule in named:
            return named[self.schedule]()
        if not isinstance(self.schedule, BaseSchedule) or not self.schedule.constrained:
            raise parameter_error(
                "schedule",
                "ReliableClassifier",
                'be "paper", "adaptive" or a Schedule or AdaptiveSchedule with at least one stage',
                self.schedule,
            )
        return self.schedule

    def _constraint(self, selection_rows: int) -> dict[str, Any]:
        return {
            "threshold": None if isinstance(self.threshold, str) else float(self.threshold),
            "aim": self._schedule().aim(self._budget, self.rho, selection_rows),
            "m1": self.m1,
            "m2": self.m2,
        }

    def _refits(self) -> bool:
        free = self._schedule().chooses_epochs and self.threshold == "certified"
        return free and self.history_.chosen().stage == 0

    @property
    def training_threshold_(self) -> float:
        """The threshold at which the constraint acted."""
        return self.history_.threshold

    def _selection_threshold(self, selection: Fold) -> float:
        return self.training_threshold_
