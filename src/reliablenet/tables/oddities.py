"""What is odd in new rows: the record, and the few lines that report it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reliablenet._listing import listed
from reliablenet.errors import InvalidDataError

SHOWN = 6
RARE = 0.01  # a longer tail than training showed is no news

What = Literal["unseen", "outside", "missing", "empty", "constant", "factor", "type"]
OF_ROWS: tuple[What, ...] = ("unseen", "outside", "missing")


@dataclass(frozen=True)
class Oddity:
    """One thing that is odd about one column.

    Attributes
    ----------
    column : str or int
    what : {"unseen", "outside", "missing", "empty", "constant", "factor", "type"}
        The first three are of single rows, the others of the column as a whole.
    rows : int
        In how many rows; of a whole column: how many rows were looked at.
    detail : str
        What came, and what would have been usual.
    """

    column: str | int
    what: What
    rows: int
    detail: str


@dataclass(frozen=True, eq=False)
class Oddities:
    """What is odd in some rows.

    Attributes
    ----------
    odd : boolean array of shape (n,)
        Rows with an unseen category, a number far outside, or a value missing that never was.
    found : tuple of Oddity
    profiled : bool
        False where the model has no profile, or the rows cannot be compared with it.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.odd_rows import find_oddities
    >>> from reliablenet.tables.describing import describe_rows
    >>> ages, jobs = [20 + i % 50 for i in range(200)], ["clerk", "cook"] * 100
    >>> profile = describe_rows(pd.DataFrame({"age": ages, "job": jobs}))
    >>> new = pd.DataFrame({"age": [33, 420, 41], "job": ["cook", "clerk", "pilot"]})
    >>> seen = find_oddities(profile, new)
    >>> seen.odd.tolist()
    [False, True, True]
    >>> print(seen)
    2 of 3 rows are odd, measured by the rows that the model was trained on:
      age: 1 value far outside 0 to 100, such as 420
      job: 1 value that fewer than 5 training rows had, such as 'pilot'
    """

    odd: NDArray[np.bool_]
    found: tuple[Oddity, ...] = ()
    profiled: bool = True

    def __len__(self) -> int:
        return len(self.odd)

    def __bool__(self) -> bool:
        return bool(self.found)

    def __str__(self) -> str:
        return str(self.counted())

    def counted(self) -> OddCounts:
        """Return the same without telling which rows are odd."""
        return OddCounts(len(self), int(self.odd.sum()), self.found, self.profiled)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Oddities):
            return NotImplemented
        same = (self.found, self.profiled) == (other.found, other.profiled)
        return same and np.array_equal(self.odd, other.odd)

    @property
    def notable(self) -> bool:
        """Whether to warn: something is odd about a whole column, or about more than 1 % of the rows."""
        whole = any(one.what not in OF_ROWS for one in self.found)
        return whole or bool(self.odd.sum() > RARE * len(self))

    @property
    def empty(self) -> list[str | int]:
        """Columns that are wholly missing and never were in training."""
        return [one.column for one in self.found if one.what == "empty"]

    def refuse_empty(self, allowed: Collection[Any] = ()) -> None:
        """Raise if a column is wholly missing that never was, unless it is allowed by name."""
        names = {str(name) for name in allowed}
        gone = [name for name in self.empty if str(name) not in names]
        if gone:
            one = len(gone) == 1
            which = f"Column {gone[0]!r} is" if one else f"Columns {listed(gone)} are"
            never, them = ("never was", "it") if one else ("never were", "them")
            raise InvalidDataError(
                f"{which} missing in all {len(self):,} rows, and {never} in a row that the model was "
                "trained on: its certificate says nothing about such rows. Supply the values, or name "
                f"{them} in `allow_missing`: {gone}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return counts and columns as JSON can hold them."""
        return self.counted().to_dict()

    @classmethod
    def joined(cls, batches: Iterable[Oddities | None]) -> Oddities:
        """Return what is odd in several batches, a line for each column and kind."""
        parts = [part for part in batches if part is not None]
        odd = np.concatenate([part.odd for part in parts]) if parts else np.zeros(0, bool)
        whole = OddCounts.joined(part.counted() for part in parts)
        return cls(odd, whole.found, whole.profiled)


@dataclass(frozen=True)
class OddCounts:
    """How much is odd in rows of any number.

    Attributes
    ----------
    rows, odd : int
        Rows looked at, and odd ones.
    found : tuple of Oddity
    profiled : bool
        As of `Oddities`.
    """

    rows: int = 0
    odd: int = 0
    found: tuple[Oddity, ...] = ()
    profiled: bool = True

    def __bool__(self) -> bool:
        return bool(self.found)

    def __str__(self) -> str:
        rows, verb = "row" if self.rows == 1 else "rows", "is" if self.odd == 1 else "are"
        which = f"{self.odd:,} of {self.rows:,} {rows} {verb} odd"
        if self.odd == 0:
            which = f"No row is odd by itself, but all {self.rows:,} together are"
        lines = [f"{which}, measured by the rows that the model was trained on:"]
        ordered = sorted(self.found, key=lambda one: (one.what in OF_ROWS, -one.rows))
        lines += [f"  {one.column}: {one.detail}" for one in ordered[:SHOWN]]
        if len(ordered) > SHOWN:
            more = len({one.column for one in ordered[SHOWN:]})
            lines.append(f"  and something in {more} more column{'s' * (more > 1)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return counts and columns as JSON can hold them."""
        found = [vars(one) for one in self.found]
        return {"profiled": self.profiled, "rows": self.rows, "odd": self.odd, "found": found}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> OddCounts:
        """Read what `to_dict` returned."""
        found = tuple(Oddity(**one) for one in values["found"])
        return cls(values["rows"], values["odd"], found, values["profiled"])

    @classmethod
    def joined(cls, parts: Iterable[OddCounts]) -> OddCounts:
        """Return what is odd in several parts, a line for each column and kind."""
        every = list(parts)
        first: dict[tuple[Any, Any], Oddity] = {}
        rows: dict[tuple[Any, Any], int] = {}
        for one in (one for part in every for one in part.found):
            key = (one.column, one.what)
            first.setdefault(key, one)
            rows[key] = rows.get(key, 0) + one.rows
        found = tuple(
            Oddity(one.column, one.what, rows[key], _recount(one, rows[key]))
            for key, one in first.items()
        )
        counts = (sum(part.rows for part in every), sum(part.odd for part in every))
        return cls(*counts, found, all(part.profiled for part in every))


def some_values(count: int) -> str:
    """Return how many values there are, in words."""
    return f"{count:,} value{'s' * (count > 1)}"


def _recount(one: Oddity, rows: int) -> str:
    """Return the detail with the count of all batches."""
    return (
        one.detail.replace(some_values(one.rows), some_values(rows), 1)
        if one.what in OF_ROWS
        else one.detail
    )
