"""`Certificate`: a record that cannot contradict itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, Self, get_args

from reliablenet._checks import check_count, check_fraction, is_real, parameter_error
from reliablenet.certificate import wording
from reliablenet.certificate.anytime import anytime_upper
from reliablenet.certificate.bounds import clopper_pearson_upper
from reliablenet.certificate.counts import Counts
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.sealing import check_derived, read_values, seal, unseal
from reliablenet.errors import InvalidDataError

Kind = Literal["fixed", "monotone", "sequence", "anytime"]
Unit = Literal["row", "group"]
Population = Literal["all", "accepted", "group", "class", "predicted"]
FORMAT, FIRST_FORMAT = "reliablenet-certificate/2", "reliablenet-certificate/1"
LATER_FIELDS = ("name", "population", "tolerance")  # which the format had not from the start
FIRST_FIELDS = ("errors", "accepted", "n", "alpha", "rho", "threshold", "kind")  # of FIRST_FORMAT


@dataclass(frozen=True)
class Provenance:
    """What a certificate is about, so that it is not mistaken for another one.

    Attributes
    ----------
    model : str
        Fingerprint of the score and the verdict that the model gives to each certification row.
    rows : str
        Fingerprint of the certification rows; "" where only predictions were given.
    table : str
        SHA-256 of the table that `fit` cut these rows from; "" where they were given by themselves.
    chosen_among : int
        Methods among which this one was chosen on the same rows.
    uses : int
        For how many certificates these rows have been used, this one included.
    copies : int
        Rows that repeat another certification row, if more do than chance explains.
    compared : bool
        False where these rows could not be compared with those that made the model.
    """

    model: str = ""
    rows: str = ""
    table: str = ""
    chosen_among: int = 1
    uses: int = 1
    copies: int = 0
    compared: bool = True

    def __post_init__(self) -> None:
        for name in ("model", "rows", "table"):
            text = getattr(self, name)
            if not isinstance(text, str) or set(text) - set("0123456789abcdef"):
                raise parameter_error(name, "Provenance", "hold hexadecimal digits", text)
        for name, least in (("chosen_among", 1), ("uses", 1), ("copies", 0)):
            count = check_count(name, getattr(self, name), "Provenance", minimum=least)
            object.__setattr__(self, name, count)
        if type(self.compared) is not bool:
            raise parameter_error("compared", "Provenance", "be True or False", self.compared)

    def to_dict(self) -> dict[str, Any]:
        """Return its attributes as a mapping; "compared" is there only if it is False, as it rarely is."""
        plain = vars(self).copy()
        if self.compared:
            del plain["compared"]
        return plain

    @classmethod
    def from_dict(cls, stored: Any) -> Self:
        """Return the provenance that was stored as a mapping of its attributes."""
        names = {entry.name for entry in fields(cls)} - {"compared"}
        if not isinstance(stored, dict) or set(stored) - {"compared"} != names:
            raise InvalidDataError(f"The provenance of a certificate must hold {sorted(names)}.")
        return cls(**stored)


@dataclass(frozen=True, repr=False)
class Certificate(Counts):
    """What n independent rows prove about one act-or-defer rule.

    Only counts and settings are stored; bound and verdict are derived from them, so that a
    certificate read from a file is as consistent as a fresh one.

    Attributes
    ----------
    errors : int
        Rows of the certification fold that were accepted and wrong (K).
    accepted : int
        Rows that were accepted.
    n : int
        Rows of the certification fold; with groups, one row of each.
    alpha : float
        The budget for P(accepted and wrong).
    rho : float
        Allowed probability, over the draw of the fold, that the certificate is wrong.
    threshold : float
        Rows with a score at or above it are accepted; ``inf`` where no threshold can be certified.
    kind : {"fixed", "monotone", "sequence", "anytime"}
        "fixed": the rule was set before the fold was seen. "monotone": the threshold was chosen on
        the fold itself, which costs nothing because JCW is monotone in it. "sequence": thresholds were
        tested in an order fixed beforehand, up to the first that failed. "anytime": as rows came in,
        with looks at any time.
    unit : {"row", "group"}
        What was counted, and so what is promised: "row" speaks of a random new row, "group" of a
        random row of a random new group.
    commonest : int or None
        Rows with the commonest true label; None where labels are not known.
    unknown : int
        Rows of a class that the model does not know. They count as wrong.
    tolerance : str
        Where numbers are predicted: how far one may be off and still be right, in words.
    provenance : Provenance or None
        Model and rows it is about. Certificates that prove the same are equal, whatever this says.
    population : {"all", "accepted", "group", "class", "predicted"}
        Which rows the n are, and so of which the promise speaks: all, those acted on, those of one group
        or true class. "predicted" counts all rows, and as mistakes those with one predicted class.
    name : str
        Which group or class that is.

    Examples
    --------
    >>> from reliablenet import Certificate
    >>> c = Certificate(errors=1, accepted=80, n=100, alpha=0.05, rho=0.05, threshold=0.9)
    >>> c.certified
    True
    >>> c
    <Certificate: Certified: the rule acts on 80 % of rows, and wrongly on at most 5 % of all rows from this source (95 % confidence).>
    """

    errors: int
    accepted: int
    n: int
    alpha: float
    rho: float
    threshold: float
    kind: Kind = "fixed"
    unit: Unit = "row"
    commonest: int | None = None
    unknown: int = 0
    tolerance: str = ""
    provenance: Provenance | None = field(default=None, compare=False)
    population: Population = "all"
    name: str = ""

    def __post_init__(self) -> None:
        owner = "Certificate"
        if not is_real(self.threshold) or math.isnan(self.threshold):
            raise parameter_error("threshold", owner, "be a number", self.threshold)
        plain: dict[str, Any] = {
            "alpha": check_fraction("alpha", self.alpha, owner),
            "rho": check_fraction("rho", self.rho, owner),
            "n": check_count("n", self.n, owner),
            "accepted": check_count("accepted", self.accepted, owner, minimum=0),
            "errors": check_count("errors", self.errors, owner, minimum=0),
            "unknown": check_count("unknown", self.unknown, owner, minimum=0),
            "threshold": float(self.threshold),
        }
        if self.commonest is not None:
            plain["commonest"] = check_count("commonest", self.commonest, owner, minimum=0)
        for name, value in plain.items():  # numpy's numbers become Python's
            object.__setattr__(self, name, value)
        self.check_counts()
        if self.unknown + (self.commonest or 0) > self.n:
            raise InvalidDataError(
                "A certificate needs commonest + unknown <= n; "
                f"got {self.commonest}, {self.unknown}, {self.n}."
            )
        if self.threshold == math.inf and self.accepted:
            raise InvalidDataError(f"Threshold inf accepts no row; got accepted={self.accepted}.")
        if self.threshold == -math.inf and self.accepted < self.n:
            raise InvalidDataError(
                f"Threshold -inf accepts every row; got accepted={self.accepted} of {self.n}."
            )
        choices = {"kind": Kind, "unit": Unit, "population": Population}
        for name, allowed in ((name, get_args(choice)) for name, choice in choices.items()):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in allowed:
                raise parameter_error(name, owner, f"be one of {allowed}", value)
        if not isinstance(self.name, str):
            raise parameter_error("name", owner, "be a text", self.name)
        if not isinstance(self.tolerance, str):
            raise parameter_error("tolerance", owner, "say in words what is right", self.tolerance)
        if not isinstance(self.provenance, Provenance | None):
            raise parameter_error("provenance", owner, "be a Provenance", self.provenance)

    @cached_property
    def upper_bound(self) -> float:
        """One-sided Clopper-Pearson upper bound of JCW; it holds with probability 1 - rho.

        For a fixed rule it is the bound of the errors counted. A threshold that was chosen on the
        fold has the bound of the most errors that alpha affords: with ties fewer are accepted, and
        their own bound would fail too often. Where every row is accepted there was nothing to
        choose, and the errors counted decide again (docs/decisions/0020). Of rows acted on, whose
        number depends on the threshold, it is always the bound of the most errors. After looks at
        any time it is alpha: what is proved is that JCW is within it (docs/decisions/0029).
        """
        if self.kind == "anytime":
            return max(anytime_upper(self.errors, self.n, self.rho), self.alpha)
        counted = self.errors
        chosen = self.kind == "monotone" and 0 < self.accepted < self.n
        if chosen or (self.kind == "sequence" and self.accepted > 0):
            counted = max(counted, largest_certifiable_errors(self.n, self.alpha, self.rho))
        return float(clopper_pearson_upper(counted, self.n, self.rho))

    @property
    def certified(self) -> bool:
        """Whether the rule acts at all and its bound is within the budget.

        It says that the promise is proved, not that acting is worth anything: see ``empty``. The exit
        code of the command line follows it.
        """
        return self.threshold < math.inf and self.upper_bound <= self.alpha

    @property
    def empty(self) -> bool:
        """Whether the certificate was granted and is worth nothing.

        So it is if no row acted on was right, or if the rows acted on were wrong at least as often as
        all rows would be if the commonest label were always the answer.
        """
        return self.certified and self.no_better_than_guessing

    @property
    def reason(self) -> str:
        """One sentence in numbers: why the certificate was granted or refused."""
        return wording.reason(self)

    def __str__(self) -> str:
        return wording.verdict(self)

    def __repr__(self) -> str:
        return f"<Certificate: {self}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the stored and the derived values as plain types, an infinite threshold as text."""
        finite, acted = math.isfinite(self.threshold), self.accepted > 0
        known = self.commonest is not None
        return {
            "format": FORMAT,
            "certified": self.certified,
            "empty": self.empty,
            "verdict": str(self),
            "reason": self.reason,
            "notes": wording.notes(self),
            "upper_bound": self.upper_bound,
            "errors": self.errors,
            "accepted": self.accepted,
            "n": self.n,
            "unit": self.unit,
            "coverage": self.coverage,
            "error_accepted": self.error_accepted if acted else None,
            "error_accepted_interval": list(self.error_accepted_interval) if acted else None,
            "commonest": self.commonest,
            "guessing_error": self.guessing_error if known else None,
            "unknown": self.unknown,
            "tolerance": self.tolerance,
            "alpha": self.alpha,
            "rho": self.rho,
            "threshold": self.threshold if finite else str(self.threshold),
            "kind": self.kind,
            "population": self.population,
            "name": self.name,
            "provenance": None if self.provenance is None else self.provenance.to_dict(),
        }

    def to_json(self) -> str:
        """Return the certificate as strict JSON.

        Examples
        --------
        >>> from reliablenet import Certificate
        >>> c = Certificate(errors=0, accepted=9, n=40, alpha=0.05, rho=0.05, threshold=0.9)
        >>> Certificate.from_json(c.to_json()) == c
        True
        """
        return seal(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote; refuse a text whose verdict does not follow from its counts."""
        values = read_values(text, (FORMAT, FIRST_FORMAT), "certificate")
        first = values["format"] == FIRST_FORMAT
        wanted = FIRST_FIELDS if first else tuple(entry.name for entry in fields(cls))
        wanted = tuple(name for name in wanted if name in values or name not in LATER_FIELDS)
        stored = unseal(values, wanted, "certificate")
        if stored["threshold"] in ("inf", "-inf"):
            stored["threshold"] = float(stored["threshold"])
        if stored.get("provenance") is not None:
            stored["provenance"] = Provenance.from_dict(stored["provenance"])
        certificate = cls(**stored)
        derived = ("certified", "coverage") if first else ("certified", "coverage", "empty")
        check_derived(values, certificate, derived)
        # The first format gave every certificate the bound of its own errors.
        own = clopper_pearson_upper(certificate.errors, certificate.n, certificate.rho)
        expected = own if first else certificate.upper_bound
        bound: Any = values.get("upper_bound")
        # Another build of the special functions may differ in the last bits, never by more.
        if not is_real(bound) or not math.isclose(bound, expected, rel_tol=1e-9):
            raise InvalidDataError(
                f"The certificate's 'upper_bound' ({bound!r}) does not follow from its counts "
                f"({expected!r}): the text was altered."
            )
        return certificate
