"""A certificate renewed: a fitted model gets a new rule from fresh rows, and keeps the old one in its chain."""

from __future__ import annotations

import base64
import copy
import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_fraction
from reliablenet._files import write_atomically
from reliablenet.certificate import Certificate, Provenance, RuleCertificate
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.judgement import warn_of_labels
from reliablenet.certificate.record import Unit
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.sealing import digest, lasting, read_values, seal, unseal
from reliablenet.certificate.sequential import certify_anytime, threshold_grid
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.methods.evidence import Evidence
from reliablenet.methods.held_out import HeldOut, groups_to_count, warn_of_repeats
from reliablenet.methods.seen import SeenRows
from reliablenet.modelfile.chain import add_link
from reliablenet.tables.copies import (
    chance_share,
    chance_share_among,
    count_repeats,
    more_than_chance,
)
from reliablenet.tables.target import label_texts

FORMAT = "reliablenet-renewal/1"
REASON = "renewed on fresh rows"

Hashes = NDArray[np.uint64]


def renew(
    model: Any,
    rows: ScoredRows,
    hashes: Hashes | None,
    reason: str = REASON,
    groups: Any = None,
) -> tuple[Any, Certificate | RuleCertificate]:
    """Certify a new rule on fresh rows, once: a fixed plan.

    Parameters
    ----------
    model : SelectiveEstimator
        Fitted; it stays as it is.
    rows : ScoredRows
        What it says of fresh rows whose truth is known, from the source that it is to meet now.
    hashes : array of uint64 or None
        Of the same rows, where they can be compared.
    reason : str
        Why, for the chain of certificates.
    groups : array-like of shape (n,) or "rows", optional
        Whose row each is; one row of each group counts, drawn at random. A model whose certificate counts
        groups needs them; "rows" says that each row is a unit of its own.

    Returns
    -------
    model
        A copy that acts by the new rule; the same model if the certificate is refused.
    Certificate or RuleCertificate
    """
    refuse_own_rule(model)
    held = HeldOut(rows, hashes, compared=hashes is not None and model.seen_ is not None)
    beside = None
    groups = groups_to_count(model, groups, "renew")
    if groups is not None:
        drawn = draw_places(groups, rows.n)
        beside = None if hashes is None else np.delete(hashes, drawn)
        held = held.one_of_each(groups, 0)
    found: Certificate | RuleCertificate
    if model.promise is None:
        found = held.judge(model.alpha, model.rho, None)
    else:
        found = held.judge_promise(model.promise, model.rho, None, getattr(model, "classes_", None))
    found = model._target.describe(found)
    return adopt(model, found, held.rows, held.hashes, reason, beside), found


def adopt(
    model: Any,
    certificate: Certificate | RuleCertificate,
    rows: ScoredRows,
    hashes: Hashes | None,
    reason: str,
    beside: Hashes | None = None,
) -> Any:
    """Return a copy of the model that acts by a new certificate; the model itself if it is refused.

    ``rows`` are those counted, and ``beside`` the hashes of the other rows of their groups.
    """
    if not certificate.certified:
        return model
    renewed = copy.copy(model)
    before, after = model.certificate_.to_json(), certificate.to_json()
    renewed.chain_ = add_link(getattr(model, "chain_", ()), before, after, reason)
    renewed._adopt(certificate)
    renewed.evidence_ = model._target.evidence(rows, np.full(rows.n, -1))
    renewed._fold_breakdown = None  # by columns: that of the old rows
    if model.seen_ is not None and hashes is not None:
        seen = model.seen_
        past = (*seen.parts, seen.certified, seen.beside)
        renewed.seen_ = SeenRows.of(past, *(part for part in (hashes, beside) if part is not None))
    return renewed


def refuse_own_rule(model: Any) -> None:
    """Raise if a certificate cannot set the model's rule."""
    if model._acts_uncertified:
        raise InvalidParameterError(
            f"{type(model).__name__} has a rule of its own that a certificate does not change; fit it again on fresh "
            "rows, or put CertifiedThreshold around its classifier."
        )


@dataclass(frozen=True, eq=False)
class RenewalState:
    """All fresh rows that count since a sequential renewal began, and the grid of thresholds fixed before them.

    Attributes
    ----------
    model : str
        SHA-256 of the certificate in force when it began: the state is of one model.
    alpha, rho : float
    thresholds : array, falling
    evidence : Evidence or None
        What the model said of each fresh row; None before the first.
    hashes : array of uint64
        Of these rows, so that none counts twice; empty where they cannot be compared.
    looks : tuple of int
        Rows, or groups, so far at each look.
    unit : {"row", "group"}
        What counts, fixed when it begins. Of each group one row is drawn in the look that it first comes in,
        and that row stays: to draw again among later ones would be another look at the same group.
    groups : array of uint64
        Hashes of the names of the groups that count.
    beside : array of uint64
        Hashes of the other rows of groups.
    """

    model: str
    alpha: float
    rho: float
    thresholds: NDArray[np.float64]
    evidence: Evidence | None = None
    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    looks: tuple[int, ...] = ()
    unit: Unit = "row"
    groups: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    beside: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))

    @classmethod
    def begin(cls, model: Any, unit: Unit = "row") -> RenewalState:
        """Fix the grid on the old certification fold, and what counts, before any fresh row is seen."""
        refuse_own_rule(model)
        if model.promise is not None or not hasattr(model, "classes_"):
            raise InvalidParameterError(
                "A sequential renewal works for classifiers whose promise is about all rows, and this model is not one. "
                "Renew it by a fixed plan, without a state."
            )
        grid = threshold_grid(model.evidence_.score)
        return cls(identity(model), float(model.alpha), float(model.rho), grid, unit=unit)

    def add(self, rows: ScoredRows, hashes: Hashes | None, groups: Any = None) -> RenewalState:
        """Return the state with more fresh rows; refuse rows that it has already.

        ``groups`` says whose row each is, if groups count; one that came in an earlier look adds nothing.
        """
        if (groups is not None) != (self.unit == "group"):
            raise InvalidDataError(
                f"This renewal counts {self.unit}s since it began. "
                + ("Say whose row each is." if groups is None else "Leave the groups out.")
                + " To count otherwise, begin a new one in another file."
            )
        new = np.empty(0, np.uint64) if hashes is None else hashes
        known = np.concatenate([self.hashes, self.beside])
        again = np.isin(new, known)
        kept = SeenRows.of([], known)
        by_chance = (
            max(chance_share(kept.twins, len(kept)), chance_share_among(new, len(kept)))
            if again.any()
            else 1.0
        )
        if more_than_chance(int(again.sum()), max(len(new), 1), by_chance):
            raise InvalidDataError(
                f"{int(again.sum()):,} of {len(new):,} rows are in the state of this renewal already. Give only the "
                "rows that came since the last look."
            )
        beside, named = new[:0], self.groups[:0]
        if groups is not None:
            drawn = draw_places(groups, rows.n, seed=len(self.looks))
            named = _name_hashes(np.asarray(groups, object)[drawn])
            first = ~np.isin(named, self.groups)
            if not first.any():
                raise InvalidDataError(
                    "None of these rows is of a new group: each group counts once, by the row that was drawn when "
                    "it first came. Look again with rows of other groups."
                )
            drawn, named = drawn[first], named[first]
            rows = rows.take(drawn)
            if hashes is not None:
                new, beside = new[drawn], np.delete(new, drawn)
        evidence = Evidence.of(rows, np.full(rows.n, -1))
        if self.evidence is not None:
            evidence = self.evidence.followed_by(evidence)
        return replace(
            self,
            evidence=evidence,
            hashes=np.concatenate([self.hashes, new]),
            looks=(*self.looks, len(evidence)),
            groups=np.concatenate([self.groups, named]),
            beside=np.concatenate([self.beside, beside]),
        )

    def certify(self) -> Certificate:
        """Return the certificate of the lowest threshold that all rows so far allow.

        Warns of rows that repeat each other, and of labels that look mistaken.
        """
        if self.evidence is None:
            raise InvalidDataError("A renewal needs at least one fresh row.")
        rows = self.evidence.scored()
        truth: Any = rows.truth
        known, hashes = "", self._comparable
        if hashes is not None:
            mark = Fingerprint()
            mark.add(hashes, truth)
            known = mark.text()
        repeats = count_repeats(hashes if self.unit == "row" else None, truth)
        warn_of_repeats(repeats)
        warn_of_labels(rows)
        return certify_anytime(
            rows,
            self.thresholds.tolist(),
            self.alpha,
            self.rho,
            unit=self.unit,
            commonest=max((rows.label_counts() or {}).values(), default=0),
            provenance=Provenance(rows=known, copies=repeats.copies if repeats.suspicious else 0),
        )

    def renew(self, model: Any, reason: str = REASON) -> tuple[Any, Certificate | RuleCertificate]:
        """Return the model that acts by what all rows so far allow, and its certificate; see `renew`."""
        found = self.certify()
        kept: Any = self.evidence
        return adopt(model, found, kept.scored(), self._comparable, reason, self.beside), found

    @property
    def _comparable(self) -> Hashes | None:
        """The hashes of the rows that count; None where some cannot be compared."""
        return self.hashes if len(self.hashes) == len(self.evidence or ()) else None

    def save(self, path: Path) -> None:
        """Write the state; the file appears only when it is whole."""
        evidence = b"" if self.evidence is None else self.evidence.to_bytes()
        values = {
            "format": FORMAT,
            "model": self.model,
            "alpha": self.alpha,
            "rho": self.rho,
            "thresholds": self.thresholds.tolist(),
            "looks": list(self.looks),
            "evidence": base64.b64encode(evidence).decode(),
            "hashes": _packed(self.hashes),
            "unit": self.unit,
            "groups": _packed(self.groups),
            "beside": _packed(self.beside),
        }
        write_atomically(path, seal(values).encode())

    @classmethod
    def load(cls, path: Path, model: Any) -> RenewalState:
        """Read the state of a renewal of this model; refuse one that was altered or of another model."""
        try:
            values = read_values(path.read_bytes(), (FORMAT,), "renewal")
            unseal(values, ("model", "alpha", "rho", "thresholds", "evidence", "hashes"), "renewal")
        except InvalidDataError as error:
            raise InvalidDataError(f"{path} is not the state of a renewal: {error}") from error
        if values["model"] != identity(model):
            raise InvalidDataError(
                f"{path} is the state of a renewal of another model or certificate. Begin a new one in another file."
            )
        packed = base64.b64decode(values["evidence"])
        return cls(
            values["model"],
            check_fraction("alpha", values["alpha"], "renewal"),
            check_fraction("rho", values["rho"], "renewal"),
            np.array(values["thresholds"], np.float64),
            Evidence.from_bytes(packed) if packed else None,
            _unpacked(values["hashes"]),
            tuple(values["looks"]),
            values.get("unit", "row"),  # older files count rows
            _unpacked(values.get("groups", "")),
            _unpacked(values.get("beside", "")),
        )


def _packed(hashes: Hashes) -> str:
    return base64.b64encode(hashes.astype("<u8").tobytes()).decode()


def _unpacked(text: str) -> Hashes:
    return np.frombuffer(base64.b64decode(text), "<u8").astype(np.uint64)


def _name_hashes(names: Any) -> Hashes:
    """Return 64 bits of the name of each group, so that the state does not name them."""
    marks = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in label_texts(names)]
    return np.frombuffer(b"".join(marks), "<u8").astype(np.uint64)


def identity(model: Any) -> str:
    """Return a hash of what a model is and decides by now; how a version says it does not matter."""
    values = lasting(model.certificate_.to_dict())
    return digest(values | {"fingerprint": model.fingerprint_})
