"""`ScoreStream`: whether the confidences in a decision log still look like those of the certification rows.

A log keeps no features. What it keeps, the confidence of every decision, is compared with the confidences of the
certification rows, which a rule brings along as counts: the martingale of `SourceMonitor`, on this statistic alone.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_fraction
from reliablenet.errors import InvalidDataError
from reliablenet.monitor.martingale import RankMartingales, score_counts
from reliablenet.tables.source import LEVELS, score_levels

MOST_POINTS = 240  # of the line that is kept


class SourcePoint(NamedTuple):
    """The evidence of another source after so many rows."""

    rows: int
    e_value: float


class ScoreStream(RankMartingales):
    """Watch confidences in the order in which rows were decided; no label and no feature is needed.

    While rows are drawn independently from the certified source, the alarm is ever raised with a
    probability of at most ``level``.

    Parameters
    ----------
    counts : array-like of int, shape (128,)
        Of the certification rows, from `score_counts`.
    level : float in (0, 1)

    Attributes
    ----------
    rows, alarm, alarm_row, e_value
        As for `SourceMonitor`.
    points : list of SourcePoint
        At most 240, from the first row to the last.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.monitor.martingale import score_counts
    >>> from reliablenet.monitor.score_stream import ScoreStream
    >>> random = np.random.default_rng(0)
    >>> certified = score_counts(random.beta(8, 2, size=500))
    >>> stream = ScoreStream(certified).update(random.beta(8, 2, size=300))
    >>> stream.alarm, stream.update(random.beta(4, 4, size=300)).alarm
    (False, True)
    """

    def __init__(self, counts: Any, level: float = 0.05) -> None:
        share = check_fraction("level", level, "ScoreStream")
        start = np.array(counts, np.int64)[None, :]
        super().__init__(["score"], start, np.ones(1), share, seed=0)
        self.points: list[SourcePoint] = []
        self._step = 1  # rows from point to point

    def update(self, scores: NDArray[np.float64]) -> Self:
        """Take the confidences of the next rows."""
        return self.update_levels(score_levels(scores)[:, None])

    def _keep(self, evidence: NDArray[np.float64]) -> None:
        """Keep points; where there are many, every second one, from now on too."""
        first = self.rows - len(evidence) + 1
        for row, value in enumerate(evidence.tolist(), first):
            if row % self._step == 0:
                self.points.append(SourcePoint(row, value))
            if len(self.points) == MOST_POINTS:
                self.points = self.points[1::2]
                self._step *= 2

    def __str__(self) -> str:
        if self.alarm:
            return (
                f"The source changed: at row {self.alarm_row:,} confidences were no longer those of the "
                "certification rows."
            )
        return f"No change of the source is seen in the confidences of {self.rows:,} rows."

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as JSON can hold it."""
        names = ("level", "rows", "alarm_row", "e_value")
        return {"changed": self.alarm, **{name: getattr(self, name) for name in names}}


def write_scores(model: Any) -> str | None:
    """Return the confidences of a model's certification rows, counted, as JSON; None where they are not known.

    Where a certificate counts groups, rows are no independent draws, and there is nothing to compare.
    """
    evidence = getattr(model, "evidence_", None)
    if evidence is None or len(evidence.score) == 0 or model.grouped_:
        return None
    return json.dumps(score_counts(evidence.score).tolist())


def read_scores(text: str) -> NDArray[np.int64]:
    """Read what `write_scores` wrote."""
    counts = json.loads(text)
    whole = isinstance(counts, list) and all(type(count) is int and count >= 0 for count in counts)
    if not whole or len(counts) != LEVELS:
        raise InvalidDataError(
            "The counts of certification scores in the log are damaged. Start a new log."
        )
    return np.array(counts, np.int64)
