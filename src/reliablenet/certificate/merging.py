"""Counts of partitions that merge: a certificate needs counts, wherever its rows lie.

Rows may lie in one place or in many: batches of a file, the files of a folder, the partitions of a cluster. A
look goes over all of them, each partition by itself, and what was counted merges in the order of partitions.
So the counts are those of one machine, to the last one, whoever counted, in whichever order, and however often
a lost worker's partition had to be counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Generic, Protocol, Self, TypeVar

from reliablenet.certificate.groups import OneRowEach
from reliablenet.certificate.judgement import Count
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError


class Counts(Protocol):
    """What is counted of rows, in one look or in several."""

    count: Count

    def blank(self) -> Self:
        """Return what a partition starts this look with: all that is decided, and nothing counted."""

    def add(self, rows: ScoredRows) -> None:
        """Take in rows."""

    def merge(self, later: Self) -> None:
        """Take in what was counted of later rows in the same look."""

    def look_again(self) -> bool:
        """Decide what this look was for, and tell whether another one is needed."""


Counted = TypeVar("Counted", bound=Counts)


@dataclass
class Part(Generic[Counted]):
    """What a look found in one partition.

    Attributes
    ----------
    number : int
        Of the partition.
    n : int
        Its rows.
    counts : Counts
        What was counted of them, where each stands for itself.
    grouped : bool
        Whether they say whose row each is, so that one of each group counts.
    draw : OneRowEach or None
        The rows drawn, where it is known how many rows come before.
    """

    number: int
    n: int
    counts: Counted
    grouped: bool = False
    draw: OneRowEach | None = None


@dataclass(frozen=True)
class Look(Generic[Counted]):
    """What to do with the rows of each partition; it can be sent to another process and called there.

    Attributes
    ----------
    blank : Counts
    seed : int
        For the draw of one row of each group.
    starts : dict from int to int
        By the number of a partition, how many rows come before it. Where that is not known, nothing is drawn.
    """

    blank: Counted
    seed: int = 0
    starts: dict[int, int] = field(default_factory=dict)

    def __call__(self, rows: Iterable[ScoredRows], number: int = 0) -> Part[Counted]:
        """Count the rows of one partition.

        Parameters
        ----------
        rows : iterable of ScoredRows
            All rows of the partition, in batches of any size.
        number : int
            Its place among the partitions, the same whenever it is looked at.

        Returns
        -------
        Part
        """
        part = Part(number, 0, self.blank.blank())
        for batch in rows:
            if batch.n == 0:
                continue
            part.n += batch.n
            if batch.group is None:
                part.counts.add(batch)
                continue
            part.grouped = True
            if number in self.starts:
                part.draw = part.draw or OneRowEach(self.seed, self.starts[number])
                part.draw.add(batch)
        return part


Run = Callable[[Look[Counted]], Iterable[Part[Counted]]]


def in_one(read: Callable[[], Iterable[ScoredRows]]) -> Run[Counted]:
    """Return how to look at rows that are read here, as one partition."""
    return lambda look: [look(read())]


def count_all(
    run: Run[Counted], make: Callable[[int], Counted], owner: str, seed: int = 0
) -> Counted:
    """Look at all partitions until everything is decided, and return what was counted.

    Parameters
    ----------
    run : callable
        Calls the `Look` that it is given once with the rows of each partition, wherever they are, and
        returns all that it returned, in any order.
    make : callable
        Returns the `Counts` to begin with, given how many rows will count, 0 while that is not known.
    owner : str
        Who asks, for messages.
    seed : int
        For the draw of one row of each group, where rows say whose they are.

    Returns
    -------
    Counts
    """
    counting = make(0)
    parts = _in_order(run(Look(counting.blank(), seed, {0: 0})))
    if any(part.grouped for part in parts):
        drawn = _drawn(run, parts, counting, seed)
        counting = make(drawn.n)
        counting.count.unit = "group"
        parts = [Look(counting)([drawn])]
        run = in_one(lambda: [drawn])
    sizes = [(part.number, part.n) for part in parts]
    if not any(part.n for part in parts):
        raise InvalidDataError(f"{owner} needs rows; got 0.")
    counting = parts[0].counts  # not copied: mistakes may be many
    for part in parts[1:]:
        counting.merge(part.counts)
    while counting.look_again():
        parts = _in_order(run(Look(counting.blank())))
        _check_same(sizes, parts)
        for part in parts:
            counting.merge(part.counts)
    return counting


def _in_order(parts: Iterable[Part[Counted]]) -> list[Part[Counted]]:
    """Return what was found in the order of partitions, each of which must be there once."""
    found = sorted(parts, key=lambda part: part.number)
    for one, other in pairwise(found):
        if one.number == other.number:
            raise InvalidDataError(
                f"Partition {one.number} was counted twice. Give each partition a number of its own."
            )
    return found


def _drawn(
    run: Run[Counted], parts: list[Part[Counted]], counting: Counted, seed: int
) -> ScoredRows:
    """Return one row of each group; with a second look where rows come before a partition."""
    if any(part.draw is None for part in parts if part.n):
        starts, before = {}, 0
        for part in parts:
            starts[part.number], before = before, before + part.n
        sizes = [(part.number, part.n) for part in parts]
        parts = _in_order(run(Look(counting.blank(), seed, starts)))
        _check_same(sizes, parts)
    whole = OneRowEach()  # the rows have their numbers already
    for part in parts:
        if part.draw is not None:
            whole.merge(part.draw)
    return replace(whole.rows(), group=None)


def _check_same(sizes: list[tuple[int, int]], parts: list[Part[Counted]]) -> None:
    """Raise unless a later look found the same partitions as the first."""
    again = [(part.number, part.n) for part in parts]
    if again != sizes:
        before, now = (sum(n for _, n in found) for found in (sizes, again))
        cut = ", cut in other places" * (before == now)
        raise InvalidDataError(
            f"The rows changed while they were certified: {before} at first, {now} on the second look{cut}. "
            "Certify a file that nobody writes to."
        )
