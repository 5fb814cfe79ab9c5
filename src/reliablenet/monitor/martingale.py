"""`SourceMonitor`: whether a stream still comes from the certified source, looked at after every row.

A conformal test martingale (Vovk, Gammerman and Shafer, 2005). The rank of each new row among all before it, ties broken by
a coin, is uniform and independent of earlier ranks as long as the source stays. Bets on ranks that are not uniform then
multiply the money by more than 1/level with probability at most ``level``, ever (Ville).
"""

from __future__ import annotations

import json
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_fraction, check_seed
from reliablenet.errors import InvalidDataError
from reliablenet.tables.profile import InputProfile
from reliablenet.tables.source import LEVELS, cell_codes, score_levels, surprise_levels

FORMAT = "reliablenet-source-monitor/1"
JUMPS = np.array([0.01, 0.001])  # how often a bet changes its mind, a row
SLOPES, BENDS, POWER = (-1.0, -0.5, 0.5, 1.0), (-0.5, 0.5), 0.3
RICH = 1e200  # far beyond every alarm
BETS = 1 + len(SLOPES) + len(BENDS) + 2
TOGETHER = 256  # rows whose ranks are found at once
COLUMN_SHARE = 0.5  # of the level goes to the columns, the rest to score and rarity

Levels = NDArray[np.intp]


class RankMartingales:
    """Martingales on the ranks of several statistics of a stream of rows, each with a share of the level.

    Parameters
    ----------
    names : list of str
        Of the statistics.
    counts : array of int, shape (statistics, 128)
        Rows of the certified source at each level of each statistic, which no bet was made on.
    weights : array of float, shape (statistics,)
        Shares of the level.
    level : float in (0, 1)
    seed : int
        For the coins that break ties.

    Attributes
    ----------
    rows, alarm, alarm_row, e_value, where
        As for `SourceMonitor`.
    """

    def __init__(
        self,
        names: list[str],
        counts: NDArray[np.int64],
        weights: NDArray[np.float64],
        level: float,
        seed: int,
    ) -> None:
        self.level, self.seed = level, seed
        self._names, self._seen, self._weights = names, counts, weights
        self._money = np.zeros((len(names), len(JUMPS), BETS))
        self.rows, self.alarm_row, self.e_value, self.where = 0, None, 1.0, names[0]

    rows: int
    alarm_row: int | None
    e_value: float
    where: str

    @property
    def alarm(self) -> bool:
        """Whether the source changed, at this row or before."""
        return self.alarm_row is not None

    def update_levels(self, levels: Levels) -> Self:
        """Take rows whose statistics are known as levels from 0 to 127, of shape (n, statistics)."""
        for start in range(0, len(levels), TOGETHER):
            part = levels[start : start + TOGETHER]
            self._bet(self._ranks_of(part))
        return self

    def _ranks_of(self, levels: Levels) -> NDArray[np.float64]:
        """Return the rank from above of each row among all before it and itself; count the rows."""
        n, places = len(levels), np.arange(len(self._names))
        before = np.arange(n)[:, None] > np.arange(n)  # [later, earlier] within these rows
        total = (self._seen.sum(axis=1) + np.arange(n)[:, None]).astype(np.float64)
        above = (self._seen.sum(axis=1)[:, None] - self._seen.cumsum(axis=1))[places, levels]
        equal = self._seen[places, levels] + 1
        for place in places:
            own, others = levels[:, place, None], levels[:, place]
            above[:, place] += (before & (others > own)).sum(axis=1)
            equal[:, place] += (before & (others == own)).sum(axis=1)
            self._seen[place] += np.bincount(others, minlength=LEVELS)
        return np.asarray((above + self._coins(n) * equal) / (total + 1.0))

    def _bet(self, ranks: NDArray[np.float64]) -> None:
        """Bet on the ranks of one row after another, of shape (n, statistics)."""
        n, jumps = len(ranks), JUMPS[:, None]
        keeps, moves = 1.0 - jumps, jumps / BETS
        t = self.rows + 1.0 + np.arange(n)
        # A share 1/(t(t+1)) of the first money starts at row t, for changes that come late.
        starts, pays = 1.0 / (t * (t + 1.0) * BETS), payoffs(ranks)[:, :, None, :]
        money, wholes = self._money, np.empty((n, *self._money.shape[:2]))
        for place in range(n):
            money = (money + starts[place]) * pays[place]
            whole = np.minimum(money.sum(axis=2, keepdims=True), RICH)
            wholes[place] = whole[:, :, 0]
            money = np.minimum(keeps * money + moves * whole, RICH)
        self._money, self.rows = money, self.rows + n
        asleep = (1.0 / (t + 1.0))[:, None, None]
        wealth = self._weights * (asleep + wholes).mean(axis=2)
        best = int(wealth[-1].argmax())
        self.e_value, self.where = float(wealth[-1, best]), self._names[best]
        evidence = wealth.max(axis=1)
        reached = np.flatnonzero(evidence >= 1.0 / self.level)
        if self.alarm_row is None and len(reached):
            self.alarm_row = int(t[reached[0]])
        self._keep(evidence)

    def _keep(self, evidence: NDArray[np.float64]) -> None:
        """Keep what is wanted of the evidence after each of the last rows: nothing."""

    def _coins(self, n: int) -> NDArray[np.float64]:
        """Return the coins of the next n rows: of row t always the same."""
        width = len(self._names)
        bits = np.random.Philox(key=self.seed)
        skipped = self.rows * width
        bits.advance(skipped // 4)
        coins = np.random.Generator(bits).random(n * width + skipped % 4)
        return coins[skipped % 4 :].reshape(n, width)


class SourceMonitor(RankMartingales):
    """Watch a stream of rows without labels.

    Each of score, rarity and columns has a martingale of its own and a share of the level, so that the
    probability of a false alarm, at any time, is at most ``level``. A change may come at any row.

    Parameters
    ----------
    model : fitted or loaded estimator of this library
        Its certificate counts rows, not groups.
    level : float in (0, 1)
    random_state : int
        For the coins that break ties.

    Attributes
    ----------
    rows : int
        Rows so far.
    alarm : bool
        Whether the source changed, at this row or before.
    alarm_row : int or None
        The row of the alarm, from 1.
    e_value : float
        The evidence against the same source now; the alarm is raised at 1/level.
    where : str
        What the evidence comes from: "score", "rarity" or a column.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import reliablenet as rn
    >>> from reliablenet.datasets import SyntheticBand
    >>> rows = SyntheticBand(random_state=0).sample(2000)
    >>> clf = rn.CertifiedThreshold(LogisticRegression(), random_state=0).fit(rows.X, rows.y)
    >>> watch = rn.SourceMonitor(clf)
    >>> watch.update(SyntheticBand(random_state=1).sample(100).X + 1.0).alarm
    True
    """

    def __init__(self, model: Any, level: float = 0.05, random_state: int = 0) -> None:
        level = check_fraction("level", level, "SourceMonitor")
        seed = check_seed("random_state", random_state, "SourceMonitor")
        if model.grouped_:
            raise InvalidDataError(
                "`model` of SourceMonitor must have a certificate that counts rows; this one counts "
                "groups. Use `source_test` with `groups`."
            )
        self._model = model
        source = model.source_
        known = source is not None and source.reference is not None
        self._profile: InputProfile | None = source.profile if known else None
        start = [score_counts(model.evidence_.score)]
        names, self._ranks = ["score"], []
        if self._profile is not None:
            start.append(np.array(source.reference.surprise))
            names.append("rarity")
            for column, counts in zip(self._profile.columns, source.reference.counts, strict=True):
                ranks = rarity_ranks(column.counts, column.kind == "number")
                start.append(np.bincount(ranks, weights=counts, minlength=LEVELS))
                self._ranks.append(ranks)
                names.append(str(column.name))
        columns = len(self._ranks)
        outputs = len(names) - columns
        share = COLUMN_SHARE if columns else 0.0
        weights = np.array(
            [(1.0 - share) / outputs] * outputs + [share / max(columns, 1)] * columns
        )
        super().__init__(names, np.array(start, np.int64), weights, level, seed)

    def update(self, X: Any) -> Self:
        """Take the next rows, in their order; how they are cut into batches does not matter.

        Parameters
        ----------
        X : array or data frame of shape (n, d)

        Returns
        -------
        self
        """
        rows = self._model._check_rows(X, reset=False)
        levels = [score_levels(self._model._outputs(rows).acceptance())]
        if self._profile is not None:
            cells = cell_codes(self._profile, rows)
            if cells is None:
                raise InvalidDataError(
                    "`X` of SourceMonitor.update must have the columns that the model was fitted on."
                )
            levels.append(surprise_levels(self._profile, cells))
            levels += [ranks[cells[:, place]] for place, ranks in enumerate(self._ranks)]
        return self.update_levels(np.stack(levels, axis=1))

    def to_json(self) -> str:
        """Return the state as text; with the model it goes on from there."""
        state = {
            "format": FORMAT,
            "level": self.level,
            "seed": self.seed,
            "rows": self.rows,
            "alarm_row": self.alarm_row,
            "statistics": self._names,
            "seen": [{str(i): int(c) for i, c in enumerate(row) if c} for row in self._seen],
            "money": self._money.ravel().tolist(),
            "e_value": self.e_value,
            "where": self.where,
        }
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, model: Any) -> SourceMonitor:
        """Go on from a state that `to_json` wrote, with the same model."""
        state = json.loads(text)
        monitor = cls(model, state["level"], state["seed"])
        if state.get("format") != FORMAT or state["statistics"] != monitor._names:
            raise InvalidDataError("The state is not one of a SourceMonitor with this model.")
        monitor.rows, monitor.alarm_row = state["rows"], state["alarm_row"]
        seen = np.zeros_like(monitor._seen)
        for place, counts in enumerate(state["seen"]):
            for level, count in counts.items():
                seen[place, int(level)] = count
        monitor._seen = seen
        monitor._money = np.array(state["money"]).reshape(monitor._money.shape)
        monitor.e_value, monitor.where = state["e_value"], state["where"]
        return monitor


def score_counts(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many scores there are at each of the 128 levels."""
    return np.bincount(score_levels(scores), minlength=LEVELS)


def payoffs(ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what each bet pays for ranks in (0, 1), of shape (n, bets); each pays 1 on average.

    Nothing; more of high or of low ranks, by a straight line; more or fewer at both ends; far more at
    one end.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.monitor.martingale import payoffs
    >>> bool(np.allclose(payoffs((np.arange(1e6) + 0.5) / 1e6).mean(axis=0), 1.0, atol=0.02))
    True
    """
    p = np.clip(np.asarray(ranks, np.float64), 1e-12, 1 - 1e-12)
    bend = 12.0 * (p - 0.5) ** 2 - 1.0
    return np.stack(
        [
            np.ones_like(p),
            *(1.0 + slope * (2.0 * p - 1.0) for slope in SLOPES),
            *(1.0 + amount * bend for amount in BENDS),
            POWER * p ** (POWER - 1.0),
            POWER * (1.0 - p) ** (POWER - 1.0),
        ],
        axis=-1,
    )


def rarity_ranks(counts: tuple[int, ...], ordered: bool) -> Levels:
    """Return a level for each cell of a column: its place in a number, how rare it was in a category."""
    places = np.arange(len(counts))
    if not ordered:
        places = np.argsort(np.argsort(-np.array(counts), kind="stable"), kind="stable")
    return np.minimum(places, LEVELS - 1).astype(np.intp)
