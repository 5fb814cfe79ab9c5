"""What can be asked of a fitted method: predictions, decisions, a certificate on fresh rows, an evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from reliablenet._checks import check_fraction, check_seed, parameter_error
from reliablenet._dask import is_dask
from reliablenet._warn import warn_user
from reliablenet.certificate import Certificate, Promise, Rule, RuleCertificate
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import OddInputWarning
from reliablenet.methods.dask_frames import certify_dask, decide_dask
from reliablenet.methods.decisions import RowOutputs
from reliablenet.methods.evidence import Evidence
from reliablenet.methods.held_out import HeldOut, groups_to_count
from reliablenet.methods.inputs import check_labels
from reliablenet.methods.layers import find_core, find_encoder
from reliablenet.methods.promised import Columns, group_columns, rule_of
from reliablenet.methods.seen import SeenRows, check_inside, model_hashes
from reliablenet.metrics import Breakdown, Evaluation, evaluate
from reliablenet.metrics.breakdowns import count_cells
from reliablenet.metrics.cells import Cut, learn_cuts
from reliablenet.tables.odd_rows import find_oddities, with_codes
from reliablenet.tables.oddities import Oddities
from reliablenet.tables.profile import InputProfile
from reliablenet.tables.source import Source

if TYPE_CHECKING:
    from reliablenet.methods.targets import Target


class DecidingMixin(ABC):
    """What can be asked of a fitted method; all of it rests on its scores and one threshold."""

    alpha: float
    rho: float
    classes_: NDArray[Any]
    promise: Promise | None
    threshold_: float
    certificate_: Certificate | RuleCertificate
    evidence_: Evidence
    seen_: SeenRows | None = None
    source_: Source | None = None
    _fold_breakdown: Breakdown | None = None  # by columns, where they were counted

    @property
    @abstractmethod
    def _target(self) -> Target:
        """What `y` holds."""

    @abstractmethod
    def _outputs(self, X: Any) -> RowOutputs:
        """Return what is computed of checked rows: for labels their probabilities and scores."""

    @abstractmethod
    def _check_rows(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Return rows as `_outputs` takes them; ``reset`` learns their columns."""

    @property
    def grouped_(self) -> bool:
        """Whether the certificate counts one row of each group; what a rule wraps may have none."""
        certificate = getattr(self, "certificate_", None)
        return certificate is not None and certificate.unit == "group"

    @property
    def profile_(self) -> InputProfile | None:
        """What the training rows looked like; None in files of 0.1 and where rows have no columns."""
        return None if self.source_ is None else self.source_.profile

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the answer for each row, accepted or not: the most probable class, or a value.

        An `OddInputWarning` says what does not look like the training rows.
        """
        outputs, _ = self._watched_outputs(X, ())
        return self._target.answers(self, outputs)

    def acceptance_score(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row that is compared with the threshold."""
        score: NDArray[np.float64] = self._checked_outputs(X).acceptance()
        return score

    @property
    def rule_(self) -> Rule:
        """The rule by which it acts or defers."""
        return rule_of(self.certificate_, self.threshold_)

    def accept(self, X: Any, by: Any = None) -> NDArray[np.bool_]:
        """Tell for each row whether to act on the prediction; ``by`` as for `decide`."""
        accepted: NDArray[np.bool_] = self.decide(X, by).accepted
        return accepted

    def decide(
        self,
        X: Any,
        by: Any = None,
        *,
        defer_odd: bool = False,
        allow_missing: Collection[Any] = (),
    ) -> Any:
        """Return label (or value), confidence and accepted for each row.

        An `OddInputWarning` says what does not look like the rows that the model was trained on, where
        that is a whole column or more than 1 % of the rows; ``oddities`` of the result has all.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            Of a Dask data frame the decisions are one too, to be computed with it.
        by : array-like of shape (n,), or mapping or data frame of columns, optional
            Group of each row, where the rule depends on it; by default the column of X. Groups that
            were not certified, or are missing, are deferred.
        defer_odd : bool
            Also defer rows that hold a category that training hardly saw, a number far outside, or a gap
            where it had none. That is decided row by row, and acts on fewer rows, never on more:
            "acted and wrong" stays within alpha. A promise about the rows acted on alone,
            P(wrong | acted), is not covered by this.
        allow_missing : collection of str or int
            Columns that may be missing in every row though they never were in training; others are
            refused then.

        Returns
        -------
        Decisions, or NumberDecisions of an estimator of numbers
        """
        if is_dask(X):
            return decide_dask(self, X, by, defer_odd=defer_odd, allow_missing=allow_missing)
        outputs, oddities = self._watched_outputs(X, allow_missing)
        score = outputs.acceptance()
        answers = self._target.answers(self, outputs)
        groups = self._groups(X, by, "decide") if self._by_rule else None
        accepted = self._accepted(score, answers, groups)
        if defer_odd:
            accepted = accepted & ~oddities.odd
        return self._target.decisions(answers, score, accepted, oddities)

    def score_rows(self, X: Any, y: Any, by: Any = None) -> ScoredRows:
        """Return score and verdict of each row, as certificates, metrics and curves take them.

        Parameters
        ----------
        X, y
            Rows and labels. A label that is none of ``classes_`` makes whatever is predicted wrong; a
            warning says how many there are.
        by : optional
            Group of each row, as for `decide`; needed where the promise is about groups.

        Returns
        -------
        ScoredRows
        """
        outputs, owner = self._checked_outputs(X), f"{type(self).__name__}.score_rows"
        truth = self._target.encode_fresh(self, check_labels(X, y, "y"), owner)
        rows: ScoredRows = outputs.scored(truth)
        if self.promise is None or not self.promise.columns:
            return rows
        return replace(rows, by=self._groups(X, by, owner))

    def certify(
        self,
        X: Any,
        y: Any,
        *,
        alpha: float | None = None,
        rho: float | None = None,
        groups: Any = None,
        by: Any = None,
        random_state: int = 0,
    ) -> Certificate | RuleCertificate:
        """Certify the fitted rule as it stands on rows that had no part in making it.

        Rows that were given to `fit` are recognised and refused: one by one, and where single rows recur
        by chance, as a whole.

        Parameters
        ----------
        X, y
            Fresh rows from the source that the rule will meet, also as columns of a Dask data frame. A
            label that is none of ``classes_`` counts as wrong.
        alpha, rho : float, optional
            By default those of the estimator. A model with a promise has its budgets there.
        groups : array-like of shape (n,) or "rows", optional
            Whose row each is; one row of each group counts, drawn at random. A model whose own certificate
            counts groups needs them; "rows" says that each row is a unit of its own.
        by : optional
            Group of each row that the promise is about, as for `decide`.
        random_state : int
            For that draw. The same rows give the same certificate.

        Returns
        -------
        Certificate or RuleCertificate
            Of kind "fixed"; of a promise, its parts are.
        """
        owner = f"{type(self).__name__}.certify"
        budget = (
            check_fraction("alpha", self.alpha if alpha is None else alpha, owner),
            check_fraction("rho", self.rho if rho is None else rho, owner),
        )
        seed = check_seed("random_state", random_state, owner)
        if self.promise is not None and alpha is not None:
            raise parameter_error(
                "alpha", owner, "be None: the promise of the model has its budgets", alpha
            )
        check_is_fitted(self)
        groups = groups_to_count(self, groups, owner)
        if is_dask(X):
            return certify_dask(self, X, y, budget, groups=groups, by=by, seed=seed)
        checked = self._check_rows(X, reset=False)
        hashes = model_hashes(self, checked)
        if hashes is not None and self.seen_ is not None:
            self.seen_.check(hashes)
        check_inside(find_core(self), checked)
        rows = self.score_rows(X, y, by)
        held = HeldOut(rows, hashes, compared=hashes is not None and self.seen_ is not None)
        if groups is not None:
            held = held.one_of_each(groups, seed)
        found: Certificate | RuleCertificate
        if self.promise is not None:
            found = held.judge_rule(self.rule_, self.promise, budget[1])
        else:
            found = held.judge(*budget, self.threshold_)
        found = self._target.describe(found)
        return found

    def evaluate(
        self, X: Any, y: Any, *, by: Any = None, resamples: int = 0, random_state: Any = None
    ) -> Evaluation:
        """Measure the fitted rule on labelled rows.

        Parameters
        ----------
        X, y
            Rows and labels.
        by : optional
            Group of each row, as for `decide`.
        resamples : int
            Bootstrap resamples for the intervals of metrics that are no shares; those of shares are
            exact and always there.
        random_state : int, RandomState or None
            For the resamples.

        Returns
        -------
        Evaluation
        """
        rows = self.score_rows(X, y, by)
        return evaluate(
            rows,
            accepted=self.accept_rows(rows),
            alpha=self.alpha if self.promise is None else self.promise.strictest,
            resamples=resamples,
            random_state=random_state,
        )

    def breakdown(self, X: Any, y: Any, *, by: Any = None, level: float = 0.95) -> Breakdown:
        """Count who bears the mistakes of the fitted rule on labelled rows.

        By true class, by predicted class and by each column of X, with intervals that hold all at once;
        no promise is made about any part. ``breakdown_`` is that of the certification fold.

        Parameters
        ----------
        X, y
            Rows and labels.
        by : data frame, or mapping of names to columns, optional
            Break down by these columns instead of those of X.
        level : float in (0, 1)

        Returns
        -------
        Breakdown
        """
        rows = self.score_rows(X, y)
        known = {} if self._fold_breakdown is None else self._fold_breakdown.cuts
        cuts = learn_cuts(by) if by is not None else known or learn_cuts(X)
        return self._count_cells(rows, X if by is None else by, cuts, level)

    @property
    def breakdown_(self) -> Breakdown:
        """Who bears the mistakes on the certification fold: counts of cells, without its rows.

        By class alone where the columns were not counted for this rule.
        """
        kept, rows = self._fold_breakdown, self.evidence_.scored()
        by_class = self._count_cells(rows, None, {})
        return by_class if kept is None or kept.whole != by_class.whole else kept

    def _count_cells(
        self, rows: ScoredRows, table: Any, cuts: Mapping[str, Cut], level: float = 0.95
    ) -> Breakdown:
        names = getattr(self, "classes_", None)
        classes = None if names is None else names.tolist()
        accepted = self.accept_rows(rows)
        if rows.tolerance is not None:  # numbers are no classes to count by
            rows = replace(rows, truth=None, predicted=None)
        return count_cells(rows, accepted, table, cuts, classes=classes, level=level)

    def accept_rows(self, rows: ScoredRows) -> NDArray[np.bool_]:
        """Tell which scored rows are accepted."""
        labels = None
        if self._by_rule and rows.predicted is not None:
            labels = self._target.decode(self, rows.predicted)
        return self._accepted(rows.score, labels, rows.by)

    @property
    def _by_rule(self) -> bool:
        """Whether more than the score decides; what is inside a rule has no certificate of its own."""
        return isinstance(getattr(self, "certificate_", None), RuleCertificate)

    def _accepted(
        self, score: NDArray[np.float64], labels: Any = None, by: Columns | None = None
    ) -> NDArray[np.bool_]:
        if not self._by_rule:
            return score >= self.threshold_
        return self.rule_.accept(by=by, score=score, predicted=labels)

    def _groups(self, X: Any, by: Any, owner: str) -> Columns:
        """Return the groups of rows; a rule with one threshold for all can do without them."""
        needed = owner != "decide" or bool(self.rule_.columns)
        return group_columns(self.promise, X, by, owner, missing=True, needed=needed)

    def _watched_outputs(self, X: Any, allow_missing: Collection[Any]) -> tuple[Any, Oddities]:
        """Return the outputs of rows, and what is odd about them, with a warning."""
        check_is_fitted(self)
        rows = self._check_rows(X, reset=False)
        if find_encoder(self) is not None:
            rows = with_codes(self.profile_, rows)
        outputs = self._outputs(rows)  # what it cannot read it complains of itself
        oddities = find_oddities(self.profile_, rows, len(outputs.acceptance()))
        oddities.refuse_empty(allow_missing)
        if oddities.notable:
            warn_user(str(oddities), OddInputWarning)
        return outputs, oddities

    def _checked_outputs(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._outputs(self._check_rows(X, reset=False))
