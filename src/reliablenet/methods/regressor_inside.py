"""A rule around any regressor: what it scores by, and where that is learned."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils import RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from reliablenet._checks import as_array, check_finite, parameter_error
from reliablenet.errors import InvalidDataError
from reliablenet.methods.base import SelectiveEstimator
from reliablenet.methods.decisions import NumberOutputs
from reliablenet.methods.error_model import ErrorModel, normal_chance
from reliablenet.methods.numbers import Numbers, check_promise
from reliablenet.methods.targets import LABELS, Target
from reliablenet.methods.wrapping import WrappingClassifier, weight_arguments
from reliablenet.tables.folds import Fold
from reliablenet.tables.tolerance import Tolerance, Values

PARTS = (
    5  # into which training rows are cut, so that each has a value of a regressor that missed it
)


def _tells_classes(model: Any) -> bool:
    return model._numbers() is None


class RegressorInside(WrappingClassifier):
    """Let a rule wrap a regressor as well as a classifier: with a tolerance, numbers are predicted.

    The score of a row is the estimated chance that its value is within the tolerance:

    * of a `ReliableRegressor` its own;
    * of a regressor whose `predict` takes ``return_std``, that of a normal distribution;
    * of any other that of an `ErrorModel`, fitted to errors on rows that the regressor was not trained on:
      for an unfitted one the values of five parts of the training fold, each by a copy that was trained on
      the other four; for a fitted one the selection fold.

    Attributes
    ----------
    errors_ : ErrorModel or None
    """

    tolerance: Any
    errors_: ErrorModel | None = None

    def _numbers(self) -> Numbers | None:
        """Return what `y` holds if that is numbers."""
        inner = getattr(self.estimator, "_target", None)
        if self.tolerance is None:
            return inner if isinstance(inner, Numbers) else None
        return Numbers(Tolerance.of(self.tolerance, type(self).__name__))

    @property
    def _target(self) -> Target:
        return self._numbers() or LABELS

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.tolerance is not None or _is_regressor(self.estimator):
            tags.estimator_type, tags.classifier_tags = "regressor", None
            tags.regressor_tags = RegressorTags()
        return tags

    @available_if(_tells_classes)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities of shape (n, K), columns in the order of ``classes_``."""
        return super().predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of classes, or R² of numbers, accepted or not."""
        if self._numbers() is None:
            return float(super().score(X, y, sample_weight))
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def _check_settings(self) -> None:
        owner, inner = type(self).__name__, self.estimator
        if self._numbers() is None and _is_regressor(inner):
            raise parameter_error(
                "tolerance",
                owner,
                "be given around a regressor",
                self.tolerance,
                'How far may a value be off and still be right? A number, "10%" or a column of X.',
            )
        if self._numbers() is not None:
            check_promise(self.promise, owner)
        super()._check_settings()

    def _check_estimator(self) -> None:
        numbers, inner = self._numbers(), self.estimator
        if numbers is None:
            super()._check_estimator()
            return
        owner = type(self).__name__
        if isinstance(inner, type) or not hasattr(inner, "predict"):
            raise parameter_error("estimator", owner, "be a regressor with predict", inner)
        own = getattr(inner, "_target", numbers)
        if own != numbers:
            raise parameter_error(
                "tolerance",
                owner,
                f"be None, or that of the estimator inside ({getattr(inner, 'tolerance', None)!r})",
                self.tolerance,
            )

    def _is_fitted(self) -> bool:
        if self._numbers() is None:
            return super()._is_fitted()
        try:
            if isinstance(self.estimator, BaseEstimator):
                check_is_fitted(self.estimator)
        except NotFittedError:
            return False
        return isinstance(self.estimator, BaseEstimator) or not hasattr(self.estimator, "fit")

    def _learns_errors(self) -> bool:
        """Tell whether the score is that of an `ErrorModel`."""
        inner = self.estimator
        plain = self._numbers() is not None and not isinstance(inner, SelectiveEstimator)
        return plain and not _gives_spread(inner)

    def _uses_selection(self) -> bool:
        return super()._uses_selection() or (self._learns_errors() and self._is_fitted())

    def _tunes_on_selection(self) -> bool:
        return super()._tunes_on_selection() or (self._learns_errors() and self._is_fitted())

    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        super()._fit_folds(train, selection, seed, keep_selection=keep_selection)
        self.errors_ = None
        numbers = self._numbers()
        if numbers is None or not self._learns_errors():
            return
        if self._is_fitted():
            rows, value = selection, self._values(selection.X)
        else:
            parts = KFold(PARTS, shuffle=True, random_state=seed)
            inner = clone(self.estimator, safe=False)
            weights = weight_arguments(inner, train.weight)
            rows = train
            value = cross_val_predict(inner, train.X, train.y, cv=parts, params=weights or None)
        margin = numbers.tolerance.rows(rows.X, type(self).__name__)
        checked = self._checked_values(value, len(rows))
        self.errors_ = ErrorModel(random_state=seed).fit(rows.X, checked, rows.y, margin)

    def _outputs(self, X: Any) -> Any:
        numbers, model = self._numbers(), self.estimator_
        if numbers is None:
            return super()._outputs(X)
        if isinstance(model, SelectiveEstimator):
            return model._checked_outputs(X)
        margin = numbers.tolerance.rows(X, type(self).__name__)
        if self.errors_ is not None:
            value = self._values(X)
            return NumberOutputs(value, self.errors_.chance(X, value, margin), margin)
        center, spread = model.predict(X, return_std=True)
        value, width = (self._checked_values(part, _num_samples(X)) for part in (center, spread))
        return NumberOutputs(value, normal_chance(value, width, margin), margin)

    def _values(self, X: Any) -> Values:
        return self._checked_values(self.estimator_.predict(X), _num_samples(X))

    def _checked_values(self, value: Any, rows: int) -> Values:
        """Return the values that a regressor gave, one finite number a row."""
        owner = f"{type(self.estimator_).__name__} in {type(self).__name__}"
        values = as_array(value, "predict")
        if values.shape == (rows, 1):
            values = values[:, 0]
        if values.shape != (rows,) or values.dtype.kind not in "biuf":
            raise InvalidDataError(
                f"predict of {owner} must return one number for each of the {rows} rows; got "
                f"{values.dtype} of shape {values.shape}."
            )
        check_finite("predict", values, owner)
        return values.astype(np.float64)

    def _beside(self) -> Any:
        return self.errors_

    def _restore_beside(self, learned: Any) -> None:
        if not isinstance(learned, ErrorModel) or not self._learns_errors():
            raise InvalidDataError(
                f"{type(self).__name__} does not learn a {type(learned).__name__}."
            )
        self.errors_ = learned


def _gives_spread(model: Any) -> bool:
    """Tell whether `predict` can return a standard deviation of each value."""
    return "return_std" in inspect.signature(model.predict).parameters


def _is_regressor(estimator: Any) -> bool:
    """Tell whether an estimator predicts numbers; one that is not scikit-learn's may not say."""
    return isinstance(estimator, BaseEstimator) and is_regressor(estimator)
