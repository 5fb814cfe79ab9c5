"""Rows that a model has seen: they prove nothing about it, and are recognised when they come back.

Of each row 64 bits are kept, and of the whole table given to `fit` its SHA-256.
"""

from __future__ import annotations

import hashlib
import math
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays, save as save_arrays
from scipy import sparse

from reliablenet._checks import as_array
from reliablenet._warn import warn_user
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.errors import InvalidDataError, ReuseWarning
from reliablenet.methods.held_out import warn_of_repeats
from reliablenet.methods.layers import find_encoder
from reliablenet.tables.copies import (
    chance_share,
    chance_share_among,
    count_repeats,
    hash_rows,
    more_than_chance,
)
from reliablenet.tables.folds import Folds
from reliablenet.tables.frames import pandas_of

MOST_WATCHED = 1_000_000  # rows whose copies are counted one by one

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Hashes of the rows given to `fit`, without their labels.

    Attributes
    ----------
    trained : array of uint64
        Rows that trained or tuned the model, ascending.
    certified : array of uint64
        Rows of the certification fold, ascending.
    twins : int
        How many of all these rows agree with another one: in tables of few or coarse columns fresh
        rows do so too.
    beside : array of uint64
        Rows of certification groups beside the one that was drawn, ascending: they hang together with it.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.seen import SeenRows
    >>> from reliablenet.tables.copies import hash_rows
    >>> past = hash_rows(np.arange(100.0)[:, None])
    >>> seen = SeenRows.of(past[:80], past[80:])
    >>> seen.check(hash_rows(np.arange(200.0, 300.0)[:, None]))
    >>> int(seen.recognise(hash_rows(np.arange(90.0, 190.0)[:, None])).sum())
    10
    """

    trained: Hashes
    certified: Hashes
    twins: int
    beside: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))

    @classmethod
    def of(cls, trained: Hashes, certified: Hashes, beside: Hashes | None = None) -> SeenRows:
        """Put the hashes of the rows of a fit together."""
        more = np.empty(0, np.uint64) if beside is None else beside
        every = np.concatenate([trained, certified, more])
        _, place, counts = np.unique(every, return_inverse=True, return_counts=True)
        twins = int((counts[place] > 1).sum())
        return cls(np.sort(trained), np.sort(certified), twins, np.sort(more))

    def around(self, inner: SeenRows) -> SeenRows:
        """Return these rows, of a rule, with those that trained the fitted model inside it.

        Rows that agree by chance may do so with either, so that the rates of twins add up.

        Examples
        --------
        >>> import numpy as np
        >>> from reliablenet.methods.seen import SeenRows
        >>> from reliablenet.tables.copies import hash_rows
        >>> past = hash_rows(np.arange(100.0)[:, None])
        >>> rule, model = SeenRows.of(past[:0], past[:20]), SeenRows.of(past[20:90], past[90:])
        >>> int(rule.around(model).recognise(past).sum())
        90
        """
        trained = np.sort(np.concatenate([self.trained, inner.trained]))
        rate = self.twins / max(len(self), 1) + inner.twins / max(len(inner), 1)
        n = len(trained) + len(self.certified) + len(self.beside)
        return SeenRows(trained, self.certified, min(math.ceil(rate * n), n), self.beside)

    def __len__(self) -> int:
        return len(self.trained) + len(self.certified) + len(self.beside)

    def recognise(self, hashes: Hashes, *, trained_only: bool = False) -> NDArray[np.bool_]:
        """Tell which rows are among those seen."""
        known = _among(hashes, self.trained)
        if trained_only:
            return known
        return known | _among(hashes, self.certified) | _among(hashes, self.beside)

    def check(self, hashes: Hashes, *, trained_only: bool = False) -> None:
        """Raise if rows to certify on are rows that the model has seen."""
        known = self.recognise(hashes, trained_only=trained_only)
        if known.any():
            share = chance_share_among(hashes, len(self))
            refuse_seen(int(known.sum()), len(known), self, share, int(known.argmax()))

    def to_bytes(self) -> bytes:
        """Return the hashes as safetensors."""
        arrays = {"trained": self.trained, "certified": self.certified}
        if len(self.beside):
            arrays["beside"] = self.beside
        return bytes(save_arrays(arrays | {"twins": np.array([self.twins], np.int64)}))

    @classmethod
    def from_bytes(cls, content: bytes) -> SeenRows:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(content)
        types = {name: (values.dtype, values.ndim) for name, values in arrays.items()}
        bits = (np.dtype(np.uint64), 1)
        wanted = {"trained": bits, "certified": bits, "twins": (np.dtype(np.int64), 1)}
        if types not in (wanted, wanted | {"beside": bits}):
            raise InvalidDataError(
                f"Rows seen must be two or three lists of hashes and a count; got {types}."
            )
        lists = {name: np.sort(values) for name, values in arrays.items() if name != "twins"}
        seen = cls(**lists, twins=int(arrays["twins"][0]))
        if not 0 <= seen.twins <= len(seen):
            raise InvalidDataError(f"{seen.twins} of {len(seen)} rows seen cannot have twins.")
        return seen


def refuse_seen(matches: int, n: int, seen: SeenRows, among: float, first: int) -> None:
    """Raise if more of n rows were seen before than chance brings; ``first`` is one of them.

    By chance they agree at the rate of the rows seen, or ``among`` each other if that is known to be
    larger. A few that agree by chance in a table without twins are no reason to refuse; a `ReuseWarning`
    tells of them.
    """
    text = (
        f"{matches:,} of {n:,} rows were given to `fit` already, row {first} among them: rows that "
        "trained, tuned or chose a model prove nothing about it."
    )
    if more_than_chance(matches, n, max(chance_share(seen.twins, len(seen)), among)):
        raise InvalidDataError(
            f"{text} Certify on rows that it has not seen; leave these out if the others are fresh."
        )
    if seen.twins == 0 and among == 0.0:
        warn_user(f"{text} Leave them out, unless they agree by chance.", ReuseWarning)


class RowWatch:
    """Looks at rows to certify on as they pass by, for those seen before and for copies.

    Of many rows it keeps those with the smallest hashes, so that copies stay together and memory has
    an end.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.methods.seen import RowWatch
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
    def hashes(self) -> Hashes | None:
        """Hashes of the rows, the smallest where there are many; None if some cannot be compared."""
        return None if self._mark is None else self._hashes

    def refuse_seen(self) -> None:
        """Raise if too many rows were seen by the model."""
        if self._seen is not None and self._matches:
            kept = len(self._hashes) / self._n
            among = chance_share_among(self._hashes, round(kept * len(self._seen)))
            refuse_seen(self._matches, self._n, self._seen, among, self._first)

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


def check_fresh(inner: Any, folds: Folds) -> None:
    """Raise if rows to choose or to certify on have trained the model fitted before, if there is one."""
    seen: SeenRows | None = getattr(inner, "seen_", None)
    if seen is None:
        return
    for fold in (folds.selection, folds.certification):
        hashes = model_hashes(inner, fold.X) if len(fold) else None
        if hashes is not None:
            seen.check(hashes, trained_only=True)


def see_folds(model: Any, folds: Folds, beside: Any, inner: Any) -> SeenRows | None:
    """Return the rows of a fit and of the model that was fitted before it, if any.

    None if some of the rows of this fit cannot be compared. ``beside`` are rows of certification groups
    beside those drawn, None if there are none.
    """
    parts = [fold.X for fold in (folds.train, folds.selection) if len(fold)]
    held = [folds.certification.X, *([] if beside is None else [beside])]
    hashes = [model_hashes(model, X) for X in (*parts, *held)]
    known = [part for part in hashes if part is not None]
    if len(known) < len(hashes):
        return None
    trained = known[: len(parts)] or [np.empty(0, np.uint64)]
    own = SeenRows.of(np.concatenate(trained), *known[len(parts) :])
    before: SeenRows | None = getattr(inner, "seen_", None)
    return own if before is None else own.around(before)


def model_hashes(model: Any, X: Any) -> Hashes | None:
    """Return the hashes of rows as a fitted model reads them: without columns that it leaves out."""
    encoder = find_encoder(model)
    if encoder is None or not isinstance(X, pd.DataFrame):
        return hash_rows(X)
    idle = [name for name in encoder.dropped_ if name in X.columns]
    X = encoder.date_columns_.with_days(X.drop(columns=idle))
    return hash_rows(X, texts={*encoder.categories_, *encoder.texts_})


def _among(hashes: Hashes, known: Hashes) -> NDArray[np.bool_]:
    if len(known) == 0:
        return np.zeros(len(hashes), bool)
    place = np.searchsorted(known, hashes).clip(max=len(known) - 1)
    return np.asarray(known[place] == hashes)


def fingerprint(*tables: Any) -> str:
    """Return the SHA-256 of tables: column names, types and values, in their order.

    Parameters
    ----------
    *tables
        Data frames, arrays, tensors, sparse matrices, or sequences of anything.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.methods.seen import fingerprint
    >>> table = pd.DataFrame({"age": [31, 52], "job": ["a", None]})
    >>> fingerprint(table) == fingerprint(table.copy()), len(fingerprint(table, [1, 0]))
    (True, 64)
    >>> fingerprint(table) == fingerprint(table.rename(columns={"age": "years"}))
    False
    """
    digest = hashlib.sha256()
    for table in tables:
        parts = _table_parts(table)
        digest.update(f"{len(parts)} parts\n".encode())
        for name, values in parts:
            array = _values(values)
            kind = getattr(values, "dtype", array.dtype)
            digest.update(f"{name} {kind} {array.shape}\n".encode())
            if array.dtype.hasobject:  # its bytes are addresses in memory
                digest.update("\n".join(map(repr, array.reshape(-1).tolist())).encode())
            else:
                digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _table_parts(table: Any) -> list[tuple[str, Any]]:
    """Return what a table consists of, each part with its name."""
    table = pandas_of(table)
    if sparse.issparse(table):
        matrix = sparse.csr_array(table, copy=True)
        matrix.sum_duplicates()
        places = [("places", matrix.indices), ("starts", matrix.indptr)]  # 32 bits or 64
        parts = [(name, values.astype(np.int64)) for name, values in places]
        return [("shape", np.array(matrix.shape)), *parts, ("values", matrix.data)]
    if isinstance(table, pd.DataFrame):
        return [(repr(name), column) for name, column in table.items()]
    return [("values", table)]


def _values(values: Any) -> NDArray[Any]:
    try:
        return as_array(values)
    except ValueError:  # rows of unequal length
        array = np.empty(len(values), object)
        array[:] = list(values)
        return array
