"""Columns of a file that say what is true of each row, and whose it is; needs no model."""

from __future__ import annotations

from typing import Any

import pandas as pd
from numpy.typing import NDArray

from reliablenet.errors import InvalidDataError
from reliablenet.tables.files import label_texts


def group_names(frame: pd.DataFrame, column: str) -> NDArray[Any]:
    """Return whose row each is, as texts, or say in which row that is missing."""
    missing = frame[column].isna().to_numpy()
    if missing.any():
        raise InvalidDataError(
            f"The group {column!r} is missing in row {int(frame.index[int(missing.argmax())])}. Give "
            "each such row a group of its own if it has none."
        )
    return label_texts(frame[column])


def true_labels(values: pd.Series[Any], column: str) -> NDArray[Any]:
    """Return true labels as texts, or say how many are missing."""
    missing = values.isna().to_numpy()
    if missing.any():
        raise InvalidDataError(
            f"The label {column!r} is missing in {int(missing.sum())} of {len(values)} rows, the first "
            f"of them row {int(values.index[int(missing.argmax())])}. A certificate needs the truth of "
            "every row. Rows may be left out only if chance alone decided which of them lack it."
        )
    return label_texts(values)
