"""What is known about the rows of one population since watching began: counts, capital, bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reliablenet.certificate.anytime import STAKES, log_mixture, solve_upper
from reliablenet.monitor.e_process import (
    Bets,
    Capital,
    add_late,
    advance,
    log_value,
    make_bets,
    merge,
)

PopulationKind = Literal["all", "accepted", "group", "predicted", "class"]


def _no_stakes() -> NDArray[np.float64]:
    return np.zeros(len(STAKES))


@dataclass(frozen=True, eq=False)
class Population:
    """The state of the watch over one population; `update` and its like return a new one.

    Attributes
    ----------
    alpha : float
        Budget for the share of its rows that are acted on wrongly.
    level : float
        Allowed probability of ever raising the alarm while the budget is kept.
    audit : float
        Smallest probability with which a row is audited.
    kind : {"all", "accepted", "group", "predicted", "class"}
        Which rows these are.
    value : str
        Of which group or class, as a text.
    accepted, labels : int
        Rows acted on, and those of them that were audited and whose truth is known.
    weight : float
        Sum of 1 / probability over the wrong ones.
    pending : dict
        Rows acted on and audited whose truth is still to come, by the probability of their audit.
    alarm_row : int or None
        The row, counted from 1, at which the alarm was raised.
    capital : Capital
    log_kept : array
        What the bound needs, a number for each of its stakes.
    """

    alpha: float
    level: float
    audit: float
    kind: PopulationKind = "all"
    value: str = ""
    accepted: int = 0
    labels: int = 0
    weight: float = 0.0
    pending: dict[float, int] = field(default_factory=dict)
    alarm_row: int | None = None
    capital: Capital = field(default_factory=Capital.none)
    log_kept: NDArray[np.float64] = field(default_factory=_no_stakes)

    @property
    def bets(self) -> Bets:
        """What was fixed before the first row."""
        return make_bets(self.alpha, self.audit)

    @property
    def rows(self) -> int:
        """All rows of the population, deferred ones included."""
        return self.capital.rows

    @property
    def errors(self) -> int:
        """Rows known to be accepted, audited and wrong."""
        return self.capital.errors

    @property
    def waiting(self) -> int:
        """Rows whose truth is still to come."""
        return sum(self.pending.values())

    @property
    def jcw(self) -> float:
        """Estimated share of rows acted on wrongly, those that wait left out of the count of mistakes."""
        return self.weight / self.rows if self.rows else math.nan

    @property
    def alarm(self) -> bool:
        """Whether the alarm was ever raised."""
        return self.alarm_row is not None

    @property
    def log_e_value(self) -> float:
        """Logarithm of the evidence that the budget is broken; rows that wait count as not wrong."""
        return log_value(self.capital, self.bets)

    @property
    def worst_log_e_value(self) -> float:
        """What the logarithm would be at most if every row that waits turned out wrong."""
        if not self.pending:
            return self.log_e_value
        bets, waiting = self.bets, _spread(self.pending)
        worst = replace(self.capital, errors=self.errors + len(waiting))
        surplus = bets.log_surplus(waiting).sum(axis=0)
        restarts = worst.log_restarts + surplus  # as if each had come after every start
        worst = replace(worst, log_surplus=worst.log_surplus + surplus, log_restarts=restarts)
        return log_value(worst, bets)

    @property
    def upper_bound(self) -> float:
        """Anytime-valid bound of the mean JCW; rows that wait count as wrong."""
        kept = self.log_kept + self._log_kept_by(_spread(self.pending))
        return solve_upper(kept, self.rows, self.level, self.audit)

    @property
    def best_upper_bound(self) -> float:
        """What the bound would be if every row that waits turned out right."""
        return solve_upper(self.log_kept, self.rows, self.level, self.audit)

    def log_evidence_below(self, mean: float) -> float:
        """Return the logarithm of the evidence that the mean JCW is below a number; rows that wait count as wrong.

        The upper bound is where the evidence reaches 1 / level.
        """
        kept = self.log_kept + self._log_kept_by(_spread(self.pending))
        return float(log_mixture(kept, self.rows, mean, self.audit))

    def update(
        self,
        accepted: NDArray[np.bool_],
        known: NDArray[np.bool_],
        wrong: NDArray[np.bool_],
        waits: NDArray[np.bool_],
        probability: NDArray[np.float64],
    ) -> Population:
        """Take in the next rows.

        Parameters
        ----------
        accepted : array of shape (n,)
        known : array of shape (n,)
            Accepted, audited, and the truth is there.
        wrong : array of shape (n,)
            Known and wrong.
        waits : array of shape (n,)
            Accepted, audited, and the truth is still to come.
        probability : array of shape (n,)
            With which each was audited.
        """
        places = np.flatnonzero(wrong)
        weighted = probability[places]
        capital, row, values = advance(self.capital, self.bets, len(accepted), places, weighted)
        pending = dict(self.pending)
        for share, count in zip(*np.unique(probability[waits], return_counts=True), strict=True):
            pending[float(share)] = pending.get(float(share), 0) + int(count)
        over = np.flatnonzero(values >= -math.log(self.level))
        alarm = int(row[over[0]]) if len(over) else None
        return replace(
            self,
            accepted=self.accepted + int(accepted.sum()),
            labels=self.labels + int(known.sum()),
            weight=self.weight + float((1.0 / weighted).sum()),
            pending=pending,
            alarm_row=alarm if self.alarm_row is None else self.alarm_row,
            capital=capital,
            log_kept=self.log_kept + self._log_kept_by(weighted),
        )

    def resolve(self, wrong: NDArray[np.bool_], probability: float) -> Population:
        """Take in the truth of rows that waited and were audited with this probability."""
        left = dict(self.pending)
        left[probability] -= len(wrong)
        if left[probability] == 0:
            del left[probability]
        late = np.full(int(wrong.sum()), probability)
        capital = add_late(self.capital, self.bets, late)
        found = replace(
            self,
            labels=self.labels + len(wrong),
            weight=self.weight + float((1.0 / late).sum()),
            pending=left,
            capital=capital,
            log_kept=self.log_kept + self._log_kept_by(late),
        )
        return found._with_alarm()

    def merge(self, other: Population) -> Population:
        """Return what is known of both together; an alarm of one alone stays with it."""
        pending = {
            share: self.pending.get(share, 0) + other.pending.get(share, 0)
            for share in sorted({*self.pending, *other.pending})
        }
        both = replace(
            self,
            accepted=self.accepted + other.accepted,
            labels=self.labels + other.labels,
            weight=self.weight + other.weight,
            pending=pending,
            alarm_row=None,
            capital=merge(self.capital, other.capital, self.bets),
            log_kept=self.log_kept + other.log_kept,
        )
        return both._with_alarm()

    def _with_alarm(self) -> Population:
        """Return the same with the alarm raised now, if the evidence suffices."""
        if self.alarm_row is None and self.log_e_value >= -math.log(self.level):
            return replace(self, alarm_row=self.rows)
        return self

    def _log_kept_by(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """Return what wrong rows take from the evidence that JCW is small."""
        ratio = self.audit / probability[:, None]
        return np.asarray(np.log1p(-STAKES * ratio).sum(axis=0))


def _spread(pending: dict[float, int]) -> NDArray[np.float64]:
    return np.repeat(np.array([*pending], np.float64), np.array([*pending.values()], np.int64))
