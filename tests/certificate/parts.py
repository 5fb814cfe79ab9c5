"""Counts of rows that lie in parts: each is counted by itself, and they merge in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reliablenet.certificate.scored import ScoredRows


def count_parts(counts: Any, parts: Sequence[ScoredRows]) -> Any:
    """Return the counts after as many looks at all parts as they ask for; empty parts are not added."""
    while True:
        found = []
        for part in parts:
            found.append(counts.blank())
            if part.n:
                found[-1].add(part)
        for one in found:
            counts.merge(one)
        if not counts.look_again():
            return counts
