"""E-processes: evidence that a rule acts wrongly on more than alpha of the rows, row by row.

X_t = A_t xi_t E_t / pi_t is 0 unless row t was accepted, audited and wrong, and 1 / pi_t then, where pi_t is
the known probability that an independent coin picks the row for audit; so X_t has the mean JCW_t.
For a stake lambda in [0, 1 / alpha) the product of 1 + lambda (X_t - alpha) is at most a fair game while JCW is
within alpha, and so is any mixture over stakes fixed beforehand: it ever reaches 1 / level with
probability at most level (Ville 1939). Nobody needs to fix when to look.

Two mixtures make an e-process. The *whole stream*, nine tenths of the capital: where every label comes a Beta
mixture over q > alpha, which has a closed form of two integers; where a share is audited, bets over a grid of
stakes. And *restarts*, one tenth: a new start every ``block`` rows, the j-th with the weight 1 / (j (j + 1)), so that a change
after a long good time is not drowned by it. Bets of all starts at one stake go on alike, so that their sum is one
number: R <- (R + what is invested) (1 + lambda (X - alpha)). State and time a row do not grow with history.

The whole is worth less after a row that is not wrong and more after one that is: its highest value, which
decides on the alarm, is found by looking at wrong rows alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincc, betainccinv, betaln

from reliablenet.certificate.anytime import log_sum

WHOLE = 0.9  # share of the capital that bets on the whole stream; the rest bets on restarts
SHAPE, RATIO = 6.0, 2.2  # prior of the wrong share: most weight near twice alpha
NODES = 32  # stakes of the grid
BLOCK_ERRORS = 5.0  # a start every so many rows that alpha would allow this many errors in
TINY = 1e-280  # below, a tail is computed by its continued fraction
CHUNK = 16_384  # rows at a time, for bounded memory
LOG_WHOLE, LOG_RESTARTS = math.log(WHOLE), math.log1p(-WHOLE)

Floats = NDArray[np.float64]


def prior(alpha: float) -> tuple[float, float]:
    """Return the parameters of the Beta prior, before it is cut off at alpha.

    Its mean is 2.2 alpha: a rule that breaks its promise by half or threefold is found almost as
    quickly as if the size of the breach were known.
    """
    mean = min(RATIO * alpha, 0.5 * (1.0 + alpha))
    return SHAPE, SHAPE * (1.0 / mean - 1.0)


def log_beta_mixture(errors: ArrayLike, rows: ArrayLike, alpha: float) -> Any:
    """Return the logarithm of the closed form: the Beta mixture of likelihood ratios over q > alpha.

    The ratio of q is (q / alpha)^errors ((1 - q) / (1 - alpha))^(rows - errors).

    Parameters
    ----------
    errors, rows : array-like of int
        Rows acted on wrongly, among all rows with a known outcome; deferred rows are known to be none.
    alpha : float in (0, 1)

    Returns
    -------
    float, or array of the broadcast shape

    Examples
    --------
    >>> from reliablenet.monitor.e_process import log_beta_mixture
    >>> log_beta_mixture(0, 0, 0.05)
    0.0
    >>> log_beta_mixture([5, 10, 20], 100, 0.05).round(2)
    array([-1.35,  1.59, 12.24])
    """
    a, b = prior(alpha)
    k, n = np.broadcast_arrays(np.asarray(errors, np.float64), np.asarray(rows, np.float64))
    after = betaln(a + k, b + n - k) + log_beta_tail(a + k, b + n - k, alpha)
    before = betaln(a, b) + log_beta_tail(a, b, alpha)
    found = after - before - k * math.log(alpha) - (n - k) * math.log1p(-alpha)
    return float(found) if found.ndim == 0 else found


def log_beta_tail(a: ArrayLike, b: ArrayLike, x: float) -> Any:
    """Return log P(Beta(a, b) > x), also where the probability is too small for a float.

    Examples
    --------
    >>> from reliablenet.monitor.e_process import log_beta_tail
    >>> round(log_beta_tail(1.0, 1e6, 0.5) / 1e6, 6)  # (1 - x)^b
    -0.693147
    """
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    tail = betaincc(a, b, x)
    small = tail < TINY
    found = np.asarray(np.log(np.where(small, 1.0, tail)))
    if small.any():
        found[small] = _log_small_tail(a[small], b[small], x)
    return float(found) if found.ndim == 0 else found


def _log_small_tail(a: Floats, b: Floats, x: float) -> Floats:
    """Return the same by its continued fraction (DLMF 8.17.22), quick far from the bulk."""
    # P(Beta(a, b) > x) = I_y(b, a) with y = 1 - x, and y is far below the mean of Beta(b, a).
    p, q, y = b, a, 1.0 - x
    front = p * math.log(y) + q * math.log(x) - betaln(p, q) - np.log(p)
    c, d = np.ones_like(p), 1.0 / (1.0 - (p + q) * y / (p + 1.0))
    value = d.copy()
    for m in range(1, 500):
        even = m * (q - m) * y / ((p + 2 * m - 1) * (p + 2 * m))
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        value *= d * c
        odd = -(p + m) * (p + q + m) * y / ((p + 2 * m) * (p + 2 * m + 1))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        step = d * c
        value *= step
        if np.all(np.abs(step - 1.0) < 1e-12):
            break
    return np.asarray(front + np.log(value))


@dataclass(frozen=True, eq=False)
class Bets:
    """What is fixed before the first row: the stakes, and when a new start is made.

    Attributes
    ----------
    alpha : float
    audit : float
        Probability that a row is audited; the closed form serves where it is 1.
    stakes : array of shape (stakes,)
        Quantiles of the same prior, as stakes; all have the same weight.
    log_right : array of shape (stakes,)
        What a row that is not known to be wrong adds to the logarithm of each bet.
    block : int
        Rows between two starts.
    """

    alpha: float
    audit: float
    stakes: Floats
    log_right: Floats
    block: int

    def log_surplus(self, probability: ArrayLike) -> Floats:
        """Return what a wrong row adds beyond ``log_right``, shape (..., stakes)."""
        weight = 1.0 / np.asarray(probability, np.float64)[..., None]
        return np.asarray(np.log1p(self.stakes * (weight - self.alpha)) - self.log_right)


@lru_cache(maxsize=256)
def make_bets(alpha: float, audit: float) -> Bets:
    """Return the bets for a budget and an audit probability.

    Examples
    --------
    >>> from reliablenet.monitor.e_process import make_bets
    >>> bets = make_bets(0.05, 1.0)
    >>> bets.block, bool((bets.stakes < 1 / 0.05).all())
    (100, True)
    """
    a, b = prior(alpha)
    level = (np.arange(NODES) + 0.5) / NODES * betaincc(a, b, alpha)
    share = betainccinv(a, b, level)  # quantiles of the prior, cut off at alpha
    stakes = audit * (share - alpha) / (alpha * (1.0 - audit * alpha))
    return Bets(alpha, audit, stakes, np.log1p(-stakes * alpha), math.ceil(BLOCK_ERRORS / alpha))


@dataclass(frozen=True, eq=False)
class Capital:
    """The state of an e-process: a record that `advance` and `add_late` return anew.

    Attributes
    ----------
    rows, errors : int
        Rows so far, and those known to be accepted, audited and wrong.
    log_surplus : array of shape (stakes,)
        Sum over the wrong rows of what each adds to a bet beyond a row that is not.
    log_restarts : array of shape (stakes,)
        Logarithm of the sum of all restarted bets at each stake.
    log_cash : float
        Logarithm of what is left for starts to come.
    starts : int
    peak : float
        The highest logarithm of the whole so far.
    """

    rows: int
    errors: int
    log_surplus: Floats
    log_restarts: Floats
    log_cash: float
    starts: int
    peak: float

    @classmethod
    def none(cls) -> Capital:
        """Return the state before the first row: a capital of 1."""
        zero = np.zeros(NODES)
        return cls(0, 0, zero, np.full(NODES, -np.inf), 0.0, 0, 0.0)


def log_value(state: Capital, bets: Bets) -> float:
    """Return the logarithm of the evidence now."""
    whole = _log_whole(
        bets, np.array([state.rows]), np.array([state.errors]), state.log_surplus[None]
    )
    restarts = np.logaddexp(log_sum(state.log_restarts), state.log_cash)
    return float(np.logaddexp(LOG_WHOLE + whole[0], LOG_RESTARTS + restarts))


def advance(
    state: Capital, bets: Bets, n: int, wrong: NDArray[Any], probability: NDArray[Any]
) -> tuple[Capital, NDArray[Any], Floats]:
    """Take in the next n rows.

    Parameters
    ----------
    state : Capital
    bets : Bets
    n : int
    wrong : ascending array of int
        Places among these rows of those accepted, audited and wrong.
    probability : array of the same shape
        With which each of them was audited.

    Returns
    -------
    Capital
    row : array of int
        Number of each wrong row, counted from 1 since the start of the stream.
    log_values : array of float
        The logarithm of the evidence right after each.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.monitor.e_process import Capital, advance, log_value, make_bets
    >>> bets, rows = make_bets(0.05, 1.0), np.arange(0, 200, 8)  # every eighth row is wrong
    >>> state, row, values = advance(Capital.none(), bets, 200, rows, np.ones(25))
    >>> round(log_value(state, bets), 1), int(row[np.argmax(values >= np.log(20))])
    (7.6, 65)
    """
    found = []
    for start in range(0, n, CHUNK):
        low, high = np.searchsorted(wrong, [start, start + CHUNK])
        state, row, values = _advance(
            state, bets, min(CHUNK, n - start), wrong[low:high] - start, probability[low:high]
        )
        found.append((row, values))
    if not found:
        return state, np.empty(0, np.int64), np.empty(0)
    return state, np.concatenate([r for r, _ in found]), np.concatenate([v for _, v in found])


def _advance(
    state: Capital, bets: Bets, n: int, wrong: NDArray[Any], probability: NDArray[Any]
) -> tuple[Capital, NDArray[Any], Floats]:
    surplus = np.zeros((len(wrong) + 1, NODES))  # after each wrong row, and before the first
    np.cumsum(bets.log_surplus(probability), axis=0, out=surplus[1:])
    # Starts: before which of these rows, and with what part of the capital.
    first = -(-max(state.rows, bets.block) // bets.block) * bets.block - state.rows
    starts = np.arange(first, n, bets.block)
    number = state.starts + 1 + np.arange(len(starts))
    log_share = state.log_cash + np.log(state.starts + 1.0) - np.log(number)  # cash before it
    invested = (log_share - np.log1p(number))[:, None] - math.log(NODES)
    before = starts[:, None] * bets.log_right + surplus[np.searchsorted(wrong, starts)]
    restarts = np.logaddexp.accumulate(np.vstack([state.log_restarts, invested - before]), axis=0)
    cash = np.append(state.log_cash, log_share - np.log1p(1.0 / number))
    # The value right after each wrong row.
    made = np.searchsorted(starts, wrong, side="right")
    product = (wrong + 1)[:, None] * bets.log_right + surplus[1:]
    restarted = np.logaddexp(log_sum(product + restarts[made]), cash[made])
    row = state.rows + wrong + 1
    errors = state.errors + 1 + np.arange(len(wrong))
    whole = _log_whole(bets, row, errors, state.log_surplus + surplus[1:])
    values = np.logaddexp(LOG_WHOLE + whole, LOG_RESTARTS + restarted)
    end = Capital(
        state.rows + n,
        state.errors + len(wrong),
        state.log_surplus + surplus[-1],
        n * bets.log_right + surplus[-1] + restarts[-1],
        float(cash[-1]),
        state.starts + len(starts),
        max(state.peak, float(values.max(initial=-np.inf))),
    )
    return end, row, values


def add_late(state: Capital, bets: Bets, probability: NDArray[Any]) -> Capital:
    """Take in rows that turn out wrong after they had passed as not wrong.

    The whole stream does not depend on the order of its rows. Restarts do, and leave the row as it was:
    they never hold more evidence than if the truth had come at once.
    """
    if len(probability) == 0:
        return state
    late = Capital(
        state.rows,
        state.errors + len(probability),
        state.log_surplus + bets.log_surplus(probability).sum(axis=0),
        state.log_restarts,
        state.log_cash,
        state.starts,
        state.peak,
    )
    return _with_peak(late, max(state.peak, log_value(late, bets)))


def merge(one: Capital, other: Capital, bets: Bets) -> Capital:
    """Return the capital of two streams of rows of one rule, taken together.

    The whole stream is exactly that of all rows in any order. Restarts on either stream are evidence each,
    and their mean is again; what is lost is a change that shows only in both together. The highest value so far
    is that of now: a value that one server reached alone is evidence on that server.
    """
    both = Capital(
        one.rows + other.rows,
        one.errors + other.errors,
        one.log_surplus + other.log_surplus,
        np.logaddexp(one.log_restarts, other.log_restarts) - math.log(2.0),
        float(np.logaddexp(one.log_cash, other.log_cash)) - math.log(2.0),
        max(one.starts, other.starts),
        0.0,
    )
    return _with_peak(both, max(0.0, log_value(both, bets)))


def _with_peak(state: Capital, peak: float) -> Capital:
    return Capital(**{**vars(state), "peak": peak})


def _log_whole(bets: Bets, rows: NDArray[Any], errors: NDArray[Any], surplus: Floats) -> Floats:
    """Return the logarithm of the mixture over the whole stream, for each row of ``surplus``."""
    if bets.audit == 1.0:
        return np.asarray(log_beta_mixture(errors, rows, bets.alpha))
    each = rows[:, None] * bets.log_right + surplus
    return np.asarray(log_sum(each) - math.log(NODES))
