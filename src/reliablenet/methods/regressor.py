"""`ReliableRegressor`: a network with a distribution for a number, and a certified rule to act on it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from sklearn.base import RegressorMixin

from reliablenet._checks import check_count
from reliablenet.certificate import jcw_threshold
from reliablenet.errors import InvalidDataError
from reliablenet.methods.architectures import NetworkFactory
from reliablenet.methods.base import SelectiveEstimator
from reliablenet.methods.decisions import NumberOutputs
from reliablenet.methods.distribution import ValueBins
from reliablenet.methods.neural import FoldOrStream, NeuralEstimator, as_fold
from reliablenet.methods.numbers import Numbers, check_promise
from reliablenet.modelfile import stored_as
from reliablenet.tables.folds import Fold
from reliablenet.tables.tolerance import Tolerance
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.schedule import Schedule

ROWS_A_BIN = 8  # training rows, at least
PATIENCE = 6  # epochs without a lower selection-fold loss


@dataclass(eq=False, repr=False)  # scikit-learn brings its own
class SelectiveRegressor(RegressorMixin, SelectiveEstimator):
    """Base of every act-or-defer regressor.

    Attributes
    ----------
    threshold_, certificate_, selection_threshold_, evidence_, fingerprint_, seen_
        As for `SelectiveEstimator`; ``evidence_`` holds values and true numbers.
    """

    tolerance: Any = None

    @property
    def _target(self) -> Numbers:
        return Numbers(Tolerance.of(self.tolerance, type(self).__name__))

    def _check_settings(self) -> None:
        super()._check_settings()
        check_promise(self.promise, type(self).__name__)
        Tolerance.of(self.tolerance, type(self).__name__)


@stored_as("network")
@dataclass(eq=False, repr=False)
class ReliableRegressor(NeuralEstimator, SelectiveRegressor):
    """A network that predicts a number, and acts only where it is promised to be close.

    It learns a distribution of `y` for every row: a class for each of ``bins`` bins of `y` that hold
    equally many training rows. The value is the one that is most probably within the tolerance, and that
    probability is the score. Rows are acted on from a threshold on, chosen on the certification fold: with
    probability 1 - rho at most a share alpha of all rows is acted on with an error above the tolerance.

    Parameters
    ----------
    tolerance : float or str
        How far a value may be off and still be right. A number, in units of `y`; a text such as "10%",
        of the truth; or the name of a column of X that holds the tolerance of each row. It must be known
        before the truth is.
    alpha : float in (0, 1)
        Budget for the share of all rows on which the model acts and is off by more than that.
    rho : float in (0, 1)
        Allowed probability, over the draw of the certification fold, that the certificate fails.
    threshold : {"certified", "selection"} or float in (0, 1]
        "certified": the smallest threshold that the certification fold can certify. "selection": the
        most permissive one within alpha on the selection fold. A number: itself.
    network : "tabular", "mlp", "resnet9", "cnn5", "resnet18" or callable
        As for `ReliableClassifier`; a class is a bin of `y`.
    bins : int
        Most bins of `y`; fewer where they would hold less than eight training rows each.
    epochs : int
        Most epochs. Training ends once the selection-fold loss has not fallen for six, and returns to
        the best weights. If the threshold is "certified" the network is then trained once more for as
        many epochs, on training and selection rows together.
    checkpoint : {"selection"}
        Which weights to keep: those with the lowest selection-fold loss.
    promise : Promise, optional
        What must hold, if it is another promise than that of ``alpha``: about all rows, those acted on
        or groups.
    batch_size, learning_rate, weight_decay, clip_norm, augment, text, dates, embedding, fold_sizes, device,
    checkpoint_file, verbose
        As for `ReliableClassifier`.
    random_state : int, RandomState or None
        An int makes everything reproducible on one machine, bit by bit.

    Attributes
    ----------
    threshold_ : float
    certificate_ : Certificate
    bins_ : ValueBins
        The bins of `y`, and the training values that stand for each.
    evidence_ : NumberEvidence
        Score, value, truth and tolerance of each row of the certification fold.
    history_, network_, encoder_, n_features_in_, feature_names_in_
        As for `ReliableClassifier`. The losses in ``history_`` are those of the bins.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import reliablenet as rn
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = rn.ReliableRegressor(tolerance=75, alpha=0.1, random_state=0).fit(X, y)
    >>> model.certificate_.certified, model.certificate_.upper_bound <= 0.1
    (True, True)
    >>> model.decide(X[:5]).to_frame().columns.tolist()
    ['value', 'confidence', 'accepted']
    """

    _: KW_ONLY
    network: str | NetworkFactory = "tabular"
    checkpoint: str = "selection"
    bins: int = 64
    epochs: int = 60

    bins_: ValueBins = field(init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        owner = type(self).__name__
        check_count("bins", self.bins, owner, minimum=2)
        self._schedule().check_keep(self.checkpoint, "checkpoint", owner)

    def _schedule(self) -> BaseSchedule:
        return Schedule.erm(self.epochs, PATIENCE)

    def _refits(self) -> bool:
        return self.threshold == "certified"

    def _n_classes(self) -> int:
        return len(self.bins_)

    def _learn_classes(self, train_fold: FoldOrStream) -> None:
        values = as_fold(train_fold).y
        if values.min() == values.max():
            raise InvalidDataError(
                f"The {len(values)} training rows of {type(self).__name__} hold a single value, "
                f"{values[0]:g}: there is nothing to learn. Give more rows."
            )
        self.bins_ = ValueBins.of(values, max(min(self.bins, len(values) // ROWS_A_BIN), 2))
        if hasattr(self, "_selection_rows"):  # of an earlier fit
            del self._selection_rows

    def _with_classes(self, fold: FoldOrStream) -> FoldOrStream:
        rows = as_fold(fold)
        return replace(rows, y=self.bins_.places(rows.y))

    def _selection_threshold(self, selection: Fold) -> float:
        """Return what the selection fold suggests, by a network that was not trained on it."""
        rows = getattr(self, "_selection_rows", None)
        if rows is None:
            return super()._selection_threshold(selection)
        return jcw_threshold(rows, None, self.alpha)

    def _outputs(self, X: Any) -> NumberOutputs:
        margin = self._target.tolerance.rows(X, type(self).__name__)
        value, chance = self.bins_.answer(self._class_outputs(X).proba, margin)
        return NumberOutputs(value, chance, margin)

    def _learned(self) -> dict[str, Any]:
        return super()._learned() | {"bins": self.bins_.to_plain()}

    def _relearn(self, learned: dict[str, Any]) -> None:
        super()._relearn(learned)
        self.bins_ = ValueBins.from_plain(learned["bins"])
