"""`TunedClassifier`: any classifier with what a careful user gives it, settings chosen and all rows used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from reliablenet._checks import parameter_error
from reliablenet.certificate import jcw_threshold
from reliablenet.certificate.scored import ScoredRows
from reliablenet.methods.posthoc import CertifiedThreshold
from reliablenet.methods.wrapping import weight_arguments
from reliablenet.modelfile import stored_as
from reliablenet.tables.folds import Fold
from reliablenet.tables.tabular import TabularEncoder

LEAST_PROBABILITY = 1e-9
STEP = "model"  # of a pipeline after the encoder
BOOSTING_SEARCH: tuple[dict[str, Any], ...] = (
    {},
    {f"{STEP}__learning_rate": 0.05, f"{STEP}__max_iter": 200, f"{STEP}__max_leaf_nodes": 15},
    {f"{STEP}__max_iter": 60, f"{STEP}__max_leaf_nodes": 8},
    {f"{STEP}__max_iter": 300},
)


@stored_as("rule")
@dataclass(eq=False, repr=False)
class TunedClassifier(CertifiedThreshold):
    """A classifier with the best of some settings, fitted on training and selection rows together.

    The settings are compared by their log loss on the selection fold. Where a rule around it still
    computes something on that fold, it stays fitted on the training rows.

    Parameters
    ----------
    estimator : classifier, not fitted
    alpha, rho, fold_sizes, random_state, promise
        As for `CertifiedThreshold`.
    tolerance : None
        Numbers are not for it.
    settings : sequence of mappings
        Each holds arguments for ``set_params`` of the estimator. With one alone nothing is chosen.

    Attributes
    ----------
    settings_ : dict
        The settings that were chosen.
    losses_ : list of float
        Log loss of each on the selection fold.
    estimator_, threshold_, certificate_, classes_
        As for `CertifiedThreshold`.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from reliablenet.datasets import SyntheticBand
    >>> from reliablenet.methods import TunedClassifier
    >>> rows = SyntheticBand(random_state=0).sample(4000)
    >>> strengths = [{"C": 1e-4}, {"C": 1.0}]
    >>> clf = TunedClassifier(LogisticRegression(), settings=strengths, random_state=0)
    >>> clf.fit(rows.X, rows.y).settings_
    {'C': 1.0}
    """

    _: KW_ONLY
    settings: Sequence[Mapping[str, Any]] = ({},)

    settings_: dict[str, Any] = field(init=False)
    losses_: list[float] = field(init=False)

    def _check_settings(self) -> None:
        super()._check_settings()
        owner = type(self).__name__
        given = self.settings
        listed = isinstance(given, Sequence) and not isinstance(given, str) and len(given)
        if not listed or not all(isinstance(one, Mapping) for one in given):
            raise parameter_error("settings", owner, "hold at least one mapping", given)
        if self._is_fitted():
            raise parameter_error("estimator", owner, "not be fitted yet", self.estimator)
        if self.tolerance is not None:
            raise parameter_error("tolerance", owner, "be None: classes are chosen", self.tolerance)

    def _uses_selection(self) -> bool:
        return True

    def _tunes_on_selection(self) -> bool:
        return True

    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        self._selection_rows: ScoredRows | None = None
        tried = []
        for settings in self.settings:
            self.estimator_ = self._fit_one(train, settings)
            proba = self._outputs(selection.X).proba
            said = proba[np.arange(len(selection)), selection.y]
            tried.append((-float(np.log(said.clip(LEAST_PROBABILITY)).mean()), self.estimator_))
        self.losses_ = [loss for loss, _ in tried]
        best = int(np.argmin(self.losses_))
        self.settings_, self.estimator_ = dict(self.settings[best]), tried[best][1]
        if not keep_selection:
            self._selection_rows = self._outputs(selection.X).scored(selection.y)
            self.estimator_ = self._fit_one(_join(train, selection), self.settings_)

    def _fit_one(self, rows: Fold, settings: Mapping[str, Any]) -> Any:
        """Return the classifier with some settings, fitted on rows."""
        model = clone(self.estimator).set_params(**settings)
        labels = self._target.decode(self, rows.y)
        return model.fit(rows.X, labels, **weight_arguments(model, rows.weight))

    def _selection_threshold(self, selection: Fold) -> float:
        if self._selection_rows is None:
            return super()._selection_threshold(selection)
        return jcw_threshold(self._selection_rows, None, self._budget)


def _join(first: Fold, second: Fold) -> Fold:
    """Return the rows of two folds as one."""
    if isinstance(first.X, pd.DataFrame):
        X: Any = pd.concat([first.X, second.X])
    elif sparse.issparse(first.X):
        X = sparse.vstack([first.X, second.X], format="csr")
    else:
        X = np.concatenate([np.asarray(first.X), np.asarray(second.X)])
    weight = None
    if first.weight is not None or second.weight is not None:
        parts = (np.ones(len(one)) if one.weight is None else one.weight for one in (first, second))
        weight = np.concatenate(list(parts))
    return Fold(X, np.concatenate([first.y, second.y]), weight)


def tuned_rivals() -> dict[str, TunedClassifier]:
    """Return what a user might have tried on a table instead, boosting of other libraries where installed."""
    logistic = LogisticRegression(max_iter=1000)
    others = {"forest": RandomForestClassifier(), "logistic": logistic, **_installed()}
    boosting = HistGradientBoostingClassifier()
    return {
        "boosting": _on_tables(boosting),
        "boosting_tuned": _on_tables(boosting, BOOSTING_SEARCH),
        **{name: _on_tables(model) for name, model in others.items()},
    }


def _on_tables(model: Any, settings: Sequence[Mapping[str, Any]] = ({},)) -> TunedClassifier:
    pipeline = make_pipeline(TabularEncoder(), model)
    pipeline.steps[-1] = (STEP, model)
    return TunedClassifier(pipeline, settings=settings)


def _installed() -> dict[str, Any]:
    """Return boosting of other libraries, as far as they are installed and take labels of any kind."""
    known: dict[str, tuple[str, dict[str, Any]]] = {
        "lightgbm": ("LGBMClassifier", {"verbose": -1}),
        "catboost": ("CatBoostClassifier", {"verbose": False, "allow_writing_files": False}),
    }
    return {
        name: getattr(import_module(name), classifier)(**settings)
        for name, (classifier, settings) in known.items()
        if find_spec(name)
    }
