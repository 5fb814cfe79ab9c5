"""How the adaptive schedule steers multipliers: once an epoch, by the hard JCW of the selection fold."""

from __future__ import annotations

import math
from collections.abc import Sequence

FIRST_MULTIPLIER = 0.03  # with it, a confident mistake weighs about as much again
IDLE_MULTIPLIER = 1e-3  # below it, the constraint does nothing
LARGEST_MOVE, SMALLEST_MOVE = 0.7, 0.1  # of the multiplier's logarithm, an epoch


def steered_multiplier(jcws: Sequence[float], aim: float) -> float:
    """Return the multiplier after constrained epochs that ended with these JCWs.

    Its logarithm follows the violation relative to the aim, by at most 0.7 an epoch and half as much
    after every change of sign, so that it closes in on the multiplier at which JCW is the aim
    instead of swinging around it.
    """
    exponent, most, sign = math.log(FIRST_MULTIPLIER), LARGEST_MOVE, 0.0
    for jcw in jcws:
        violation = (jcw - aim) / aim
        if violation * sign < 0.0:
            most = max(most / 2, SMALLEST_MOVE)
        sign = violation or sign
        exponent += min(max(violation, -1.0), 1.0) * most
    return math.exp(exponent)


def has_settled(jcw: float, multiplier: float, aim: float, near: float) -> bool:
    """Tell whether JCW was that near to the aim, or below it with the constraint doing nothing."""
    return abs(jcw - aim) <= near or (multiplier < IDLE_MULTIPLIER and jcw <= aim)
