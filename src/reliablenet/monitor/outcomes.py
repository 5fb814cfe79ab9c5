"""Outcomes of decisions as they come from a user: checked once, then trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import as_array, check_finite, is_flag, parameter_error
from reliablenet.errors import InvalidDataError

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Rows in the order in which they were decided.

    Attributes
    ----------
    accepted, audited : arrays of bool, shape (n,)
    known, wrong, waits : arrays of bool, shape (n,)
        Of rows accepted and audited: whether the truth is there, whether it was a mistake, and
        whether it is still to come.
    probability : array of float, shape (n,)
        With which each row was audited.
    """

    accepted: Flags
    audited: Flags
    known: Flags
    wrong: Flags
    waits: Flags
    probability: NDArray[np.float64]


def check_outcomes(
    accepted: Any, wrong: Any, audited: Any, pending: Any, probability: Any, audit: float
) -> Outcomes:
    """Return the rows of an update, or say what is wrong with them."""
    owner = "update"
    acted, missing = flags("accepted", accepted, None, owner)
    _refuse_missing("accepted", missing)
    n = len(acted)
    mistaken, unknown = flags("wrong", wrong, n, owner)
    if audited is None:
        if audit < 1.0:
            raise InvalidDataError(
                f"update needs `audited`: with audit={audit:g} it must be told which rows the coin picked."
            )
        checked = np.ones(n, bool)
    else:
        checked, missing = flags("audited", audited, n, owner)
        _refuse_missing("audited", missing)
    waits = np.zeros(n, bool)
    if pending is not None:
        waits, missing = flags("pending", pending, n, owner)
        _refuse_missing("pending", missing)
    shares = np.full(n, audit)
    if probability is not None:
        shares = _shares(probability, n, audit)
    certain = acted & ~checked & (shares == 1.0)
    if certain.any():
        raise InvalidDataError(
            f"Row {int(certain.argmax())} was accepted but not audited, although its audit probability is 1. "
            "Give the Monitor the audit probability as `audit`, or mark rows whose truth is still to come "
            "as `pending`."
        )
    counts = acted & checked
    lacking = counts & unknown & ~waits
    if lacking.any():
        raise InvalidDataError(
            f"`wrong` is missing in row {int(lacking.argmax())}, which was accepted and audited "
            f"({int(lacking.sum())} such rows). Mark rows whose truth is still to come as `pending`."
        )
    known = counts & ~waits
    return Outcomes(acted, checked, known, known & mistaken, counts & waits, shares)


def flags(name: str, values: Any, n: int | None, owner: str) -> tuple[Flags, Flags]:
    """Return yes or no for each row, and where neither is known.

    Examples
    --------
    >>> from reliablenet.monitor.outcomes import flags
    >>> found, missing = flags("wrong", [1, 0, None], 3, "update")
    >>> found.tolist(), missing.tolist()
    ([True, False, False], [False, False, True])
    """
    array = as_array(values, name)
    if array.ndim != 1 or (n is not None and len(array) != n):
        length = "a vector" if n is None else f"a vector of {n} entries, as `accepted`"
        raise InvalidDataError(f"`{name}` of {owner} must be {length}; got shape {array.shape}.")
    if array.dtype.kind == "b":
        return array, np.zeros(len(array), bool)
    missing = np.asarray(pd.isna(array))
    present = array[~missing]
    strange = [value for value in pd.unique(present).tolist() if not is_flag(value)]
    if strange:
        raise InvalidDataError(
            f"`{name}` of {owner} must hold True and False, or 1 and 0; got {strange[0]!r}."
        )
    found = np.zeros(len(array), bool)
    found[~missing] = present.astype(bool)
    return found, missing


def _shares(probability: Any, n: int, audit: float) -> NDArray[np.float64]:
    shares = as_array(probability, "probability")
    if shares.shape != (n,) or shares.dtype.kind not in "iuf":
        raise InvalidDataError(
            f"`probability` of update must be a vector of {n} numbers, as `accepted`; got {shares.dtype} of shape "
            f"{shares.shape}."
        )
    shares = shares.astype(np.float64)
    check_finite("probability", shares, "update")
    outside = (shares < audit) | (shares > 1.0)
    if outside.any():
        raise parameter_error(
            "probability",
            "update",
            f"lie in [{audit:g}, 1], between `audit` of the Monitor and 1",
            float(shares[outside][0]),
            "Make the Monitor with the smallest probability as `audit`.",
        )
    return shares


def _refuse_missing(name: str, missing: Flags) -> None:
    if missing.any():
        raise InvalidDataError(
            f"`{name}` of update must be known of every row; it is missing in row {int(missing.argmax())}."
        )
