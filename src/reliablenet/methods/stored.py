"""What a model file holds of an act-or-defer method, and how the method is made from it again."""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reliablenet.certificate import Certificate, Promise, RuleCertificate
from reliablenet.errors import InvalidDataError
from reliablenet.methods.evidence import Evidence
from reliablenet.methods.layers import layers
from reliablenet.methods.ledger import asked_of, count_uses
from reliablenet.methods.seen import SeenRows
from reliablenet.metrics import Breakdown
from reliablenet.modelfile import save_layers

if TYPE_CHECKING:
    from reliablenet.methods.targets import Target


class StoredMixin:
    """Gives a method its file: what it learned beside its settings, and its proof."""

    promise: Promise | None
    threshold_: float
    selection_threshold_: float
    evidence_: Evidence
    seen_: SeenRows | None
    _fold_breakdown: Breakdown | None

    @property
    @abstractmethod
    def _target(self) -> Target:
        """What depends on the kind of `y`."""

    @abstractmethod
    def _adopt(self, certificate: Certificate | RuleCertificate) -> None:
        """Act by a certified rule."""

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to a file that `reliablenet.load` reads; no pickle in it."""
        return save_layers(layers(self), path)

    def _learned(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        return {
            **self._target.learned(self),
            "n_features": getattr(self, "n_features_in_", None),
            "feature_names": None if names is None else [str(name) for name in names],
            "selection_threshold": str(self.selection_threshold_),  # may be inf, which JSON lacks
            "breakdown": None if self._fold_breakdown is None else self._fold_breakdown.to_dict(),
            "temperature": None,  # of a rule that has none; the format wants an entry
        }

    def _relearn(self, learned: dict[str, Any]) -> None:
        self._target.relearn(self, learned)
        if learned["n_features"] is not None:
            self.n_features_in_ = learned["n_features"]
        if learned["feature_names"] is not None:
            self.feature_names_in_ = np.array(learned["feature_names"], dtype=object)
        if learned.get("breakdown") is not None:  # files of 0.1 have none
            self._fold_breakdown = Breakdown.from_dict(learned["breakdown"])
        self.selection_threshold_ = float(learned["selection_threshold"])
        self.threshold_ = math.inf

    def _beside(self) -> Any:
        """Return what was learned beside a scikit-learn estimator inside: nothing."""

    def _restore_beside(self, learned: Any) -> None:
        raise InvalidDataError(
            f"{type(self).__name__} learns nothing beside what it wraps; got {type(learned).__name__}."
        )

    def _restore_proof(
        self, certificate: Certificate | RuleCertificate, evidence: bytes, seen: bytes | None
    ) -> None:
        promised = certificate.promise if isinstance(certificate, RuleCertificate) else None
        if promised != self.promise:
            raise InvalidDataError(
                f"The certificate is about another promise ({promised}) than the model's "
                f"({self.promise})."
            )
        self._adopt(certificate)
        self.evidence_ = self._target.read_evidence(self, evidence, certificate)
        self.seen_ = None if seen is None else SeenRows.from_bytes(seen)
        if self.seen_ is not None and certificate.provenance is not None:
            # the file's certificate counts among those of this process
            made = certificate.provenance
            count_uses(self.seen_.certified, made.model, asked_of(certificate))
