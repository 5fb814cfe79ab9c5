"""Closeness: rows that come back as a whole agree with the old ones more closely than fresh rows do.

In a coarse table every row recurs by chance, and no single one can be recognised. How *often* each kind of
row occurs varies from draw to draw, though, and between the same rows it does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, xlogy

NEGLIGIBLE = (
    1e-6  # the chance at which fresh rows are taken for old ones, over all that is looked at
)
SIMILAR = 3  # rows that are more than so many times as many as others are not those
WINDOW = 12.0  # standard deviations of a count that are looked at one by one
FORCES = tuple(4.0**power for power in range(-1, 12))

Hashes = NDArray[np.uint64]
Counts = NDArray[np.int64]


def log_chance_of_closeness(new: Counts, known: Counts) -> float:
    """Return an upper bound of the log of the chance that two fresh samples are as close as these are.

    Let both be exchangeable draws from one source, and t_i the rows of kind i in both. Given all t_i, the
    first sample has f_i of them by drawing n of N rows without replacement, so that the f_i are
    independent binomials with p = n / N, given that their sum is n. Distance is
    S = sum (f_i - p t_i)^2 / (p (1 - p) t_i), and for every force L (Chernoff)

        P(S <= s) <= exp(L s) prod E[exp(-L S_i)] / P(Bin(N, p) = n),

    with S_i of one binomial. The smallest over L is returned. It holds for any source and any number of
    rows, and of two samples that are equal it is the exact chance prod C(2c_i, c_i) / C(2n, n).

    Parameters
    ----------
    new, known : array of int of shape (kinds,)
        How many rows of each kind each sample has.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from reliablenet.tables.closeness import log_chance_of_closeness
    >>> counts = np.array([3, 4, 5])
    >>> exact = math.prod(math.comb(2 * c, c) for c in counts.tolist()) / math.comb(24, 12)
    >>> bool(np.isclose(log_chance_of_closeness(counts, counts), math.log(exact)))
    True
    """
    both = new + known
    n, total = int(new.sum()), int(both.sum())
    p = n / total
    if p in (0.0, 1.0):
        return 0.0
    spread = p * (1.0 - p)
    distance = float(((new - p * both) ** 2 / (spread * both)).sum())
    forces = np.array(FORCES)
    bound = forces * distance - _log_binomial(np.array([n]), total, p)[0]
    for t, kinds in zip(*np.unique(both, return_counts=True), strict=True):
        bound += kinds * _log_shrunken(int(t), p, forces)
    return min(float(bound.min()), 0.0)


def _log_shrunken(t: int, p: float, forces: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log E[exp(-L S)] of one binomial count of t, if anything too large, for each force L."""
    reach = WINDOW * math.sqrt(t * p * (1.0 - p))
    low, high = max(math.floor(t * p - reach), 0), min(math.ceil(t * p + reach), t)
    counts = np.arange(low, high + 1)
    apart = (counts - p * t) ** 2 / (p * (1.0 - p) * t)
    found = logsumexp(_log_binomial(counts, t, p) - forces[:, None] * apart, axis=1)
    # Counts beyond are rarer than Hoeffding's bound, and further apart than the window.
    beyond = math.log(2.0) - WINDOW**2 * (2.0 * p * (1.0 - p) + forces)
    return np.asarray(np.logaddexp(found, beyond) if high - low < t else found)


def _log_binomial(counts: NDArray[np.int64], t: int, p: float) -> NDArray[np.float64]:
    ways = gammaln(t + 1.0) - gammaln(counts + 1.0) - gammaln(t - counts + 1.0)
    return np.asarray(ways + xlogy(counts, p) + xlogy(t - counts, 1.0 - p))


def same_as_whole(new: Hashes, parts: Sequence[Hashes]) -> bool:
    """Tell whether rows are, as a whole, known ones: of one part or of several that follow each other.

    Fresh rows of the source of the known ones are taken for them with a probability below
    ``NEGLIGIBLE``, whatever the source and however coarse. Nothing is said of a few rows of many.

    Parameters
    ----------
    new : array of uint64
        Hashes of rows, in any order.
    parts : sequence of arrays of uint64
        Hashes of rows that were given before.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.closeness import same_as_whole
    >>> rows, fresh = np.random.default_rng(0).integers(0, 27, (2, 1000)).astype(np.uint64)
    >>> same_as_whole(rows[::-1], [rows]), same_as_whole(rows[:900], [rows])
    (True, True)
    >>> same_as_whole(fresh, [rows])
    False
    """
    kept = [part for part in parts if len(part)]
    runs = len(kept) * (len(kept) + 1) // 2
    if len(new) == 0 or not runs:
        return False
    _, kind = np.unique(np.concatenate([new, *kept]), return_inverse=True)
    places = np.split(kind, np.cumsum([len(new), *map(len, kept[:-1])]))
    own, *counted = (np.bincount(place, minlength=kind.max() + 1) for place in places)
    limit = math.log(NEGLIGIBLE / runs)
    for first in range(len(kept)):
        known = np.zeros_like(own)
        for part in counted[first:]:
            known = known + part
            size = int(known.sum())
            if not len(new) <= SIMILAR * size <= SIMILAR**2 * len(new):
                continue
            there = own + known > 0
            if log_chance_of_closeness(own[there], known[there]) < limit:
                return True
    return False
