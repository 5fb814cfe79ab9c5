"""Rows and labels as they come from a user, checked in the way of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from reliablenet._checks import as_array
from reliablenet.errors import InvalidDataError


def check_rows(model: BaseEstimator, X: Any, y: Any, *, reset: bool) -> Any:
    """Return rows as an array of floats or as the data frame they came in.

    Parameters
    ----------
    model : estimator
        Learns number and names of the features if ``reset``, else they must be those it knows.
    X : array or data frame
    y : array-like, None or "no_validation"
        Only looked at where it is missing.
    reset : bool
    """
    if hasattr(X, "detach"):
        X = as_array(X)
    owner = type(model).__name__
    if isinstance(X, pd.DataFrame):
        validate_data(model, X, y, reset=reset, skip_check_array=True)
        if len(X) == 0 or X.shape[1] == 0:
            raise InvalidDataError(
                f"Found array with 0 sample(s) or feature(s) (shape={X.shape}) while a minimum "
                f"of 1 is required by {owner}."
            )
        return X
    if y is None:
        validate_data(model, X, y)  # words the complaint as scikit-learn does
    try:
        # float32 stays as it is: images would take twice the memory
        return validate_data(model, X, reset=reset, dtype=[np.float64, np.float32], allow_nd=True)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise InvalidDataError(
            f"`X` of {owner} must hold numbers if it is an array; got text ({error}). Pass a pandas "
            "DataFrame: its text columns become categories."
        ) from None


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
