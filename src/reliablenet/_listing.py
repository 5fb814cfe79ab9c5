"""Names in a sentence: all of them, or the first and how many more there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def listed(names: Iterable[Any], most: int = 20, write: Callable[[Any], str] = repr) -> str:
    """Return names for a sentence: all of them, or the first and how many more there are.

    Examples
    --------
    >>> from reliablenet._listing import listed
    >>> listed(["age", "sex"]), listed("abcde", most=3)
    ("'age', 'sex'", "'a', 'b', 'c' and 2 more")
    >>> listed(["age", "sex", "ward"], most=1, write=str)
    'age and 2 more'
    """
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(map(write, every[:most])) + more
