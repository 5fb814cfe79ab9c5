"""Strict JSON: what has no number in it, and what numpy made, in the form that every reader takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def strict(value: Any) -> Any:
    """Return a value as strict JSON can hold it: NaN as null, what else JSON lacks as text.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet._json import strict
    >>> strict({"jcw": np.float64(0.5), "bound": np.inf, 1: (np.nan, np.arange(2))})
    {'jcw': 0.5, 'bound': 'inf', '1': [None, [0, 1]]}
    """
    if isinstance(value, Mapping):
        return {str(name): strict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return strict(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
