"""Exact intervals of a share, and whether a share of failures keeps a promise."""

from __future__ import annotations

from scipy.stats import beta

LEVEL = 0.99


def interval(count: int, draws: int) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a share at 99 %."""
    tail = (1 - LEVEL) / 2
    low = float(beta.ppf(tail, count, draws - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - tail, count + 1, draws - count)) if count < draws else 1.0
    return low, high


def keeps(count: int, draws: int, promise: float) -> bool:
    """Tell whether the draws are consistent with a share of at most what was promised."""
    return interval(count, draws)[0] <= promise
