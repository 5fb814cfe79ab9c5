"""`Evidence`: what the certification fold showed, row by row; and a fingerprint of what `fit` was given."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays, save as save_arrays
from scipy import sparse

from reliablenet._checks import as_array, check_finite
from reliablenet.certificate import Certificate
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError

DTYPES = {
    "score": np.float64,
    "confidence": np.float64,
    "predicted": np.int64,
    "truth": np.int64,
    "row": np.int64,
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a fitted method said of each row of the certification fold, and what was true.

    It holds no features: whoever gets the model does not get the data.

    Attributes
    ----------
    score : array of shape (n,)
        What is compared with the threshold.
    confidence : array of shape (n,)
        Top class probability; the same as the score unless the method learned one.
    predicted, truth : integer arrays of shape (n,)
        Places in ``classes_``; the truth is -1 where it is a class that the model does not know.
    row : integer array of shape (n,)
        Number of the row in the table given to `fit`, from 0; -1 where the fold was given by itself.

    Examples
    --------
    >>> rows = Evidence([0.9, 0.8, 0.7], [0.9, 0.8, 0.7], [0, 1, 1], [0, 0, 1], [4, 7, 9])
    >>> rows.wrong.tolist(), len(rows)
    ([False, True, False], 3)
    """

    score: NDArray[np.float64]
    confidence: NDArray[np.float64]
    predicted: NDArray[np.int64]
    truth: NDArray[np.int64]
    row: NDArray[np.int64]

    def __post_init__(self) -> None:
        shape = np.shape(self.score)
        for name, dtype in DTYPES.items():
            values = np.asarray(getattr(self, name), dtype)
            if len(shape) != 1 or values.shape != shape:
                raise InvalidDataError(
                    "Evidence needs five vectors of one length; got "
                    f"{ {entry: np.shape(getattr(self, entry)) for entry in DTYPES} }."
                )
            check_finite(name, values, "Evidence")
            object.__setattr__(self, name, values)

    @classmethod
    def of(cls, rows: ScoredRows, row: NDArray[Any]) -> Evidence:
        """Return what scored rows of a certification fold show."""
        confidence: Any = rows.confidence
        predicted: Any = rows.predicted
        truth: Any = rows.truth
        return cls(rows.score, confidence, predicted, truth, row)

    def __len__(self) -> int:
        return len(self.score)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evidence):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in DTYPES)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which predictions are wrong."""
        return np.asarray(self.predicted != self.truth)

    def scored(self) -> ScoredRows:
        """Return scores and verdicts, as certificates, metrics and curves are computed from them."""
        learned = not np.array_equal(self.score, self.confidence)
        lowest, unknown = -np.inf if learned else 0.0, self.truth < 0
        strangers = unknown if unknown.any() else None
        return ScoredRows(
            self.score, self.wrong, lowest, self.confidence, self.truth, self.predicted, strangers
        )

    def check(self, certificate: Certificate, n_classes: int) -> None:
        """Raise unless these rows give the counts of the certificate."""
        accepted = self.score >= certificate.threshold
        counts = (int((accepted & self.wrong).sum()), int(accepted.sum()), len(self))
        stated = (certificate.errors, certificate.accepted, certificate.n)
        if counts != stated:
            raise InvalidDataError(
                "The evidence contradicts the certificate: it has (errors, accepted, n) = "
                f"{counts} at the threshold {certificate.threshold:g}, the certificate {stated}."
            )
        for name, least in (("predicted", 0), ("truth", -1)):
            places = getattr(self, name)
            if places.min() < least or places.max() >= n_classes:
                raise InvalidDataError(
                    f"`{name}` of the evidence must hold places among {n_classes} classes; got "
                    f"{places.min()} to {places.max()}."
                )

    def to_bytes(self) -> bytes:
        """Return the arrays as safetensors."""
        return bytes(save_arrays({entry.name: getattr(self, entry.name) for entry in fields(self)}))

    @classmethod
    def from_bytes(cls, content: bytes) -> Evidence:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(content)
        types = {name: values.dtype for name, values in arrays.items()}
        if types != DTYPES:
            raise InvalidDataError(f"Evidence must hold the arrays {[*DTYPES]}; got {types}.")
        return cls(**arrays)


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
    >>> table = pd.DataFrame({"age": [31, 52], "job": ["a", None]})
    >>> fingerprint(table) == fingerprint(table.copy()), len(fingerprint(table, [1, 0]))
    (True, 64)
    >>> fingerprint(table) == fingerprint(table.rename(columns={"age": "years"}))
    False
    """
    digest = hashlib.sha256()
    for table in tables:
        parts = _parts(table)
        digest.update(f"{len(parts)} parts\n".encode())
        for name, values in parts:
            array = _array(values)
            kind = getattr(values, "dtype", array.dtype)
            digest.update(f"{name} {kind} {array.shape}\n".encode())
            if array.dtype.hasobject:  # its bytes are addresses in memory
                digest.update("\n".join(map(repr, array.reshape(-1).tolist())).encode())
            else:
                digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _parts(table: Any) -> list[tuple[str, Any]]:
    """Return what a table consists of, each part with its name."""
    if sparse.issparse(table):
        matrix = sparse.csr_array(table, copy=True)
        matrix.sum_duplicates()
        places = [("places", matrix.indices), ("starts", matrix.indptr)]  # 32 bits or 64
        parts = [(name, values.astype(np.int64)) for name, values in places]
        return [("shape", np.array(matrix.shape)), *parts, ("values", matrix.data)]
    if isinstance(table, pd.DataFrame):
        return [(repr(name), column) for name, column in table.items()]
    if hasattr(table, "columns"):
        return [(repr(name), table[name]) for name in table.columns]
    return [("values", table)]


def _array(values: Any) -> NDArray[Any]:
    try:
        return as_array(values)
    except ValueError:  # rows of unequal length
        array = np.empty(len(values), object)
        array[:] = list(values)
        return array
