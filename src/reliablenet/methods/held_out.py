"""The certification fold: judged once, by a certificate that says what it is about."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import parameter_error
from reliablenet._warn import warn_user
from reliablenet.certificate import Certificate, Promise, Provenance, Rule, RuleCertificate
from reliablenet.certificate.fingerprint import Fingerprint
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.judgement import judge, warn_of_labels
from reliablenet.certificate.record import Unit
from reliablenet.certificate.rule_certify import judge_fixed_rule, judge_rule
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.wording import emptiness, threshold_text
from reliablenet.errors import (
    EmptyCertificateWarning,
    FoldWarning,
    NotCertifiedWarning,
    ReuseWarning,
)
from reliablenet.methods.ledger import asked_of, count_uses
from reliablenet.tables.copies import Copies, count_repeats

Found = TypeVar("Found", Certificate, RuleCertificate)


@dataclass(frozen=True)
class HeldOut:
    """What a model says about rows that had no part in making it.

    Attributes
    ----------
    rows : ScoredRows
        Scores and verdicts; the truth is known.
    hashes : array of uint64 or None
        Of the same rows; None where they cannot be compared.
    unit : {"row", "group"}
    table : str
        Fingerprint of the table that the rows were cut from, if they were.
    compared : bool
        Whether the rows could be compared with those that made the model.
    """

    rows: ScoredRows
    hashes: NDArray[np.uint64] | None
    unit: Unit = "row"
    table: str = ""
    compared: bool = True

    def one_of_each(self, groups: Any, seed: int) -> HeldOut:
        """Return one row of each group, drawn at random."""
        drawn = draw_places(groups, self.rows.n, seed)
        hashes = None if self.hashes is None else self.hashes[drawn]
        return replace(self, rows=self.rows.take(drawn), hashes=hashes, unit="group")

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
        provenance = Provenance(rows=known, table=self.table, copies=copies, compared=self.compared)
        warn_of_labels(self.rows)
        found: Any = judging(self.rows, unit=self.unit, provenance=provenance)
        made = found.provenance
        uses = count_uses(self.hashes, made.model, asked_of(found))
        warn_of_reuse(uses)
        counted: Found = replace(found, provenance=replace(made, uses=uses))
        return counted


def groups_to_count(model: Any, groups: Any, owner: str) -> Any:
    """Return whose row each is, None where each row is a unit of its own.

    A model whose certificate counts groups is not certified by rows unless that is said: the bound of
    rows that belong together is too small.
    """
    if isinstance(groups, str) and groups == "rows":
        return None
    if groups is None and model.grouped_:
        raise parameter_error(
            "groups",
            owner,
            "say whose row each is, as the certificate of this model counts groups, one row of each (or be "
            '"rows" if each row is a unit of its own)',
            groups,
        )
    return groups


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
            "probability rho. If you keep only the one that passed, the risk is larger. Certify once, on "
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
