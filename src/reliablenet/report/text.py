"""How numbers are written: never better than they are."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

NARROW = "\u202f"  # a no-break space that is half as wide
NONE = "\u2013"  # an en dash


def percent(share: float, digits: int = 1) -> str:
    """Write a share in percent; neither 0 nor 100 unless it is exactly that.

    Examples
    --------
    >>> [percent(share).replace(NARROW, " ") for share in (0.5814, 0.9999, 0.00001, 1.0)]
    ['58.1 %', '> 99.9 %', '< 0.1 %', '100 %']
    """
    if math.isnan(share):
        return NONE
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}{NARROW}%"
    text, step = f"{100 * share:.{digits}f}", 10.0**-digits
    if float(text) == 100.0:
        return f">{NARROW}{100 - step:.{digits}f}{NARROW}%"
    if float(text) == 0.0:
        return f"<{NARROW}{step:.{digits}f}{NARROW}%"
    return f"{text}{NARROW}%"


def percent_up(bound: float, limit: float) -> str:
    """Write a bound in percent, never below it, and never above a limit that it keeps.

    Examples
    --------
    >>> percent_up(0.04321, 0.05).replace(NARROW, " "), percent_up(0.049999, 0.05)[:-2]
    ('4.33 %', '5.00')
    """
    exact = 100 * Decimal(bound)
    for digits in range(2, 18):
        rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
        if bound > limit or float(rounded / 100) <= limit:
            break
    return f"{rounded:f}{NARROW}%"


def confidence(rho: float) -> str:
    """Write 1 - rho in percent, never above it.

    Examples
    --------
    >>> confidence(0.05).replace(NARROW, " "), confidence(0.05 / 6).replace(NARROW, " ")
    ('95 %', '99.16 %')
    """
    exact = 100 - 100 * Decimal(repr(rho))
    text = f"{exact.quantize(Decimal('0.01'), rounding=ROUND_FLOOR):f}"
    return f"{text.rstrip('0').rstrip('.')}{NARROW}%"


def budget(alpha: float) -> str:
    """Write alpha in percent, as it was given."""
    return f"{(100 * Decimal(repr(alpha))).normalize():f}{NARROW}%"


def threshold(value: float) -> str:
    """Write a threshold: whole if it is short, else its first digits and an ellipsis.

    Examples
    --------
    >>> threshold(0.75), threshold(2 / 3), threshold(math.inf)
    ('0.75', '0.666666…', 'none')
    """
    if math.isinf(value):
        return "none" if value > 0 else "any"
    text = f"{value:.17g}" if value != round(value, 8) else f"{round(value, 8):.8g}"
    return text if len(text) <= 10 else f"{text[: 8 + (value < 0)]}…"


def count(number: int) -> str:
    """Write a count with commas."""
    return f"{number:,}"


def cell(value: Any) -> str:
    """Write what stands in a table of the user's own."""
    if isinstance(value, float):
        return NONE if math.isnan(value) else f"{value:.6g}"
    return str(value)
