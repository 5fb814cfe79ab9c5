"""How sure is it that one rule beats another: both are measured on the same resampled rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.scored import ScoredRows

CHUNK_ENTRIES = 2_000_000  # rows times resamples held at once


def resample_certified_throughput(
    rules: Sequence[ScoredRows],
    alpha: float,
    rho: float,
    resamples: int,
    random: np.random.RandomState,
) -> NDArray[np.float64]:
    """Return the certified throughput of each rule in each bootstrap resample of the same rows.

    The threshold is certified anew in every resample, so that the spread holds that of the
    threshold too.

    Parameters
    ----------
    rules : sequence of ScoredRows
        One entry a rule; all about the same n rows in the same order.
    alpha, rho : float
    resamples : int
    random : RandomState

    Returns
    -------
    array of shape (rules, resamples)

    Examples
    --------
    >>> wrong = np.arange(1000) % 20 == 0                          # 5 % are wrong
    >>> ranked = ScoredRows(np.where(wrong, 0.6, 0.9), wrong, 0.0)     # errors come last
    >>> blind = ScoredRows(np.full(1000, 0.8), wrong, 0.0)             # all or nothing
    >>> random = np.random.RandomState(0)
    >>> draws = resample_certified_throughput([ranked, blind], 0.05, 0.05, 200, random)
    >>> bool((draws[0] > 0.92).all()), float((draws[1] == 0).mean()) > 0.9
    (True, True)
    """
    n = rules[0].n
    most = largest_certifiable_errors(n, alpha, rho)
    result = np.zeros((len(rules), resamples))
    if most < 0:
        return result
    ranked = [(rule, np.argsort(-rule.score)) for rule in rules]
    size = max(1, CHUNK_ENTRIES // n)
    for start in range(0, resamples, size):
        drawn = range(start, min(start + size, resamples))
        weights = np.array([np.bincount(random.randint(n, size=n), minlength=n) for _ in drawn])
        for number, (rule, order) in enumerate(ranked):
            score, wrong, taken = rule.score[order], rule.wrong[order], weights[:, order]
            ends = np.flatnonzero(np.r_[score[1:] != score[:-1], True])  # ties are taken together
            errors = np.cumsum(taken * wrong, axis=1)[:, ends]
            accepted = np.cumsum(taken, axis=1)[:, ends]
            groups = (errors <= most).sum(axis=1)  # how many scores can be certified, best first
            last = np.maximum(groups - 1, 0)[:, None]
            right = np.take_along_axis(accepted - errors, last, axis=1)[:, 0]
            result[number, drawn] = np.where(groups > 0, right, 0) / n
    return result
