"""Checked rows of a request, and of several together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Rows:
    """Checked rows: one list of values a column, or a matrix where columns have no names.

    Columns of numbers stand in ``arrays`` too, as arrays with NaN for null; so do categories that the
    model knows, as their places among its levels, -1 for null.
    """

    size: int
    values: dict[str, list[Value]]
    matrix: NDArray[np.float64] | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def records(self) -> list[dict[str, Value]]:
        """Return the rows one by one, as JSON would write them."""
        if self.matrix is not None:
            return [{str(i): value for i, value in enumerate(row)} for row in self.matrix.tolist()]
        names = list(self.values)
        return [
            dict(zip(names, row, strict=True)) for row in zip(*self.values.values(), strict=True)
        ]


def join(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several requests one below the other."""
    if len(parts) == 1:
        return parts[0]
    size = sum(part.size for part in parts)
    if parts[0].matrix is not None:
        return Rows(
            size, {}, np.concatenate([part.matrix for part in parts if part.matrix is not None])
        )
    values: dict[str, list[Value]] = {
        name: list(chain.from_iterable(part.values[name] for part in parts))
        for name in parts[0].values
    }
    arrays = {
        name: np.concatenate([part.arrays[name] for part in parts])
        for name in parts[0].arrays
        if all(name in part.arrays for part in parts)
    }
    return Rows(size, values, arrays=arrays)
