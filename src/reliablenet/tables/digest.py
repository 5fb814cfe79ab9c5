"""Digest of whole tables: column names, types and values, in their order."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from reliablenet._checks import as_array
from reliablenet.tables.frames import pandas_of


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
    >>> from reliablenet.tables.digest import fingerprint
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
