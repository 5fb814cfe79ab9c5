"""Usual values of a column, from the profile of the training rows: what a value is compared with.

A profile tells no row, so that these are rounded quartiles and categories that several rows share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.tables.dates import as_date
from reliablenet.tables.profile import ColumnProfile

MOST_LEVELS = 5
OFTEN = 0.05  # of training rows: a gap that is as common is usual too


def usual_values(
    column: ColumnProfile, like: pd.Series[Any]
) -> tuple[pd.Series[Any], NDArray[np.float64]]:
    """Return usual values of a column, of a type like those given, and how common each is.

    Numbers and dates: the quartiles. Categories: the commonest five. A gap, where at least 5 % of the
    training rows had one. Nothing where the profile names no value, as of free text.

    Parameters
    ----------
    column : ColumnProfile
    like : Series
        Values of the same column, for their type.

    Returns
    -------
    Series, array
        Values that differ, and weights that add up to 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.describing import describe
    >>> from reliablenet.tables.usual import usual_values
    >>> jobs = pd.Series(["cook"] * 75 + ["clerk"] * 25)
    >>> values, weights = usual_values(describe(jobs, "job"), jobs)
    >>> values.tolist(), weights.tolist()
    (['cook', 'clerk'], [0.75, 0.25])
    >>> usual_values(describe(pd.Series(range(101)), "age"), pd.Series([3]))[0].tolist()
    [25, 50, 75]
    """
    if column.kind == "category":
        counted = zip(column.counts[1:], column.levels, strict=False)
        chosen = sorted(counted, key=lambda one: -one[0])[:MOST_LEVELS]
        found: list[Any] = [level for _, level in chosen]
        weights = np.array([count for count, _ in chosen], np.float64)
    elif column.kind == "text" or not column.quartiles:
        return like.iloc[:0], np.empty(0)
    else:
        different, counts = np.unique(column.quartiles, return_counts=True)
        found, weights = different.tolist(), counts.astype(np.float64)
    weights *= (1.0 - column.missing) / weights.sum()
    if column.missing >= OFTEN or not len(weights):
        found, weights = [*found, None], np.append(weights, column.missing)
    make = {"category": _categories, "date": _dates}.get(column.kind, _numbers)
    return make(found, like), weights / weights.sum()


def _numbers(found: list[Any], like: pd.Series[Any]) -> pd.Series[Any]:
    values = pd.Series(found, dtype=np.float64)
    if pd.api.types.is_bool_dtype(like) and None not in found:
        return (values >= 0.5).astype(like.dtype)
    whole = pd.api.types.is_integer_dtype(like) and bool((values == values.round()).all())
    extended = pd.api.types.is_extension_array_dtype(like)
    if whole or (extended and pd.api.types.is_float_dtype(like)):
        try:
            return values.astype(like.dtype)
        except (TypeError, ValueError, OverflowError):
            return values  # a type that cannot hold it
    return values


def _categories(found: list[Any], like: pd.Series[Any]) -> pd.Series[Any]:
    if isinstance(like.dtype, pd.CategoricalDtype):
        raw = {str(value): value for value in like.dtype.categories}
        if all(level is None or level in raw for level in found):
            values = [None if level is None else raw[level] for level in found]
            return pd.Series(pd.Categorical(values, dtype=like.dtype))
    text = isinstance(like.dtype, pd.StringDtype)
    return pd.Series(found, dtype=like.dtype if text else object)


def _dates(found: list[Any], like: pd.Series[Any]) -> pd.Series[Any]:
    texts = [None if days is None else as_date(days) for days in found]
    if pd.api.types.is_timedelta64_dtype(like):
        return pd.Series(pd.to_timedelta(np.array(found, np.float64), unit="D")).astype(like.dtype)
    if isinstance(like.dtype, pd.PeriodDtype):
        return pd.Series(pd.PeriodIndex(texts, freq=like.dtype.freq))
    if pd.api.types.is_datetime64_any_dtype(like):
        moments = pd.Series(pd.to_datetime(pd.Series(texts, dtype=object), format="ISO8601"))
        if isinstance(like.dtype, pd.DatetimeTZDtype):
            moments = moments.dt.tz_localize("UTC")
        return moments.astype(like.dtype)
    return _categories(texts, like)
