"""Fingerprints of rows: the same rows give the same one, in any order and in any batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 16_384  # values mixed at a time
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Map 64 bits to 64 bits, no two of them to the same (the finaliser of splitmix64)."""
    mixed = values + GOLDEN
    mixed ^= mixed >> np.uint64(30)
    mixed *= FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed


def number_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the bits of numbers as float64; -0.0 is 0.0, and all NaN are one."""
    plain = np.ascontiguousarray(values, np.float64) + 0.0
    plain[np.isnan(plain)] = np.nan
    bits: NDArray[np.uint64] = plain.view(np.uint64)
    return bits


def hash_columns(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits for each row of a table of bits; the order of columns matters."""
    place = _places(bits.shape[1])
    rows, size = np.empty(len(bits), np.uint64), max(CHUNK // bits.shape[1], 1)
    for start in range(0, len(bits), size):  # temporaries stay in the cache
        part = slice(start, start + size)
        rows[part] = mix(mix(bits[part] ^ place).sum(axis=1, dtype=np.uint64))
    return rows


def hash_entries(
    bits: NDArray[np.uint64],
    columns: NDArray[np.integer[Any]],
    starts: NDArray[np.integer[Any]],
    width: int,
) -> NDArray[np.uint64]:
    """Return the same 64 bits for each row of a table that is all zeros but for some entries.

    Parameters
    ----------
    bits : array of uint64
        Of the entries, row after row.
    columns : array of int
        Where each stands in its row.
    starts : array of int of shape (rows + 1,)
        Where the entries of each row begin, and where the last end.
    width : int
        Columns of the table.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.fingerprint import hash_columns, hash_entries
    >>> whole = np.array([[0, 7, 0], [0, 0, 0], [5, 0, 9]], np.uint64)
    >>> found = hash_entries(np.array([7, 5, 9], np.uint64), np.array([1, 0, 2]), np.array([0, 1, 1, 3]), 3)
    >>> bool((found == hash_columns(whole)).all())
    True
    """
    place = _places(width)
    zeros = mix(place)  # what a column without an entry adds to its row
    sums = np.zeros(len(bits) + 1, np.uint64)  # modulo 2**64, so that differences of sums are exact
    for start in range(0, len(bits), CHUNK):
        part = slice(start, start + CHUNK)
        where = columns[part]
        sums[1:][part] = mix(bits[part] ^ place[where]) - zeros[where]
    np.cumsum(sums, out=sums)
    return mix(zeros.sum(dtype=np.uint64) + sums[starts[1:]] - sums[starts[:-1]])


def _places(width: int) -> NDArray[np.uint64]:
    return mix(np.arange(1, width + 1, dtype=np.uint64) * GOLDEN)


class Fingerprint:
    """The sum over rows of 128 bits each, so that neither order nor batches matter.

    It tells rows apart that differ by accident; it is no proof against someone who forges them.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.fingerprint import Fingerprint
    >>> whole, parts = Fingerprint(), Fingerprint()
    >>> whole.add(np.array([0.9, 0.8, 0.7]), np.array([False, True, False]))
    >>> parts.add(np.array([0.7]), np.array([False]))
    >>> parts.add(np.array([0.8, 0.9]), np.array([True, False]))
    >>> whole.text() == parts.text(), len(whole.text())
    (True, 32)
    """

    def __init__(self) -> None:
        self._sums = [0, 0]

    def add(self, values: NDArray[Any], marks: NDArray[Any]) -> None:
        """Take in rows, each a number or 64 bits, and a mark beside it, a boolean or whole number."""
        for start in range(0, len(values), CHUNK):  # temporaries stay in the cache
            part = values[start : start + CHUNK]
            bits = part if part.dtype == np.uint64 else number_bits(part)
            mark = marks[start : start + CHUNK].astype(np.int64).view(np.uint64) * GOLDEN
            rows = mix(mix(bits) ^ mark)
            self._sums[0] += int(rows.sum(dtype=np.uint64))
            self._sums[1] += int((rows * (rows >> np.uint64(32))).sum(dtype=np.uint64))

    def merge(self, other: Fingerprint) -> None:
        """Take in the rows of another fingerprint."""
        self._sums = [own + more for own, more in zip(self._sums, other._sums, strict=True)]

    def text(self) -> str:
        """Return 32 hexadecimal digits."""
        return "".join(f"{total % 2**64:016x}" for total in self._sums)
