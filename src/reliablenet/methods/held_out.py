"""Rows held out to judge a rule by, and the certificate that says what it is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate import Certificate, Provenance
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.record import Unit
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.threshold import judge, warn_of_labels
from reliablenet.methods.fold_warnings import warn_of_repeats, warn_of_reuse
from reliablenet.methods.ledger import count_uses
from reliablenet.tables.copies import count_repeats


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
        """Open the fold: certify a threshold, or the lowest that these rows allow.

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
        found = judge(self.rows, alpha, rho, threshold, unit=self.unit, provenance=provenance)
        made: Any = found.provenance
        uses = count_uses(self.hashes, made.model)
        warn_of_reuse(uses)
        return replace(found, provenance=replace(made, uses=uses))
