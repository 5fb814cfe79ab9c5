"""How good a rule is: all metrics of predictions, acceptances and confidences in one record."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import as_array, check_count, check_fraction
from reliablenet._renamed import renamed_method
from reliablenet.certificate.bounds import clopper_pearson_interval
from reliablenet.certificate.scored import check_length, score_rows
from reliablenet.errors import InvalidDataError
from reliablenet.metrics.measures import calibration_error, falling_order, ranked_areas

if TYPE_CHECKING:
    import pandas as pd


class Interval(NamedTuple):
    """The two ends of an interval; NaN where the metric is not defined."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All metrics of one rule on one set of rows.

    Two evaluations are equal if all their numbers are; undefined equals undefined.

    Attributes
    ----------
    n, accepted, errors : int
        Rows, accepted rows, accepted and wrong rows (K).
    accuracy : float
        Share of right predictions, accepted or not.
    coverage, jcw, throughput : float
        Share of rows accepted; accepted and wrong; accepted and right.
    accuracy_accepted : float
        Share of right predictions among the accepted; NaN if none is accepted.
    ece : float
        Expected calibration error of the top probability, 15 equal-width bins; NaN without
        probabilities.
    wce_accepted : float
        Coverage times the distance between mean confidence and accuracy of accepted rows; NaN
        without probabilities.
    aurc : float
        Area under the risk-coverage curve of the acceptance score, ties averaged.
    excess_aurc : float
        AURC minus the least AURC that the same number of errors allows.
    alpha : float
        The budget for JCW; NaN if none was given.
    budget_spent : float
        JCW divided by alpha; NaN without alpha.
    intervals : dict of str to Interval
        By the name of the metric. Shares (accuracy, coverage, accuracy_accepted, jcw, throughput,
        budget_spent) always have their exact two-sided Clopper-Pearson interval; the other metrics
        have a bootstrap interval where resamples were asked for.
    """

    n: int
    accepted: int
    errors: int
    accuracy: float
    coverage: float
    accuracy_accepted: float
    jcw: float
    throughput: float
    ece: float
    wce_accepted: float
    aurc: float
    excess_aurc: float
    alpha: float
    budget_spent: float
    intervals: dict[str, Interval] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        # The generated method would find two evaluations without alpha unequal: NaN is not NaN.
        if not isinstance(other, Evaluation):
            return NotImplemented
        return np.array_equal(self._table(), other._table(), equal_nan=True)

    def to_dict(self) -> dict[str, float]:
        """Return the values by name, without the intervals."""
        names = (entry.name for entry in fields(self) if entry.name != "intervals")
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> pd.DataFrame:
        """Return one row a metric: ``value``, and ``low`` and ``high`` of its interval or NaN."""
        import pandas as pd

        index = pd.Index(list(self.to_dict()), name="metric")
        return pd.DataFrame(self._table(), index=index, columns=["value", "low", "high"])

    frame = renamed_method("frame", "to_frame")

    def _table(self) -> NDArray[np.float64]:
        none = Interval(math.nan, math.nan)
        return np.array(
            [(v, *self.intervals.get(name, none)) for name, v in self.to_dict().items()]
        )


def evaluate(
    proba: Any = None,
    y: Any = None,
    *,
    accepted: Any,
    score: Any = None,
    correct: Any = None,
    classes: Any = None,
    alpha: float | None = None,
    resamples: int = 0,
    level: float = 0.95,
    random_state: Any = None,
) -> Evaluation:
    """Measure a rule that accepts the rows marked in ``accepted``.

    Parameters
    ----------
    proba : array-like of shape (n, K), or ScoredRows, optional
        Class probabilities; or rows scored before, which know the truth, so that ``y``, ``score``
        and ``classes`` are left out.
    y : array-like of shape (n,), optional
        Column numbers, or members of ``classes``.
    accepted : array-like of bool of shape (n,)
    score : array-like of shape (n,), optional
        Acceptance score, for AURC; by default the top probability.
    correct : array-like of shape (n,), optional
        Which answers are right, with ``score`` alone, as for `reliablenet.certify`.
    classes : array-like of shape (K,), optional
        Labels of the columns of ``proba``.
    alpha : float in (0, 1), optional
        Budget for JCW, for ``budget_spent``.
    resamples : int
        Bootstrap resamples of the rows, for the metrics that are no shares; 0 leaves these without
        intervals.
    level : float in (0, 1)
        Confidence level of the intervals: kept by those of shares, aimed at by the others.
    random_state : int, RandomState or None
        Decides the resamples; None draws them afresh and leaves numpy's global state alone.

    Returns
    -------
    Evaluation

    Notes
    -----
    The interval of a share is exact for a rule that was fixed before these rows were seen, each
    metric by itself: it holds the true share with probability of at least ``level``. A share among
    accepted rows is so given their number. Bootstrap intervals describe a spread and promise
    nothing. ECE and the calibration gap are distances, which resampling inflates: where calibration
    is good, their intervals lie too high.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.metrics import evaluate
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    >>> e = evaluate(proba, [0, 1, 1], accepted=[True, True, False], alpha=0.5)
    >>> e.errors, e.accepted, round(e.jcw, 3), round(e.aurc, 3), round(e.budget_spent, 3)
    (1, 2, 0.333, 0.278, 0.667)

    As a table, with the intervals:

    >>> proba = np.tile(proba, (100, 1))
    >>> e = evaluate(
    ...     proba, [0, 1, 1] * 100, accepted=proba[:, 0] > 0.5, resamples=200, random_state=0
    ... )
    >>> e.to_frame().loc[["coverage", "jcw", "aurc"]].round(2)
              value   low  high
    metric
    coverage   0.67  0.61  0.72
    jcw        0.33  0.28  0.39
    aurc       0.24  0.20  0.30
    """
    budget = math.nan if alpha is None else check_fraction("alpha", alpha, "evaluate")
    level = check_fraction("level", level, "evaluate")
    resamples = check_count("resamples", resamples, "evaluate", minimum=0)
    scored = score_rows(proba, y, score=score, correct=correct, classes=classes, owner="evaluate")
    chosen = as_array(accepted, "accepted")
    check_length("accepted", chosen, scored.n, "evaluate")
    if chosen.dtype != np.bool_:
        raise InvalidDataError(
            f"`accepted` of evaluate must hold booleans; got {chosen.dtype}. Compare the score "
            "with the threshold first."
        )
    order = falling_order(scored.score)
    confidence = None if scored.top_probability is None else scored.top_probability[order]
    rows = _Ranked(scored.score[order], scored.wrong[order], chosen[order], confidence)
    counts = _Counts(
        scored.n,
        int(np.count_nonzero(chosen)),
        int(np.count_nonzero(chosen & scored.wrong)),
        int(np.count_nonzero(scored.wrong)),
    )
    spread = _bootstrap(rows, resamples, level, random_state) if resamples else {}
    return Evaluation(
        n=scored.n,
        accepted=counts.accepted,
        errors=counts.errors,
        alpha=budget,
        intervals=counts.intervals(budget, level) | spread,
        **counts.shares(budget),
        **_measure(rows),
    )


class _Counts(NamedTuple):
    """What every share is computed from."""

    n: int
    accepted: int
    errors: int
    wrong: int

    def shares(self, alpha: float) -> dict[str, float]:
        right = self.accepted - self.errors
        return {
            "accuracy": 1.0 - self.wrong / self.n,
            "coverage": self.accepted / self.n,
            "accuracy_accepted": right / self.accepted if self.accepted else math.nan,
            "jcw": self.errors / self.n,
            "throughput": right / self.n,
            "budget_spent": self.errors / self.n / alpha,
        }

    def intervals(self, alpha: float, level: float) -> dict[str, Interval]:
        """Return the exact interval of each share that is defined."""
        right = self.accepted - self.errors
        counted = {
            "accuracy": (self.n - self.wrong, self.n),
            "coverage": (self.accepted, self.n),
            "accuracy_accepted": (right, self.accepted),
            "jcw": (self.errors, self.n),
            "throughput": (right, self.n),
        }
        count, of = np.array(list(counted.values())).T
        ends = np.column_stack(clopper_pearson_interval(count, of, level)).tolist()
        found = {name: Interval(*pair) for name, pair in zip(counted, ends, strict=True)}
        if not self.accepted:
            found["accuracy_accepted"] = Interval(math.nan, math.nan)
        if not math.isnan(alpha):
            found["budget_spent"] = Interval(*(end / alpha for end in found["jcw"]))
        return found


class _Ranked(NamedTuple):
    """Rows in falling order of their score, which a resample keeps: nothing is sorted twice."""

    score: NDArray[np.float64]
    wrong: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    confidence: NDArray[np.float64] | None

    def repeat(self, times: NDArray[np.intp]) -> _Ranked:
        """Return the rows, each as many times as given."""
        return _Ranked(
            np.repeat(self.score, times),
            np.repeat(self.wrong, times),
            np.repeat(self.accepted, times),
            None if self.confidence is None else np.repeat(self.confidence, times),
        )


def _measure(rows: _Ranked) -> dict[str, float]:
    """Compute the metrics that are no shares, of all rows or of a resample of them."""
    aurc, excess = ranked_areas(rows.score, rows.wrong)
    ece = gap = math.nan
    if rows.confidence is not None:
        ece = calibration_error(rows.confidence, ~rows.wrong)
        right = int(np.count_nonzero(rows.accepted & ~rows.wrong))
        gap = abs(float(rows.confidence @ rows.accepted) - right) / len(rows.score)
    return {"ece": ece, "wce_accepted": gap, "aurc": aurc, "excess_aurc": excess}


def _bootstrap(
    rows: _Ranked, resamples: int, level: float, random_state: Any
) -> dict[str, Interval]:
    """Return the percentile interval of each metric over resamples of the rows."""
    from sklearn.utils import check_random_state  # takes most of a second

    fresh = np.random.RandomState() if random_state is None else random_state
    random, n = check_random_state(fresh), len(rows.score)
    draws: dict[str, list[float]] = {}
    for _ in range(resamples):
        times = np.bincount(random.randint(n, size=n), minlength=n)
        for name, value in _measure(rows.repeat(times)).items():
            draws.setdefault(name, []).append(value)
    ends = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    return {name: Interval(*np.quantile(values, ends).tolist()) for name, values in draws.items()}
