"""What every threshold would do: the risk-coverage curve and JCW by threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_fraction
from reliablenet._drawing import COLOURS, new_figure
from reliablenet._renamed import renamed_method
from reliablenet.certificate.scored import score_rows
from reliablenet.metrics.measures import falling_order, ranked_areas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """Error rate of the accepted rows against their share, one point for each distinct score.

    Attributes
    ----------
    threshold : array of shape (m,)
        Distinct scores, falling; rows at or above it are accepted, equal scores together.
    coverage : array of shape (m,)
        Share of rows accepted; rises to 1.
    risk : array of shape (m,)
        Share of the accepted rows that are wrong.
    errors : integer array of shape (m,)
        Rows accepted and wrong.
    n : int
        Rows.
    aurc, excess_aurc : float
        As in `Evaluation`: ties are averaged there, and accepted together in the curve.
    """

    threshold: NDArray[np.float64]
    coverage: NDArray[np.float64]
    risk: NDArray[np.float64]
    errors: NDArray[np.int64]
    n: int
    aurc: float
    excess_aurc: float

    def to_frame(self) -> pd.DataFrame:
        """Return one row a point, with the columns threshold, coverage, risk, errors."""
        return _frame(self, "threshold", "coverage", "risk", "errors")

    frame = renamed_method("frame", "to_frame")

    def plot(self, axes: Any = None, label: str | None = None) -> Figure:
        """Draw the curve as steps; without ties the area under them is AURC.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw, as over another curve; by default a new figure.
        label : str, optional
            Name in the legend; by default the AURC.

        Returns
        -------
        matplotlib.figure.Figure
        """
        if axes is None:
            (axes,) = _new_axes("RiskCoverageCurve")
        axes.plot(
            np.r_[0.0, self.coverage],
            np.r_[self.risk[0], self.risk],
            drawstyle="steps-pre",
            linewidth=1.6,
            label=f"AURC {self.aurc:.4f}" if label is None else label,
        )
        axes.set(xlabel="coverage", ylabel="error rate of accepted rows", xlim=(0, 1))
        return _finish(axes)


@dataclass(frozen=True, eq=False)
class JCWCurve:
    """What each threshold accepts and gets wrong, one point for each distinct score.

    Attributes
    ----------
    threshold : array of shape (m,)
        Distinct scores, rising; rows at or above it are accepted.
    jcw, coverage, throughput : array of shape (m,)
        Share of rows accepted and wrong; accepted; accepted and right. None rises.
    errors : integer array of shape (m,)
        Rows accepted and wrong.
    n : int
        Rows.
    alpha : float
        The budget for JCW; NaN if none was given.
    """

    threshold: NDArray[np.float64]
    jcw: NDArray[np.float64]
    coverage: NDArray[np.float64]
    throughput: NDArray[np.float64]
    errors: NDArray[np.int64]
    n: int
    alpha: float

    def to_frame(self) -> pd.DataFrame:
        """Return one row a point: threshold, jcw, coverage, throughput, errors."""
        return _frame(self, "threshold", "jcw", "coverage", "throughput", "errors")

    frame = renamed_method("frame", "to_frame")

    def plot(self, axes: Any = None, label: str | None = None) -> Figure:
        """Draw JCW with its budget, and in a panel below what is accepted for it.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw JCW alone, as over another curve; by default a new figure of two panels.
        label : str, optional
            Name of the JCW line in the legend; by default "JCW".

        Returns
        -------
        matplotlib.figure.Figure
        """
        if axes is None:
            # JCW is a few percent of the rows: on one scale with coverage it would lie on the axis.
            axes, below = _new_axes("JCWCurve", panels=2)
            self._draw(below, self.coverage, "coverage")
            self._draw(below, self.throughput, "throughput")
            _finish(below)
        self._draw(axes, self.jcw, "JCW" if label is None else label)
        budget = f"alpha = {self.alpha:g}"
        if not math.isnan(self.alpha) and budget not in axes.get_legend_handles_labels()[1]:
            axes.axhline(self.alpha, color="0.2", linewidth=1, linestyle="--", label=budget)
        return _finish(axes)

    def _draw(self, axes: Any, values: NDArray[np.float64], label: str) -> None:
        first, last = self.threshold[0], self.threshold[-1]
        margin = 0.03 * (last - first) or 0.03
        # Below the lowest score all rows are accepted, above the highest none.
        x, y = np.r_[first - margin, self.threshold, last], np.r_[values[0], values, 0.0]
        axes.plot(x, y, drawstyle="steps-pre", linewidth=1.6, label=label)
        axes.set(xlabel="threshold", ylabel="share of rows")


def risk_coverage_curve(
    proba: Any = None,
    y: Any = None,
    *,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
) -> RiskCoverageCurve:
    """Return the error rate of the accepted rows at every coverage that a threshold can reach.

    Parameters
    ----------
    proba, y, score, predicted, correct, classes
        As for `reliablenet.certify`; or rows scored before (`ScoredRows`) alone.

    Returns
    -------
    RiskCoverageCurve

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.metrics import risk_coverage_curve
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.8, 0.2], [0.4, 0.6]])
    >>> curve = risk_coverage_curve(proba, [0, 0, 1, 1])
    >>> curve.to_frame()
       threshold  coverage      risk  errors
    0        0.9      0.25  0.000000       0
    1        0.8      0.75  0.333333       1
    2        0.6      1.00  0.250000       1
    >>> round(curve.aurc, 3)
    0.208
    """
    rows = score_rows(
        proba,
        y,
        score=score,
        predicted=predicted,
        correct=correct,
        classes=classes,
        owner="risk_coverage_curve",
    )
    order = falling_order(rows.score)
    score, wrong = rows.score[order], rows.wrong[order]
    threshold, accepted, errors = _count(score, wrong)
    aurc, excess = ranked_areas(score, wrong)
    return RiskCoverageCurve(
        threshold=threshold,
        coverage=accepted / rows.n,
        risk=errors / accepted,
        errors=errors,
        n=rows.n,
        aurc=aurc,
        excess_aurc=excess,
    )


def jcw_curve(
    proba: Any = None,
    y: Any = None,
    *,
    alpha: float | None = None,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
) -> JCWCurve:
    """Return the share of rows accepted and wrong at every threshold that makes a difference.

    A threshold read off the curve is not certified; `reliablenet.certified_threshold` is.

    Parameters
    ----------
    proba, y, score, predicted, correct, classes
        As for `reliablenet.certify`; or rows scored before (`ScoredRows`) alone.
    alpha : float in (0, 1), optional
        Budget for JCW, drawn by `JCWCurve.plot`.

    Returns
    -------
    JCWCurve

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.metrics import jcw_curve
    >>> proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.8, 0.2], [0.4, 0.6]])
    >>> jcw_curve(proba, [0, 0, 1, 1]).to_frame()
       threshold   jcw  coverage  throughput  errors
    0        0.6  0.25      1.00        0.75       1
    1        0.8  0.25      0.75        0.50       1
    2        0.9  0.00      0.25        0.25       0
    """
    budget = math.nan if alpha is None else check_fraction("alpha", alpha, "jcw_curve")
    rows = score_rows(
        proba,
        y,
        score=score,
        predicted=predicted,
        correct=correct,
        classes=classes,
        owner="jcw_curve",
    )
    order = falling_order(rows.score)
    counts = _count(rows.score[order], rows.wrong[order])
    threshold, accepted, errors = counts[0][::-1], counts[1][::-1], counts[2][::-1]
    return JCWCurve(
        threshold=threshold,
        jcw=errors / rows.n,
        coverage=accepted / rows.n,
        throughput=(accepted - errors) / rows.n,
        errors=errors,
        n=rows.n,
        alpha=budget,
    )


def _count(
    score: NDArray[np.float64], wrong: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return distinct scores, rows and errors at or above each, of rows in falling order."""
    last = np.flatnonzero(np.r_[score[1:] != score[:-1], True])
    return score[last], (last + 1).astype(np.int64), np.cumsum(wrong, dtype=np.int64)[last]


def _frame(curve: object, *columns: str) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: getattr(curve, name) for name in columns})


def _new_axes(owner: str, panels: int = 1) -> list[Any]:
    """Return the panels of a new figure, one below the other."""
    figure = new_figure(f"{owner}.plot", (6, 2 + 2 * panels))
    column = list(figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])
    for axes in column:
        axes.set_prop_cycle(color=COLOURS)
        axes.spines[["top", "right"]].set_visible(False)
    return column


def _finish(axes: Any) -> Figure:
    grid = axes.get_subplotspec()
    if len(axes.get_shared_x_axes().get_siblings(axes)) > 1 and grid and not grid.is_last_row():
        axes.set_xlabel("")  # the panel below has it
    if axes.get_yscale() == "linear":
        # A line at 0 stays visible, and a curve added later still rescales.
        axes.set_ylim(bottom=-0.02 * axes.get_ylim()[1], auto=True)
    axes.legend(frameon=False, fontsize=8)
    figure: Figure = axes.figure
    return figure
