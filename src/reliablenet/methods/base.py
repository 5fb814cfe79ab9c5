"""`SelectiveEstimator`: one fit from top to bottom, the same for every act-or-defer method.

A method says how it is fitted on the training and selection folds and what scores it gives to rows; folds,
threshold and certificate are written here, once, what a fitted method answers in `decisions`, and what
depends on the kind of `y` in `targets`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state

from reliablenet._checks import check_fraction, parameter_error
from reliablenet.certificate import Certificate, Promise, RuleCertificate, jcw_threshold
from reliablenet.methods.evidence import Evidence
from reliablenet.methods.explaining import ExplainingMixin
from reliablenet.methods.exporting import ExportingMixin
from reliablenet.methods.held_out import HeldOut, warn_of_verdict
from reliablenet.methods.inputs import (
    FitFolds,
    check_labels,
    check_pair,
    check_rows,
    check_weights,
    given_parts,
    make_folds,
    warn_of_copies,
    warn_of_pipeline,
)
from reliablenet.methods.layers import find_source
from reliablenet.methods.promised import (
    Columns,
    check_setting,
    columns_by_fold,
    group_columns,
    learns_rule,
)
from reliablenet.methods.seen import (
    check_fresh,
    check_given,
    check_trained,
    model_hashes,
    see_folds,
)
from reliablenet.methods.stored import StoredMixin
from reliablenet.methods.targets import LABELS, Target, find_classes
from reliablenet.metrics.cells import learn_cuts
from reliablenet.tables.digest import fingerprint
from reliablenet.tables.fold_sizes import fold_counts
from reliablenet.tables.folds import Fold, Folds


class RowWeighting(TypedDict, total=False):
    """How much rows count in training.

    A parameter of its own in the signature of `fit` would have scikit-learn check that a weight of two
    equals a row given twice. No certified method can keep that: a certificate counts every row once.
    """

    sample_weight: Any


class SelectiveEstimator(
    ExplainingMixin,
    StoredMixin,
    ExportingMixin,
    CallbackSupportMixin,
    BaseEstimator,
    ABC,
):
    """Base of every act-or-defer estimator.

    Attributes
    ----------
    threshold_ : float
        Rows with a score at or above it are accepted; ``inf`` where no certificate could be had.
    certificate_ : Certificate
        What the certification fold proves about the rule.
    selection_threshold_ : float
        The threshold that the selection fold suggests, fixed before the certification fold was
        opened; NaN where there was no selection fold.
    evidence_ : Evidence
        Score, prediction and truth of each row of the certification fold, without its features.
    source_ : Source or None
        Profile of the training rows and counts of the certification rows, by which new rows are told
        from them; None where there is none.
    fingerprint_ : str
        SHA-256 of all rows and labels given to `fit`.
    seen_ : SeenRows or None
        Hashes of these rows, by which `certify` recognises them; None where rows cannot be compared.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if fitted on a data frame with text column names.
    """

    # Whether the method is a rule with a promise of its own, to be followed with or without a
    # certificate; see docs/decisions/0007.
    _acts_uncertified: ClassVar[bool] = False
    # Whether that promise rests on the selection fold, which is then drawn at random as well.
    _promises_on_selection: ClassVar[bool] = False
    # Set by `compare`, where several rules share one fit on the same folds: whether one of them still
    # needs the selection fold, and whether what a rule wraps was fitted on these very folds.
    _shares_selection: bool = False
    _shares_fit: bool = False
    # SHA-256 of the table that `compare` cut the folds from.
    _cut_from: str = ""
    # How far `fit` came: "settings", "folds", "training" or "certification". A failure while folds are
    # read or the certification fold is open may depend on that fold, which `compare` must know.
    _reached: str = "settings"
    # Groups of the rows that are trained and chosen on, while `fit` runs, where a promise is about groups.
    _learned_by: tuple[Columns | None, Columns | None] = (None, None)

    # What scikit-learn's metadata routing cannot read from the signature of `fit`.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}

    promise: Promise | None = None  # a setting of the methods that can keep one
    threshold: str | float
    fold_sizes: Any
    random_state: Any

    selection_threshold_: float
    evidence_: Evidence
    fingerprint_: str

    # One fit, from top to bottom.

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        selection: Any = None,
        certification: Any = None,
        groups: Any = None,
        by: Any = None,
        **weights: Unpack[RowWeighting],
    ) -> Self:
        """Fit, choose the rule, and certify it.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            In a data frame, columns that are not numbers are categories, and values may be missing.
        y : array-like of shape (n,)
            Labels of any kind.
        selection, certification : pair (X, y), optional
            Folds of your own. What is not given is cut from X and y by ``fold_sizes``: the
            certification fold at random, then the selection fold, stratified. A certification fold
            may be a triple (X, y, groups); one row of each group counts then. Rows of it that train or
            choose are refused.
        groups : array-like of shape (n,), optional
            Whose row each is, such as a person's or a device's. A group stays in one fold, and of
            each group in the certification fold one row counts, drawn at random: the certificate
            is then about a random row of a random new group.
        by : array-like of shape (n,), or mapping or data frame of columns, optional
            Group of each row, where the promise is about groups; by default the column of X.
        sample_weight : array-like of shape (n,), optional
            How much each row counts in training and in what is chosen there. Threshold and certificate
            count every row once: they are about the rows that will come.

        Returns
        -------
        self
        """
        self._reached = "settings"
        rows, labels = self._check_table(X, y)
        weight = check_weights(len(labels), **weights)
        table_by = group_columns(self.promise, X, by, "fit", missing=False)
        random = self._random()

        self._reached = "folds"
        warn_of_pipeline(self, selection=selection, certification=certification)
        cut = make_folds(self, rows, labels, weight, selection, certification, groups, random)
        folds = cut.folds
        check_fresh(None if self._shares_fit else getattr(self, "estimator", None), folds)
        learned = self._learned_folds(folds) if certification is not None else []
        check_given(learned, folds.certification)
        self._target.warn_of_folds(self, folds)
        warn_of_copies(folds, self._budget)
        held_by, chosen_by, trained_by = columns_by_fold(self.promise, table_by, cut)
        self.fingerprint_ = fingerprint(X, y, *given_parts(selection, certification))

        keep = self._needs_selection() or self._shares_selection
        seed = int(random.randint(2**31 - 1))
        self._reached = "training"
        self._learned_by = trained_by, chosen_by
        self._fit_folds(folds.train, folds.selection, seed, keep_selection=keep)
        self._learned_by = (None, None)
        check_trained(self, learned, folds)
        self.source_ = find_source(self, folds)
        table = self._cut_from or (self.fingerprint_ if certification is None else "")
        self._fix_rule(cut, table, held_by, chosen_by)
        return self

    def _check_table(
        self, X: Any, y: Any, classes: NDArray[Any] | None = None
    ) -> tuple[Any, NDArray[Any]]:
        """Check settings, rows and `y`, and learn of `y` what must be known."""
        self._check_settings()
        X = self._check_rows(X, y, reset=True)
        labels = self._target.learn(self, check_labels(X, y, "y"), classes)
        if not isinstance(self.threshold, str):
            self._check_threshold(self.threshold)
        return X, labels

    def _fix_rule(
        self,
        cut: FitFolds,
        table: str,
        by: Columns | None = None,
        chosen_by: Columns | None = None,
    ) -> None:
        """Choose the threshold and open the certification fold, in this order unless monotone."""
        folds = cut.folds
        self.selection_threshold_ = math.nan
        if len(folds.selection):
            self.selection_threshold_ = self._selection_threshold(folds.selection)
        threshold: Any = self.threshold
        if isinstance(threshold, str):
            threshold = None if threshold == "certified" else self.selection_threshold_

        chosen = None
        if len(folds.selection) and (self._learns_rule() or self._has_idle_selection()):
            chosen = self._outputs(folds.selection.X).scored(folds.selection.y)
            chosen = replace(chosen, by=chosen_by)

        self._reached = "certification"
        rows = self._outputs(folds.certification.X).scored(folds.certification.y)
        rows = replace(rows, by=by)
        self.seen_ = see_folds(self, folds, cut.beside, self._fitted_before())
        hashes = model_hashes(self, folds.certification.X)
        compared = table != "" or self.seen_ is not None
        held = HeldOut(rows, hashes, cut.unit, table, compared)
        found: Certificate | RuleCertificate
        if self.promise is None:
            found = held.judge(self.alpha, self.rho, threshold)
        else:
            classes = getattr(self, "classes_", None)
            found = held.judge_promise(self.promise, self.rho, chosen, classes)
        found = self._target.describe(found)
        self.evidence_ = self._target.evidence(rows, cut.numbers)
        self._adopt(found)
        known = folds.train.X if len(folds.train) else folds.certification.X
        cuts = learn_cuts(known)  # of other rows than those counted, where there are any
        self._fold_breakdown = self._count_cells(rows, folds.certification.X, cuts)
        warn_of_verdict(type(self).__name__, found, self.threshold_)

    def _adopt(self, certificate: Certificate | RuleCertificate) -> None:
        """Act by a certified rule, and on nothing without one, unless the rule is the method."""
        self.certificate_ = certificate
        acts = certificate.certified or self._acts_uncertified
        self.threshold_ = certificate.threshold if acts else math.inf

    def _fit_scores(
        self, train: Fold, selection: Fold, classes: NDArray[Any] | None, *, keep_selection: bool
    ) -> Self:
        """Fit all but the rule, for a method that wraps this one and brings its own.

        The certification fold stays with the wrapping method; alone, this one defers every row.
        """
        X, labels = self._check_table(train.X, train.y, classes)
        rows = Fold(X, self._target.encode(self, labels, "fit"), train.weight)
        chosen = selection  # there is none where nothing is chosen on it
        if len(selection):
            chosen = replace(self._check_fold(selection, "selection"), weight=selection.weight)
        keep = keep_selection or self._needs_selection()
        seed = int(self._random().randint(2**31 - 1))
        self._learned_by = (None, None)  # the promise is that of the method around this one
        self._fit_folds(rows, chosen, seed, keep_selection=keep)
        self.selection_threshold_, self.threshold_ = math.nan, math.inf
        return self

    # What a method brings.

    @abstractmethod
    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        """Fit on rows whose `y` is encoded; the certification fold is out of reach.

        With ``keep_selection`` a rule still computes something on the selection fold: its rows may
        stop the training, and no weight may be fitted to them (docs/decisions/0020).
        """

    # What it may bring.

    def _selection_threshold(self, selection: Fold) -> float:
        """Return the threshold that the selection fold suggests: the most permissive within alpha."""
        return jcw_threshold(self._outputs(selection.X).scored(selection.y), None, self._budget)

    def _needs_selection(self) -> bool:
        """Tell whether the rule computes something on the selection fold when training is over."""
        return bool(self.threshold == "selection") or self._learns_rule()

    def _learns_rule(self) -> bool:
        """Tell whether the rule of a promise is learned on the selection fold."""
        return learns_rule(self.promise, len(getattr(self, "classes_", ())) or None)

    def _has_idle_selection(self) -> bool:
        """Tell whether given selection rows would serve only to learn scales for the classes."""
        overall = self.promise is not None and self.promise.kind == "overall"
        return overall and not self._uses_selection()

    @property
    def _budget(self) -> float:
        """The share of rows acted on wrongly that training and folds are made for."""
        return self.alpha if self.promise is None else self.promise.strictest

    def _tunes_on_selection(self) -> bool:
        """Tell whether the scores themselves depend on the selection fold, through any choice."""
        return False

    def _uses_selection(self) -> bool:
        """Tell whether a selection fold has a part in training or in the rule; else none is cut."""
        return True

    def _fold_counts(self, n: int, given: Sequence[bool]) -> tuple[int, int, int]:
        """Return how many of n rows go to each fold; what is given is not cut, but trained on."""
        counts = [n, 0, 0]
        if not all(given):
            uses = self._uses_selection()
            wanted = fold_counts(n, self.fold_sizes, self._budget, self.rho, selection=uses)
            counts[1:] = [
                0 if there else count for there, count in zip(given, wanted[1:], strict=True)
            ]
        return n - counts[1] - counts[2], counts[1], counts[2]

    def _fitted_before(self) -> Any:
        """Return the model inside that was fitted before, on other rows than these, if there is one."""

    def _learned_folds(self, folds: Folds) -> list[Fold]:
        """Return the folds that are trained or chosen on; none where `compare` cut all from one table."""
        if self._cut_from:
            return []
        given = self._fitted_before() is not None  # then nothing is trained
        return [folds.selection] if given else [folds.train, folds.selection]

    def _check_settings(self) -> None:
        """Raise on a bad setting, before anything long begins."""
        owner = type(self).__name__
        check_fraction("alpha", self.alpha, owner)
        check_fraction("rho", self.rho, owner)
        if isinstance(self.threshold, str) and self.threshold not in ("certified", "selection"):
            raise parameter_error(
                "threshold", owner, 'be "certified", "selection" or a number', self.threshold
            )
        check_setting(self.promise, self.threshold, owner)

    def _check_threshold(self, threshold: float) -> None:
        """Raise on a threshold that no score can be compared with."""
        self._target.check_threshold(self, threshold)

    def _check_rows(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Return rows as an array of floats or as the data frame they came in."""
        return check_rows(self, X, y, reset=reset)

    def _check_fold(self, pair: Any, name: str) -> Fold:
        """Return a fold that a user gave, its `y` encoded."""
        X, labels, _ = check_pair(self, pair, name)
        return Fold(X, self._target.encode(self, labels, f"the {name} fold"))

    def _random(self) -> np.random.RandomState:
        """Return where the draws of a fit come from."""
        random: np.random.RandomState = check_random_state(self.random_state)
        return random


class SelectiveClassifier(ClassifierMixin, SelectiveEstimator):
    """Base of every act-or-defer classifier.

    Attributes
    ----------
    classes_ : array of shape (K,)
    threshold_, certificate_, selection_threshold_, evidence_, fingerprint_, seen_
        As for `SelectiveEstimator`.
    """

    @property
    def _target(self) -> Target:
        return LABELS

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities of shape (n, K), columns in the order of ``classes_``."""
        proba: NDArray[np.float64] = self._checked_outputs(X).proba
        return proba

    def _find_classes(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the classes in the order of the columns of the probabilities."""
        return find_classes(labels, type(self).__name__)
