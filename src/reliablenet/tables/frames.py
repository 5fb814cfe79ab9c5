"""Frames of other libraries, such as polars and Arrow, as those of pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from reliablenet.errors import InvalidDataError, MissingExtraError


def pandas_of(table: Any) -> Any:
    """Return a frame of polars, Arrow or the like as one of pandas, and anything else as it is.

    Text becomes categories and gaps are missing values, as in a frame that was read from a file.

    Examples
    --------
    >>> import polars as pl
    >>> from reliablenet.tables.frames import pandas_of
    >>> pandas_of(pl.DataFrame({"age": [31, None], "job": ["a", "b"]}))
        age job
    0  31.0   a
    1   NaN   b
    """
    if isinstance(table, pd.DataFrame | np.ndarray | list | tuple):
        return table
    if not any(hasattr(table, name) for name in ("__arrow_c_stream__", "__dataframe__", "collect")):
        return table
    import narwhals as nw  # comes with scikit-learn

    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InvalidDataError(
            f"A table must hold its rows; got a {type(table).__module__.split('.')[0]} "
            f"{type(table).__name__}, which is not computed yet. Call its collect() first."
        )
    if not isinstance(frame, nw.DataFrame):
        return table
    try:
        import pyarrow  # noqa: F401 - narwhals says less clearly what is missing
    except ImportError:
        raise MissingExtraError(
            f"Frames of {type(table).__module__.split('.')[0]} need pyarrow: pip install "
            "'reliablenet[parquet]'"
        ) from None
    from reliablenet.tables.arrow import arrow_frame

    return arrow_frame(frame.to_arrow())
