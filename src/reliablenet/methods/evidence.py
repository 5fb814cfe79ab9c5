"""What is kept of the certification fold: what a method said about each row and the truth, no features."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays, save as save_arrays

from reliablenet._checks import check_finite
from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.certificate.promise import plain_label
from reliablenet.certificate.rule import factorize
from reliablenet.certificate.rule_certify import judge_fixed_rule
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.wording import threshold_text
from reliablenet.errors import InvalidDataError
from reliablenet.tables.tolerance import Values

GROUP, NAMES = "group of ", "names of "  # before the column, in model files


class KeptRows:
    """Vectors with an entry for each row, and the groups of the rows."""

    _types: ClassVar[Mapping[str, type]]
    _stored_as: ClassVar[Mapping[str, str]] = MappingProxyType({})  # in model files
    score: Values
    by: dict[str, NDArray[Any]]

    def __post_init__(self) -> None:
        shape = np.shape(self.score)
        for name, values in self.by.items():
            if np.shape(values) != shape:
                raise InvalidDataError(f"Evidence needs the group {name!r} of each row.")
        for name, dtype in self._types.items():
            values = np.asarray(getattr(self, name), dtype)
            if len(shape) != 1 or values.shape != shape:
                raise InvalidDataError(
                    "Evidence needs five vectors of one length; got "
                    f"{ {entry: np.shape(getattr(self, entry)) for entry in self._types} }."
                )
            check_finite(name, values, type(self).__name__)
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.score)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return (
            all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self._types)
            and self.by.keys() == other.by.keys()
            and all(v.tolist() == other.by[k].tolist() for k, v in self.by.items())
        )

    def to_bytes(self) -> bytes:
        """Return the arrays as safetensors; groups as numbers, with their names as JSON."""
        arrays = {self._stored_as.get(name, name): getattr(self, name) for name in self._types}
        return bytes(save_arrays(arrays | pack_groups(self.by)))

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(content)
        groups = take_groups(arrays)
        stored = {cls._stored_as.get(name, name): dtype for name, dtype in cls._types.items()}
        types = {name: values.dtype for name, values in arrays.items()}
        if types != stored:
            raise InvalidDataError(f"Evidence must hold the arrays {[*stored]}; got {types}.")
        vectors: Any = {name: arrays[cls._stored_as.get(name, name)] for name in cls._types}
        return cls(**(vectors | {"by": groups}))


@dataclass(frozen=True, eq=False)
class Evidence(KeptRows):
    """What a fitted method said about each row of the certification fold, and the truth.

    It holds no features: whoever gets the model does not get the data.

    Attributes
    ----------
    score : array of shape (n,)
        What is compared with the threshold.
    top_probability : array of shape (n,)
        Top class probability; the same as the score unless the method learned one.
    predicted, truth : integer arrays of shape (n,)
        Places in ``classes_``; the truth is -1 where it is a class that the model does not know.
    row : integer array of shape (n,)
        Number of the row in the table given to `fit`, from 0; -1 where the fold was given by itself.
    by : dict of arrays of shape (n,)
        Groups of the rows, where a promise is about them: columns by name, as texts, numbers or
        truth values.

    Examples
    --------
    >>> from reliablenet.methods.evidence import Evidence
    >>> rows = Evidence([0.9, 0.8, 0.7], [0.9, 0.8, 0.7], [0, 1, 1], [0, 0, 1], [4, 7, 9])
    >>> rows.wrong.tolist(), len(rows)
    ([False, True, False], 3)
    """

    _types = MappingProxyType(
        {
            "score": np.float64,
            "top_probability": np.float64,
            "predicted": np.int64,
            "truth": np.int64,
            "row": np.int64,
        }
    )
    _stored_as = MappingProxyType({"top_probability": "confidence"})  # since version 0.1
    score: NDArray[np.float64]
    top_probability: NDArray[np.float64]
    predicted: NDArray[np.int64]
    truth: NDArray[np.int64]
    row: NDArray[np.int64]
    by: dict[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: ScoredRows, row: NDArray[Any]) -> Evidence:
        """Return what scored rows of a certification fold show."""
        top_probability: Any = rows.top_probability
        predicted: Any = rows.predicted
        truth: Any = rows.truth
        return cls(rows.score, top_probability, predicted, truth, row, rows.by or {})

    def followed_by(self, later: Evidence) -> Evidence:
        """Return these rows and later ones."""
        both: Any = (np.concatenate([getattr(self, n), getattr(later, n)]) for n in self._types)
        return Evidence(*both)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which predictions are wrong."""
        return np.asarray(self.predicted != self.truth)

    def scored(self) -> ScoredRows:
        """Return scores and verdicts, as certificates, metrics and curves are computed from them."""
        learned = not np.array_equal(self.score, self.top_probability)
        lowest, unknown = -np.inf if learned else 0.0, self.truth < 0
        strangers = unknown if unknown.any() else None
        return ScoredRows(
            self.score,
            self.wrong,
            lowest,
            self.top_probability,
            self.truth,
            self.predicted,
            strangers,
            by=self.by or None,
        )

    def check(self, certificate: Certificate | RuleCertificate, n_classes: int) -> None:
        """Raise unless these rows give the counts of the certificate."""
        check_counts(self.scored(), certificate)
        for name, least in (("predicted", 0), ("truth", -1)):
            places = getattr(self, name)
            if places.min() < least or places.max() >= n_classes:
                raise InvalidDataError(
                    f"`{name}` of the evidence must hold places among {n_classes} classes; got "
                    f"{places.min()} to {places.max()}."
                )


@dataclass(frozen=True, eq=False)
class NumberEvidence(KeptRows):
    """What a fitted method said about each row of the certification fold, and the truth.

    It holds no features: whoever gets the model does not get the data.

    Attributes
    ----------
    score : array of shape (n,)
        What is compared with the threshold.
    value, truth : array of shape (n,)
        Predicted and true number.
    tolerance : array of shape (n,)
        How far the value may be off in this row, in units of `y`.
    row : integer array of shape (n,)
        Number of the row in the table given to `fit`, from 0; -1 where the fold was given by itself.
    by : dict of arrays of shape (n,)
        Groups of the rows, where a promise is about them.

    Examples
    --------
    >>> from reliablenet.methods.evidence import NumberEvidence
    >>> rows = NumberEvidence([0.9, 0.8], [40.0, 20.0], [43.0, 30.0], [5.0, 5.0], [4, 7])
    >>> rows.wrong.tolist(), len(rows)
    ([False, True], 2)
    """

    _types = MappingProxyType(
        dict.fromkeys(("score", "value", "truth", "tolerance"), np.float64) | {"row": np.int64}
    )
    score: Values
    value: Values
    truth: Values
    tolerance: Values
    row: NDArray[np.int64]
    by: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which values are off by more than the tolerance."""
        return np.asarray(np.abs(self.truth - self.value) > self.tolerance)

    @property
    def predicted(self) -> Values:
        """The values, as the evidence of labels calls them."""
        return self.value

    @property
    def top_probability(self) -> Values:
        """The estimated chance of being right, as the evidence of labels has it: the score."""
        return self.score

    def scored(self) -> ScoredRows:
        """Return scores and verdicts, as certificates, metrics and curves are computed from them."""
        return ScoredRows(
            self.score,
            self.wrong,
            0.0,
            top_probability=self.score,
            truth=self.truth,
            predicted=self.value,
            by=self.by or None,
            tolerance=self.tolerance,
        )


def pack_groups(by: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return groups of rows as arrays that a file can hold."""
    arrays: dict[str, NDArray[Any]] = {}
    for column, values in by.items():
        codes, labels = factorize(np.asarray(values, object))
        text = json.dumps([plain_label(label) for label in labels])
        arrays[f"{GROUP}{column}"] = codes.astype(np.int64)
        arrays[f"{NAMES}{column}"] = np.frombuffer(text.encode(), np.uint8)
    return arrays


def take_groups(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Take what `pack_groups` returned out of the arrays of a file."""
    by = {}
    for entry in [name for name in arrays if name.startswith(GROUP)]:
        column, codes = entry.removeprefix(GROUP), arrays.pop(entry)
        names = np.array(json.loads(bytes(arrays.pop(f"{NAMES}{column}")).decode()), object)
        if codes.min(initial=0) < 0 or codes.max(initial=-1) >= len(names):
            raise InvalidDataError(f"The groups {column!r} of the evidence have no names.")
        by[column] = names[codes]
    return by


def check_counts(rows: ScoredRows, certificate: Certificate | RuleCertificate) -> None:
    """Raise unless scored rows give the counts of a certificate."""
    counts: Any
    stated: Any
    if isinstance(certificate, RuleCertificate):
        rule, promise = certificate.rule, certificate.promise
        found = judge_fixed_rule(rows, rule, promise, certificate.rho)
        counts, stated = _counts(found), _counts(certificate)
    else:
        accepted = rows.score >= certificate.threshold
        counts = (int((accepted & rows.wrong).sum()), int(accepted.sum()), rows.n)
        stated = (certificate.errors, certificate.accepted, certificate.n)
    if counts != stated:
        raise InvalidDataError(
            "The evidence contradicts the certificate: it has (errors, accepted, n) = "
            f"{counts} at the threshold {threshold_text(certificate.threshold)}, the certificate {stated}."
        )


def _counts(certificate: RuleCertificate) -> tuple[Any, ...]:
    parts = {(p.name, p.errors, p.accepted) for p in certificate.parts if p.accepted}
    return certificate.errors, certificate.accepted, certificate.n, sorted(parts)
