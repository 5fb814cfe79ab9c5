"""Rows to certify on, looked at batch by batch: for those that a model has seen, and for copies."""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.methods.held_out import warn_of_repeats
from reliablenet.methods.seen import Hashes, SeenRows, refuse_seen, refuse_whole
from reliablenet.tables.copies import chance_share_among, count_repeats

MOST_WATCHED = 1_000_000  # rows whose copies are counted one by one


class RowWatch:
    """Looks at rows to certify on as they pass by, for those seen before and for copies.

    Of many rows it keeps those with the smallest hashes, so that copies stay together and memory has
    an end.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.row_watch import RowWatch
    >>> from reliablenet.tables.copies import hash_rows
    >>> watch = RowWatch(None)
    >>> watch.add(hash_rows(np.arange(100.0)[:, None]), np.zeros(100, int))
    >>> watch.add(hash_rows(np.arange(2.0)[:, None]), np.zeros(2, int))
    >>> watch.warn_of_copies()  # two of 102 may be chance
    0
    """

    def __init__(self, seen: SeenRows | None) -> None:
        self._seen = seen
        self._n = self._matches = self._first = 0
        self._limit = np.uint64(2**64 - 1)
        self._hashes, self._labels = np.empty(0, np.uint64), np.empty(0, np.intp)
        self._mark: Fingerprint | None = Fingerprint()

    def add(self, hashes: Hashes | None, labels: NDArray[np.intp]) -> None:
        """Take in the hashes of rows, None if they cannot be compared, and their labels."""
        if hashes is None:
            self._n, self._mark = self._n + len(labels), None
            return
        if self._mark is not None:
            self._mark.add(hashes, labels)
        if self._seen is not None:
            known = self._seen.recognise(hashes)
            if known.any() and self._matches == 0:
                self._first = self._n + int(known.argmax())
            self._matches += int(known.sum())
        self._n += len(hashes)
        kept = hashes <= self._limit
        self._hashes = np.concatenate([self._hashes, hashes[kept]])
        self._labels = np.concatenate([self._labels, labels[kept]])
        self._keep_smallest()

    def _keep_smallest(self) -> None:
        while len(self._hashes) > MOST_WATCHED:
            self._limit >>= np.uint64(1)
            kept = self._hashes <= self._limit
            self._hashes, self._labels = self._hashes[kept], self._labels[kept]

    def without_seen(self) -> RowWatch:
        """Return what was counted, without the rows that it was compared with: enough to be merged."""
        counted = copy(self)
        counted._seen = None
        return counted

    def merge(self, later: RowWatch) -> None:
        """Take in what was counted of later rows."""
        if self._matches == 0:
            self._first = self._n + later._first
        self._n, self._matches = self._n + later._n, self._matches + later._matches
        if self._mark is not None and later._mark is not None:
            self._mark.merge(later._mark)
        else:
            self._mark = None
        self._limit = min(self._limit, later._limit)
        hashes = np.concatenate([self._hashes, later._hashes])
        kept = hashes <= self._limit
        self._hashes = hashes[kept]
        self._labels = np.concatenate([self._labels, later._labels])[kept]
        self._keep_smallest()

    @property
    def compared(self) -> bool:
        """Whether all rows could be compared with those that the model has seen."""
        return self._mark is not None and self._seen is not None

    @property
    def hashes(self) -> Hashes | None:
        """Hashes of the rows, the smallest where there are many; None if some cannot be compared."""
        return None if self._mark is None else self._hashes

    def refuse_seen(self) -> None:
        """Raise if too many rows were seen by the model."""
        if self._seen is not None and self._matches:
            kept = len(self._hashes) / self._n
            among = chance_share_among(self._hashes, round(kept * len(self._seen)))
            refuse_seen(self._matches, self._n, self._seen, among, self._first)
            seen = self._seen
            parts = [*seen.parts, seen.certified, seen.beside]
            parts = [part[part <= self._limit] for part in parts]  # as the rows that were kept
            refuse_whole(self._hashes, parts, self._matches, self._n, "certify")

    def warn_of_copies(self) -> int:
        """Warn of rows that repeat each other, and return how many do, by those that were kept.

        A few that agree by chance are no copies, and do not count.
        """
        found = count_repeats(self._hashes, self._labels)
        warn_of_repeats(found)
        return round(found.share * self._n) if found.suspicious else 0

    def fingerprint(self) -> str:
        """Return the fingerprint of all rows and labels, "" if they cannot be compared."""
        return "" if self._mark is None else self._mark.text()
