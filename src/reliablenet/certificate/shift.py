"""Another source than the one certified: what a bound would still be worth, and when it stays exact.

A certificate speaks of rows from its own source. How far the source may move is not known from its
rows, so that what follows from a size of the move is **sensitivity and never a promise**: "would
survive a move of this size". Each formula is the worst case over all sources that are so near, with U
the bound of the certificate (Csiszár's f-divergences; tests/certificate/test_shift.py searches the
distributions themselves).

Where the move is *known*, because rows were sampled by design with known weights, `keep_by_weight`
thins them to an exact sample of the other source, and every certificate of that is a promise again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from reliablenet._checks import (
    as_array,
    check_fraction,
    check_probability,
    check_seed,
    is_real,
    parameter_error,
)
from reliablenet.certificate.bounds import coin_divergence
from reliablenet.certificate.fingerprint import mix
from reliablenet.errors import InvalidDataError

if TYPE_CHECKING:
    from reliablenet.certificate.record import Certificate

Distance = Literal["total variation", "chi-square", "KL divergence", "likelihood ratio"]
# Moves that a reader can picture; the bound is given for each of them.
EXAMPLES: dict[Distance, tuple[float, ...]] = {
    "total variation": (0.01, 0.05),
    "chi-square": (0.01, 0.1),
    "KL divergence": (0.01, 0.1),
    "likelihood ratio": (1.1, 1.5, 2.0),
}


def bound_under_shift(bound: float, size: float, distance: Distance = "total variation") -> float:
    """Return the largest risk of a source at most so far from one whose risk is at most ``bound``.

    Parameters
    ----------
    bound : float in [0, 1]
        Of the certified source, such as `Certificate.upper_bound`.
    size : float
        Of the move, as ``distance`` measures it: at least 0; for the likelihood ratio at least 1.
    distance : {"total variation", "chi-square", "KL divergence", "likelihood ratio"}
        From the certified source P to the other one Q. Total variation: the largest difference of the
        chance of any event, so that a share of rows that comes from anywhere else is at most that.
        Chi-square and KL divergence are those of Q from P. Likelihood ratio: no kind of row becomes
        more than ``size`` times as common or as rare.

    Returns
    -------
    float
        Attained by some such source, so that no smaller number would do.

    Examples
    --------
    >>> from reliablenet.certificate import bound_under_shift
    >>> round(bound_under_shift(0.03, 0.01), 4)
    0.04
    >>> round(bound_under_shift(0.03, 1.5, "likelihood ratio"), 4)
    0.045
    """
    owner = "bound_under_shift"
    u, move = (
        check_probability("bound", bound, owner, zero=True),
        _check_size(size, distance, owner),
    )
    if distance == "total variation":
        return min(1.0, u + move)
    if distance == "chi-square":
        return min(1.0, u + math.sqrt(move * u * (1.0 - u)))
    if distance == "likelihood ratio":
        return min(move * u, 1.0 - (1.0 - u) / move)
    if u == 0.0 or move == 0.0:
        return u
    if -math.log(u) <= move:
        return 1.0
    return float(brentq(lambda q: coin_divergence(q, u) - move, u, 1.0, xtol=1e-15, rtol=1e-14))


def shift_to_reach(bound: float, alpha: float, distance: Distance = "total variation") -> float:
    """Return how far a source may move before a risk of at most ``bound`` can reach ``alpha``.

    Parameters
    ----------
    bound : float in [0, alpha]
        Of the certified source, such as `Certificate.upper_bound`.
    alpha : float in (0, 1)
    distance : {"total variation", "chi-square", "KL divergence", "likelihood ratio"}
        As for `bound_under_shift`, whose inverse this is.

    Returns
    -------
    float
        ``inf`` where no such move reaches it, because nothing goes wrong in the certified source.

    Examples
    --------
    >>> from reliablenet.certificate import shift_to_reach
    >>> round(shift_to_reach(0.03, 0.05), 4), round(shift_to_reach(0.03, 0.05, "likelihood ratio"), 4)
    (0.02, 1.6667)
    """
    owner = "shift_to_reach"
    u, limit = (
        check_probability("bound", bound, owner, zero=True),
        check_fraction("alpha", alpha, owner),
    )
    _check_distance(distance, owner)
    if u > limit:
        raise parameter_error(
            "bound", owner, f"be at most alpha = {alpha:g}", bound, "It is already above alpha."
        )
    if distance == "total variation":
        return limit - u
    if u == 0.0:
        return math.inf
    if distance == "chi-square":
        return (limit - u) ** 2 / (u * (1.0 - u))
    if distance == "likelihood ratio":
        return max(limit / u, (1.0 - u) / (1.0 - limit))
    return coin_divergence(limit, u)


@dataclass(frozen=True)
class Sensitivity:
    """How far the source of a granted certificate may move before its budget could be exceeded.

    Attributes
    ----------
    alpha, bound : float
        Budget, and bound of the certificate.
    reach : dict of str to float
        For each distance the size of the move at which alpha is reached, as `shift_to_reach` says.
    examples : dict of str to dict of float to float
        For each distance the bound under moves of some sizes, as `bound_under_shift` says.

    Examples
    --------
    >>> from reliablenet.certificate import Certificate, sensitivity
    >>> card = sensitivity(Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9))
    >>> round(card.reach["total variation"], 4)
    0.0194
    >>> card.to_frame().round(3).head(3)
              distance  size  bound  within_alpha
    0  total variation  0.01  0.041          True
    1  total variation  0.05  0.081         False
    2       chi-square  0.01  0.048          True
    """

    alpha: float
    bound: float
    reach: Mapping[str, float]
    examples: Mapping[str, Mapping[float, float]]

    def to_frame(self) -> Any:
        """Return the bounds under moves of some sizes as a pandas DataFrame, one row each."""
        import pandas as pd

        rows = [
            (distance, size, bound, bound <= self.alpha)
            for distance, found in self.examples.items()
            for size, bound in found.items()
        ]
        return pd.DataFrame(rows, columns=["distance", "size", "bound", "within_alpha"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return {
            "meaning": "sensitivity, not a promise: how far the source may move before alpha is reached",
            "reach": dict(self.reach),
            "bounds": [
                {"distance": distance, "size": size, "bound": bound}
                for distance, found in self.examples.items()
                for size, bound in found.items()
            ],
        }


def sensitivity(certificate: Certificate) -> Sensitivity | None:
    """Return how far the source of a certificate may move; None if it was not granted.

    Parameters
    ----------
    certificate : Certificate

    Returns
    -------
    Sensitivity or None

    Examples
    --------
    >>> from reliablenet.certificate import Certificate, sensitivity
    >>> card = sensitivity(Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9))
    >>> {distance: round(size, 3) for distance, size in card.reach.items()}
    {'total variation': 0.019, 'chi-square': 0.013, 'KL divergence': 0.005, 'likelihood ratio': 1.632}
    """
    if not certificate.certified:
        return None
    bound, alpha = certificate.upper_bound, certificate.alpha
    return Sensitivity(
        alpha=alpha,
        bound=bound,
        reach={distance: shift_to_reach(bound, alpha, distance) for distance in EXAMPLES},
        examples={
            distance: {size: bound_under_shift(bound, size, distance) for size in sizes}
            for distance, sizes in EXAMPLES.items()
        },
    )


def sensitivities(certificate: Any) -> dict[str, Sensitivity]:
    """Return the sensitivity of each granted part of a certificate by its name; "" names the whole.

    A part speaks of its own rows, such as those of one group, and so does its move. A cost, as a share
    of the largest, is bounded like a chance: no cost between does worse.

    Examples
    --------
    >>> from reliablenet.certificate import Certificate
    >>> from reliablenet.certificate.shift import sensitivities
    >>> granted = Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    >>> {name: round(card.bound, 4) for name, card in sensitivities(granted).items()}
    {'': 0.0306}
    """
    parts = getattr(certificate, "parts", (certificate,))
    found: dict[str, Sensitivity] = {}
    for place, part in enumerate(parts, 1):
        card = sensitivity(part)
        if card is not None:
            # "yes" may be a true class and a predicted one
            twice = part.name in found
            name = f"{part.name} ({part.population}, part {place})" if twice else part.name
            found[name] = card
    return found


def keep_by_weight(weights: Any, most: float, random_state: int = 0) -> NDArray[np.bool_]:
    """Return which rows to keep, so that they are a sample of another source with known weights.

    A row is kept with the probability weight / most, whatever else it is. If the weights are the density
    of the other source relative to the one that the rows were drawn from, times any constant, the
    rows kept are independent draws of the other source, and what they certify is exact for it. So for
    samples by design, such as one in ten of the ordinary cases and all of the rare ones. Weights that
    were estimated make no promise.

    Parameters
    ----------
    weights : array-like of shape (n,)
        Not negative, known before the rows were looked at.
    most : float
        The largest weight that any row of the source can have, not only of these.
    random_state : int
        The same rows, in the same order, are kept for the same number.

    Returns
    -------
    boolean array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.certificate import keep_by_weight
    >>> rare = np.arange(1000) % 2 == 0           # half of the sample, a tenth of the source
    >>> kept = keep_by_weight(np.where(rare, 1, 9), most=9)
    >>> int(kept[rare].sum()), int(kept[~rare].sum())
    (59, 500)
    """
    owner = "keep_by_weight"
    values = as_array(weights, "weights")
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise InvalidDataError(
            f"`weights` of {owner} must be a vector of numbers; got shape {values.shape} of "
            f"{values.dtype}."
        )
    if not is_real(most) or not 0.0 < most < math.inf:
        raise parameter_error("most", owner, "be a finite positive number", most)
    outside = ~((values >= 0) & (values <= most))
    if outside.any():
        row = int(outside.argmax())
        raise InvalidDataError(
            f"`weights` of {owner} must lie between 0 and `most` = {most:g}; got {values[row]} in row "
            f"{row}. `most` is the largest weight that any row of the source can have."
        )
    seed = mix(np.array([check_seed("random_state", random_state, owner)], np.uint64))
    drawn = mix(np.arange(len(values), dtype=np.uint64) ^ seed) >> np.uint64(11)
    kept: NDArray[np.bool_] = drawn * 2.0**-53 < values / most
    return kept


def _check_distance(distance: Any, owner: str) -> None:
    if distance not in get_args(Distance):
        raise parameter_error("distance", owner, f"be one of {get_args(Distance)}", distance)


def _check_size(size: Any, distance: Any, owner: str) -> float:
    _check_distance(distance, owner)
    least = 1.0 if distance == "likelihood ratio" else 0.0
    if not is_real(size) or not least <= size < math.inf:
        expected = f"be a finite number of at least {least:g} for the {distance}"
        raise parameter_error("size", owner, expected, size)
    return float(size)
