"""Copies: rows that another fold, or the same one, holds already, label included."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import bdtrc

from reliablenet.certificate.fingerprint import hash_columns, hash_entries, number_bits
from reliablenet.tables.folds import Fold

CHUNK = 65_536  # values hashed at a time: they stay in the cache, and images need no memory again
NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean")  # what pandas calls them
EXACT = 2.0**24  # below it, float32 holds every whole number
COPIED_SHARE = 0.05  # of fewer copies, a budget of 0.05 cannot become more than 0.0526
STRANGERS_SHARE = 0.05  # rows that agree by coincidence disagree in their label more often
COINCIDENCE = 1e-3  # a chance at which fresh rows that happen to agree are no explanation
DISTINCT_SHARE = 0.05  # where fewer rows are different at all, new rows repeat them as well


@dataclass(frozen=True)
class Copies:
    """How many of n rows have a twin elsewhere, and how many of these twins have the same label.

    A copy brings its label along. Two records that agree in every feature by coincidence each have a
    label of their own: without ``fnlwgt``, 23 % of Adult's rows have a twin, and 28 % of the twins
    disagree; in UNSW-NB15 it is 44 % of rows and 0.02 % of twins.

    Attributes
    ----------
    n, distinct, twins, copies : int
        Rows; different ones among them; those whose features occur elsewhere; of these, those with
        the label found there.

    Examples
    --------
    >>> from reliablenet.tables.copies import Copies
    >>> Copies(n=100, distinct=90, twins=40, copies=40).suspicious
    True
    >>> Copies(n=100, distinct=90, twins=40, copies=30).suspicious
    False
    """

    n: int
    distinct: int
    twins: int
    copies: int

    @property
    def share(self) -> float:
        """Share of rows that are copies."""
        return self.copies / max(self.n, 1)

    @property
    def suspicious(self) -> bool:
        """Whether there are enough copies to matter, and more than coincidence would bring."""
        strangers = self.twins - self.copies
        return (
            self.share >= COPIED_SHARE
            and strangers <= STRANGERS_SHARE * self.twins
            and self.distinct >= DISTINCT_SHARE * self.n
        )


def count_copies(fold: Fold, others: Sequence[Fold]) -> Copies:
    """Count the rows of a fold that occur in other folds.

    Where several rows are the same, the first is the twin. Lists of anything but numbers or text are
    not looked into.

    Parameters
    ----------
    fold : Fold
    others : sequence of Fold

    Returns
    -------
    Copies

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables import Fold
    >>> from reliablenet.tables.copies import count_copies
    >>> past = Fold(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1]))
    >>> count_copies(Fold(np.array([[3.0, 4.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1, 0, 1])), [past])
    Copies(n=3, distinct=2, twins=2, copies=1)
    """
    seen = [part for part in others if len(part)]
    own, *hashes = (hash_rows(part.X) for part in (fold, *seen))
    known = [part for part in hashes if part is not None]
    if own is None:
        return Copies(len(fold), len(fold), 0, 0)
    distinct = len(np.unique(own))
    if not known or len(known) < len(hashes):
        return Copies(len(fold), distinct, 0, 0)
    labels = np.concatenate([part.y for part in seen])
    values, first = np.unique(np.concatenate(known), return_index=True)
    place = np.searchsorted(values, own).clip(max=len(values) - 1)
    twin = values[place] == own
    same = twin & (labels[first[place]] == fold.y)
    return Copies(len(fold), distinct, int(twin.sum()), int(same.sum()))


def count_repeats(hashes: NDArray[np.uint64] | None, y: NDArray[Any]) -> Copies:
    """Count the rows of a fold that repeat an earlier row of the same fold.

    Parameters
    ----------
    hashes : array of uint64 or None
        Of the rows, as `hash_rows` returns them; None where rows cannot be compared.
    y : array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.copies import count_repeats, hash_rows
    >>> rows = hash_rows(np.array([[1.0], [2.0], [1.0], [1.0]]))
    >>> count_repeats(rows, np.array([0, 1, 0, 1]))
    Copies(n=4, distinct=2, twins=2, copies=1)
    """
    if hashes is None:
        return Copies(len(y), len(y), 0, 0)
    values, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    twin = first[place] != np.arange(len(hashes))
    same = twin & (y[first[place]] == y)
    return Copies(len(y), len(values), int(twin.sum()), int(same.sum()))


def chance_share(twins: int, known: int) -> float:
    """Return the share of fresh rows that may agree with known ones by chance, rather too high than too low.

    Fresh rows of a coarse table agree with known ones at the rate at which these agree with each other.
    It was counted on few rows, and is taken with two rows to spare, a fifth more, and three standard
    errors of so many pairs.

    Parameters
    ----------
    twins, known : int
        How many of so many known rows agree with another one.

    Examples
    --------
    >>> from reliablenet.tables.copies import chance_share
    >>> chance_share(0, 240), chance_share(500, 500)
    (0.01, 1.0)
    """
    return min((1.2 * (twins + 2) + 3.0 * math.sqrt(2 * twins)) / max(known, 1), 1.0)


def chance_share_among(rows: NDArray[np.uint64], known: int) -> float:
    """Return the same from fresh rows themselves, where they are far more than the known ones.

    Of every so many fresh rows one takes the place of a known row.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.copies import chance_share_among, hash_rows
    >>> rows = hash_rows((np.arange(20_000.0) % 9_973)[:, None])
    >>> chance_share_among(rows, 1000) > 0.05, chance_share_among(rows, 15_000)
    (True, 0.0)
    """
    step = len(rows) // max(known, 1)
    if step < 2:
        return 0.0
    place = np.arange(len(rows)) % step == 0
    twins = int(np.isin(rows[~place], rows[place]).sum())
    return chance_share(twins, len(rows) - int(place.sum()))


def more_than_chance(matches: int, n: int, share: float) -> bool:
    """Tell whether more of n rows agree with known ones than the share that may by chance.

    Examples
    --------
    >>> from reliablenet.tables.copies import chance_share, more_than_chance
    >>> share = chance_share(0, 500)
    >>> more_than_chance(5, 200, share), more_than_chance(6, 200, share)
    (False, True)
    """
    return bool(bdtrc(matches - 1, n, share) < COINCIDENCE)


def hash_rows(X: Any, texts: Collection[Any] = ()) -> NDArray[np.uint64] | None:
    """Return 64 bits for each row, equal where rows are, on any machine and in any process.

    Numbers count by their value, whatever their type, to the digits that float32 has, and all else by
    its text. So a table that was read from a file anew, or put into half the memory, has the same
    hashes. From 2**24 on, where float32 would take numbers of records or moments for one, they count
    to all their digits. A row of a sparse matrix has the hash of the same row with its zeros.

    Parameters
    ----------
    X : array, sparse matrix, data frame or sequence of rows
    texts : collection of column names
        Columns of a data frame that count by their text even if they hold numbers.

    Returns
    -------
    array of uint64, or None for what cannot be compared, such as lists of objects

    Examples
    --------
    >>> import pandas as pd
    >>> from reliablenet.tables.copies import hash_rows
    >>> frame = pd.DataFrame({"age": [31, 52], "job": ["a", None]})
    >>> bool((hash_rows(frame) == hash_rows(frame.astype({"age": "float32"}))).all())
    True
    """
    if sparse.issparse(X):
        return _hash_sparse(X)
    try:
        table = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    except ValueError:  # rows of unequal length
        return None
    if table.ndim == 0 or 0 in table.shape[1:]:  # without features, whoever fits will refuse it
        return None
    if isinstance(table, np.ndarray) and table.dtype.kind in "biuf":
        flat = table.reshape(len(table), -1)
        size = max(CHUNK // flat.shape[1], 1)
        parts = [
            hash_columns(_value_bits(flat[start : start + size]))
            for start in range(0, len(flat), size)
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)
    if isinstance(table, np.ndarray):
        table = pd.DataFrame(table.reshape(len(table), -1))
    try:
        columns = [_bits(table.iloc[:, i], name in texts) for i, name in enumerate(table.columns)]
    except TypeError:  # lists and the like
        return None
    return hash_columns(np.column_stack(columns))


def _hash_sparse(matrix: Any) -> NDArray[np.uint64] | None:
    """Return 64 bits for each row of a sparse matrix, whatever its format."""
    if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.dtype.kind not in "biuf":
        return None
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()  # the user's own stays as it is
        rows.sum_duplicates()
    return hash_entries(_value_bits(rows.data), rows.indices, rows.indptr, rows.shape[1])


def _value_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return 64 bits for each number."""
    if values.dtype == np.float64:
        with np.errstate(over="ignore"):  # what float32 cannot hold is left as it is
            rounded = values.astype(np.float32).astype(np.float64)
        values = np.where(np.abs(values) < EXACT, rounded, values)
    return number_bits(values)


def _bits(column: pd.Series[Any], as_text: bool) -> NDArray[np.uint64]:
    """Return 64 bits for each value of a column."""
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in NUMBERS:
        column = pd.to_numeric(column)  # as its values are, whatever the column could hold
    numeric = pd.api.types.is_numeric_dtype(column.dtype)  # booleans among them
    if numeric and not as_text and not pd.api.types.is_complex_dtype(column.dtype):
        return _value_bits(column.to_numpy(np.float64, na_value=np.nan))
    codes, values = pd.factorize(column.astype(object))
    hashed = [hashlib.blake2b(str(value).encode(), digest_size=8).digest() for value in values]
    bits = np.frombuffer(b"".join([*hashed, b"missing."]), np.uint64)  # the code -1 is the last
    return bits[codes]
