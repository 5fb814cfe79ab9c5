"""What decisions rest on: columns in general, and for a deferred row what it lacked and what lowers its confidence.

All of it describes a fitted model. It does not say what causes what, and no certificate covers it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from reliablenet._checks import as_array
from reliablenet.methods.deciding import DecidingMixin
from reliablenet.methods.inputs import check_labels
from reliablenet.methods.layers import find_encoder
from reliablenet.methods.why_deferred import Explanations, find_gains
from reliablenet.metrics import Importance, RowAnswers, permutation_importance
from reliablenet.metrics.importance import MOST_ROWS, REPEATS
from reliablenet.tables.frames import pandas_of


class ExplainingMixin(DecidingMixin):
    """What a fitted method can say about how it comes to its decisions."""

    def permutation_importance(
        self,
        X: Any,
        y: Any = None,
        *,
        by: Any = None,
        repeats: int = REPEATS,
        most_rows: int = MOST_ROWS,
        random_state: int = 0,
    ) -> Importance:
        """Measure which columns the decisions rest on: what changes if a column is shuffled among the rows.

        It describes the model on these rows, says nothing about causes, and no certificate covers it. Columns
        that tell the same stand in for each other, so that each seems to matter little.

        Parameters
        ----------
        X : data frame or array of shape (n, d)
            Rows that did not train the model, such as those of the certification fold: of training rows it
            says what was learned by heart too.
        y : array-like of shape (n,), optional
            Their truth; with it the change in rows acted on rightly and wrongly is measured too.
        by : optional
            Group of each row, as for `decide`. A group's column is shuffled together with its groups.
        repeats : int
            How often each column is shuffled; the spread is that over repeats.
        most_rows : int
            Of more rows so many are drawn: d * repeats * most_rows rows are decided at most.
        random_state : int
            The same number gives the same shuffles.

        Returns
        -------
        Importance

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> import reliablenet as rn
        >>> X = np.random.default_rng(0).normal(size=(2000, 3))
        >>> clf = rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(X, X[:, 1] > 0)
        >>> clf.permutation_importance(X[:500]).to_frame()["column"].tolist()[0]
        1
        """
        check_is_fitted(self)
        owner = f"{type(self).__name__}.permutation_importance"
        given = as_array(X) if hasattr(X, "detach") or isinstance(X, list) else pandas_of(X)
        rows = self._check_rows(given, reset=False)
        truth = None
        if y is not None:
            truth = self._target.encode_fresh(self, check_labels(given, y, "y"), owner)
        groups = self._groups(given, by, "decide") if self._by_rule else {}

        def decide(
            table: Any, places: NDArray[np.intp], shuffled: Mapping[Any, NDArray[np.intp]]
        ) -> RowAnswers:
            outputs = self._outputs(self._check_rows(table, reset=False))
            answers = self._target.answers(self, outputs)
            score = outputs.acceptance()
            own = {name: column[shuffled.get(name, places)] for name, column in groups.items()}
            margin = getattr(outputs, "margin", None)  # of numbers
            return RowAnswers(
                answers,
                score,
                self._accepted(score, answers, own),
                None if truth is None else outputs.scored(truth[places]).wrong,
                None if margin is None else margin.of(answers),
            )

        encoder = find_encoder(self)
        idle = set() if encoder is None else set(encoder.dropped_) - set(groups)
        return permutation_importance(
            decide,
            rows,
            unused=idle,
            repeats=repeats,
            most_rows=most_rows,
            random_state=random_state,
        )

    def explain(
        self,
        X: Any,
        by: Any = None,
        *,
        defer_odd: bool = False,
        allow_missing: Collection[Any] = (),
    ) -> Explanations:
        """Say for each deferred row what it lacked, and which columns lower its confidence.

        Each column in turn gets usual values of the training rows, as the input profile has them: the
        quartiles of numbers and dates, the commonest five categories, by how common they are. The gain is
        the mean confidence with those minus the row's own. A row gets the same explanation alone and in
        company. Free text, images and models without a profile have no usual values and no gains.

        It describes the model, says nothing about causes, and no certificate covers it: that the model would
        be surer of a row does not make it right there.

        Parameters
        ----------
        X, by, defer_odd, allow_missing
            As for `decide`. Three to six rows are scored for each column of each deferred row.

        Returns
        -------
        Explanations

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> import reliablenet as rn
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 2))
        >>> y = X[:, 0] + 0.5 * rng.normal(size=2000) > 0
        >>> clf = rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(X, y)
        >>> found = clf.explain([[3.0, 0.0], [0.01, 0.0]])
        >>> found.why.tolist(), list(found.lowered_by(1))
        (['', 'confidence'], [0])
        """
        decisions = self.decide(X, by, defer_odd=defer_odd, allow_missing=allow_missing)
        return self._explain_decisions(decisions, X, by)

    def _explain_decisions(self, decisions: Any, X: Any, by: Any) -> Explanations:
        """Explain what was decided on rows."""
        score, accepted = decisions.confidence, decisions.accepted
        groups = self._groups(X, by, "decide") if self._by_rule else None
        labels = getattr(decisions, "label", None)  # a rule for numbers has no use for values
        limit = self.rule_.limits(len(score), groups, labels)
        why = np.full(len(score), "", dtype=object)
        why[~accepted] = "odd"
        why[~accepted & (score < limit)] = "confidence"
        why[~accepted & np.isinf(limit)] = "no certificate"

        def score_of(table: Any) -> NDArray[np.float64]:
            found: NDArray[np.float64] = self._outputs(
                self._check_rows(table, reset=False)
            ).acceptance()
            return found

        rows = self._check_rows(X, reset=False)
        gains, values = find_gains(
            score_of, rows, score, np.flatnonzero(why == "confidence"), self.profile_
        )
        return Explanations(accepted, score, limit, why, gains, values)
