"""The certification fold: judged once, by a certificate that says what it is about, and kept as evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays, save as save_arrays

from reliablenet._checks import check_finite
from reliablenet._warn import warn_user
from reliablenet.certificate import Certificate, Promise, Provenance, Rule, RuleCertificate
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.judgement import judge, warn_of_labels
from reliablenet.certificate.promise import plain_label
from reliablenet.certificate.record import Unit
from reliablenet.certificate.rule import factorize
from reliablenet.certificate.rule_certify import judge_fixed_rule, judge_rule
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.wording import emptiness, threshold_text
from reliablenet.errors import (
    EmptyCertificateWarning,
    FoldWarning,
    InvalidDataError,
    NotCertifiedWarning,
    ReuseWarning,
)
from reliablenet.methods.ledger import asked_of, count_uses
from reliablenet.tables.copies import Copies, count_repeats

Found = TypeVar("Found", Certificate, RuleCertificate)
GROUP, NAMES = "group of ", "names of "  # before the column, in model files
STORED_AS = {"top_probability": "confidence"}  # in model files, since version 0.1
DTYPES = {
    "score": np.float64,
    "top_probability": np.float64,
    "predicted": np.int64,
    "truth": np.int64,
    "row": np.int64,
}


@dataclass(frozen=True)
class HeldOut:
    """What a model says of rows that had no part in making it.

    Attributes
    ----------
    rows : ScoredRows
        Scores and verdicts; the truth is known.
    hashes : array of uint64 or None
        Of the same rows; None where they cannot be compared.
    unit : {"row", "group"}
    table : str
        Fingerprint of the table that the rows were cut from, if they were.
    """

    rows: ScoredRows
    hashes: NDArray[np.uint64] | None
    unit: Unit = "row"
    table: str = ""

    def one_of_each(self, groups: Any, seed: int) -> HeldOut:
        """Return one row of each group, drawn at random."""
        drawn = draw_places(groups, self.rows.n, seed)
        hashes = None if self.hashes is None else self.hashes[drawn]
        return HeldOut(self.rows.take(drawn), hashes, "group", self.table)

    def judge(self, alpha: float, rho: float, threshold: float | None) -> Certificate:
        """Open the fold: certify a threshold, or the lowest that these rows allow."""
        return self._open(lambda rows, **known: judge(rows, alpha, rho, threshold, **known))

    def judge_promise(
        self, promise: Promise, rho: float, selection: ScoredRows | None, classes: Any
    ) -> RuleCertificate:
        """Open the fold: certify the rule that keeps a promise on most of these rows."""
        return self._open(
            lambda rows, **known: judge_rule(
                rows, promise, rho, selection, classes=classes, **known
            )
        )

    def judge_rule(self, rule: Rule, promise: Promise, rho: float) -> RuleCertificate:
        """Open the fold: certify a rule that was fixed before."""
        return self._open(lambda rows, **known: judge_fixed_rule(rows, rule, promise, rho, **known))

    def _open(self, judging: Callable[..., Found]) -> Found:
        """Return a certificate of these rows.

        Warns of rows that repeat each other, of labels that look mistaken, and of rows that have served
        other certificates.
        """
        truth: Any = self.rows.truth
        repeats = count_repeats(self.hashes if self.unit == "row" else None, truth)
        warn_of_repeats(repeats)
        known = ""
        if self.hashes is not None:
            mark = Fingerprint()
            mark.add(self.hashes, truth)
            known = mark.text()
        copies = repeats.copies if repeats.suspicious else 0
        provenance = Provenance(rows=known, table=self.table, copies=copies)
        warn_of_labels(self.rows)
        found: Any = judging(self.rows, unit=self.unit, provenance=provenance)
        made = found.provenance
        uses = count_uses(self.hashes, made.model, asked_of(found))
        warn_of_reuse(uses)
        counted: Found = replace(found, provenance=replace(made, uses=uses))
        return counted


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a fitted method said of each row of the certification fold, and what was true.

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
        Groups of the rows, where a promise speaks of them: columns by name, as texts, numbers or
        truth values.

    Examples
    --------
    >>> from reliablenet.methods.held_out import Evidence
    >>> rows = Evidence([0.9, 0.8, 0.7], [0.9, 0.8, 0.7], [0, 1, 1], [0, 0, 1], [4, 7, 9])
    >>> rows.wrong.tolist(), len(rows)
    ([False, True, False], 3)
    """

    score: NDArray[np.float64]
    top_probability: NDArray[np.float64]
    predicted: NDArray[np.int64]
    truth: NDArray[np.int64]
    row: NDArray[np.int64]
    by: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = np.shape(self.score)
        for name, values in self.by.items():
            if np.shape(values) != shape:
                raise InvalidDataError(f"Evidence needs the group {name!r} of each row.")
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
        top_probability: Any = rows.top_probability
        predicted: Any = rows.predicted
        truth: Any = rows.truth
        return cls(rows.score, top_probability, predicted, truth, row, rows.by or {})

    def followed_by(self, later: Evidence) -> Evidence:
        """Return these rows and later ones."""
        both: Any = (np.concatenate([getattr(self, n), getattr(later, n)]) for n in DTYPES)
        return Evidence(*both)

    def __len__(self) -> int:
        return len(self.score)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evidence):
            return NotImplemented
        same = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in DTYPES)
        return (
            same
            and self.by.keys() == other.by.keys()
            and all(v.tolist() == other.by[k].tolist() for k, v in self.by.items())
        )

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

    def to_bytes(self) -> bytes:
        """Return the arrays as safetensors; groups as numbers, with their names as JSON."""
        arrays = {STORED_AS.get(name, name): getattr(self, name) for name in DTYPES}
        return bytes(save_arrays(arrays | pack_groups(self.by)))

    @classmethod
    def from_bytes(cls, content: bytes) -> Evidence:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(content)
        stored = {STORED_AS.get(name, name): dtype for name, dtype in DTYPES.items()}
        by = take_groups(arrays)
        types = {name: values.dtype for name, values in arrays.items()}
        if types != stored:
            raise InvalidDataError(f"Evidence must hold the arrays {[*stored]}; got {types}.")
        return cls(**{name: arrays[STORED_AS.get(name, name)] for name in DTYPES}, by=by)


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
            f"{counts} at the threshold {certificate.threshold:g}, the certificate {stated}."
        )


def _counts(certificate: RuleCertificate) -> tuple[Any, ...]:
    parts = {(p.name, p.errors, p.accepted) for p in certificate.parts if p.accepted}
    return certificate.errors, certificate.accepted, certificate.n, sorted(parts)


def warn_of_repeats(found: Copies) -> None:
    """Warn of certification rows that repeat each other."""
    if found.suspicious:
        warn_user(
            f"{found.copies} of {found.n} certification rows ({found.share:.0%}) repeat another one, "
            "label included. Copies are not independent, and the bound counts each: it is too small. "
            f"There are {found.distinct} different rows. Drop duplicates, or give the copies of a row "
            "the same name in `groups`, so that each counts once.",
            FoldWarning,
        )


def warn_of_reuse(uses: int) -> None:
    """Warn if certification rows have served other certificates before."""
    if uses > 1:
        warn_user(
            f"These certification rows have now been used for {uses} certificates. Each may fail with "
            "probability rho; whoever keeps the one that passed has a larger risk. Certify once, on "
            "rows that nothing else has looked at, or let `compare` choose: it allows for the choice.",
            ReuseWarning,
        )


def warn_of_verdict(
    name: str, certificate: Certificate | RuleCertificate, threshold: float
) -> None:
    """Warn if there is no certificate, or one that is worth nothing."""
    if certificate.empty:
        warn_user(
            f"The certificate of {name} is worth nothing: {emptiness(certificate)}.",
            EmptyCertificateWarning,
        )
    if not certificate.certified:
        acts = threshold < math.inf
        action = (
            f"acts from {threshold_text(threshold)} on without it" if acts else "defers every row"
        )
        warn_user(
            f"{name} got no certificate and {action}: {certificate.reason}.", NotCertifiedWarning
        )
