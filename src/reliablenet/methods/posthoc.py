"""Rules around any classifier: a certified, empirical or conformal threshold, and a temperature."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax
from sklearn.utils import _safe_indexing

from reliablenet._warn import warn_user
from reliablenet.certificate import Promise, conformal_threshold
from reliablenet.errors import FoldWarning
from reliablenet.export.parts import Parts
from reliablenet.methods.decisions import Outputs
from reliablenet.methods.regressor_inside import RegressorInside
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.modelfile import stored_as
from reliablenet.tables.folds import Fold

LEAST_PROBABILITY = float(np.finfo(np.float64).eps)  # a forest's flat zero becomes a finite logit
LARGEST_TEMPERATURE = 100.0


@stored_as("rule")
@dataclass(eq=False, repr=False)
class CertifiedThreshold(RegressorInside):
    """The smallest threshold on an estimator's confidence that the certification fold certifies.

    Parameters
    ----------
    estimator : classifier or regressor, fitted or not
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability of the certificate.
    tolerance : float or str, optional
        Around a regressor, how far a value may be off and still be right, as for `ReliableRegressor`.
        Its confidence is the chance of that: its own, or that of its ``return_std``, or learned from its
        errors on rows that it was not trained on (`RegressorInside`).
    fold_sizes, random_state
        As for `ReliableClassifier`. Around a fitted classifier all rows certify: there is nothing to
        train or to choose. Around one of scikit-learn's there is no selection fold. A promise whose
        rule is learned (among rows acted on, by cost, by true class of more than two) has one, and so
        has a rule around a fitted regressor: it teaches the regressor's errors.
    promise : Promise, optional
        What must hold, if it is another promise than that of ``alpha``. `Promise.overall` says the
        same, and lets each predicted class have its own threshold if ``selection`` rows are given
        to `fit` on which that pays.

    Attributes
    ----------
    estimator_ : classifier or regressor
    threshold_, certificate_, classes_
        As for `ReliableClassifier`; a regressor has no classes.
    errors_ : ErrorModel or None
        What was learned of a regressor's errors.

    Examples
    --------
    >>> from reliablenet import CertifiedThreshold
    >>> from sklearn.linear_model import LogisticRegression
    >>> from reliablenet.datasets import SyntheticBand
    >>> band = SyntheticBand(random_state=0)
    >>> past, held_out = band.sample(2000), band.sample(2000)
    >>> model = LogisticRegression().fit(past.X, past.y)
    >>> clf = CertifiedThreshold(model, alpha=0.05).fit(held_out.X, held_out.y)
    >>> clf.certificate_.certified, clf.certificate_.n
    (True, 2000)
    """

    _: KW_ONLY
    promise: Promise | None = None
    tolerance: Any = None

    threshold = "certified"


@stored_as("rule")
class ConfidenceThreshold(WrappingClassifier):
    """The most permissive threshold whose observed JCW on the selection fold is within alpha.

    It acts by this rule whether the certification fold certifies it or not (a warning tells).
    Having spent the budget to the last row on the selection fold, it seldom gets a certificate.

    Parameters
    ----------
    estimator : classifier, fitted or not
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability of the certificate.
    fold_sizes, random_state
        As for `ReliableClassifier`.

    Attributes
    ----------
    estimator_ : classifier
    threshold_, certificate_, classes_
        As for `ReliableClassifier`.

    Examples
    --------
    >>> from reliablenet import ConfidenceThreshold
    >>> from sklearn.linear_model import LogisticRegression
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(4000)
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):  # no certificate, as is to be expected
    ...     clf = ConfidenceThreshold(LogisticRegression(), random_state=0).fit(rows.X, rows.y)
    >>> clf.threshold_ == clf.selection_threshold_, clf.certificate_.kind
    (True, 'fixed')
    """

    threshold = "selection"
    _acts_uncertified: ClassVar[bool] = True


@stored_as("rule")
class ConformalRiskControl(WrappingClassifier):
    """The conformal risk control threshold, chosen on the selection fold: JCW in expectation.

    Its own promise, an expected JCW of at most alpha over the draw of the selection fold, needs no
    certificate, so that it acts without one (a warning tells).

    The promise is exact because nothing else has looked at the rows that the threshold is computed on: the
    selection fold is drawn at random, and where the classifier inside chooses its weights or a
    temperature on it, half of the fold is for that and the other half for the threshold.

    Parameters
    ----------
    estimator : classifier, fitted or not
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability of the certificate.
    fold_sizes, random_state
        As for `ReliableClassifier`.

    Attributes
    ----------
    estimator_ : classifier
    threshold_, certificate_, classes_
        As for `ReliableClassifier`.

    Examples
    --------
    >>> from reliablenet import ConformalRiskControl
    >>> from sklearn.linear_model import LogisticRegression
    >>> from reliablenet.datasets import SyntheticBand
    >>> band = SyntheticBand(random_state=0)
    >>> rows, fresh = band.sample(4000), band.sample(100_000)
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):  # no certificate, as is to be expected
    ...     clf = ConformalRiskControl(LogisticRegression(), random_state=0).fit(rows.X, rows.y)
    >>> clf.evaluate(fresh.X, fresh.y).jcw < 0.07             # the promise is about its mean
    True
    """

    threshold = "selection"
    _acts_uncertified: ClassVar[bool] = True
    _promises_on_selection: ClassVar[bool] = True

    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        self._own_rows = np.arange(len(selection))
        if self._tunes_on_selection():
            order = np.random.RandomState(seed).permutation(len(selection))
            inside, self._own_rows = np.array_split(order, 2)
            selection = _some_rows(selection, inside)
        super()._fit_folds(train, selection, seed, keep_selection=keep_selection)

    def _selection_threshold(self, selection: Fold) -> float:
        if len(self._own_rows) == 0:
            return math.inf
        selection = _some_rows(selection, self._own_rows)
        outputs = self._outputs(selection.X)
        return conformal_threshold(outputs.proba, selection.y, self.alpha, score=outputs.score)


@stored_as("rule")
@dataclass(eq=False, repr=False)
class TemperatureScaling(WrappingClassifier):
    """Divide a classifier's logits by one number, fitted on the selection fold (Guo et al., 2017).

    It changes how sure the classifier is, never which label it gives. The logits are the logarithms
    of its probabilities, which differ from a network's own by a constant that softmax ignores
    (probabilities below 2e-16 count as 2e-16). Its confidence replaces any score that the classifier
    may have learned.

    Parameters
    ----------
    estimator : classifier, fitted or not
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability of the certificate.
    threshold : {"certified", "selection"} or float in (1/K, 1]
        "certified": the smallest threshold that the certification fold can certify. "selection":
        the most permissive one whose JCW on the selection fold is within alpha. A number: itself.
    promise : Promise, optional
        As for `CertifiedThreshold`.
    fold_sizes, random_state
        As for `ReliableClassifier`.

    Attributes
    ----------
    temperature_ : float
        Above 1 the classifier was overconfident.
    estimator_ : classifier
    threshold_, certificate_, classes_
        As for `ReliableClassifier`.

    Examples
    --------
    >>> from reliablenet import TemperatureScaling
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = TemperatureScaling(GaussianNB(), alpha=0.1, random_state=0).fit(X, y)
    >>> clf.temperature_ > 2                    # naive Bayes is known to be overconfident
    True
    """

    _: KW_ONLY
    threshold: str | float = "certified"
    promise: Promise | None = None

    temperature_: float = field(init=False)

    def _needs_selection(self) -> bool:
        return True  # the temperature

    def _tunes_on_selection(self) -> bool:
        return True

    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        super()._fit_folds(train, selection, seed, keep_selection=keep_selection)
        self.temperature_ = fit_temperature(super()._outputs(selection.X).proba, selection.y)

    def _outputs(self, X: Any) -> Outputs:
        return Outputs(scale(super()._outputs(X).proba, self.temperature_))

    def _graph_parts(self) -> Parts:
        inside = super()._graph_parts()
        return replace(inside, temperatures=(*inside.temperatures, self.temperature_))

    def _learned(self) -> dict[str, Any]:
        return super()._learned() | {"temperature": self.temperature_}

    def _relearn(self, learned: dict[str, Any]) -> None:
        super()._relearn(learned)
        self.temperature_ = float(learned["temperature"])


def _some_rows(fold: Fold, places: NDArray[np.intp]) -> Fold:
    ordered = np.sort(places)
    return Fold(_safe_indexing(fold.X, ordered), fold.y[ordered])


def fit_temperature(proba: NDArray[np.float64], y: NDArray[np.intp]) -> float:
    """Return the temperature with the largest likelihood.

    In the inverse temperature the negative log-likelihood is convex, so that the root of its
    derivative is the minimum, sought between 1 / `LARGEST_TEMPERATURE` and `LARGEST_TEMPERATURE`. If
    no prediction is wrong, it falls for ever towards temperature 0 and says nothing about
    overconfidence: the answer is then 1, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.posthoc import fit_temperature, scale
    >>> proba = np.tile([0.99, 0.01], (100, 1))
    >>> y = np.r_[np.zeros(80, int), np.ones(20, int)]       # right in 80 of 100, not in 99
    >>> T = fit_temperature(proba, y)
    >>> round(T, 3), np.round(scale(proba[:1], T), 3).tolist()
    (3.315, [[0.8, 0.2]])
    """
    logits = _logits(proba)
    own = logits[np.arange(len(y)), y]

    def slope(inverse: float) -> float:
        expected = (softmax(inverse * logits, axis=1) * logits).sum(axis=1)
        return float((expected - own).mean())

    if np.all(proba.max(axis=1) == proba.min(axis=1)):
        return 1.0  # flat at any temperature
    if np.all(own == logits.max(axis=1)):
        warn_user(
            f"None of the {len(y)} selection rows limits how sure the classifier may be (it gets "
            "all of them right), so the temperature stays 1. Give more rows.",
            FoldWarning,
        )
        return 1.0
    coldest, hottest = LARGEST_TEMPERATURE, 1.0 / LARGEST_TEMPERATURE  # inverse temperatures
    if slope(hottest) >= 0.0:
        return LARGEST_TEMPERATURE
    if slope(coldest) <= 0.0:
        return 1.0 / LARGEST_TEMPERATURE
    return 1.0 / float(brentq(slope, hottest, coldest, xtol=1e-14))


def scale(proba: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """Return probabilities at another temperature; the most probable class stays the same."""
    scaled: NDArray[np.float64] = np.exp(log_softmax(_logits(proba) / temperature, axis=1))
    top = proba.argmax(axis=1)
    moved = scaled.argmax(axis=1) != top
    if moved.any():  # two nearly equal probabilities became one number, or changed places by a bit
        highest = scaled[moved].max(axis=1)
        scaled[moved, top[moved]] = np.nextafter(highest, 2.0)
    return scaled


def _logits(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.log(np.maximum(proba, LEAST_PROBABILITY)))
