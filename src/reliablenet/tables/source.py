"""`Source`: what a model file keeps of its inputs, all of it counts: how training and held-out rows looked.

Training rows give the cells, held-out rows are counted in them. Those had no part in the cells or in the model, so that
new rows of the same source are exchangeable with them, and a test can have a known level.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from reliablenet.errors import InvalidDataError
from reliablenet.tables.describing import describe_rows
from reliablenet.tables.profile import InputProfile, as_table

LEVELS = 128  # of surprise, and of a score, on scales that are fixed beforehand
STEPS_A_BIT = 8
SCORE_STEPS = 2.4  # levels a bit, so that 1 - 2**-53 is the last


@dataclass(frozen=True)
class Reference:
    """Held-out rows of the certified source, counted in the cells of a profile.

    Attributes
    ----------
    counts : tuple of tuples of int
        For each column of the profile, rows in each of its cells.
    surprise : tuple of int
        Rows at each level of `surprise_levels`.
    """

    counts: tuple[tuple[int, ...], ...]
    surprise: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple(map(tuple, self.counts)))
        object.__setattr__(self, "surprise", tuple(self.surprise))
        every = (*self.counts, self.surprise)
        whole = all(type(count) is int and count >= 0 for counts in every for count in counts)
        if not whole or len(self.surprise) != LEVELS or len({sum(one) for one in every}) != 1:
            raise InvalidDataError(
                "The counts of held-out rows contradict each other. Fit and save the model again."
            )

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return sum(self.surprise)


@dataclass(frozen=True)
class Source:
    """What is known of the source of a model's rows.

    Attributes
    ----------
    profile : InputProfile or None
        Of the training rows; None where rows have no columns to describe.
    reference : Reference or None
        Of the certification rows, in the cells of the profile.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.source import Source
    >>> rows = np.random.default_rng(0).normal(size=(600, 3))
    >>> source = Source.of(rows[:400], rows[400:])
    >>> source.profile.rows, source.reference.rows
    (400, 200)
    >>> Source.from_bytes(source.to_bytes()) == source
    True
    """

    profile: InputProfile | None = None
    reference: Reference | None = None

    def __post_init__(self) -> None:
        if self.reference is None:
            return
        cells = [] if self.profile is None else [len(c.counts) for c in self.profile.columns]
        if cells != [len(counts) for counts in self.reference.counts]:
            raise InvalidDataError(
                "The counts of held-out rows do not fit the input profile. Fit and save the model again."
            )

    @classmethod
    def of(cls, train: Any, held_out: Any, unused: Any = (), **read_as: Any) -> Source:
        """Describe training rows and count held-out ones.

        Parameters
        ----------
        train, held_out : data frame or array
            Of a model that was fitted elsewhere there are no training rows; a random half of the others
            then stands for them.
        unused : collection of str or int
            Columns that the model leaves out.
        **read_as
            Columns that it reads as dates and as free text, as for `describe_rows`.
        """
        if as_table(train) is None or as_table(held_out) is None:
            return cls()
        if len(train) == 0:
            order = np.random.default_rng(0).permutation(len(held_out))
            half = len(order) // 2
            train, held_out = (
                _safe_indexing(held_out, np.sort(part)) for part in (order[:half], order[half:])
            )
        profile = describe_rows(train, unused, **read_as)
        return cls(profile, None if profile is None else count_rows(profile, held_out))

    def to_bytes(self) -> bytes:
        """Return both as JSON."""
        profile = None if self.profile is None else self.profile.to_dict()
        reference = None if self.reference is None else vars(self.reference)
        return json.dumps({"profile": profile, "reference": reference}, allow_nan=False).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Source:
        """Read what `to_bytes` wrote."""
        stored = json.loads(content)
        profile, reference = stored["profile"], stored["reference"]
        return cls(
            None if profile is None else InputProfile.from_dict(profile),
            None if reference is None else Reference(**reference),
        )


def count_rows(profile: InputProfile, X: Any) -> Reference | None:
    """Return how many rows lie in each cell of a profile; None if they cannot be read by it."""
    cells = cell_codes(profile, X)
    if cells is None or len(cells) == 0:
        return None
    counts = [
        np.bincount(cells[:, place], minlength=len(column.counts)).tolist()
        for place, column in enumerate(profile.columns)
    ]
    levels = np.bincount(surprise_levels(profile, cells), minlength=LEVELS)
    return Reference(tuple(map(tuple, counts)), tuple(levels.tolist()))


def cell_codes(profile: InputProfile, X: Any) -> NDArray[np.intp] | None:
    """Return the cell of each value, of shape (n, columns), as the profile counts them."""
    table = profile.table(X)
    if table is None:
        return None
    return np.stack([column.codes(table[column.name]) for column in profile.columns], axis=1)


def surprise_levels(profile: InputProfile, cells: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how rare the values of each row were in training, all columns together.

    The mean over columns of -log2 of the share of training rows in the same cell, in steps of an eighth
    of a bit.
    """
    bits = np.zeros(len(cells))
    for place, column in enumerate(profile.columns):
        counts = np.array(column.counts, np.float64) + 1.0
        bits -= np.log2(counts / counts.sum())[cells[:, place]]
    levels = np.floor(STEPS_A_BIT * bits / len(profile.columns) + 1e-9)
    return np.minimum(levels, LEVELS - 1).astype(np.intp)


def score_levels(score: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return acceptance scores on a scale of 128 levels that is fixed beforehand, finer towards 1."""
    doubt = np.clip(1.0 - np.asarray(score, np.float64), 2.0**-53, 1.0)
    return np.minimum(np.floor(-SCORE_STEPS * np.log2(doubt)), LEVELS - 1).astype(np.intp)
