"""From rows to their profile: cells, fences and levels that reveal no single row.

Values of single rows are not kept: borders of cells are short numbers between two values, fences are rounded outwards to
one digit, and a category of fewer than five rows is not named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.tables.profile import (
    FEW,
    ColumnProfile,
    InputProfile,
    Kind,
    as_table,
    kind_of,
    layout_of,
)
from reliablenet.tables.values import text_codes

CELLS, CELL_ROWS = 10, 10  # cells of a column of numbers, and rows that each holds at least
MOST_LEVELS = 1000
MOST_COLUMNS = 2000
SAMPLED = 50_000  # rows that cells are cut from


def describe_rows(
    X: Any, unused: Any = (), dates: Mapping[Any, bool] | None = None, texts: Any = ()
) -> InputProfile | None:
    """Return the profile of rows, None where they have no columns to describe.

    Parameters
    ----------
    X : data frame or array
        None is returned for texts, sparse matrices, streams, and more than 2,000 columns.
    unused : collection of str or int
        Columns that the model leaves out.
    dates : mapping of str or int to bool, optional
        Columns that it reads as dates, and whether the day comes first in them.
    texts : collection of str or int
        Columns that it reads as free text.
    """
    table = as_table(X)
    if table is None or len(table) == 0:
        return None
    left_out = set(unused)
    used = [name for name in table.columns if name not in left_out]
    if not 0 < len(used) <= MOST_COLUMNS or len(set(map(str, used))) < len(used):
        return None
    kinds: dict[Any, Kind] = dict.fromkeys(dates or (), "date")
    kinds |= dict.fromkeys(texts, "text")
    columns = tuple(
        describe(table[name], name, kinds.get(name), day_first=(dates or {}).get(name, False))
        for name in used
    )
    return InputProfile(len(table), layout_of(X), columns)


def describe(
    values: pd.Series[Any], name: Any, kind: Kind | None = None, *, day_first: bool = False
) -> ColumnProfile:
    """Return the profile of one column, of the kind that its type tells if it is not given."""
    name = int(name) if isinstance(name, int | np.integer) else str(name)
    kind = kind or kind_of(values)
    if kind == "category":
        return _describe_category(values, name)
    return _describe_measured(values, name, kind, day_first)


def _describe_measured(
    values: pd.Series[Any], name: str | int, kind: Kind, day_first: bool
) -> ColumnProfile:
    blank = ((0.0, 0.0), (0.0, 0.0, 0.0))
    numbers = ColumnProfile(name, kind, (0, 0), (), *blank, day_first=day_first).measure(values)
    finite = numbers[np.isfinite(numbers)]
    if len(finite) == 0:
        return ColumnProfile(name, "text", (len(values), 0))
    distinct, counts = np.unique(finite[:: -(-len(finite) // SAMPLED)], return_counts=True)
    edges = cut_cells(distinct, counts)
    places = np.where(np.isnan(numbers), 0, 1 + np.searchsorted(edges, numbers, side="right"))
    cells = np.bincount(places, minlength=len(edges) + 2)
    digits = "{:.0f}" if kind == "date" else "{:.3g}"
    return ColumnProfile(
        name,
        kind,
        tuple(cells.tolist()),
        edges,
        fences=widen(float(finite.min()), float(finite.max())),
        quartiles=tuple(
            float(digits.format(q))
            for q in np.repeat(distinct, counts)[
                [round(share * (int(counts.sum()) - 1)) for share in (0.25, 0.5, 0.75)]
            ]
        ),
        commonest=_share(int(counts.max()), int(counts.sum())),
        day_first=day_first,
    )


def _describe_category(values: pd.Series[Any], name: str | int) -> ColumnProfile:
    try:
        codes, texts = text_codes(values)
    except TypeError:  # lists and other things that cannot be compared
        missing = int(values.isna().sum())
        return ColumnProfile(name, "text", (missing, len(values) - missing))
    found: dict[str, int] = {}
    for text, count in zip(
        texts, np.bincount(codes + 1, minlength=len(texts) + 1)[1:], strict=True
    ):
        found[text] = found.get(text, 0) + int(count)
    missing, present = int((codes < 0).sum()), int((codes >= 0).sum())
    common = sorted(
        (text for text, count in found.items() if count >= FEW), key=lambda text: -found[text]
    )
    if not common or len(common) > MOST_LEVELS:
        return ColumnProfile(name, "text", (missing, present))
    levels = tuple(sorted(common))
    named = [found[level] for level in levels]
    return ColumnProfile(
        name,
        "category",
        (missing, *named, present - sum(named)),
        levels=levels,
        commonest=_share(max(named), present),
    )


def cut_cells(distinct: NDArray[np.float64], counts: NDArray[np.intp]) -> tuple[float, ...]:
    """Return the inner borders of cells of about a tenth of the rows each; a value lies in one cell."""
    n = int(counts.sum())
    least = max(n / CELLS, CELL_ROWS)
    edges, inside, left = [], 0, n
    for place in range(len(distinct) - 1):
        inside += int(counts[place])
        left -= int(counts[place])
        # What lies below a very common value has a cell of its own, if it is not too small for one.
        before_common = counts[place + 1] >= least and inside >= max(n / 100, CELL_ROWS)
        if left >= CELL_ROWS and (inside >= least or before_common):
            edges.append(short_between(float(distinct[place]), float(distinct[place + 1])))
            inside = 0
    return tuple(sorted(set(edges)))


def short_between(low: float, high: float) -> float:
    """Return a number of few digits above ``low`` and not above ``high``.

    Examples
    --------
    >>> from reliablenet.tables.describing import short_between
    >>> short_between(37.1, 37.4), short_between(0.0, 114.0)
    (37.2, 60.0)
    """
    middle = low + (high - low) / 2
    for digits in range(1, 17):
        short = float(f"{middle:.{digits}g}")
        if low < short < high:
            return short
    return high


def widen(low: float, high: float) -> tuple[float, float]:
    """Return fences around a range: half as wide again on each side, rounded outwards to one digit.

    Where no number was negative a negative one is outside, and where none was positive a positive one.

    Examples
    --------
    >>> from reliablenet.tables.describing import widen
    >>> widen(17.0, 90.0), widen(-3.1, 3.3)
    ((0.0, 130.0), (-7.0, 7.0))
    """
    span = min(high - low or abs(high) or 1.0, 1e300)
    unit = 10.0 ** math.floor(math.log10(span))
    below = math.floor((low - span / 2) / unit) * unit
    above = math.ceil((high + span / 2) / unit) * unit
    if low >= 0:
        below = max(below, 0.0)
    if high <= 0:
        above = min(above, 0.0)
    limit = 1.7e308
    return max(below, -limit), min(above, limit)


def _share(count: int, of: int) -> float:
    return min(math.ceil(100 * count / max(of, 1)) / 100, 1.0)
