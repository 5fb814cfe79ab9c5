"""A certificate renewed: a fitted model gets a new rule from fresh rows, and keeps the old one in its chain."""

from __future__ import annotations

import base64
import copy
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_fraction
from reliablenet._files import write_atomically
from reliablenet.certificate import Certificate, Provenance, RuleCertificate
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.sealing import digest, read_values, seal, unseal
from reliablenet.certificate.sequential import certify_anytime, threshold_grid
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.methods.evidence import Evidence
from reliablenet.methods.held_out import HeldOut
from reliablenet.methods.seen import SeenRows
from reliablenet.modelfile.chain import add_link
from reliablenet.tables.copies import chance_share, chance_share_among, more_than_chance

FORMAT = "reliablenet-renewal/1"
REASON = "renewed on fresh rows"

Hashes = NDArray[np.uint64]


def renew(
    model: Any, rows: ScoredRows, hashes: Hashes | None, reason: str = REASON
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

    Returns
    -------
    model
        A copy that acts by the new rule; the same model if the certificate is refused.
    Certificate or RuleCertificate
    """
    refuse_own_rule(model)
    held = HeldOut(rows, hashes, compared=hashes is not None and model.seen_ is not None)
    found: Certificate | RuleCertificate
    if model.promise is None:
        found = held.judge(model.alpha, model.rho, None)
    else:
        found = held.judge_promise(model.promise, model.rho, None, getattr(model, "classes_", None))
    found = model._target.describe(found)
    return adopt(model, found, rows, hashes, reason), found


def adopt(
    model: Any,
    certificate: Certificate | RuleCertificate,
    rows: ScoredRows,
    hashes: Hashes | None,
    reason: str,
) -> Any:
    """Return a copy of the model that acts by a new certificate; the model itself if it is refused."""
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
        renewed.seen_ = SeenRows.of(past, hashes)
    return renewed


def refuse_own_rule(model: Any) -> None:
    """Raise if the model's rule is none that a certificate sets."""
    if model._acts_uncertified:
        raise InvalidParameterError(
            f"{type(model).__name__} has a rule of its own that a certificate does not change; fit it again on fresh "
            "rows, or put CertifiedThreshold around its classifier."
        )


@dataclass(frozen=True, eq=False)
class RenewalState:
    """All fresh rows since a sequential renewal began, and the grid of thresholds fixed before them.

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
        Rows so far at each look.
    """

    model: str
    alpha: float
    rho: float
    thresholds: NDArray[np.float64]
    evidence: Evidence | None = None
    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    looks: tuple[int, ...] = ()

    @classmethod
    def begin(cls, model: Any) -> RenewalState:
        """Fix the grid on the old certification fold, before any fresh row is seen."""
        refuse_own_rule(model)
        if model.promise is not None or not hasattr(model, "classes_"):
            raise InvalidParameterError(
                "A sequential renewal works for classifiers whose promise is about all rows, and this model is not one. "
                "Renew it by a fixed plan, without a state."
            )
        grid = threshold_grid(model.evidence_.score)
        return cls(identity(model), float(model.alpha), float(model.rho), grid)

    def add(self, rows: ScoredRows, hashes: Hashes | None) -> RenewalState:
        """Return the state with more fresh rows; refuse rows that it has already."""
        new = np.empty(0, np.uint64) if hashes is None else hashes
        again = np.isin(new, self.hashes)
        kept = SeenRows.of([], self.hashes)
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
        evidence = Evidence.of(rows, np.full(rows.n, -1))
        if self.evidence is not None:
            evidence = self.evidence.followed_by(evidence)
        return replace(
            self,
            evidence=evidence,
            hashes=np.concatenate([self.hashes, new]),
            looks=(*self.looks, len(evidence)),
        )

    def certify(self) -> Certificate:
        """Return the certificate of the lowest threshold that all rows so far allow."""
        if self.evidence is None:
            raise InvalidDataError("A renewal needs at least one fresh row.")
        rows = self.evidence.scored()
        truth: Any = rows.truth
        known = ""
        if len(self.hashes) == rows.n:
            mark = Fingerprint()
            mark.add(self.hashes, truth)
            known = mark.text()
        _, counts = np.unique(truth, return_counts=True)
        found = certify_anytime(
            rows, self.thresholds.tolist(), self.alpha, self.rho, commonest=int(counts.max())
        )
        return replace(found, provenance=Provenance(rows=known))

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
            "hashes": base64.b64encode(self.hashes.astype("<u8").tobytes()).decode(),
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
            np.frombuffer(base64.b64decode(values["hashes"]), "<u8").astype(np.uint64),
            tuple(values["looks"]),
        )


def identity(model: Any) -> str:
    """Return a hash of what a model is and decides by now."""
    values: dict[str, Any] = json.loads(model.certificate_.to_json())
    return digest(values | {"fingerprint": model.fingerprint_})
