"""Costs of acting: a bound for means of values in [0, 1], and the certificate of a mean cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from scipy.special import bdtr

from reliablenet._checks import check_positive, parameter_error
from reliablenet.certificate.record import Certificate
from reliablenet.certificate.wording import DRAWN, acts_on, confidence, cost_limit, units
from reliablenet.errors import InvalidDataError

ROUNDED = 1.0 + 1e-12  # a sum of costs is not over a limit because of its last bits


def hoeffding_bentkus_p(total: float, n: int, alpha: float) -> float:
    """Return a p-value for "the expectation exceeds alpha", from the sum of n values in [0, 1].

    The smaller of Hoeffding's and Bentkus's (Bates et al. 2021, Learn then Test): exp(-n h(m, alpha)) with
    m = min(total / n, alpha), and e P(Bin(n, alpha) <= ceil(total)).

    Examples
    --------
    >>> from reliablenet.certificate.cost import hoeffding_bentkus_p
    >>> round(hoeffding_bentkus_p(0.0, 59, 0.05), 4)
    0.0485
    """
    m = min(total / n, alpha)
    left = m * math.log(m / alpha) if m > 0.0 else 0.0
    right = (1.0 - m) * (math.log1p(-m) - math.log1p(-alpha))
    hoeffding = math.exp(-n * (left + right))
    bentkus = math.e * float(bdtr(min(math.ceil(total), n), n, alpha))
    return min(hoeffding, bentkus)


@lru_cache(maxsize=1024)
def largest_certifiable_cost(n: int, alpha: float, rho: float) -> float:
    """Return the largest sum of n values in [0, 1] that shows an expectation within alpha, -1 if none does.

    Examples
    --------
    >>> from reliablenet.certificate.cost import largest_certifiable_cost
    >>> largest_certifiable_cost(58, 0.05, 0.05), largest_certifiable_cost(59, 0.05, 0.05) >= 0
    (-1.0, True)
    """
    if hoeffding_bentkus_p(0.0, n, alpha) > rho:
        return -1.0
    return _last_float(0.0, n * alpha, lambda total: hoeffding_bentkus_p(total, n, alpha) <= rho)


def hoeffding_bentkus_upper(total: float, n: int, rho: float) -> float:
    """Return the upper confidence bound of an expectation, from the sum of n values in [0, 1].

    Examples
    --------
    >>> from reliablenet.certificate.cost import hoeffding_bentkus_upper
    >>> round(hoeffding_bentkus_upper(0.0, 59, 0.05), 4)
    0.0495
    """
    open_ = _last_float(total / n, 1.0, lambda mean: hoeffding_bentkus_p(total, n, mean) > rho)
    return math.nextafter(open_, 1.0)


def _last_float(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """Return the last float of which something holds; it holds of ``low``, and not of ``high``."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@dataclass(frozen=True, repr=False)
class CostCertificate(Certificate):
    """What n rows prove about the mean cost of acting.

    Attributes
    ----------
    errors : int
        Rows that were acted on at a cost.
    alpha : float
        The budget as a share of the largest cost; ``budget`` is in the user's unit.
    cost : float
        Sum of the costs of acting, in the user's unit.
    largest : float
        The largest cost of one row.
    single : bool
        Whether there is only one cost: then costs are counts, and their bound is exact.
    guessing : float or None
        Sum of the costs of all n rows if the best of all labels were always the answer.
    """

    cost: float = 0.0
    largest: float = 1.0
    single: bool = False
    guessing: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("cost", self.cost, "CostCertificate", zero=True)
        check_positive("largest", self.largest, "CostCertificate")
        if not isinstance(self.single, bool):
            raise parameter_error("single", "CostCertificate", "be True or False", self.single)
        if self.guessing is not None:
            check_positive("guessing", self.guessing, "CostCertificate", zero=True)
        most = self.errors * self.largest
        if self.cost > most * ROUNDED or (
            self.single and not math.isclose(self.cost, most, rel_tol=1e-9)
        ):
            raise InvalidDataError(
                f"{self.errors} rows acted on at a cost of at most {self.largest:g} each cannot have "
                f"cost {self.cost:g}."
            )

    @property
    def empty(self) -> bool:
        """Whether the certificate was granted and is worth nothing.

        So it is if the rows acted on cost at least as much as all rows would if the cheapest label were
        always the answer.
        """
        if not self.certified or self.guessing is None or self.cost == 0.0:
            return False
        return self.cost * self.n >= self.accepted * self.guessing

    @property
    def budget(self) -> float:
        """The budget for the mean cost a row, in the user's unit."""
        return self.alpha * self.largest

    @property
    def mean_cost(self) -> float:
        """Observed mean cost a row; not a bound."""
        return self.cost / self.n

    @cached_property
    def upper_bound(self) -> float:
        """Upper bound of the mean cost as a share of the largest; it holds with probability 1 - rho.

        For a threshold chosen on the fold it is that of the largest sum that the budget affords.
        """
        if self.single:
            return float(super().upper_bound)
        total = self.cost / self.largest
        most = largest_certifiable_cost(self.n, self.alpha, self.rho)
        if self.kind == "monotone" and 0 < self.accepted < self.n:
            total = max(total, most)
        bound = hoeffding_bentkus_upper(min(total, self.n), self.n, self.rho)
        within = total <= most * ROUNDED
        return min(bound, self.alpha) if within else max(bound, math.nextafter(self.alpha, 1.0))

    @property
    def reason(self) -> str:
        """One sentence in numbers: why the certificate was granted or refused."""
        level = f"({confidence(self.rho)} confidence)"
        bound = math.nextafter(self.upper_bound * self.largest, math.inf)
        most = math.ceil(bound * 1e4) / 1e4 if self.upper_bound > self.alpha else self.budget
        total, mean = f"{self.cost:.12g} in all", f"{self.mean_cost:.4g} a {self.unit}"
        said = (
            f"{self.accepted:,} of {self.n:,} rows acted on cost {total}, {mean}: acting {{}} cost at most "
            f"{most:.12g} a row on average {level}"
        )
        if self.unit == "group":
            said = (
                f"{self.accepted:,} rows acted on, of {units(self)}, cost {total}, {mean}: acting on {DRAWN} "
                f"{{}} cost at most {most:.12g} on average {level}"
            )
        if self.certified:
            return said.format("will")
        if self.threshold == math.inf:
            return (
                f"no threshold keeps acting within {self.budget:.12g} a {self.unit} on average in "
                f"{units(self)} {level}"
            )
        return said.format("could")

    def __str__(self) -> str:
        if not self.certified or self.empty:
            return super().__str__()
        promised = f"{cost_limit(self.budget, self.unit)} ({confidence(self.rho)} confidence)"
        return f"Certified: the rule {acts_on(self)}, and {promised}."

    def to_dict(self) -> dict[str, Any]:
        """Return the stored and the derived values as plain types."""
        return super().to_dict() | {
            "cost": self.cost,
            "largest": self.largest,
            "single": self.single,
            "guessing": self.guessing,
        }
