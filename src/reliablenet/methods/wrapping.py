"""`WrappingClassifier`: a method around any classifier, fitted or not."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from reliablenet._checks import as_array, parameter_error
from reliablenet.certificate.labels import class_indices
from reliablenet.certificate.scored import check_proba
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.export.parts import Parts
from reliablenet.methods.base import SelectiveClassifier, SelectiveEstimator
from reliablenet.methods.decisions import Outputs
from reliablenet.tables.fold_sizes import holdout_counts
from reliablenet.tables.folds import Fold


@dataclass(eq=False, repr=False)  # scikit-learn brings its own
class WrappingClassifier(SelectiveClassifier):
    """Take the probabilities of a classifier and bring a rule.

    An unfitted classifier is cloned and fitted on the training fold; if it is a method of ours, it
    also gets the selection fold, and trains by its own settings, alpha among them. A fitted one is
    used as it is, and every row given to `fit` goes to the selection and certification folds: it must
    not have seen them, and rows that trained a method of ours are recognised and refused, also where it
    is frozen, calibrated, or the last step of a pipeline. Rows reach it as they came, so that it may take text, missing values, sparse matrices, or whatever else it can
    read.

    Parameters
    ----------
    estimator : classifier
        Anything with `predict_proba`; a fitted one has `classes_`. scikit-learn's `clone` makes a
        fitted estimator unfitted: put it into a `FrozenEstimator` for `GridSearchCV` and the like.
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability of the certificate.
    fold_sizes : "auto" or three shares
        For training, selection and certification. Around a fitted classifier "auto" halves the rows,
        and the share of training goes to the other two. Where nothing is chosen on a selection fold
        there is none, and its share trains.
    random_state : int, RandomState or None
        For cutting the folds.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_, threshold_, certificate_, selection_threshold_
        As for `SelectiveClassifier`.
    """

    estimator: Any
    alpha: float = 0.05
    rho: float = 0.05
    _: KW_ONLY
    fold_sizes: Any = "auto"
    random_state: Any = None

    estimator_: Any = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseEstimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _check_settings(self) -> None:
        super()._check_settings()
        self._check_estimator()
        if not self._is_fitted() and not hasattr(self.estimator, "fit"):
            raise parameter_error(
                "estimator",
                type(self).__name__,
                "have `classes_` (if it is fitted) or `fit`",
                self.estimator,
            )

    def _check_estimator(self) -> None:
        """Raise on an estimator that gives no scores."""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "predict_proba"):
            raise parameter_error(
                "estimator",
                type(self).__name__,
                "be a classifier with predict_proba",
                self.estimator,
                "If it has none, put sklearn's CalibratedClassifierCV around the classifier.",
            )

    def _is_fitted(self) -> bool:
        """Tell whether the classifier was fitted before it came here."""
        if getattr(self.estimator, "classes_", None) is None:
            return False
        try:
            if isinstance(self.estimator, BaseEstimator):
                check_is_fitted(self.estimator)
        except NotFittedError:
            return False
        return True

    def _is_trained(self) -> bool:
        """Tell whether there is nothing left to train, also through further rules."""
        return self._given_fitted() is not None

    def _given_fitted(self) -> Any:
        """Return the model that was fitted before it came here, also through further rules, or None."""
        inner = self.estimator
        if self._is_fitted():
            return inner
        return inner._given_fitted() if isinstance(inner, WrappingClassifier) else None

    def _fitted_before(self) -> Any:
        return (
            None if self._shares_fit else self._given_fitted()
        )  # it was fitted on these very rows

    def _find_classes(self, labels: NDArray[Any]) -> NDArray[Any]:
        inner = self._given_fitted()
        return super()._find_classes(labels) if inner is None else np.asarray(inner.classes_)

    def _fold_counts(self, n: int, given: Sequence[bool]) -> tuple[int, int, int]:
        if not self._is_trained() or all(given):
            return super()._fold_counts(n, given)
        if any(given):
            return (0, 0, n) if given[0] else (0, n, 0)
        uses = self._uses_selection()
        return holdout_counts(n, self.fold_sizes, self._budget, self.rho, selection=uses)

    def _tunes_on_selection(self) -> bool:
        inner = self.estimator
        wraps = isinstance(inner, SelectiveEstimator) and not self._is_fitted()
        return wraps and inner._tunes_on_selection()

    def _uses_selection(self) -> bool:
        """Tell whether this rule, or what it wraps, has a use for the selection fold."""
        inner = self.estimator
        wraps = isinstance(inner, SelectiveEstimator) and not self._is_fitted()
        return self._needs_selection() or (wraps and inner._uses_selection())

    def _check_rows(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Return rows as they came: what is right is for the wrapped classifier to say."""
        if hasattr(X, "detach"):
            X = as_array(X)
        if (
            type(X) is dict
        ):  # scikit-learn would look for the row 0 in it; a sparse matrix may be one too
            raise InvalidDataError("`X` must hold rows; got a dict. Use pandas.DataFrame(X).")
        if y is None:
            validate_data(self, X, y)  # words the complaint as scikit-learn does
        (X,) = indexable(X)
        if _num_samples(X) == 0:
            raise InvalidDataError(
                f"Found array with 0 sample(s) while a minimum of 1 is required by "
                f"{type(self).__name__}."
            )
        if reset:
            for name in {"n_features_in_", "feature_names_in_"} & vars(self).keys():
                delattr(self, name)
        if len(getattr(X, "shape", (0, 0))) > 1:  # texts, say, have no columns to compare
            validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _fit_scores(
        self, train: Fold, selection: Fold, classes: NDArray[Any] | None, *, keep_selection: bool
    ) -> Self:
        if not self._is_trained():
            return super()._fit_scores(train, selection, classes, keep_selection=keep_selection)
        self._check_settings()
        if len(selection):
            self._check_rows(selection.X, reset=True)
        if classes is not None:  # else `y` holds numbers
            self.classes_ = classes
        chosen = replace(selection, y=self._target.encode(self, selection.y, "fit"))
        self._fit_folds(train, chosen, 0, keep_selection=keep_selection)
        self.selection_threshold_, self.threshold_ = math.nan, math.inf
        return self

    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        if self._is_fitted():
            self.estimator_ = self.estimator
            return
        # A clone would forget what a fitted classifier further in has learned.
        trained = self._is_trained()
        estimator = copy.copy(self.estimator) if trained else clone(self.estimator, safe=False)
        rows, chosen = (
            replace(fold, y=self._target.decode(self, fold.y)) for fold in (train, selection)
        )
        if isinstance(estimator, SelectiveEstimator):
            self.estimator_ = estimator._fit_scores(
                rows, chosen, getattr(self, "classes_", None), keep_selection=keep_selection
            )
        else:
            estimator.fit(rows.X, rows.y, **weight_arguments(estimator, rows.weight))
            self.estimator_ = estimator

    def _outputs(self, X: Any) -> Outputs:
        model = self.estimator_
        if isinstance(model, SelectiveEstimator):
            outputs = model._checked_outputs(X)
            return Outputs(self._columns(outputs.proba), outputs.score)
        return Outputs(self._columns(as_array(model.predict_proba(X)), _num_samples(X)))

    def _graph_parts(self) -> Parts:
        if not isinstance(self.estimator_, SelectiveEstimator):
            raise InvalidParameterError(
                f"A graph can hold a rule around a classifier of this library; this rule is around a "
                f"{type(self.estimator_).__name__}. Use ReliableClassifier, or serve the model file."
            )
        rule = self.rule_ if hasattr(self, "certificate_") else None
        return replace(self.estimator_._graph_parts(), rule=rule)

    def _relearn(self, learned: dict[str, Any]) -> None:
        super()._relearn(learned)
        self.estimator_ = self.estimator

    def _columns(self, proba: NDArray[Any], rows: int | None = None) -> NDArray[np.float64]:
        """Return checked probabilities with one column for each of our classes."""
        owner = f"{type(self.estimator_).__name__} in {type(self).__name__}"
        columns = np.asarray(self.estimator_.classes_)
        expected = (len(proba) if rows is None else rows, len(columns))
        if proba.shape != expected:
            raise InvalidDataError(
                f"predict_proba of {owner} must return one row for each of the {expected[0]} rows "
                f"and one column for each of its {expected[1]} classes; got shape {proba.shape}."
            )
        if not np.array_equal(columns, self.classes_):
            # A class that the training fold lacked has no column: its probability is 0.
            wide = np.zeros((len(proba), len(self.classes_)))
            wide[:, class_indices(columns, self.classes_, owner)] = proba
            proba = wide
        return np.minimum(check_proba(proba, owner), 1.0)  # rounding may leave a bit above 1


def weight_arguments(estimator: Any, weight: NDArray[np.float64] | None) -> dict[str, Any]:
    """Return the weights of rows as arguments of `fit` of an estimator of another library."""
    if weight is None:
        return {}
    if isinstance(estimator, Pipeline):  # the last step is the one that weighs
        last, model = estimator.steps[-1]
        return {f"{last}__{name}": value for name, value in weight_arguments(model, weight).items()}
    if not has_fit_parameter(estimator, "sample_weight"):
        name = type(estimator).__name__
        expected = f"be None: `fit` of {name} takes no weights"
        raise parameter_error("sample_weight", "fit", expected, f"{len(weight)} weights")
    return {"sample_weight": weight}
