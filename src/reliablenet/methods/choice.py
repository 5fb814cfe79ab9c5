"""How rho is shared among methods before the certification fold is opened, so that one may be chosen there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from reliablenet.certificate import jcw_threshold, largest_certifiable_errors
from reliablenet.certificate.planning import binomial_cdf
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError

LEAST_ROWS = 20  # on fewer rows methods may look the same that are not
LARGEST_DIVISOR = 1000  # a part so small that more of it would help nobody


@dataclass(frozen=True)
class Choice:
    """Which methods may be handed out, and at which part of rho each of them is certified.

    Every method that may be handed out is certified at rho divided by a whole number of its own,
    fixed before the certification fold is opened. The parts sum to rho at most, so that all of these
    certificates hold together with probability 1 - rho, and so does that of whichever is chosen.

    Attributes
    ----------
    divisors : dict of str to int
        Of each method that may be handed out: it is certified at rho / divisor.
    family : dict of str to str
        Of each method, the one that is certified in its place: itself, or one that ranks the rows of
        the selection fold in the same way, or more finely, and predicts the same.
    favourite : str
        What did best on the selection fold and was served first; "" if none was preferred.

    Examples
    --------
    >>> from reliablenet.methods.choice import Choice
    >>> choice = Choice({"boosting": 2, "network": 4, "forest": 4}, {}, "boosting")
    >>> choice.level("network", 0.05)
    0.0125
    """

    divisors: dict[str, int]
    family: dict[str, str]
    favourite: str = ""

    def __post_init__(self) -> None:
        whole = all(type(d) is int and d > 0 for d in self.divisors.values())
        if not whole or sum(Fraction(1, d) for d in self.divisors.values()) > 1:
            raise InvalidDataError(
                "The parts of rho in a comparison must be rho divided by whole numbers, and sum to rho at "
                f"most; got the divisors {self.divisors}."
            )
        named = {self.favourite} - {""} | set(self.family.values())
        if not named <= set(self.divisors):
            raise InvalidDataError(
                f"These methods were given no part of rho: {sorted(named - set(self.divisors))}. "
                "The favourite and the first of each family need one."
            )

    def level(self, name: str, rho: float) -> float:
        """Return the part of rho at which a method is certified."""
        return rho / self.divisors[name]

    @classmethod
    def equal(cls, names: list[str]) -> Choice:
        """Return the choice among methods that all count alike."""
        return cls(dict.fromkeys(names, len(names)), {name: name for name in names})


def share_rho(
    selection: Mapping[str, ScoredRows | None], alpha: float, rho: float, n: int
) -> Choice:
    """Decide on the selection fold which methods may be handed out, and how rho is shared.

    Methods that predict the same there and rank its rows alike are one method, and the first of them
    stands for all (a rule that only ties what another ranks adds nothing to it either). The favourite
    is the one that acts rightly on most rows where observed JCW is alpha. It gets half of rho, or the
    smaller part that affords as many errors, and what is left is shared equally.

    Parameters
    ----------
    selection : mapping of str to ScoredRows or None
        The selection fold as each method sees it, in the order given by the user. None where that is
        not known, because a method failed on the certification fold: it might have been the favourite,
        so that it holds the half, and no other may have it.
    alpha, rho : float in (0, 1)
    n : int
        Rows of the certification fold. Their number is all that is asked of them.

    Returns
    -------
    Choice

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate.scored import ScoredRows
    >>> from reliablenet.methods.choice import share_rho
    >>> sure, right = np.linspace(0.5, 1.0, 100), np.arange(100) % 4 > 0
    >>> guess = right.astype(int)
    >>> def rows(score):
    ...     return ScoredRows(score, ~right, 0.0, truth=np.ones(100), predicted=guess)
    >>> methods = {"network": rows(sure), "temperature": rows(sure**2), "random": rows(sure[::-1])}
    >>> share_rho(methods, 0.05, 0.05, n=1000).divisors
    {'network': 2, 'random': 2}
    """
    known = {name: rows for name, rows in selection.items() if rows is not None}
    if not known:
        return Choice.equal(list(selection))
    family = {name: _first_of_family(name, known) for name in selection}
    first = [name for name in selection if family[name] == name]
    unknown = [name for name in first if name not in known]
    favourite = (
        unknown[0] if unknown else max(first, key=lambda name: _estimate(known[name], alpha))
    )
    if len(first) == 1:
        return Choice({favourite: 1}, family, favourite)
    most = _spare(2, alpha, rho, n)
    rest = math.ceil(Fraction(len(first) - 1) / (1 - Fraction(1, most)))
    return Choice({name: most if name == favourite else rest for name in first}, family, favourite)


def _spare(divisor: int, alpha: float, rho: float, n: int) -> int:
    """Return the largest divisor of rho that affords as many errors in n rows as this one does.

    Errors are counted in whole numbers, so that a part of rho is seldom used up.
    """
    errors = largest_certifiable_errors(n, alpha, rho / divisor)
    if errors < 0:
        return divisor
    needed = float(binomial_cdf(np.array(errors), np.array(n), alpha))  # the least level for them
    larger = min(rho / needed, LARGEST_DIVISOR) if needed > 0 else LARGEST_DIVISOR
    found = max(divisor, math.floor(larger))
    while largest_certifiable_errors(n, alpha, rho / found) < errors:  # the quotient may round up
        found -= 1
    return found


def _first_of_family(name: str, known: Mapping[str, ScoredRows]) -> str:
    """Return the method that stands for this one: the finest ranking, and of equal ones the first."""
    above = [one for one in known if name in known and _covers(known[one], known[name])]
    for one in above:
        finer = (other for other in above if _covers(known[other], known[one]))
        if all(_covers(known[one], known[other]) for other in finer):
            return one
    return name


def _covers(fine: ScoredRows, coarse: ScoredRows) -> bool:
    """Tell whether every rule of one method, acting from a threshold on, is a rule of another too."""
    said: tuple[Any, Any] = (fine.predicted, coarse.predicted)
    if fine.n < LEAST_ROWS or not np.array_equal(*said):
        return False
    order = np.argsort(fine.score)
    steps, follows = np.diff(fine.score[order]), np.diff(coarse.score[order])
    return bool(np.all(np.where(steps == 0, follows == 0, follows >= 0)))


def _estimate(rows: ScoredRows, alpha: float) -> int:
    """Return how many selection rows are acted on and right where observed JCW is within alpha."""
    accepted = rows.score >= jcw_threshold(rows, None, alpha)
    return int(np.count_nonzero(accepted & ~rows.wrong))
