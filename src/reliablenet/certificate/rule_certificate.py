"""`RuleCertificate`: what the certification fold proves of a rule and its promise, part by part."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from reliablenet._checks import (
    check_count,
    check_fraction,
    check_positive,
    is_real,
    parameter_error,
)
from reliablenet.certificate import promise_wording as wording
from reliablenet.certificate.cost import CostCertificate
from reliablenet.certificate.counts import Counts
from reliablenet.certificate.promise import Promise
from reliablenet.certificate.record import Certificate, Population, Provenance, Unit
from reliablenet.certificate.rule import Rule
from reliablenet.certificate.rule_checks import (
    POPULATIONS,
    Others,
    check_whole,
    deferred_name,
    others,
    part_name,
    unproved,
)
from reliablenet.certificate.sealing import check_derived, read_values, seal, unseal
from reliablenet.errors import InvalidDataError, InvalidParameterError

FORMAT = "reliablenet-rule-certificate/1"


@dataclass(frozen=True, repr=False)
class RuleCertificate(Counts):
    """What n independent rows prove about a rule and its promise.

    The parts hold the counts; whether the promise is proved follows from them, so that anyone can
    check it by hand.

    Attributes
    ----------
    promise : Promise
    rule : Rule
        Where nothing could be certified it accepts no row.
    parts : tuple of Certificate
        One for each population that the promise speaks of; ``name`` says which, ``rho`` its share of
        the allowed failure probability.
    rho : float
        Allowed probability, over the draw of the fold, that the promise fails.
    n, accepted, errors : int
        All certification rows, those accepted, and those accepted and wrong.
    unit : {"row", "group"}
        What was counted, as for `Certificate`.
    deferred : dict
        Groups whose rows are all deferred, and why.
    commonest : int or None
        Rows with the commonest true label.
    unknown : int
        Rows of a class that the model does not know. They count as wrong.
    provenance : Provenance or None

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet import Promise, certified_rule
    >>> rng = np.random.default_rng(0)
    >>> p, group = rng.uniform(0.5, 1.0, 4000), rng.choice(["A", "B"], 4000)
    >>> y = (rng.random(4000) > p).astype(int)
    >>> c = certified_rule(np.column_stack([p, 1 - p]), y, Promise.by_group(0.05), by=group)
    >>> c.certified, [part.name for part in c.parts]
    (True, ['group=A', 'group=B'])
    >>> c.under({"A": 0.9, "B": 0.1})
    0.05
    """

    promise: Promise
    rule: Rule
    parts: tuple[Certificate, ...]
    rho: float
    n: int
    accepted: int
    errors: int
    unit: Unit = "row"
    deferred: dict[str, str] = field(default_factory=dict)
    commonest: int | None = None
    unknown: int = 0
    provenance: Provenance | None = field(default=None, compare=False)

    # of which rows its counts speak, as a part would say
    population: ClassVar[Population] = "all"
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        owner = "RuleCertificate"
        for name, kind in (("promise", Promise), ("rule", Rule)):
            if not isinstance(getattr(self, name), kind):
                raise parameter_error(name, owner, f"be a {kind.__name__}", getattr(self, name))
        check_fraction("rho", self.rho, owner)
        for name, least in (("n", 1), ("accepted", 0), ("errors", 0), ("unknown", 0)):
            check_count(name, getattr(self, name), owner, minimum=least)
        self.check_counts()
        if self.rule.threshold == math.inf and self.accepted:
            raise InvalidDataError(
                f"A rule without a threshold accepts no row; got accepted={self.accepted}."
            )
        for part in self.parts:
            if not isinstance(part, Certificate):
                raise parameter_error("parts", owner, "be certificates", part)
        check_whole(self)

    @property
    def certified(self) -> bool:
        """Whether the rule acts at all, and the bound of every part that acts is within its budget."""
        acting = [part for part in self.parts if part.threshold < math.inf]
        return (
            self.rule.threshold < math.inf
            and bool(acting)
            and all(part.certified for part in acting)
            and not self.unproved
        )

    @property
    def unproved(self) -> list[str]:
        """Groups that the rule acts on although none of their rows was seen, as after a change of the source."""
        return unproved(self.rule, self.promise, self.parts)

    @property
    def others(self) -> list[Others]:
        """Rows acted on whose group the promise does not name, where all groups share a threshold."""
        return others(self)

    @property
    def empty(self) -> bool:
        """Whether the certificate was granted and is worth nothing, as for `Certificate`.

        Where all that is promised is a cost, costs decide.
        """
        if not self.certified:
            return False
        if all(isinstance(part, CostCertificate) for part in self.parts):
            return all(part.empty for part in self.parts)
        return self.no_better_than_guessing

    @property
    def alpha(self) -> float:
        """The smallest budget of the promise, as a share."""
        return self.promise.strictest

    @property
    def tolerance(self) -> str:
        """Where numbers are predicted: how far one may be off and still be right, in words."""
        return next((part.tolerance for part in self.parts if part.tolerance), "")

    @property
    def threshold(self) -> float:
        """The lowest threshold of the rule: no row below it is acted on."""
        return self.rule.threshold

    @property
    def upper_bound(self) -> float:
        """The bound of the part that is closest to its budget, as a share."""
        acting = [part for part in self.parts if part.threshold < math.inf] or list(self.parts)
        if not acting:
            return 1.0
        return max(acting, key=lambda part: part.upper_bound / part.alpha).upper_bound

    @property
    def mixtures(self) -> str:
        """What may be mixed in any shares and keep the promise: groups, or true classes; else ""."""
        for part in self.promise.simple():
            if part.kind == "by_group":
                named = " that it names" if part.common and isinstance(part.alpha, dict) else ""
                return f"the groups of {' and '.join(part.by)}{named}"
            if part.kind == "by_class" and (
                not isinstance(part.alpha, dict)
                or (self.rule.classes is not None and set(part.alpha) >= set(self.rule.classes))
            ):
                return "the true classes"
        return ""

    def under(self, shares: Mapping[Any, float]) -> float:
        """Return the bound of P(acted and wrong) where groups, or true classes, occur in these shares.

        A certificate by group or by true class is about each of them by itself, so that it holds in any
        mixture. Groups whose rows are deferred add nothing.

        Parameters
        ----------
        shares : mapping from group or class to float
            At least 0, with the sum 1.

        Returns
        -------
        float
            At most the largest budget; it holds with probability 1 - rho.
        """
        owner = "RuleCertificate.under"
        if not self.certified:
            raise InvalidParameterError(
                f"{owner} needs a certified rule; this one defers every row."
            )
        promises = [p for p in self.promise.simple() if p.kind in ("by_group", "by_class")]
        if not promises:
            raise InvalidParameterError(
                f"{owner} needs a promise by group or by true class; this one is: {self._promised}."
            )
        for label, share in shares.items():
            check_positive(f"shares[{label!r}]", share, owner, zero=True)
        if not math.isclose(sum(shares.values()), 1.0, abs_tol=1e-9):
            raise parameter_error("shares", owner, "have the sum 1", sum(shares.values()))
        known = [p for p in promises if all(self._limit(p, k) is not None for k in shares)]
        if not known:
            names = [part.name for part in self.parts if part.population in ("group", "class")]
            raise parameter_error(
                "shares", owner, f"name what was certified: {names}", list(shares)
            )
        # a class is no group that was never seen: the promise that saw most of the labels is meant
        whole = max(known, key=lambda p: sum(self._part(p, k) is not None for k in shares))
        bound = sum(share * (self._limit(whole, label) or 0.0) for label, share in shares.items())
        return min(bound, 1.0)

    def _limit(self, promise: Promise, label: Any) -> float | None:
        """Return the budget that holds of a group or class; 0 if it is deferred, None if not known."""
        part = self._part(promise, label)
        if part is not None:
            return part.alpha if part.threshold < math.inf else 0.0
        own = promise.kind == "by_group" and not promise.common
        return 0.0 if own or deferred_name(promise, label) in self.deferred else None

    def _part(self, promise: Promise, label: Any) -> Certificate | None:
        key = (part_name(promise, label), POPULATIONS[promise.kind])
        return next((part for part in self.parts if (part.name, part.population) == key), None)

    @property
    def _promised(self) -> str:
        return wording.promise_text(self.promise, self.tolerance, self.unit)

    @property
    def reason(self) -> str:
        """Why the certificate was granted or refused, in numbers."""
        return wording.rule_reason(self)

    def __str__(self) -> str:
        return wording.rule_verdict(self)

    def __repr__(self) -> str:
        return f"<RuleCertificate: {self}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the stored and the derived values as plain types."""
        return {
            "format": FORMAT,
            "certified": self.certified,
            "empty": self.empty,
            "verdict": str(self),
            "reason": self.reason,
            "notes": wording.rule_notes(self),
            "promise": self.promise.to_dict(),
            "promise_text": self._promised,
            "rule": self.rule.to_dict(),
            "parts": [part.to_dict() for part in self.parts],
            "rho": self.rho,
            "n": self.n,
            "accepted": self.accepted,
            "errors": self.errors,
            "coverage": self.coverage,
            "unit": self.unit,
            "deferred": dict(self.deferred),
            "without_promise": [
                {
                    "by": list(found.promise.by),
                    "n": found.n,
                    "accepted": found.accepted,
                    "errors": found.errors,
                }
                for found in self.others
            ],
            "commonest": self.commonest,
            "unknown": self.unknown,
            "provenance": None if self.provenance is None else self.provenance.to_dict(),
        }

    def to_json(self) -> str:
        """Return the certificate as strict JSON, with a hash of its values."""
        values = self.to_dict()
        values["parts"] = [json.loads(part.to_json()) for part in self.parts]
        return seal(values)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; refuse a text whose verdict does not follow from its counts."""
        values = read_values(text, (FORMAT,), "certificate")
        stored = unseal(values, [entry.name for entry in fields(cls)], "certificate")
        if not isinstance(stored["parts"], list):
            raise InvalidDataError("The certificate's `parts` must be a list.")
        stored["promise"] = Promise.from_dict(stored["promise"])
        stored["rule"] = Rule.from_dict(stored["rule"])
        stored["parts"] = tuple(_read_part(part) for part in stored["parts"])
        if stored["provenance"] is not None:
            stored["provenance"] = Provenance.from_dict(stored["provenance"])
        if not is_real(stored["rho"]) or not isinstance(stored["deferred"], dict):
            raise InvalidDataError("The certificate's `rho` or `deferred` is damaged.")
        certificate = cls(**stored)
        check_derived(values, certificate, ("certified", "empty", "coverage"))
        return certificate


def _read_part(values: Any) -> Certificate:
    kind = CostCertificate if isinstance(values, dict) and "cost" in values else Certificate
    return kind.from_json(json.dumps(values))
