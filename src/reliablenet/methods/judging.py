"""How `compare` judges methods: by one budget or by a promise, at any part of rho, on resampled rows too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate import Certificate, Promise, RuleCertificate
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.record import Provenance, Unit
from reliablenet.certificate.rule_certify import judge_rule
from reliablenet.certificate.scored import ScoredRows
from reliablenet.metrics.paired import (
    RESAMPLES,
    Contest,
    hold_contest,
    resample_certified_throughput,
)

Found = TypeVar("Found", Certificate, RuleCertificate)
MOST_RESAMPLES = 200  # of a promise: its rule is searched anew in each


@dataclass(frozen=True, eq=False)
class Judged:
    """What one method says about the certification fold, and about the selection fold where a rule needs it."""

    rows: ScoredRows
    selection: ScoredRows | None = None


@dataclass(frozen=True)
class Judging:
    """What methods are judged by.

    Attributes
    ----------
    alpha : float
    promise : Promise or None
        None for the budget ``alpha`` over all rows.
    classes : tuple or None
        Labels, whose places rows hold.
    tolerance : str
        Of numbers: how far one may be off and still be right, in words.
    """

    alpha: float
    promise: Promise | None = None
    classes: tuple[Any, ...] | None = None
    tolerance: str = ""

    def certificate(
        self,
        method: Judged,
        rho: float,
        unit: Unit = "row",
        provenance: Provenance | None = None,
    ) -> Certificate | RuleCertificate:
        """Return what the rows of a method prove at a part of rho."""
        if self.promise is None:
            found = judge(method.rows, self.alpha, rho, unit=unit, provenance=provenance)
            return with_tolerance(found, self.tolerance)
        rule = judge_rule(
            method.rows,
            self.promise,
            rho,
            method.selection,
            classes=None if self.classes is None else list(self.classes),
            unit=unit,
            provenance=provenance,
        )
        return with_tolerance(rule, self.tolerance)

    def resample(
        self, methods: Sequence[Judged], rho: float, resamples: int, random: np.random.RandomState
    ) -> NDArray[np.float64]:
        """Return the certified throughput of each method in each resample of the same rows."""
        if self.promise is None:
            rows = [method.rows for method in methods]
            return resample_certified_throughput(rows, self.alpha, rho, resamples, random)
        count, n = min(resamples, MOST_RESAMPLES), methods[0].rows.n
        draws = np.zeros((len(methods), count))
        for place in range(count):
            drawn = random.randint(n, size=n)
            for number, method in enumerate(methods):
                found = self.certificate(Judged(method.rows.take(drawn), method.selection), rho)
                draws[number, place] = worth(found)
        return draws

    def contest(self, winner: str, methods: Mapping[str, Judged], rho: float) -> Contest:
        """Measure methods against one of them, all certified at one level."""
        if self.promise is None:
            rows = {name: method.rows for name, method in methods.items()}
            return hold_contest(winner, rows, self.alpha, rho)
        own = {name: worth(self.certificate(method, rho)) for name, method in methods.items()}
        draws = self.resample(list(methods.values()), rho, RESAMPLES, np.random.RandomState(0))
        return Contest(winner, own, dict(zip(methods, draws, strict=True)))


def with_tolerance(certificate: Found, tolerance: str) -> Found:
    """Return a certificate, or one with parts, that has the tolerance of numbers in words."""
    known: Any = certificate
    told: Found
    if isinstance(certificate, Certificate):
        told = replace(known, tolerance=tolerance)
    else:
        told = replace(known, parts=tuple(with_tolerance(p, tolerance) for p in known.parts))
    return told


def worth(certificate: Certificate | RuleCertificate) -> float:
    """Return the share of rows that a certificate lets a method act on rightly; 0 if it is refused."""
    return certificate.throughput if certificate.certified else 0.0
