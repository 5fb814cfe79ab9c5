"""Words and pieces of words in texts, counted in hashed cells, with no loop over characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

LONGEST = 20_000  # characters of a text that are read
WORD_CELLS, PIECE_CELLS = 2**13, 2**12
CELLS = WORD_CELLS + PIECE_CELLS
PIECES = (3, 4)  # characters of a piece of a word
BLOCK = 2**20  # characters taken together, so that memory stays bounded

Hashes = NDArray[np.uint64]

# Arithmetic modulo 2**64: the hash of a run of characters is a polynomial in an odd base.
BASE, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_INVERSE = np.uint64(pow(int(BASE), -1, 2**64))
# Shift by the first, multiply by the second: the last steps of splitmix64.
MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def count_ngrams(texts: Sequence[str]) -> sparse.csr_array:
    """Return how often each text has the words, pairs of words and pieces of words of each cell.

    Letters and digits make words; case and the width of characters do not matter. Pieces are three or
    four characters long and may include the beginning or the end of a word. Of a text the first 20,000
    characters are read. What a text gives does not depend on the texts beside it.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    sparse array of shape (n, 32768)
        Whole numbers; words and pairs of words in the first half of the columns, pieces in the second.

    Examples
    --------
    >>> from reliablenet.tables.ngrams import count_ngrams
    >>> counts = count_ngrams(["My card", "my CARD!", ""])
    >>> (counts[[0]] != counts[[1]]).nnz, counts.sum(axis=1).tolist()
    (0, [13, 13, 0])
    """
    parts: list[sparse.csr_array] = []
    held: list[str] = []
    size = 0
    for text in texts:
        plain = unicodedata.normalize("NFKC", text[:LONGEST]).lower()
        held.append(plain)
        size += len(plain) + 1
        if size >= BLOCK:
            parts.append(_count(held))
            held, size = [], 0
    if held or not parts:
        parts.append(_count(held))
    return parts[0] if len(parts) == 1 else sparse.csr_array(sparse.vstack(parts, format="csr"))


def _count(texts: list[str]) -> sparse.csr_array:
    lengths = np.array([len(text) + 1 for text in texts], dtype=np.int64)
    joined = " " + "".join(text + " " for text in texts)
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    owner = np.concatenate([[0], np.repeat(np.arange(len(texts)), lengths)])
    letters = _is_letter(codes)
    values = np.where(letters, codes + np.uint32(1), np.uint32(0)).astype(np.uint64)
    rows, cells = zip(
        *_words(values, letters, owner),
        *(_pieces(values, letters, owner, n) for n in PIECES),
        strict=True,
    )
    places = np.concatenate(rows), np.concatenate(cells)
    ones = np.ones(len(places[0]), np.int32)
    counts = sparse.csr_array((ones, places), shape=(len(texts), CELLS))
    counts.sum_duplicates()
    return counts


def _is_letter(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Tell which characters are letters or digits, looking up each different one once."""
    known = np.zeros(int(codes.max()) + 1, bool)
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        known[code] = chr(code).isalnum()
    return known[codes]


def _words(
    values: Hashes, letters: NDArray[np.bool_], owner: NDArray[np.intp]
) -> list[tuple[NDArray[np.intp], NDArray[np.int64]]]:
    """Return text and cell of each word, and of each pair of neighbours."""
    edges = np.diff(letters.astype(np.int8))
    first, last = np.flatnonzero(edges == 1) + 1, np.flatnonzero(edges == -1) + 1
    powers = np.multiply.accumulate(np.full(len(values), BASE))
    inverse = np.multiply.accumulate(np.full(len(values), _INVERSE))
    sums = np.concatenate([np.zeros(1, np.uint64), np.add.accumulate(values * powers)])
    words = (sums[last] - sums[first]) * inverse[first]
    whose = owner[first]
    same = whose[1:] == whose[:-1]
    pairs = (_mixed(words[:-1]) * BASE + words[1:] * SECOND)[same]
    return [(whose, _cells(words, WORD_CELLS)), (whose[1:][same], _cells(pairs, WORD_CELLS))]


def _pieces(
    values: Hashes, letters: NDArray[np.bool_], owner: NDArray[np.intp], n: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return text and cell of each run of n characters inside a word, or with one of its ends."""
    count = max(len(values) - n + 1, 0)
    inside = np.ones(count, bool)
    hashes = np.zeros(count, np.uint64)
    for place in range(n):
        if 0 < place < n - 1:
            inside &= letters[place : place + count]
        hashes = hashes * BASE + values[place : place + count]
    found = np.flatnonzero(inside)
    cells = _cells(hashes[found] + np.uint64(n), PIECE_CELLS) + WORD_CELLS
    return owner[found + 1], cells


def _mixed(hashes: Hashes) -> Hashes:
    """Spread what differs over all bits."""
    for shift, factor in MIXERS:
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
    return hashes


def _cells(hashes: Hashes, count: int) -> NDArray[np.int64]:
    return (_mixed(hashes) % np.uint64(count)).astype(np.int64)
