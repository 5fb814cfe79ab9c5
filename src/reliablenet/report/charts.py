"""Charts as records of plain numbers; ``chart.html`` writes them as SVG that fits any width.

Places are in percent of the plot, from its top left corner, so that a chart stretches while its text
does not. Lines are drawn in units of a thousandth of the plot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reliablenet.report import text

MOST_POINTS = 400  # of one line: more than there are pixels for
STYLES = 7  # colours and dashes of page.css, told apart by colour-blind readers


@dataclass(frozen=True)
class Axis:
    """An axis from ``low`` to ``high`` with its title and its ticks, as pairs of place and text."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def place(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return values in percent of the axis, from low to high."""
        span = self.high - self.low
        return np.asarray(100.0 * (np.asarray(values, float) - self.low) / span)


def axis(
    title: str,
    low: float,
    high: float,
    write: Callable[[float], str] = lambda value: f"{value:g}",
    ticks: int = 5,
) -> Axis:
    """Return an axis with about as many ticks as asked for, at round numbers.

    Parameters
    ----------
    title : str
    low, high : float
    write : callable
        From a number to the text of its tick.
    ticks : int

    Returns
    -------
    Axis

    Examples
    --------
    >>> from reliablenet.report.charts import axis
    >>> axis("coverage", 0, 0.8, ticks=4).ticks
    ((0.0, '0'), (25.0, '0.2'), (50.0, '0.4'), (75.0, '0.6'), (100.0, '0.8'))
    """
    if not high > low:
        low, high = low - 0.5, low + 0.5
    rough = (high - low) / ticks
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * min((1, 2, 2.5, 5, 10), key=lambda factor: abs(math.log(factor * unit / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [round(number * step, 12) for number in range(first, last + 1)]
    bare = Axis(title, low, high, ())
    return Axis(
        title, low, high, tuple((float(bare.place(value)), write(value)) for value in values)
    )


def percent_axis(title: str, low: float = 0.0, high: float = 1.0, ticks: int = 5) -> Axis:
    """Return an axis of shares, written in percent."""
    return axis(title, low, high, lambda share: f"{100 * share:g}{text.NARROW}%", ticks)


@dataclass(frozen=True)
class Line:
    """A line in one of the styles, from 1; its ``path`` is in thousandths of the plot."""

    label: str
    style: int
    path: str


@dataclass(frozen=True)
class Dot:
    """A point, the ends of its whisker (or its own height), and what it says when pointed at."""

    x: float
    y: float
    low: float
    high: float
    label: str


@dataclass(frozen=True)
class Bar:
    """A bar from the bottom, and what it says when pointed at."""

    x: float
    width: float
    height: float
    label: str


@dataclass(frozen=True)
class Band:
    """A part of the x axis with a background: "good", "dim" or "faint"."""

    start: float
    stop: float
    tone: str
    label: str = ""


@dataclass(frozen=True)
class Rule:
    """A straight line across the plot at a place of the y axis, or of the x axis if ``upright``."""

    place: float
    label: str
    upright: bool = False


@dataclass(frozen=True)
class Numbers:
    """What a chart is drawn from, as a table; ``marked`` rows stand out, ``words`` are columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()

    @property
    def words(self) -> frozenset[int]:
        """Columns to be aligned to the left: the first, and those that hold a word."""
        cells = enumerate(zip(*self.rows, strict=True))
        return frozenset({0, *(i for i, column in cells if any(map(_is_word, column)))})


@dataclass(frozen=True)
class Chart:
    """All that a chart shows, its text alternative, and its numbers."""

    title: str
    description: str
    x: Axis
    y: Axis
    numbers: Numbers
    lines: tuple[Line, ...] = ()
    dots: tuple[Dot, ...] = ()
    bands: tuple[Band, ...] = ()
    rules: tuple[Rule, ...] = ()
    bars: tuple[Bar, ...] = ()
    diagonal: float | None = None  # where the line of equal x and y begins, at the left


def line(
    label: str, style: int, x: Axis, y: Axis, xs: ArrayLike, ys: ArrayLike, *, steps: bool = False
) -> Line:
    """Return a line through points; with ``steps`` each height holds up to its point.

    Parameters
    ----------
    label : str
    style : int
        From 1; there are seven.
    x, y : Axis
    xs, ys : array-like of shape (n,)
        Points with a height of NaN are left out.
    steps : bool

    Returns
    -------
    Line

    Examples
    --------
    >>> from reliablenet.report.charts import axis, line
    >>> unit = axis("", 0, 1)
    >>> line("a", 1, unit, unit, [0, 0.5, 1], [0, 1, 0.5]).path
    'M0 1000L500 0 1000 500'
    >>> line("a", 1, unit, unit, [0, 0.5, 1], [0, 1, 0.5], steps=True).path
    'M0 1000V0H500V500H1000'
    """
    across, up = np.asarray(xs, float), np.asarray(ys, float)
    defined = ~np.isnan(up)
    across, up = across[defined], up[defined]
    if len(across) > MOST_POINTS:
        kept = np.unique(np.linspace(0, len(across) - 1, MOST_POINTS).round().astype(int))
        across, up = across[kept], up[kept]
    left = [f"{value:.4g}" for value in (10 * x.place(across)).round(1)]
    top = [f"{value:.5g}" for value in (1000 - 10 * y.place(up)).round(1)]
    if not left:
        return Line(label, style, "")
    if steps:
        path = "".join(f"V{b}H{a}" for a, b in zip(left[1:], top[1:], strict=True))
    else:
        path = " ".join(f"{a} {b}" for a, b in zip(left[1:], top[1:], strict=True))
        path = f"L{path}" if path else ""
    return Line(label, 1 + (style - 1) % STYLES, f"M{left[0]} {top[0]}{path}")


def thin(n: int, most: int) -> list[int]:
    """Return at most so many places of n, at even distances, the first and the last among them."""
    if n <= most:
        return list(range(n))
    return sorted({int(place) for place in np.linspace(0, n - 1, most).round()})


def marked_numbers(
    columns: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[int] = ()
) -> Numbers:
    """Return a table of text cells."""
    return Numbers(tuple(columns), tuple(tuple(row) for row in rows), frozenset(marked))


def _is_word(cell: str) -> bool:
    return cell[:1].isalpha() or cell[:1] in ("'", "✓", "✕")
