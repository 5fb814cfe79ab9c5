"""Leaks: columns that tell the target by themselves, as what is only known afterwards does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FEW_ROWS = 100  # in fewer, a column may tell the target by chance
BINS = 64  # of equally many rows, for numbers with more different values
NEARLY = 0.95  # share of the mistakes of guessing that a column saves
NEARLY_LINEAR = 0.999  # correlation with a target of numbers


@dataclass(frozen=True)
class Leak:
    """What one column tells about the target.

    Attributes
    ----------
    right : float
        Share of rows whose label it tells right, learned on half of them and tried on the others.
    guessed : float
        Share that the commonest label gets right.
    """

    right: float
    guessed: float

    @property
    def nearly_decides(self) -> bool:
        """Whether hardly any mistake of guessing is left."""
        return self.guessed < 1.0 and self.right - self.guessed >= NEARLY * (1.0 - self.guessed)


def column_leak(values: pd.Series[Any], target: NDArray[np.intp]) -> Leak:
    """Return how well a column by itself tells a target of classes.

    Parameters
    ----------
    values : Series
        Numbers, or anything else that is taken for kinds. A missing value is a kind as well.
    target : array of int
        Classes as numbers from 0.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from reliablenet.tables.leaks import column_leak
    >>> rng = np.random.default_rng(0)
    >>> late = rng.random(1000) < 0.3
    >>> days = pd.Series(np.where(late, rng.integers(5, 90, 1000), rng.integers(0, 6, 1000)))
    >>> column_leak(days, late.astype(int)).nearly_decides
    True
    """
    kinds = _kinds(values)
    first = np.random.RandomState(0).permutation(len(target)) % 2 == 0
    right = 0
    for learned in (first, ~first):
        counts = np.zeros((kinds.max() + 1, target.max() + 1), np.int64)
        np.add.at(counts, (kinds[learned], target[learned]), 1)
        told = counts.argmax(axis=1)
        told[counts.sum(axis=1) == 0] = np.bincount(target[learned]).argmax()
        right += int((told[kinds[~learned]] == target[~learned]).sum())
    return Leak(right / len(target), float(np.bincount(target).max() / len(target)))


def tells_number(values: pd.Series[Any], target: NDArray[np.float64]) -> bool:
    """Tell whether a column of numbers is the target but for its unit, or nearly so."""
    if not pd.api.types.is_numeric_dtype(values) or len(target) < FEW_ROWS:
        return False
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    known = np.isfinite(numbers)
    numbers, target = numbers[known], target[known]
    if len(numbers) < FEW_ROWS or np.ptp(numbers) == 0.0 or np.ptp(target) == 0.0:
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large tell nothing
        return bool(abs(np.corrcoef(numbers, target)[0, 1]) >= NEARLY_LINEAR)


def _kinds(values: pd.Series[Any]) -> NDArray[np.intp]:
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    if len(distinct) > BINS and pd.api.types.is_numeric_dtype(values):
        ranks = values.astype(np.float64).rank(method="average").to_numpy(na_value=np.nan)
        missing = np.isnan(ranks)
        codes = np.where(missing, BINS, np.nan_to_num(ranks) * BINS / (len(ranks) + 1)).astype(
            np.intp
        )
    return codes
