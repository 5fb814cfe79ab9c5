"""How times are taken: side by side, in turns, so that other work on the machine disturbs all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

Work = Callable[[], object]


def seconds(work: Work) -> float:
    """Return how long a piece of work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def times_in_turns(works: Sequence[Work], repeats: int) -> list[list[float]]:
    """Time pieces of work in turns and return all times of each."""
    rounds = [[seconds(work) for work in works] for _ in range(repeats)]
    return [list(times) for times in zip(*rounds, strict=True)]


def best_times(works: Sequence[Work], repeats: int) -> list[float]:
    """Return the best time of each piece of work: the one that the machine disturbed least."""
    return [min(times) for times in times_in_turns(works, repeats)]


def ratio(one: Work, other: Work, repeats: int) -> float:
    """Return the best time of one piece of work over that of another."""
    ours, theirs = best_times([one, other], repeats)
    return ours / theirs
