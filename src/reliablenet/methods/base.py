"""`SelectiveClassifier`: the contract that every act-or-defer method keeps.

A method says how it is fitted on the training and selection folds and what scores it gives to rows;
folds, threshold, certificate, decisions and evaluation are written here, once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from reliablenet._checks import check_fraction, check_seed, check_threshold, parameter_error
from reliablenet.certificate import Certificate, jcw_threshold
from reliablenet.certificate.scored import ScoredRows, class_indices, known_indices, top_entries
from reliablenet.errors import InvalidDataError
from reliablenet.methods.decisions import Decisions, Outputs
from reliablenet.methods.evidence import Evidence, fingerprint
from reliablenet.methods.fit_folds import FitFolds, check_pair, make_folds, parts_of
from reliablenet.methods.fold_warnings import (
    warn_of_copies,
    warn_of_missing_classes,
    warn_of_pipeline,
    warn_of_verdict,
)
from reliablenet.methods.held_out import HeldOut
from reliablenet.methods.inputs import check_labels, check_rows
from reliablenet.methods.layers import layers
from reliablenet.methods.ledger import count_uses
from reliablenet.methods.seen import SeenRows, model_hashes, see_folds
from reliablenet.metrics import Evaluation, evaluate
from reliablenet.modelfile import save_layers
from reliablenet.modelfile.manifest import labels_from_plain, labels_to_plain
from reliablenet.tables.fold_sizes import fold_counts
from reliablenet.tables.folds import Fold, Folds


class SelectiveClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator, ABC):
    """Base of every act-or-defer classifier.

    Attributes
    ----------
    classes_ : array of shape (K,)
    threshold_ : float
        Rows with a score at or above it are accepted; ``inf`` where no certificate could be had.
    certificate_ : Certificate
        What the certification fold proves about the rule.
    selection_threshold_ : float
        The threshold that the selection fold suggests, fixed before the certification fold was
        opened; NaN where there was no selection fold.
    evidence_ : Evidence
        Score, prediction and truth of each row of the certification fold, without its features.
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
    # How far `fit` came: "settings", "folds", "training" or "certification". A failure while folds are
    # read or the certification fold is open may depend on that fold, which `compare` must know.
    _reached: str = "settings"

    alpha: float
    rho: float
    threshold: str | float
    fold_sizes: Any
    random_state: Any

    classes_: NDArray[Any]
    threshold_: float
    certificate_: Certificate
    selection_threshold_: float
    evidence_: Evidence
    fingerprint_: str
    seen_: SeenRows | None = None

    # What a method brings.

    @abstractmethod
    def _fit_folds(self, train: Fold, selection: Fold, seed: int, *, keep_selection: bool) -> None:
        """Fit on rows whose labels are class indices; the certification fold is out of reach.

        With ``keep_selection`` a rule still computes something on the selection fold: its rows may
        stop the training, and no weight may be fitted to them (docs/decisions/0020).
        """

    @abstractmethod
    def _outputs(self, X: Any) -> Outputs:
        """Return probabilities and scores of checked rows."""

    def _selection_threshold(self, selection: Fold) -> float:
        """Return the threshold that the selection fold suggests: the most permissive within alpha."""
        outputs = self._outputs(selection.X)
        return jcw_threshold(outputs.proba, selection.y, self.alpha, score=outputs.score)

    def _needs_selection(self) -> bool:
        """Tell whether the rule computes something on the selection fold when training is over."""
        return bool(self.threshold == "selection")

    def _check_settings(self) -> None:
        """Raise on a bad setting, before anything long begins."""
        owner = type(self).__name__
        check_fraction("alpha", self.alpha, owner)
        check_fraction("rho", self.rho, owner)
        if isinstance(self.threshold, str) and self.threshold not in ("certified", "selection"):
            raise parameter_error(
                "threshold", owner, 'be "certified", "selection" or a number', self.threshold
            )

    def _find_classes(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the classes in the order of the columns of the probabilities."""
        classes: NDArray[Any] = np.unique(labels)
        if len(classes) < 2:
            raise InvalidDataError(
                f"`y` of {type(self).__name__} must hold at least two classes; got 1 class: "
                f"{classes.tolist()}."
            )
        return classes

    @property
    def grouped_(self) -> bool:
        """Whether the certificate counts one row of each group."""
        return self.certificate_.unit == "group"

    def _check_threshold(self, threshold: float) -> None:
        """Raise on a threshold that no score can be compared with."""
        check_threshold("threshold", threshold, type(self).__name__, len(self.classes_))

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
            wanted = fold_counts(n, self.fold_sizes, self.alpha, self.rho, selection=uses)
            counts[1:] = [
                0 if there else count for there, count in zip(given, wanted[1:], strict=True)
            ]
        return n - counts[1] - counts[2], counts[1], counts[2]

    # What every method shares.

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        selection: Any = None,
        certification: Any = None,
        groups: Any = None,
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
            may be a triple (X, y, groups); one row of each group counts then.
        groups : array-like of shape (n,), optional
            Whose row each is, such as a person's or a device's. A group stays in one fold, and of
            each group in the certification fold one row counts, drawn at random: the certificate
            is then about a random row of a random new group.

        Returns
        -------
        self
        """
        self._reached = "settings"
        rows, labels, random = self._begin(X, y)
        self._reached = "folds"
        cut = make_folds(self, rows, labels, selection, certification, groups, random)
        self._check_fresh(cut.folds)
        if certification is None:
            warn_of_pipeline(self)
        warn_of_missing_classes(cut.folds, self.classes_)
        warn_of_copies(cut.folds, self.alpha)
        given = (pair for pair in (selection, certification) if pair is not None)
        parts = (part for pair in given for part in parts_of(pair) if part is not None)
        self.fingerprint_ = fingerprint(X, y, *parts)
        keep = self._needs_selection() or self._shares_selection
        seed = int(random.randint(2**31 - 1))
        self._reached = "training"
        self._fit_folds(cut.folds.train, cut.folds.selection, seed, keep_selection=keep)
        self._fix_rule(cut, self.fingerprint_ if certification is None else "")
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, accepted or not."""
        return self._labels_of(self._checked_outputs(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return class probabilities of shape (n, K), columns in the order of ``classes_``."""
        return self._checked_outputs(X).proba

    def acceptance_score(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row that is compared with the threshold."""
        return self._checked_outputs(X).acceptance()

    def accept(self, X: Any) -> NDArray[np.bool_]:
        """Tell for each row whether to act on the prediction."""
        return self._accepted(self.acceptance_score(X))

    def decide(self, X: Any) -> Decisions:
        """Return label, confidence and accepted for each row.

        Parameters
        ----------
        X : array or data frame of shape (n, d)

        Returns
        -------
        Decisions
        """
        outputs = self._checked_outputs(X)
        score = outputs.acceptance()
        return Decisions(self._labels_of(outputs), score, self._accepted(score))

    def score_rows(self, X: Any, y: Any) -> ScoredRows:
        """Return score and verdict of each row, as certificates, metrics and curves take them.

        Parameters
        ----------
        X, y
            Rows and labels. A label that is none of ``classes_`` makes whatever is predicted wrong; a
            warning says how many there are.

        Returns
        -------
        ScoredRows
        """
        outputs, owner = self._checked_outputs(X), f"{type(self).__name__}.score_rows"
        return outputs.scored(known_indices(check_labels(X, y, "y"), self.classes_, owner))

    def certify(
        self,
        X: Any,
        y: Any,
        *,
        alpha: float | None = None,
        rho: float | None = None,
        groups: Any = None,
        random_state: int = 0,
    ) -> Certificate:
        """Certify the fitted rule as it stands on rows that had no part in making it.

        Rows that were given to `fit` are recognised one by one and refused.

        Parameters
        ----------
        X, y
            Fresh rows from the source that the rule will meet. A label that is none of ``classes_``
            counts as wrong.
        alpha, rho : float, optional
            By default those of the estimator.
        groups : array-like of shape (n,), optional
            Whose row each is; one row of each group counts, drawn at random.
        random_state : int
            For that draw. The same rows give the same certificate.

        Returns
        -------
        Certificate
            Of kind "fixed".
        """
        owner = f"{type(self).__name__}.certify"
        budget = (
            check_fraction("alpha", self.alpha if alpha is None else alpha, owner),
            check_fraction("rho", self.rho if rho is None else rho, owner),
        )
        seed = check_seed("random_state", random_state, owner)
        check_is_fitted(self)
        hashes = model_hashes(self, self._check_rows(X, reset=False))
        if hashes is not None and self.seen_ is not None:
            self.seen_.check(hashes)
        rows = self.score_rows(X, y)
        held = HeldOut(rows, hashes)
        if groups is not None:
            held = held.one_of_each(groups, seed)
        return held.judge(*budget, self.threshold_)

    def evaluate(
        self, X: Any, y: Any, *, resamples: int = 0, random_state: Any = None
    ) -> Evaluation:
        """Measure the fitted rule on labelled rows.

        Parameters
        ----------
        X, y
            Rows and labels.
        resamples : int
            Bootstrap resamples for the intervals of metrics that are no shares; those of shares are
            exact and always there.
        random_state : int, RandomState or None
            For the resamples.

        Returns
        -------
        Evaluation
        """
        rows = self.score_rows(X, y)
        return evaluate(
            rows,
            accepted=self._accepted(rows.score),
            alpha=self.alpha,
            resamples=resamples,
            random_state=random_state,
        )

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to a file that `reliablenet.load` reads; no pickle in it."""
        return save_layers(layers(self), path)

    # How it is done.

    def _begin(
        self, X: Any, y: Any, classes: NDArray[Any] | None = None
    ) -> tuple[Any, NDArray[Any], np.random.RandomState]:
        """Check settings, rows and labels, and learn the classes unless they are known."""
        self._check_settings()
        X = self._check_rows(X, y, reset=True)
        labels = check_labels(X, y, "y")
        check_classification_targets(labels)
        self.classes_ = self._find_classes(labels) if classes is None else classes
        if not isinstance(self.threshold, str):
            self._check_threshold(self.threshold)
        return X, labels, check_random_state(self.random_state)

    def _fit_scores(
        self, train: Fold, selection: Fold, classes: NDArray[Any], *, keep_selection: bool
    ) -> Self:
        """Fit all but the rule, for a method that wraps this one and brings its own.

        The certification fold stays with the wrapping method; alone, this one defers every row.
        """
        X, labels, random = self._begin(train.X, train.y, classes)
        rows = Fold(X, class_indices(labels, classes, "fit"))
        chosen = selection  # there is none where nothing is chosen on it
        if len(selection):
            chosen = self._check_fold(selection, "selection")
        seed = int(random.randint(2**31 - 1))
        self._fit_folds(
            rows, chosen, seed, keep_selection=keep_selection or self._needs_selection()
        )
        self.selection_threshold_, self.threshold_ = math.nan, math.inf
        return self

    def _accepted(self, score: NDArray[np.float64]) -> NDArray[np.bool_]:
        return score >= self.threshold_

    def _labels_of(self, outputs: Outputs) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[top_entries(outputs.proba)[1]]
        return labels

    def _checked_outputs(self, X: Any) -> Outputs:
        check_is_fitted(self)
        return self._outputs(self._check_rows(X, reset=False))

    def _check_rows(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Return rows as an array of floats or as the data frame they came in."""
        return check_rows(self, X, y, reset=reset)

    def _check_fresh(self, folds: Folds) -> None:
        """Raise if rows to choose or to certify on have trained what this method wraps."""

    def _see(self, folds: Folds) -> SeenRows | None:
        """Return the rows that have a part in the model or its rule, None if they cannot be compared."""
        return see_folds(self, folds)

    def _check_fold(self, pair: Any, name: str) -> Fold:
        X, labels, _ = check_pair(self, pair, name)
        return Fold(X, class_indices(labels, self.classes_, f"the {name} fold"))

    def _fix_rule(self, cut: FitFolds, table: str) -> None:
        """Choose the threshold and open the certification fold, in this order unless monotone."""
        folds = cut.folds
        chosen = len(folds.selection) > 0
        self.selection_threshold_ = (
            self._selection_threshold(folds.selection) if chosen else math.nan
        )
        threshold: Any = self.threshold
        if isinstance(threshold, str):
            threshold = None if threshold == "certified" else self.selection_threshold_
        self._reached = "certification"
        rows = self._outputs(folds.certification.X).scored(folds.certification.y)
        self.seen_ = self._see(folds)
        hashes = model_hashes(self, folds.certification.X)
        held = HeldOut(rows, hashes, cut.unit, table)
        found = held.judge(self.alpha, self.rho, threshold)
        self.evidence_ = Evidence.of(rows, cut.numbers)
        self._adopt(found)
        warn_of_verdict(type(self).__name__, found, self.threshold_)

    def _adopt(self, certificate: Certificate) -> None:
        """Act by a certified rule, and on nothing without one, unless the rule is the method."""
        self.certificate_ = certificate
        acts = certificate.certified or self._acts_uncertified
        self.threshold_ = certificate.threshold if acts else math.inf

    # What a file holds of it (`reliablenet.modelfile.registry.StoredMethod`).

    def _learned(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        return {
            "classes": labels_to_plain(self.classes_),
            "n_features": getattr(self, "n_features_in_", None),
            "feature_names": None if names is None else [str(name) for name in names],
            "selection_threshold": str(self.selection_threshold_),  # may be inf, which JSON lacks
            "temperature": None,  # of a rule that has none; the format wants an entry
        }

    def _relearn(self, learned: dict[str, Any]) -> None:
        self.classes_ = labels_from_plain(learned["classes"])
        if learned["n_features"] is not None:
            self.n_features_in_ = learned["n_features"]
        if learned["feature_names"] is not None:
            self.feature_names_in_ = np.array(learned["feature_names"], dtype=object)
        self.selection_threshold_ = float(learned["selection_threshold"])
        self.threshold_ = math.inf

    def _restore_proof(self, certificate: Certificate, evidence: bytes, seen: bytes | None) -> None:
        self._adopt(certificate)
        self.evidence_ = Evidence.from_bytes(evidence)
        self.evidence_.check(certificate, len(self.classes_))
        self.seen_ = None if seen is None else SeenRows.from_bytes(seen)
        if self.seen_ is not None and certificate.provenance is not None:
            # the file's certificate counts among those of this process
            count_uses(self.seen_.certified, certificate.provenance.model)
