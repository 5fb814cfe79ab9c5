"""Labels as they come from a user: one for each row, none missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from reliablenet._checks import as_array
from reliablenet.errors import InvalidDataError


def check_labels(X: Any, y: Any, name: str) -> NDArray[Any]:
    """Return one label a row as an array, or say which is missing."""
    labels: NDArray[Any] = column_or_1d(as_array(y, "y"), warn=True)
    check_consistent_length(X, labels)
    # of a list of texts numpy makes NaN a text too
    mixed = labels.dtype.kind == "U" and isinstance(y, list | tuple)
    missing = pd.isna(column_or_1d(np.array(y, object)) if mixed else labels)
    if labels.dtype.kind == "f":
        missing |= np.isinf(labels)
    if missing.any():
        raise InvalidDataError(
            f"Input {name} contains infinity, NaN or a missing value in row "
            f"{int(missing.argmax())} ({int(missing.sum())} in all). Drop those rows."
        )
    return labels
