"""How numbers are written: never better than they are."""

from __future__ import annotations

import math
from typing import Any

from reliablenet.certificate import wording

NARROW = "\u202f"  # a no-break space that is half as wide
NONE = "\u2013"  # an en dash


def typeset(words: str) -> str:
    """Return a sentence whose percent signs stay on the line of their number."""
    return words.replace(" %", f"{NARROW}%").replace("< ", f"<{NARROW}").replace("> ", f">{NARROW}")


def sentence(words: str) -> str:
    """Return words as a sentence, "" if there are none.

    Examples
    --------
    >>> from reliablenet.report.text import sentence
    >>> sentence("of 3 rows none was wrong"), sentence("")
    ('Of 3 rows none was wrong.', '')
    """
    return typeset(f"{words[0].upper()}{words[1:]}.") if words else ""


def percent(share: float, digits: int = 1) -> str:
    """Write a share in percent; neither 0 nor 100 unless it is exactly that.

    Examples
    --------
    >>> from reliablenet.report.text import NARROW, percent
    >>> [percent(share).replace(NARROW, " ") for share in (0.5814, 0.9999, 0.00001, 1.0)]
    ['58.1 %', '> 99.9 %', '< 0.1 %', '100 %']
    """
    return typeset(wording.percent(share, digits, trim=False))


def percent_up(bound: float, limit: float) -> str:
    """Write a bound in percent, never below it, and never above a limit that it keeps.

    Examples
    --------
    >>> from reliablenet.report.text import NARROW, percent_up
    >>> percent_up(0.04321, 0.05).replace(NARROW, " "), percent_up(0.049999, 0.05)[:-2]
    ('4.33 %', '5.00')
    """
    return typeset(wording.percent_up(bound, limit, trim=False))


def confidence(rho: float) -> str:
    """Write 1 - rho in percent, never above it.

    Examples
    --------
    >>> from reliablenet.report.text import NARROW, confidence
    >>> confidence(0.05).replace(NARROW, " "), confidence(0.05 / 6).replace(NARROW, " ")
    ('95 %', '99.16 %')
    """
    return typeset(wording.confidence(rho))


def budget(alpha: float) -> str:
    """Write alpha in percent, as it was given."""
    return typeset(wording.exact(alpha))


threshold = wording.threshold_text


def count(number: int) -> str:
    """Write a count with commas."""
    return f"{number:,}"


def cell(value: Any) -> str:
    """Write what stands in a table of the user's own."""
    if isinstance(value, float):
        return NONE if math.isnan(value) else f"{value:.6g}"
    return str(value)
