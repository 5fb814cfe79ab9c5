"""Argument checks: the one place that words a parameter error (parameter, expected, got, next step)."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet.errors import InvalidDataError, InvalidParameterError


def parameter_error(
    name: str, owner: str, expected: str, got: object, hint: str = ""
) -> InvalidParameterError:
    """Word a parameter error: what, whose, what is allowed, what came, what to do."""
    text = f"`{name}` of {owner} must {expected}; got {got!r}."
    return InvalidParameterError(f"{text} {hint}" if hint else text)


def is_real(value: object) -> bool:
    """Tell whether a value is a real number; booleans are not."""
    # numpy calls a span of time an integer
    return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)


def is_whole(value: object) -> bool:
    """Tell whether a value is an integer; booleans are not."""
    return is_real(value) and isinstance(value, Integral)


def is_flag(value: object) -> bool:
    """Tell whether a value says yes or no: true or false, 1 or 0."""
    return isinstance(value, bool | np.bool_) or (is_real(value) and value in (0, 1))


def check_fraction(name: str, value: Any, owner: str) -> float:
    """Return ``value`` as a float if it lies in the open interval (0, 1)."""
    if not is_real(value) or not 0.0 < value < 1.0:
        percent = is_real(value) and 1.0 <= value < 100.0
        hint = f"Did you mean {value / 100:g}?" if percent else ""
        raise parameter_error(name, owner, "lie in (0, 1)", value, hint)
    return float(value)


def check_positive(name: str, value: Any, owner: str, *, zero: bool = False) -> float:
    """Return ``value`` as a float if it is finite and positive (or zero where allowed)."""
    low_enough = is_real(value) and (value >= 0.0 if zero else value > 0.0)
    if not low_enough or not math.isfinite(value):
        expected = "be a finite number of at least 0" if zero else "be a finite positive number"
        raise parameter_error(name, owner, expected, value)
    return float(value)


def check_count(name: str, value: Any, owner: str, *, minimum: int = 1) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``minimum``."""
    if not is_whole(value) or not minimum <= value < 2**63:
        raise parameter_error(name, owner, f"be a whole number of at least {minimum}", value)
    return int(value)


def check_seed(name: str, value: Any, owner: str) -> int:
    """Return ``value`` as an int if it can seed numpy's generators."""
    if not is_whole(value) or not 0 <= value < 2**32:
        raise parameter_error(name, owner, "be a whole number from 0 to 2**32 - 1", value)
    return int(value)


def check_probability(name: str, value: Any, owner: str, *, zero: bool = False) -> float:
    """Return ``value`` as a float if it is a probability above 0 (or 0 where allowed)."""
    if not is_real(value) or not (value >= 0.0 if zero else value > 0.0) or value > 1.0:
        expected = "lie in [0, 1]" if zero else "lie in (0, 1]"
        raise parameter_error(name, owner, expected, value, _percent_hint(value))
    return float(value)


def check_threshold(name: str, value: Any, owner: str, n_classes: int | None = None) -> float:
    """Return a confidence threshold in (1/K, 1], or in (0, 1] while K is not known."""
    if n_classes is None:
        return check_probability(name, value, owner)
    if not is_real(value) or not 1.0 / n_classes < value <= 1.0:
        expected = f"lie in (1/{n_classes}, 1]: every confidence is at least 1/{n_classes}"
        raise parameter_error(name, owner, expected, value, _percent_hint(value))
    return float(value)


def _percent_hint(value: Any) -> str:
    """Return what to write where a share was given in percent."""
    return f"Did you mean {value / 100:g}?" if is_real(value) and 1.0 < value <= 100.0 else ""


def as_array(values: Any, name: str = "X") -> NDArray[Any]:
    """Return an array of anything array-like; a tensor is detached and brought to the CPU first."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if values.is_floating_point():
            values = values.double()
    if np.ma.is_masked(values):  # numpy would forget the mask, and count what was masked
        raise InvalidDataError(
            f"`{name}` must not hold masked values; got {np.ma.getmaskarray(values).sum()} of them. "
            "Drop those rows first."
        )
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:  # rows of unequal length, a sparse tensor
        raise InvalidDataError(
            f"`{name}` must be an array; got a {type(values).__name__} that cannot become one: {error}"
        ) from None


def check_finite(name: str, values: NDArray[Any], owner: str) -> None:
    """Raise if an array of numbers holds NaN or an infinity, naming the first place."""
    finite = np.isfinite(values)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        where = f"row {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise InvalidDataError(
            f"`{name}` of {owner} must be finite; got {values[place]} in {where} "
            f"({int((~finite).sum())} such values in all). Drop or repair those rows first."
        )
