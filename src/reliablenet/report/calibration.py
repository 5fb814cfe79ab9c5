"""Calibration: whether a confidence of 80 % is right in 80 of 100 rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate import clopper_pearson_upper
from reliablenet.metrics.measures import ECE_BINS, calibration_error
from reliablenet.report import text
from reliablenet.report.charts import Bar, Chart, Dot, marked_numbers, percent_axis

TAIL = 0.025  # of the two-sided interval of 95 % at each bin


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """Rows by confidence in equal-width bins of (0, 1], those without rows left out.

    Attributes
    ----------
    low, high : array of shape (m,)
        Edges of each bin; the upper one belongs to it.
    rows : integer array of shape (m,)
    confidence, accuracy : array of shape (m,)
        Means over the rows of the bin.
    ece : float
        As `reliablenet.metrics.evaluate` computes it.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    rows: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    ece: float


def reliability_bins(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> ReliabilityBins:
    """Return rows by confidence.

    Parameters
    ----------
    confidence : array of shape (n,)
    right : boolean array of shape (n,)

    Returns
    -------
    ReliabilityBins

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.report.calibration import reliability_bins
    >>> made = reliability_bins(np.array([0.9, 0.91, 0.6]), np.array([True, False, True]))
    >>> made.rows.tolist(), made.accuracy.tolist(), round(made.ece, 3)
    ([1, 2], [1.0, 0.5], 0.403)
    """
    bins = ECE_BINS
    place = np.searchsorted(np.arange(1, bins) / bins, confidence, side="left")
    rows = np.bincount(place, minlength=bins)
    filled = np.flatnonzero(rows)
    sums = [np.bincount(place, weights=values, minlength=bins) for values in (confidence, right)]
    means = [total[filled] / rows[filled] for total in sums]
    return ReliabilityBins(
        low=filled / bins,
        high=(filled + 1) / bins,
        rows=rows[filled],
        confidence=means[0],
        accuracy=means[1],
        ece=calibration_error(confidence, right, bins),
    )


def calibration_charts(bins: ReliabilityBins) -> tuple[Chart, Chart]:
    """Return accuracy by confidence, and how many rows each bin holds."""
    least = float(bins.low.min())
    x = percent_axis("confidence: estimated chance of being right", least, 1.0)
    right = np.rint(bins.accuracy * bins.rows).astype(int)
    high = np.asarray(clopper_pearson_upper(right, bins.rows, TAIL))
    low = 1.0 - np.asarray(clopper_pearson_upper(bins.rows - right, bins.rows, TAIL))
    bottom = min(least, float(low.min()))
    y = percent_axis("accuracy", bottom, 1.0)
    edges = [
        f"{text.percent(a, 0)} to {text.percent(b, 0)}"
        for a, b in zip(bins.low.tolist(), bins.high.tolist(), strict=True)
    ]
    table = [
        [
            edges[i],
            text.count(int(bins.rows[i])),
            text.percent(float(bins.confidence[i])),
            text.percent(float(bins.accuracy[i])),
            f"{text.percent(float(low[i]))} to {text.percent(float(high[i]))}",
        ]
        for i in range(len(bins.rows))
    ]
    columns = ["Confidence", "Rows", "Mean confidence", "Accuracy", "95 % interval"]
    numbers = marked_numbers(columns, table)
    dots = tuple(
        Dot(
            float(x.place(bins.confidence[i])),
            float(y.place(bins.accuracy[i])),
            float(y.place(low[i])),
            float(y.place(high[i])),
            f"{edges[i]}: {bins.rows[i]:,} rows",
        )
        for i in range(len(bins.rows))
    )
    most = float(bins.rows.max())
    tall = percent_axis("share of rows", 0, 1.05 * most / float(bins.rows.sum()), ticks=3)
    bars = tuple(
        Bar(
            float(x.place(bins.low[i])) + 0.3,
            float(x.place(bins.high[i]) - x.place(bins.low[i])) - 0.6,
            float(tall.place(bins.rows[i] / bins.rows.sum())),
            f"{edges[i]}: {bins.rows[i]:,} rows",
        )
        for i in range(len(bins.rows))
    )
    accuracy = Chart(
        title="Accuracy by confidence",
        description=(
            "On the diagonal, confidence is what it claims to be; below it, the model is too sure. "
            f"The expected calibration error is {text.percent(bins.ece, 2)}."
        ),
        x=x,
        y=y,
        dots=dots,
        diagonal=float(y.place(least)),
        numbers=numbers,
    )
    held = Chart(
        title="Rows by confidence",
        description="How many rows lie in each bin.",
        x=x,
        y=tall,
        bars=bars,
        numbers=numbers,
    )
    return accuracy, held
