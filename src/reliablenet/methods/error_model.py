"""The chance that a regressor's value is within the tolerance, learned from its errors on other rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestRegressor

from reliablenet._checks import check_count
from reliablenet.tables.tabular import TabularEncoder
from reliablenet.tables.tolerance import Margin, Values

LEAST_SPREAD = 1e-12  # of a regressor that is sure of its value


class ErrorModel(BaseEstimator):
    """A forest that tells from a row and its value how probable it is that the value is right.

    It is fitted to rows that the regressor was not trained on: on its own training rows every value looks
    better than it is. Whatever it learns, the certificate stays exact; a poor model of the errors only
    defers more rows.

    It looks at the columns of a table or array, at the value, and at the tolerance where that is a column.
    Of rows of another kind, such as texts or sparse matrices, it sees the value alone.

    Parameters
    ----------
    trees : int
    least_rows : int
        In a leaf.
    random_state : int

    Attributes
    ----------
    forest_ : RandomForestRegressor
    encoder_ : TabularEncoder or None
        None where rows are not those of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.error_model import ErrorModel
    >>> from reliablenet.tables.tolerance import Margin
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> truth = rng.normal(scale=0.1 + X[:, 0])         # the noise grows with the first column
    >>> model = ErrorModel().fit(X, np.zeros(2000), truth, Margin(0.5))
    >>> quiet, noisy = model.chance(np.array([[0.05], [0.95]]), np.zeros(2), Margin(0.5))
    >>> bool(quiet > 0.95), bool(noisy < 0.6)
    (True, True)
    """

    forest_: RandomForestRegressor
    encoder_: TabularEncoder | None

    def __init__(self, trees: int = 100, least_rows: int = 20, random_state: int = 0) -> None:
        self.trees = trees
        self.least_rows = least_rows
        self.random_state = random_state

    def fit(self, X: Any, value: Values, truth: Values, margin: Margin) -> Self:
        """Learn from rows, the values that a regressor gave them unseen, and the truth."""
        check_count("trees", self.trees, "ErrorModel")
        check_count("least_rows", self.least_rows, "ErrorModel")
        self.encoder_ = TabularEncoder().fit(X) if _is_table(X) else None
        self.forest_ = RandomForestRegressor(
            self.trees,
            min_samples_leaf=self.least_rows,
            max_features=1 / 3,
            random_state=self.random_state,
        )
        right = margin.within(value, truth).astype(np.float64)
        self.forest_.fit(self._features(X, value, margin), right)
        return self

    def chance(self, X: Any, value: Values, margin: Margin) -> Values:
        """Return for each row the chance that its value is within the tolerance."""
        seen: Values = self.forest_.predict(self._features(X, value, margin))
        return np.clip(seen, 0.0, 1.0)

    def _features(self, X: Any, value: Values, margin: Margin) -> NDArray[np.float32]:
        # beyond float32 a value says no more than the largest one
        largest = float(np.finfo(np.float32).max)
        columns: list[NDArray[Any]] = [np.clip(value, -largest, largest)[:, None]]
        if isinstance(margin.amount, np.ndarray):
            columns.append(np.minimum(margin.amount, largest)[:, None])
        if self.encoder_ is not None:
            columns.append(self.encoder_.transform(X))
        return np.concatenate(columns, axis=1, dtype=np.float32)


def normal_chance(value: Values, spread: Values, margin: Margin) -> Values:
    """Return the chance of being within the tolerance of a normal truth around each value.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.error_model import normal_chance
    >>> from reliablenet.tables.tolerance import Margin
    >>> normal_chance(np.zeros(2), np.array([1.0, 2.0]), Margin(1.96)).round(3).tolist()
    [0.95, 0.673]
    """
    width = np.maximum(spread, LEAST_SPREAD)
    if not margin.relative:
        return np.asarray(2.0 * ndtr(margin.amount / width) - 1.0)
    # |y - v| <= r |y|, for v above 0: v / (1 + r) <= y <= v / (1 - r)
    size = np.abs(value)
    low, high = size / (1.0 + margin.amount), size / (1.0 - margin.amount)
    return np.asarray(ndtr((high - size) / width) - ndtr((low - size) / width))


def _is_table(X: Any) -> bool:
    """Tell whether rows are those of a data frame, or of an array of numbers with columns."""
    if isinstance(X, pd.DataFrame):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
