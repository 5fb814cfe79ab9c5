"""`PiecewiseEncoder`: numbers spread over quantile bins, so that a network bends where trees split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import as_array, check_count
from reliablenet.errors import InvalidDataError
from reliablenet.tables.column_arrays import ColumnArrays
from reliablenet.tables.free_text import Embedding
from reliablenet.tables.linearity import is_nonlinear
from reliablenet.tables.tabular import CONSTANT, INCONSISTENT, TabularEncoder
from reliablenet.tables.values import text_codes

GROUPS = 32  # of equally many rows, by which a bend is looked for
RECURRING_ROWS = 10  # values recur if each has so many rows on average
DOMINANT_SHARE = 0.3  # a value that so many rows share has a column of its own
RARE_ROWS = 2  # categories in fewer rows than this, or than this share of all, are one
RARE_SHARE = 5e-4


class PiecewiseEncoder(TabularEncoder):
    """Encode numbers piecewise linearly where that pays, and categories with the rare ones as one.

    A number whose relation to the label bends (`is_nonlinear`) gives one column a bin, 0 below the bin, 1
    above it and rising within it, where bins hold equally many training rows (Gorishniy et al.
    2022). Any other is standardised, as in `TabularEncoder`: there, pieces would only add noise.
    Without labels every number is cut into pieces. Values that recur, such as prices, ages and
    counts, tell more one by one than measurements that hardly ever agree, and so get more bins. A
    mark is added for a value that more than 30 % of the rows share, such as a capital gain of 0, and
    one for missing numbers.

    A category gives one column a level, with a level for missing values and one for all that are
    rare. What lies beyond the training rows does not extrapolate: a number counts as the nearest
    one seen, a new category as rare, or as none if there were no rare ones.

    Parameters
    ----------
    bins : int
        Most bins of a number.
    value_bins : int
        Most bins of a number whose values recur, each in ten rows or more on average.
    text, dates, embedding
        As for `TabularEncoder`.

    Attributes
    ----------
    edges_ : list of lists of float
        Of the bins of each number, ascending; empty for one that is standardised.
    ranges_ : list of pairs of float
        Smallest and largest value of each number.
    dominant_ : list of float or None
        The value of each number that has a mark of its own.
    number_gaps_, category_gaps_ : list of bool
        Whether each number and each category was missing in some training row.
    rare_ : list of bool
        Whether each category has rare levels.
    columns_, numbers_, categories_, dates_, texts_, dropped_, reasons_, medians_, means_, scales_, levels_
        As for `TabularEncoder`; levels are those that are not rare.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables import PiecewiseEncoder
    >>> frame = pd.DataFrame({"age": [20, 30, 40, 60, None], "job": ["a", "b", "a", "b", None]})
    >>> encoder = PiecewiseEncoder(bins=2).fit(frame)
    >>> encoder.edges_
    [[20.0, 30.0, 60.0]]
    >>> encoder.transform(pd.DataFrame({"age": [25, 99], "job": ["b", "c"]}))
    array([[0. , 0. , 1. , 0. , 0.5, 0. ],
           [0. , 0. , 0. , 0. , 1. , 1. ]], dtype=float32)
    """

    _learned: ClassVar[tuple[str, ...]] = (
        *TabularEncoder._learned,
        *("edges_", "ranges_", "dominant_", "number_gaps_", "category_gaps_", "rare_"),
    )

    edges_: list[list[float]]
    ranges_: list[list[float]]
    dominant_: list[float | None]
    number_gaps_: list[bool]
    category_gaps_: list[bool]
    rare_: list[bool]

    def __init__(
        self,
        bins: int = 8,
        value_bins: int = 128,
        text: Any = "auto",
        dates: Any = "auto",
        embedding: Embedding | None = None,
    ) -> None:
        super().__init__(text, dates, embedding)
        self.bins = bins
        self.value_bins = value_bins

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn columns, bins and categories from the training rows; y are labels of any kind."""
        check_count("bins", self.bins, "PiecewiseEncoder")
        check_count("value_bins", self.value_bins, "PiecewiseEncoder")
        self._classes = None if y is None else _class_codes(X, y)
        try:
            return super().fit(X, y)
        finally:
            del self._classes

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the matrix of shape (n, d) for rows with the columns that `fit` saw."""
        return spread(self.compact(X), self.bins_)

    def compact(self, X: Any) -> NDArray[np.float32]:
        """Return a matrix with one column for all bins of a number, which `spread` makes many of.

        It holds where the number lies among the bins: 2.25 is a quarter into the third.
        """
        table: Any = X if isinstance(X, ColumnArrays) else self._aligned(X)
        blocks: list[NDArray[Any]] = []
        for place, numbers in enumerate(self._all_numbers(table)):
            blocks += self._number_blocks(place, numbers)
        parts = zip(self.categories_, self.levels_, self.category_gaps_, self.rare_, strict=True)
        for column, levels, gap, rare in parts:
            places = _places(table[column], levels, gap=gap, rare=rare)
            blocks += [places[:, None] == np.arange(len(levels) + gap + rare)]
        blocks += self.text_columns_.blocks(table)
        return np.concatenate(blocks, axis=1, dtype=np.float32)

    @property
    def bins_(self) -> list[int]:
        """Bins of each column of `compact`; 0 for one that stays as it is."""
        counts: list[int] = []
        for edges, dominant, gap in zip(
            self.edges_, self.dominant_, self.number_gaps_, strict=True
        ):
            counts += [max(len(edges) - 1, 0)] + [0] * ((dominant is not None) + gap)
        for levels, gap, rare in zip(self.levels_, self.category_gaps_, self.rare_, strict=True):
            counts += [0] * (len(levels) + gap + rare)
        return counts + [0] * self.text_columns_.width

    def _number_blocks(self, place: int, numbers: NDArray[np.float64]) -> list[NDArray[Any]]:
        """Return the columns of `compact` that a number gives; this changes the array."""
        missing = np.isnan(numbers)
        numbers[missing] = self.medians_[place]
        edges = self.edges_[place]
        blocks: list[NDArray[Any]]
        if edges:
            blocks = [np.interp(numbers, edges, np.arange(len(edges)))]
        else:
            lowest, highest = self.ranges_[place]
            within = numbers.clip(lowest, highest)
            blocks = [(within - self.means_[place]) / self.scales_[place]]
        if self.dominant_[place] is not None:
            blocks.append((numbers == self.dominant_[place]) & ~missing)
        if self.number_gaps_[place]:
            blocks.append(missing)
        return [block[:, None] for block in blocks]

    def _check_learned(self) -> None:
        super()._check_learned()
        numbers, categories = len(self.medians_), len(self.categories_)
        flags = (*self.number_gaps_, *self.category_gaps_, *self.rare_)
        sound = (
            len(self.edges_) == len(self.ranges_) == len(self.dominant_) == numbers
            and len(self.number_gaps_) == numbers
            and all(len(edges) != 1 and _ascends(edges) for edges in self.edges_)
            and all(len(pair) == 2 and _ascends(pair) for pair in self.ranges_)
            and all(value is None or np.isfinite(value) for value in self.dominant_)
            and len(self.category_gaps_) == len(self.rare_) == categories
            and all(type(flag) is bool for flag in flags)
        )
        if not sound:
            raise InvalidDataError(INCONSISTENT)

    def _learn_number(self, numbers: NDArray[np.float64], column: Any) -> str:
        if reason := super()._learn_number(numbers, column):
            return reason
        seen = ~np.isnan(numbers)
        distinct, counts = np.unique(numbers[seen], return_counts=True)
        frequent = counts.argmax()
        # two values are told apart without a mark
        marked = len(distinct) > 2 and counts[frequent] > DOMINANT_SHARE * seen.sum()
        dominant = float(distinct[frequent]) if marked else None
        others = np.arange(len(distinct)) != frequent if marked else slice(None)
        groups = _quantile_edges(distinct[others], counts[others], GROUPS)
        if self._classes is None or _bends(numbers[seen], self._classes[seen], groups, dominant):
            recurs = RECURRING_ROWS * len(distinct) <= seen.sum()
            bins = self.value_bins if recurs else self.bins
            edges = _quantile_edges(distinct[others], counts[others], bins)
        else:
            edges = []
        self.edges_.append(edges)
        self.ranges_.append([float(distinct[0]), float(distinct[-1])])
        self.dominant_.append(dominant)
        self.number_gaps_.append(not seen.all())
        return ""

    def _learn_category(self, counts: dict[str, int], rows: int, column: Any) -> str:
        gap = sum(counts.values()) < rows
        if len(counts) + gap < 2 or not counts:
            return CONSTANT
        least = min(max(RARE_ROWS, RARE_SHARE * rows), max(counts.values()))
        levels = sorted(text for text, count in counts.items() if count >= least)
        self.categories_.append(column)
        self.levels_.append(levels)
        self.modes_.append(max(range(len(levels)), key=lambda place: counts[levels[place]]))
        self.category_gaps_.append(gap)
        self.rare_.append(len(levels) < len(counts))
        return ""


def spread(matrix: NDArray[np.float32], bins: Sequence[int]) -> NDArray[np.float32]:
    """Return one column a bin for positions among bins, behind the columns that stay as they are.

    Parameters
    ----------
    matrix : array of float32 of shape (n, d)
    bins : sequence of d int
        Bins of each column, 0 for one that stays.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.piecewise import spread
    >>> spread(np.array([[7.0, 2.25]], np.float32), [0, 4])
    array([[7.  , 1.  , 1.  , 0.25, 0.  ]], dtype=float32)
    """
    stay, source, first = bin_columns(bins)
    pieces = (matrix[:, source] - np.array(first, np.float32)).clip(0.0, 1.0)
    return np.concatenate([matrix[:, stay], pieces], axis=1)


def bin_columns(bins: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the columns that stay; and for each bin its column, and where in that it begins."""
    stay = [column for column, count in enumerate(bins) if count == 0]
    source = [column for column, count in enumerate(bins) for _ in range(count)]
    first = [place for count in bins for place in range(count)]
    return stay, source, first


def _class_codes(X: Any, y: Any) -> NDArray[np.intp]:
    """Return a number for each label."""
    labels = as_array(y, "y")
    rows = len(X) if hasattr(X, "__len__") else -1
    if labels.shape != (rows,):
        raise InvalidDataError(
            f"`y` of PiecewiseEncoder must hold one label for each of the {rows} rows; got shape "
            f"{labels.shape}."
        )
    codes: NDArray[np.intp] = pd.factorize(labels)[0]
    if (codes < 0).any():
        raise InvalidDataError(
            f"`y` of PiecewiseEncoder must hold no missing labels; row {(codes < 0).argmax()} has "
            "one. Leave such rows out."
        )
    return codes


def _bends(
    numbers: NDArray[np.float64],
    classes: NDArray[np.intp],
    edges: list[float],
    dominant: float | None,
) -> bool:
    """Tell whether the relation to the label bends, by the bins and the dominant value."""
    groups = np.searchsorted(edges[1:-1], numbers, side="right")
    if dominant is not None:
        groups[numbers == dominant] = len(edges)
    return is_nonlinear(numbers, groups, classes, int(classes.max()) + 1)


def _places(
    values: pd.Series[Any], levels: list[str], *, gap: bool, rare: bool
) -> NDArray[np.intp]:
    """Return the column of each value among the levels, one for missing and one for rare ones."""
    codes, texts = text_codes(values)
    known = {level: place for place, level in enumerate(levels)}
    other = len(levels) + gap if rare else -1
    # The last entry is what code -1, a missing value, finds.
    missing = len(levels) if gap else -1
    places = [*(known.get(text, other) for text in texts), missing]
    found: NDArray[np.intp] = np.array(places, dtype=np.intp)[codes]
    return found


def _quantile_edges(
    values: NDArray[np.float64], counts: NDArray[np.intp], bins: int
) -> list[float]:
    """Return the edges of bins with about equally many rows; a single value has no bin."""
    ranks = np.linspace(0.0, 1.0, bins + 1) * (counts.sum() - 1)
    places = np.searchsorted(counts.cumsum(), ranks, side="right")
    edges: list[float] = np.unique(values[places]).tolist()
    return edges if len(edges) > 1 else []


def _ascends(values: list[float]) -> bool:
    numbers = np.array(values, dtype=np.float64)
    return bool(np.isfinite(numbers).all() and (np.diff(numbers) > 0).all())
