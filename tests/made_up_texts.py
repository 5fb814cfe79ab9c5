"""Requests that nobody made, for tests of text."""

from __future__ import annotations

import numpy as np

WORDS = (
    *("card", "lost", "late", "refund", "money", "transfer", "fee", "pin"),
    *("app", "top", "up", "cash", "euro", "wrong", "my", "the"),
)


def make_texts(n: int, random: np.random.Generator) -> list[str]:
    """Return texts of four to eight words."""
    return [" ".join(random.choice(WORDS, random.integers(4, 9))) for _ in range(n)]
