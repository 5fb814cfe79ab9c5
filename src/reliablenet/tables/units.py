"""Whether a column of numbers came in another unit: all of its values larger or smaller by one factor."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from reliablenet.tables.profile import ColumnProfile

CHANCE = (
    1e-6  # of saying of a column of the same source that it became constant or changed its unit
)
LEAST_FACTOR = 1.5
FACTORS = {
    1.609: "miles and kilometres",
    2.205: "kilograms and pounds",
    2.54: "inches and centimetres",
    3.281: "metres and feet",
    10.0: "",
    12.0: "years and months",
    24.0: "days and hours",
    60.0: "minutes and seconds",
    100.0: "shares and percent, or metres and centimetres",
    255.0: "shares and bytes",
    365.25: "years and days",
    1000.0: "a thousand to one",
    3600.0: "hours and seconds",
    1e6: "a million to one",
}


def changed_factor(column: ColumnProfile, sample: NDArray[np.float64]) -> str:
    """Return by which factor the unit of a column seems to have changed, or nothing.

    The median must lie outside the quartiles of training, and where the median of so many rows of the
    same source does with a chance below 1e-6; quartiles and their distance must have grown or shrunk
    alike.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from reliablenet.tables.units import changed_factor
    >>> from reliablenet.tables.describing import describe
    >>> heights = np.random.default_rng(0).normal(170, 10, 500)
    >>> column = describe(pd.Series(heights), "height")
    >>> inches = heights[:100] / 2.54
    >>> changed_factor(column, inches)
    'values about 2.54 times as small as in training (inches and centimetres?)'
    >>> changed_factor(column, heights[:100] + 300)
    ''
    """
    low, _, high = column.quartiles
    n = len(sample)
    median = float(np.partition(sample, n // 2)[n // 2])
    if low <= median <= high or not _far(column, n, median):
        return ""
    before = np.array(column.quartiles)
    after = np.quantile(sample, (0.25, 0.5, 0.75))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio, distances = after / before, np.diff([after[[0, 2]], before[[0, 2]]])
    if not (np.isfinite(ratio) & (ratio > 0.0)).all() or not np.isfinite(distances).all():
        return ""
    logs = np.log(after / before)
    size = abs(float(logs[1]))
    spread = np.array([after[2] - after[0], before[2] - before[0]])
    if size < math.log(LEAST_FACTOR) or np.ptp(logs) > 0.25 * size + 1 / math.sqrt(len(sample)):
        return ""
    # a shift moves the quartiles alike, but not their distance
    noise = 0.35 * size + 2 / math.sqrt(len(sample))
    if not (spread > 0.0).all() or not before[0] * before[2] > 0.0:
        return ""
    if abs(math.log(spread[0]) - math.log(spread[1]) - logs[1]) > noise:
        return ""
    width = abs(math.log(before[2] / before[0]))
    tolerance = 0.05 + 1.5 * width / math.sqrt(n)  # what a median of so many rows may be off
    return _factor_text(math.exp(size), "large" if logs[1] > 0 else "small", tolerance)


def _far(column: ColumnProfile, n: int, median: float) -> bool:
    """Tell whether a median of n rows lies where chance does not put it."""
    counts = np.array(column.counts[1:])
    total = max(int(counts.sum()), 1)
    cell = int(np.searchsorted(column.edges, median, side="right"))
    # Shares of the training rows in the cells below and above: the median has passed all of them.
    below, above = counts[:cell].sum() / total, counts[cell + 1 :].sum() / total
    tail = min(1.0 - below, 1.0 - above)
    return tail < 0.5 and float(bdtrc(n // 2 - 1, n, max(tail, 1 / total))) < CHANCE


def _factor_text(factor: float, word: str, tolerance: float) -> str:
    near = [known for known in FACTORS if abs(math.log(known / factor)) < tolerance]
    tens = [known for known in near if math.log10(known).is_integer()]
    if len(tens or near) == 1:  # where two would fit none is named, but a power of ten goes first
        (known,) = tens or near
        hint = f" ({FACTORS[known]}?)" if FACTORS[known] else ""
        return f"values about {known:g} times as {word} as in training{hint}"
    return f"values about {factor:.2g} times as {word} as in training"
