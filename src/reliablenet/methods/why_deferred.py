"""Why a row was deferred: what it lacked, and which columns lower its confidence, against usual values of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import check_count
from reliablenet.errors import InvalidDataError
from reliablenet.tables.profile import InputProfile
from reliablenet.tables.usual import usual_values

Values = NDArray[np.float64]
SHOWN = 3  # columns that a line names
WORTH_SAYING = 0.1  # of what a row lacks: a column that explains less is not named
TOGETHER = 20_000  # rows that are scored in one go


@dataclass(frozen=True, eq=False)
class Explanations:
    """Why rows were deferred, in the order of the rows.

    Attributes
    ----------
    accepted : boolean array of shape (n,)
    confidence : array of shape (n,)
    threshold : array of shape (n,)
        What the confidence had to reach for this row, its group and its answer; ``inf`` where nothing is
        acted on without a certificate.
    why : array of str of shape (n,)
        "" for rows that are acted on, else "confidence" (below the threshold), "no certificate" (no
        threshold was certified for this row) or "odd" (unlike the training rows, where those are deferred).
    gains : DataFrame of shape (n, columns)
        How much surer the model would be on average with usual values of a column in place of the row's
        own: positive where the column lowers the confidence. NaN for rows that lack no confidence.
    values : DataFrame of shape (n, columns)
        The row's own values.
    """

    accepted: NDArray[np.bool_]
    confidence: Values
    threshold: Values
    why: NDArray[Any]
    gains: pd.DataFrame
    values: pd.DataFrame

    def __post_init__(self) -> None:
        n, own = len(self.accepted), (self.confidence, self.threshold, self.why)
        tables = (self.gains, self.values)
        if any(len(part) != n for part in (*own, *tables)) or tables[0].shape != tables[1].shape:
            raise InvalidDataError("Explanations need one entry for each row, and a gain a value.")

    def __len__(self) -> int:
        return len(self.accepted)

    @cached_property
    def lacking(self) -> Values:
        """How much confidence each row lacks; 0 for none, ``inf`` where there is no threshold."""
        return np.asarray(np.maximum(self.threshold - self.confidence, 0.0))

    def lowered_by(self, row: int, most: int = SHOWN) -> dict[Any, float]:
        """Return the columns that lower the confidence of a row most, with their gains.

        At most so many, and only those that explain a tenth of what the row lacks.
        """
        gains = self._gains[row]
        enough = gains > WORTH_SAYING * self.lacking[row]  # NaN is never enough
        order = [place for place in np.argsort(-gains, kind="stable") if enough[place]]
        return {self.gains.columns[place]: float(gains[place]) for place in order[:most]}

    @cached_property
    def _gains(self) -> Values:
        return self.gains.to_numpy(np.float64)

    def to_frame(self, index: Any = None, *, most: int = SHOWN) -> pd.DataFrame:
        """Return one line a row; ``lowered_by`` names up to ``most`` columns, the row's value and the gain."""
        check_count("most", most, "Explanations.to_frame")
        lines = [""] * len(self)
        own = {name: column.tolist() for name, column in self.values.items()}
        for row in np.flatnonzero(self.why == "confidence").tolist():
            found = self.lowered_by(row, most).items()
            named = [f"{name} = {_text(own[name][row])} ({gain:+.2g})" for name, gain in found]
            lines[row] = "; ".join(named)
        return pd.DataFrame(
            {
                "confidence": self.confidence,
                "accepted": self.accepted,
                "threshold": self.threshold,
                "lacking": self.lacking,
                "why": self.why,
                "lowered_by": lines,
            },
            index=index,
        )


def find_gains(
    score_of: Callable[[Any], Values],
    X: Any,
    score: Values,
    places: NDArray[np.intp],
    profile: InputProfile | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how much the mean score of rows gains from usual values in place of each of their own.

    Parameters
    ----------
    score_of : callable
        From rows to their scores.
    X : data frame or array
    score : array of shape (n,)
        Of these rows.
    places : integer array
        Rows that are asked about.
    profile : InputProfile or None

    Returns
    -------
    DataFrame, DataFrame
        Gains, NaN where they were not asked for, and the values that the rows have; both without
        columns of which no usual value is known.
    """
    rows = np.asarray(X) if isinstance(X, list) else X
    table = None if profile is None or profile.layout == "image" else profile.table(rows)
    if profile is None or table is None:
        nothing = pd.DataFrame(index=range(len(score)))
        return nothing, nothing
    usual = {c.name: usual_values(c, table[c.name]) for c in profile.columns}
    usual = {name: found for name, found in usual.items() if len(found[0])}
    gains = {name: np.full(len(score), np.nan) for name in usual}
    waiting: list[tuple[Any, NDArray[np.intp], float, Any]] = []
    for name, part, weight, piece in _replaced(rows, table, places, usual):
        waiting.append((name, part, weight, piece))
        if sum(len(part) for _, part, _, _ in waiting) >= TOGETHER:
            _add_gains(gains, waiting, score_of, score)
            waiting = []
    if waiting:
        _add_gains(gains, waiting, score_of, score)
    own = table[list(usual)].reset_index(drop=True)
    return pd.DataFrame(gains, columns=own.columns), own


def _replaced(
    rows: Any,
    table: pd.DataFrame,
    places: NDArray[np.intp],
    usual: Mapping[Any, tuple[pd.Series[Any], Values]],
) -> Iterator[tuple[Any, NDArray[np.intp], float, Any]]:
    """Yield rows with one usual value in one column: its name, which rows, its weight, the rows."""
    for start in range(0, len(places), TOGETHER):
        part = places[start : start + TOGETHER]
        for name, (values, weights) in usual.items():
            column = table.columns.get_loc(name)
            for at, weight in enumerate(weights):
                constant = values.take(np.full(len(part), at))
                if isinstance(rows, pd.DataFrame):
                    piece: Any = rows.iloc[part].reset_index(drop=True)
                    piece.isetitem(column, constant.array)
                else:
                    piece = rows[part].copy()
                    piece[:, column] = constant.to_numpy()
                yield name, part, float(weight), piece


def _add_gains(
    gains: Mapping[Any, Values],
    waiting: list[tuple[Any, NDArray[np.intp], float, Any]],
    score_of: Callable[[Any], Values],
    score: Values,
) -> None:
    pieces = [piece for _, _, _, piece in waiting]
    if isinstance(pieces[0], pd.DataFrame):
        scored = score_of(pd.concat(pieces, ignore_index=True))
    else:
        scored = score_of(np.concatenate(pieces))
    start = 0
    for name, part, weight, _ in waiting:
        change = scored[start : start + len(part)] - score[part]
        gains[name][part] = np.nan_to_num(gains[name][part]) + weight * change
        start += len(part)


def _text(value: Any) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
