"""`Certificate`, a record that cannot contradict itself, and `certify` for a rule fixed beforehand."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from reliablenet._checks import check_count, check_fraction, is_real, parameter_error
from reliablenet.certificate.bounds import clopper_pearson_upper
from reliablenet.certificate.planning import MOST_ROWS, largest_certifiable_errors, rows_for_errors
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import InvalidDataError

Kind = Literal["fixed", "monotone"]
FORMAT = "reliablenet-certificate/1"


@dataclass(frozen=True)
class Certificate:
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
        Rows of the certification fold.
    alpha : float
        The budget for P(accepted and wrong).
    rho : float
        Allowed probability, over the draw of the fold, that the certificate is wrong.
    threshold : float
        Rows with a score at or above it are accepted; ``inf`` where no threshold can be certified.
    kind : {"fixed", "monotone"}
        "fixed": the rule was set before the fold was seen. "monotone": the threshold was chosen on
        the fold itself, which costs nothing because JCW is monotone in it.

    Examples
    --------
    >>> Certificate(errors=1, accepted=80, n=100, alpha=0.05, rho=0.05, threshold=0.9).certified
    True
    """

    errors: int
    accepted: int
    n: int
    alpha: float
    rho: float
    threshold: float
    kind: Kind = "fixed"

    def __post_init__(self) -> None:
        owner = "Certificate"
        if not is_real(self.threshold) or math.isnan(self.threshold):
            raise parameter_error("threshold", owner, "be a number", self.threshold)
        plain = {
            "alpha": check_fraction("alpha", self.alpha, owner),
            "rho": check_fraction("rho", self.rho, owner),
            "n": check_count("n", self.n, owner),
            "accepted": check_count("accepted", self.accepted, owner, minimum=0),
            "errors": check_count("errors", self.errors, owner, minimum=0),
            "threshold": float(self.threshold),
        }
        for name, value in plain.items():  # numpy's numbers become Python's
            object.__setattr__(self, name, value)
        if not self.errors <= self.accepted <= self.n:
            raise InvalidDataError(
                "A certificate needs errors <= accepted <= n; "
                f"got {self.errors}, {self.accepted}, {self.n}."
            )
        if self.threshold == math.inf and self.accepted:
            raise InvalidDataError(f"Threshold inf accepts no row; got accepted={self.accepted}.")
        if self.threshold == -math.inf and self.accepted < self.n:
            raise InvalidDataError(
                f"Threshold -inf accepts every row; got accepted={self.accepted} of {self.n}."
            )
        if not isinstance(self.kind, str) or self.kind not in get_args(Kind):
            raise parameter_error("kind", owner, f"be one of {get_args(Kind)}", self.kind)

    @cached_property
    def upper_bound(self) -> float:
        """One-sided Clopper-Pearson upper bound of JCW at level 1 - rho."""
        return float(clopper_pearson_upper(self.errors, self.n, self.rho))

    @property
    def certified(self) -> bool:
        """Whether the rule acts at all and its bound is within the budget."""
        return self.threshold < math.inf and self.upper_bound <= self.alpha

    @property
    def coverage(self) -> float:
        """Share of rows accepted."""
        return self.accepted / self.n

    @property
    def jcw(self) -> float:
        """Observed share of rows accepted and wrong; not a bound."""
        return self.errors / self.n

    @property
    def throughput(self) -> float:
        """Observed share of rows accepted and right."""
        return (self.accepted - self.errors) / self.n

    @property
    def reason(self) -> str:
        """One sentence in numbers: why the certificate was granted or refused."""
        bound = f"{_count(self.errors, 'error')} in {_count(self.n, 'row')} bound JCW by "
        bound += _round_up(self.upper_bound, self.alpha)
        if self.certified:
            return f"{bound}, within alpha {self.alpha:g}"
        most = largest_certifiable_errors(self.n, self.alpha, self.rho)
        if most < 0:
            countable = max(self.errors, 1) <= self.alpha * MOST_ROWS
            needed = rows_for_errors(self.errors, self.alpha, self.rho) if countable else "too many"
            return f"{bound}; alpha {self.alpha:g} needs {needed} rows"
        limit = f"alpha {self.alpha:g} allows {_count(most, 'error')} in {_count(self.n, 'row')}"
        if self.threshold < math.inf:
            return f"{bound}; {limit}"
        if self.kind == "monotone":
            return f"the rows with the highest score already hold more errors than that: {limit}"
        return "the rule accepts no row, so there is nothing to certify"

    def to_dict(self) -> dict[str, Any]:
        """Return the stored and the derived values as plain types, an infinite threshold as text."""
        finite = math.isfinite(self.threshold)
        return {
            "format": FORMAT,
            "certified": self.certified,
            "upper_bound": self.upper_bound,
            "errors": self.errors,
            "accepted": self.accepted,
            "n": self.n,
            "coverage": self.coverage,
            "alpha": self.alpha,
            "rho": self.rho,
            "threshold": self.threshold if finite else str(self.threshold),
            "kind": self.kind,
            "reason": self.reason,
        }

    def to_json(self) -> str:
        """Return the certificate as strict JSON.

        Examples
        --------
        >>> c = Certificate(errors=0, accepted=9, n=40, alpha=0.05, rho=0.05, threshold=0.9)
        >>> Certificate.from_json(c.to_json()) == c
        True
        """
        values = self.to_dict()
        return json.dumps(values | {"sha256": _digest(values)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what `to_json` wrote; refuse a text whose verdict does not follow from its counts."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidDataError(f"This is not the JSON of a certificate: {error}.") from error
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise InvalidDataError(f"This is not a certificate of the format {FORMAT!r}.")
        fields = ("errors", "accepted", "n", "alpha", "rho", "threshold", "kind")
        missing = [name for name in fields if name not in values]
        if missing:
            raise InvalidDataError(f"The certificate lacks {missing}.")
        if values.pop("sha256", None) != _digest(values):
            raise InvalidDataError("The certificate was altered: its values do not match its hash.")
        stored = {name: values[name] for name in fields}
        if stored["threshold"] in ("inf", "-inf"):
            stored["threshold"] = float(stored["threshold"])
        certificate = cls(**stored)
        for name in ("certified", "coverage"):
            if values.get(name) != getattr(certificate, name):
                raise InvalidDataError(
                    f"The certificate's {name!r} ({values.get(name)!r}) does not follow from its "
                    f"counts ({getattr(certificate, name)!r}): the text was altered."
                )
        bound: Any = values.get("upper_bound")
        # Another build of the special functions may differ in the last bits, never by more.
        if not is_real(bound) or not math.isclose(bound, certificate.upper_bound, rel_tol=1e-9):
            raise InvalidDataError(
                f"The certificate's 'upper_bound' ({bound!r}) does not follow from its counts "
                f"({certificate.upper_bound!r}): the text was altered."
            )
        return certificate


def certify(
    proba: Any,
    y: Any,
    threshold: float,
    alpha: float = 0.05,
    rho: float = 0.05,
    *,
    score: Any = None,
    predicted: Any = None,
    classes: Any = None,
) -> Certificate:
    """Certify a rule that was fixed before these rows were seen.

    The rows must be independent draws from the source that the rule will meet, used neither in
    training nor in the choice of the threshold.

    Parameters
    ----------
    proba : array-like of shape (n, K), or None
        Class probabilities; the largest is the score, its column the prediction.
    y : array-like of shape (n,)
        True labels: column numbers, or members of ``classes``.
    threshold : float
        The rule accepts a row whose score is at or above it.
    alpha, rho : float in (0, 1)
        Budget and allowed failure probability.
    score : array-like of shape (n,), optional
        Acceptance score where it is not the top probability.
    predicted : array-like of shape (n,), optional
        Predicted labels, with ``proba=None``.
    classes : array-like of shape (K,), optional
        Labels of the columns of ``proba``.

    Returns
    -------
    Certificate
        Of kind "fixed".

    Examples
    --------
    >>> proba = np.tile([0.05, 0.95], (100, 1))
    >>> c = certify(proba, np.ones(100, int), threshold=0.9, alpha=0.05)
    >>> c.certified, c.errors, c.n
    (True, 0, 100)
    """
    alpha, rho = check_fraction("alpha", alpha, "certify"), check_fraction("rho", rho, "certify")
    rows = score_rows(proba, y, score=score, predicted=predicted, classes=classes, owner="certify")
    if not is_real(threshold) or math.isnan(threshold):
        raise parameter_error("threshold", "certify", "be a number", threshold)
    if score is None and not (0.0 <= threshold <= 1.0 or threshold == math.inf):
        raise parameter_error(
            "threshold", "certify", "lie in [0, 1], as the score is a probability", threshold
        )
    return count_rows(rows, float(threshold), alpha, rho, "fixed")


def count_rows(
    rows: ScoredRows, threshold: float, alpha: float, rho: float, kind: Kind
) -> Certificate:
    """Count what a threshold accepts and gets wrong, and put the counts into a certificate."""
    accepted = rows.score >= threshold
    return Certificate(
        errors=int(np.count_nonzero(accepted & rows.wrong)),
        accepted=int(np.count_nonzero(accepted)),
        n=rows.n,
        alpha=alpha,
        rho=rho,
        threshold=threshold,
        kind=kind,
    )


def _digest(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _round_up(value: float, limit: float) -> str:
    """Write a bound, never below its value, and never above a limit that the value keeps."""
    exact = Decimal(value)
    place = Decimal(1).scaleb(exact.adjusted() - 2)  # of the third digit
    while float(rounded := exact.quantize(place, rounding=ROUND_CEILING)) > limit >= value:
        place = place.scaleb(-1)
    return f"{rounded.normalize():f}"
