"""Operating points: what every threshold would do on the certification fold, and which are certified."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate import clopper_pearson_upper
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.record import Unit
from reliablenet.certificate.scored import ScoredRows

LIMIT = 2000


@dataclass(frozen=True, eq=False)
class OperatingPoints:
    """Thresholds from the most permissive to ``inf``, with what each accepts and gets wrong.

    Attributes
    ----------
    threshold : array of shape (m,)
        Rising.
    accepted, errors : integer arrays of shape (m,)
        Rows accepted; accepted and wrong.
    n : int
        Rows of the fold; with groups, one row of each.
    alpha, rho : float
    certified_from : float
        Every threshold from here on is certified, all of them at once; ``inf`` if none is.
    certified_bound : float
        Upper bound of JCW that holds for all of these at once.
    unit : {"row", "group"}
        What was counted.
    """

    threshold: NDArray[np.float64]
    accepted: NDArray[np.int64]
    errors: NDArray[np.int64]
    n: int
    alpha: float
    rho: float
    certified_from: float
    certified_bound: float
    unit: Unit = "row"

    def __len__(self) -> int:
        return len(self.threshold)

    @cached_property
    def upper_bound(self) -> NDArray[np.float64]:
        """One-sided Clopper-Pearson upper bound of JCW at each threshold.

        In the certified region it is one bound that holds for every threshold at once, whichever is
        chosen after looking. Elsewhere it is pointwise: it would hold for a threshold that was chosen
        without looking at these rows.
        """
        alone = np.asarray(clopper_pearson_upper(self.errors, self.n, self.rho))
        return np.where(self.certified, self.certified_bound, alone)

    @property
    def certified(self) -> NDArray[np.bool_]:
        """Whether a threshold lies in the certified region and accepts anything."""
        return (self.threshold >= self.certified_from) & (self.threshold < math.inf)

    @property
    def coverage(self) -> NDArray[np.float64]:
        """Share of rows accepted."""
        return np.asarray(self.accepted / self.n)

    @property
    def jcw(self) -> NDArray[np.float64]:
        """Share of rows accepted and wrong."""
        return np.asarray(self.errors / self.n)

    @property
    def throughput(self) -> NDArray[np.float64]:
        """Share of rows accepted and right."""
        return np.asarray((self.accepted - self.errors) / self.n)

    @property
    def accuracy_accepted(self) -> NDArray[np.float64]:
        """Share of the accepted rows that are right; NaN where none is."""
        taken = np.where(self.accepted == 0, np.nan, self.accepted)
        return np.asarray((self.accepted - self.errors) / taken)

    def place(self, threshold: float) -> int:
        """Return the place of one of the thresholds."""
        return int(np.searchsorted(self.threshold, threshold))


def operating_points(
    rows: ScoredRows,
    alpha: float,
    rho: float,
    own: Iterable[float] = (),
    limit: int = LIMIT,
    unit: Unit = "row",
) -> OperatingPoints:
    """Return what thresholds do on the rows of a certification fold.

    Parameters
    ----------
    rows : ScoredRows
    alpha, rho : float in (0, 1)
    own : iterable of float
        Thresholds that must be among them, as they are.
    limit : int
        The largest number of further thresholds. Where there are more distinct scores, they are taken
        at even distances of accepted rows. Each is the shortest decimal that accepts what it accepts.
    unit : {"row", "group"}
        What the rows stand for.

    Returns
    -------
    OperatingPoints

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> from reliablenet.report.operating import operating_points
    >>> score = np.array([0.6123, 0.7451, 0.8077, 0.9329])
    >>> rows = ScoredRows(score, np.array([True, False, True, False]), lowest=0.0)
    >>> points = operating_points(rows, alpha=0.95, rho=0.05)
    >>> points.threshold.tolist(), points.certified_from
    ([0.0, 0.7, 0.8, 0.9, inf], 0.0)
    >>> points.accepted.tolist(), points.errors.tolist()
    ([4, 3, 2, 1, 0], [2, 1, 1, 0, 0])
    """
    found = judge(rows, alpha, rho)
    start = found.threshold
    distinct = np.unique(rows.score)
    fixed = {
        rows.lowest,
        math.inf,
        start,
        *(float(value) for value in own if not math.isnan(value)),
    }
    order = np.sort(rows.score)
    # Where a threshold lies between scores decides all; one of the model's own speaks for its gap.
    taken = np.searchsorted(distinct, list(fixed), side="left")
    ranks = np.linspace(0, rows.n - 1, min(limit, rows.n)).round().astype(int)
    gaps = np.setdiff1d(np.searchsorted(distinct, order[ranks]), [*taken, 0])
    chosen = [_shortest(distinct[gap - 1], distinct[gap]) for gap in gaps]
    threshold = np.array(sorted(fixed | set(chosen)))
    mistakes = np.sort(rows.score[rows.wrong])
    return OperatingPoints(
        threshold=threshold,
        accepted=rows.n - np.searchsorted(order, threshold, side="left"),
        errors=len(mistakes) - np.searchsorted(mistakes, threshold, side="left"),
        n=rows.n,
        alpha=alpha,
        rho=rho,
        certified_from=start,
        certified_bound=found.upper_bound,
        unit=unit,
    )


def _shortest(low: float, high: float) -> float:
    """Return the decimal with the fewest digits that lies above low and not above high."""
    exact = Decimal(float(high))
    for digits in range(1, 18):
        short = float(exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_FLOOR))
        if low < short <= high:
            return short
    return float(high)
