"""How a schedule that adapts steers the constraint by what the selection fold shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from reliablenet.risk.surrogate import psi
from reliablenet.training.history import EpochRecord
from reliablenet.training.schedule import Schedule

FIRST_MULTIPLIER = 0.03  # with it, a confident mistake weighs about as much again
IDLE_MULTIPLIER = 1e-3  # below it, the constraint does nothing
LARGEST_MOVE, SMALLEST_MOVE = 0.7, 0.1  # of the multiplier's logarithm, an epoch


def steered_multiplier(jcws: list[float], aim: float) -> float:
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


def have_settled(records: Sequence[EpochRecord], count: int, aim: float, near: float) -> bool:
    """Tell whether so many epochs had complementary slackness, as well as the fold can tell.

    That is, JCW was within ``near`` of the aim, or below it with the constraint doing nothing.
    """
    slack = (
        abs(record.jcw_selection - aim) <= near
        or (record.multiplier < IDLE_MULTIPLIER and record.jcw_selection <= aim)
        for record in records
    )
    return len(records) == count and all(slack)


def fitting_tau(g: Tensor, schedule: Schedule, aim: float, m1: float, m2: float) -> float:
    """Return the first tau of a schedule at which the surrogate is about the hard event.

    There it exceeds the JCW of these violations by no more than half the aim.
    """
    hard = float((g > 0).double().mean())
    tau = schedule.tau
    while tau > schedule.tau_min and float(psi(g, tau, m1, m2)) - hard > aim / 2:
        tau *= schedule.tau_decay
    return max(tau, schedule.tau_min)
