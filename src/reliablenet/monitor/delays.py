"""How soon a monitor sees that a promise is broken, computed before it starts.

The alarm comes at the k-th wrong row if that is among the first n(k) rows: the evidence falls with every row that is not
wrong. So the time of the alarm is a first passage of a Bernoulli walk over a fixed border, and its distribution is exact.
Restarts are left out, which can only bring the alarm forward.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_fraction, check_probability, is_real, parameter_error
from reliablenet.certificate.anytime import log_sum
from reliablenet.monitor.e_process import LOG_WHOLE, NODES, Bets, log_beta_mixture, make_bets

MOST_ERRORS = 4000  # a walk that has not crossed by then is called never


class Delay(NamedTuple):
    """When the alarm comes.

    Attributes
    ----------
    median, most : int or None
        Rows until the alarm in half and in nine tenths of the cases; None where that takes more rows
        than can be planned for.
    labels : float or None
        Labels of rows acted on that the median takes, if every row is acted on.
    """

    median: int | None
    most: int | None
    labels: float | None


def plan_delay(alpha: float, jcw: float, level: float = 0.05, audit: float = 1.0) -> Delay:
    """Return how many rows it takes until the alarm, if the rule acts wrongly on a share ``jcw`` from the start.

    Parameters
    ----------
    alpha, level : float in (0, 1)
    jcw : float in (alpha, 1]
    audit : float in (0, 1]

    Returns
    -------
    Delay

    Examples
    --------
    >>> from reliablenet.monitor.delays import plan_delay
    >>> plan_delay(0.05, 0.10).median < 140 < plan_delay(0.05, 0.10, audit=0.3).median
    True
    """
    owner = "plan_delay"
    alpha, level = check_fraction("alpha", alpha, owner), check_fraction("level", level, owner)
    audit = check_probability("audit", audit, owner)
    if not is_real(jcw) or not alpha < jcw <= 1.0:
        raise parameter_error(
            "jcw",
            owner,
            f"lie in (alpha, 1] = ({alpha:g}, 1]",
            jcw,
            "There is no alarm to wait for while the budget is kept.",
        )
    last = last_rows(
        alpha, level, audit, min(MOST_ERRORS, math.ceil(60 / (jcw / alpha - 1) ** 2) + 60)
    )
    median, most = first_passage(last, jcw * audit, (0.5, 0.9))
    return Delay(median, most, None if median is None else median * audit)


def last_rows(alpha: float, level: float, audit: float, most: int) -> NDArray[np.int64]:
    """Return, for k = 1, 2, ..., the last row at which the k-th wrong row raises the alarm; 0 if none does."""
    bets = make_bets(alpha, audit)
    k = np.arange(1, most + 1)
    low, high = np.zeros(most, np.int64), np.ceil(4 * k / (alpha * audit)).astype(np.int64) + 10
    limit = -math.log(level)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        enough = (middle >= k) & (_log_whole(bets, k, np.maximum(middle, k)) >= limit)
        # with fewer rows than wrong ones the question is void; the border lies above
        enough |= (middle < k) & (_log_whole(bets, k, k) >= limit)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.where(low >= k, low, 0)


def first_passage(
    last: NDArray[np.int64], chance: float, quantiles: tuple[float, ...]
) -> list[int | None]:
    """Return quantiles of the first time at which the number of wrong rows reaches the border.

    Parameters
    ----------
    last : array of int
        From `last_rows`, not falling.
    chance : float
        With which a row is wrong, accepted and audited.
    quantiles : tuple of float, rising
    """
    found: list[int | None] = []
    alive = np.zeros(len(last) + 1)
    alive[0], crossed, row = 1.0, 0.0, 0
    needed = np.searchsorted(np.maximum.accumulate(last), np.arange(1, int(last.max()) + 1)) + 1
    while len(found) < len(quantiles) and row < len(needed):
        border = needed[row]  # so many wrong rows raise the alarm at this row
        row += 1
        moved = alive * chance
        alive -= moved
        alive[1:] += moved[:-1]
        crossed += alive[border:].sum()
        alive[border:] = 0.0
        while len(found) < len(quantiles) and crossed >= quantiles[len(found)]:
            found.append(row)
    return found + [None] * (len(quantiles) - len(found))


def _log_whole(
    bets: Bets, errors: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    if bets.audit == 1.0:
        return np.asarray(LOG_WHOLE + log_beta_mixture(errors, rows, bets.alpha))
    surplus = bets.log_surplus(np.array(bets.audit))
    each = rows[:, None] * bets.log_right + errors[:, None] * surplus
    return np.asarray(LOG_WHOLE + log_sum(each) - math.log(NODES))
