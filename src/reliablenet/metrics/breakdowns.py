"""Who bears the mistakes: rows acted on wrongly, by true class, by predicted class and by any column.

All that is kept are counts of cells. Every interval holds together with all others of the breakdown, so
that the worst of many cells may be looked for; a difference is called clear by a test that allows for
the search. For a rule that was fixed beforehand both are exact. No promise is made about a cell: that
takes a certificate by group or by class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import hypergeom

from reliablenet._checks import as_array, check_count, check_fraction
from reliablenet.certificate.bounds import clopper_pearson_interval
from reliablenet.certificate.scored import ScoredRows, check_length, score_rows
from reliablenet.certificate.wording import percent
from reliablenet.errors import InvalidDataError
from reliablenet.metrics.cells import Cut, as_columns, learn_cuts

TRUE, PREDICTED = "true class", "predicted class"
RATES = ("jcw", "error_accepted", "coverage")
MOST_CLASSES = 1000
FORMAT = "reliablenet-breakdown/1"


@dataclass(frozen=True)
class Cell:
    """The counts of one cell.

    Attributes
    ----------
    column, value : str
        Which rows: those whose ``column`` has this ``value``.
    n, accepted, errors : int
        Rows, those acted on, and those acted on and wrong.
    """

    column: str
    value: str
    n: int
    accepted: int
    errors: int

    def __post_init__(self) -> None:
        for name in ("n", "accepted", "errors"):
            object.__setattr__(
                self, name, check_count(name, getattr(self, name), "Cell", minimum=0)
            )
        if not self.errors <= self.accepted <= self.n:
            raise InvalidDataError(
                f"A cell needs errors <= accepted <= n; got {self.errors}, {self.accepted}, {self.n}."
            )

    @property
    def jcw(self) -> float:
        """Share of its rows that were acted on wrongly."""
        return self.errors / self.n


@dataclass(frozen=True)
class Breakdown:
    """Who bears the mistakes of a rule.

    Attributes
    ----------
    whole : Cell
        All rows.
    cells : tuple of Cell
        Those with rows, column by column.
    level : float
        At which all intervals together hold, and at which a difference is called clear.
    cuts : dict of str to Cut
        How columns were cut.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.metrics import breakdown
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["female", "male"], 2000)
    >>> correct = rng.random(2000) > np.where(sex == "female", 0.12, 0.02)
    >>> found = breakdown(
    ...     score=np.ones(2000), correct=correct, accepted=np.ones(2000, bool), by={"sex": sex}
    ... )
    >>> found.to_frame()[["column", "value", "n", "errors", "share_of_mistakes", "clear"]].round(2)
      column     value     n  errors  share_of_mistakes  clear
    0         all rows  2000     151               1.00  False
    1    sex    female   957     122               0.81   True
    2    sex      male  1043      29               0.19  False
    >>> print(found.summary()[0])
    sex = female: 122 of 957 rows acted on wrongly, 12.7 % against 7.5 % of all; 48 % of rows bear 81 % of the mistakes
    """

    whole: Cell
    cells: tuple[Cell, ...]
    level: float
    cuts: Mapping[str, Cut]

    def __post_init__(self) -> None:
        check_fraction("level", self.level, "Breakdown")
        for column in {cell.column for cell in self.cells}:
            parts = [cell for cell in self.cells if cell.column == column]
            for name in ("n", "accepted", "errors"):
                if sum(getattr(cell, name) for cell in parts) != getattr(self.whole, name):
                    raise InvalidDataError(
                        f"The cells of {column!r} must add up to the whole; `{name}` does not."
                    )

    @cached_property
    def chance(self) -> NDArray[np.float64]:
        """Chance of so many mistakes or more in each cell if it fared like the rest.

        By Fisher's exact test, times the number of cells: the search for the worst is allowed for.
        """
        n, errors = (np.array([getattr(c, name) for c in self.cells]) for name in ("n", "errors"))
        tail = hypergeom.sf(errors - 1, self.whole.n, self.whole.errors, n)
        return np.asarray(np.minimum(tail * len(self.cells), 1.0), np.float64)

    def worst(self, most: int = 3) -> list[Cell]:
        """Return the cells that stand out most with more mistakes than the rest, the clearest first."""
        order = sorted(range(len(self.cells)), key=lambda i: (self.chance[i], -self.cells[i].jcw))
        found = [self.cells[i] for i in order if self.cells[i].jcw > self.whole.jcw]
        return found[:most]

    def is_clear(self, cell: Cell) -> bool:
        """Tell whether a cell bears more mistakes than the rest, beyond chance at the level."""
        return bool(self.chance[self.cells.index(cell)] <= 1.0 - self.level)

    @property
    def is_clear_anywhere(self) -> bool:
        """Whether any cell clearly bears more mistakes than the rest."""
        return any(self.is_clear(cell) for cell in self.worst(len(self.cells)))

    def summary(self, most: int = 3) -> list[str]:
        """Return the few sentences that matter: which cells bear more mistakes than the rest.

        Clear differences alone, or one sentence that there are none.
        """
        clear = [cell for cell in self.worst(most) if self.is_clear(cell)]
        if not clear:
            looked = len({cell.column for cell in self.cells})
            return [f"no difference beyond chance in {len(self.cells)} parts of {looked} columns"]
        whole = percent(self.whole.jcw)
        return [
            f"{cell.column} = {cell.value}: {cell.errors:,} of {cell.n:,} rows acted on wrongly, "
            f"{percent(cell.jcw)} against {whole} of all; {percent(cell.n / self.whole.n, 0)} of rows "
            f"bear {percent(cell.errors / self.whole.errors, 0)} of the mistakes"
            for cell in clear
        ]

    @cached_property
    def rates(self) -> dict[str, NDArray[np.float64]]:
        """Rates with their simultaneous intervals, all rows first, then each cell."""
        rows = [self.whole, *self.cells]
        n, accepted, errors = np.array([(c.n, c.accepted, c.errors) for c in rows]).T
        # Each interval fails in this share of draws, and so all of them together in 1 - level.
        tail = (1.0 - self.level) / (len(RATES) * len(rows))
        counted = zip(RATES, ((errors, n), (errors, accepted), (accepted, n)), strict=True)
        found: dict[str, NDArray[np.float64]] = {}
        for name, (part, of) in counted:
            low, high = clopper_pearson_interval(part, of, 1.0 - tail)
            value = np.where(of > 0, part / np.maximum(of, 1), np.nan)
            found |= {name: value, f"{name}_low": low, f"{name}_high": high}
        return found

    def to_frame(self) -> pd.DataFrame:
        """Return counts, rates with their simultaneous intervals and tests, one row a cell."""
        rows = [self.whole, *self.cells]
        counts = {
            name: [getattr(cell, name) for cell in rows]
            for name in ("column", "value", "n", "accepted", "errors")
        }
        chance = np.array([1.0, *self.chance])
        shares = {
            "share_of_rows": np.array(counts["n"]) / self.whole.n,
            "share_of_mistakes": np.array(counts["errors"]) / max(self.whole.errors, 1),
            "chance": chance,
            "clear": chance <= 1.0 - self.level,
        }
        return pd.DataFrame(counts | self.rates | shares)

    def __add__(self, other: Self) -> Self:
        """Return the counts of two batches of rows that were cut alike."""
        if (self.cuts, self.level) != (other.cuts, other.level):
            raise InvalidDataError("Breakdowns can be added only if their columns were cut alike.")
        # labels of which one batch has too many are a quantity in both
        both = {cell.column for cell in self.cells} & {cell.column for cell in other.cells}
        counts: dict[tuple[str, str], NDArray[np.int64]] = {}
        for cell in [c for c in (*self.cells, *other.cells) if c.column in both]:
            key, found = (cell.column, cell.value), [cell.n, cell.accepted, cell.errors]
            counts[key] = counts.get(key, np.zeros(3, np.int64)) + found
        order = {name: place for place, name in enumerate(dict.fromkeys(c for c, _ in counts))}
        keys = sorted(counts, key=lambda key: (order[key[0]], self._place(*key)))
        whole = Cell(
            *("", "all rows"),
            *(
                getattr(self.whole, n) + getattr(other.whole, n)
                for n in ("n", "accepted", "errors")
            ),
        )
        cells = tuple(Cell(*key, *counts[key].tolist()) for key in keys)
        return type(self)(whole, cells, self.level, self.cuts)

    def _place(self, column: str, value: str) -> tuple[int, str]:
        names = self.cuts[column].names() if column in self.cuts else []
        return (names.index(value) if value in names else 0), value

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON: counts and cuts, from which all else follows."""
        return {
            "format": FORMAT,
            "level": self.level,
            "whole": [self.whole.n, self.whole.accepted, self.whole.errors],
            "cells": [[c.column, c.value, c.n, c.accepted, c.errors] for c in self.cells],
            "cuts": {name: cut.to_dict() for name, cut in self.cuts.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        if not isinstance(values, Mapping) or values.get("format") != FORMAT:
            raise InvalidDataError(f"This is not a breakdown of the format {FORMAT!r}.")
        return cls(
            whole=Cell("", "all rows", *values["whole"]),
            cells=tuple(Cell(*cell) for cell in values["cells"]),
            level=values["level"],
            cuts={name: Cut(**cut) for name, cut in values["cuts"].items()},
        )


def breakdown(
    proba: Any = None,
    y: Any = None,
    *,
    accepted: Any,
    by: Any = None,
    score: Any = None,
    predicted: Any = None,
    correct: Any = None,
    classes: Any = None,
    level: float = 0.95,
) -> Breakdown:
    """Count who bears the mistakes of a rule that accepts the rows marked in ``accepted``.

    Parameters
    ----------
    proba, y, score, predicted, correct, classes
        As for `reliablenet.certify`; or rows scored before (`ScoredRows`) alone.
    accepted : array-like of bool of shape (n,)
    by : data frame, or mapping of names to columns, optional
        What to break down by besides true and predicted class: numbers are cut at their quartiles,
        dates by year or quarter; of categories the commonest twelve are told apart; what is missing is a
        cell of its own. A column that names its rows, or has one value, is left out.
    level : float in (0, 1)

    Returns
    -------
    Breakdown
    """
    owner = "breakdown"
    rows = score_rows(
        proba, y, score=score, predicted=predicted, correct=correct, classes=classes, owner=owner
    )
    chosen = as_array(accepted, "accepted")
    check_length("accepted", chosen, rows.n, owner)
    if chosen.dtype != np.bool_:
        raise InvalidDataError(
            f"`accepted` of {owner} must hold booleans; got {chosen.dtype}. Compare the score with the "
            "threshold first."
        )
    names = None if classes is None else as_array(classes, "classes").tolist()
    return count_cells(rows, chosen, by, learn_cuts(by), classes=names, level=level)


def count_cells(
    rows: ScoredRows,
    accepted: NDArray[np.bool_],
    by: Any,
    cuts: Mapping[str, Cut],
    *,
    classes: Sequence[Any] | None = None,
    level: float = 0.95,
) -> Breakdown:
    """Return the counts of cells that are cut already, of scored rows.

    Parameters
    ----------
    rows : ScoredRows
    accepted : boolean array of shape (n,)
    by : data frame, mapping of names to columns, or array
    cuts : mapping of str to Cut
        Columns of ``by`` without a cut are left out.
    classes : sequence, optional
        Names of the classes, if truth and predictions are their places.
    level : float in (0, 1)

    Returns
    -------
    Breakdown
    """
    errors = accepted & rows.wrong
    cells: list[Cell] = []
    for column, labels in ((TRUE, rows.truth), (PREDICTED, rows.predicted)):
        if labels is None:
            continue
        codes, distinct = pd.factorize(labels, sort=True)
        if len(distinct) > MOST_CLASSES:  # a quantity
            continue
        cells += _cells(
            column, [_class_name(k, classes) for k in distinct], codes, accepted, errors
        )
    for column, values in as_columns(by).items():
        if column not in cuts:
            continue
        places = cuts[column].places(values)
        check_length(column, places, rows.n, "breakdown")
        cells += _cells(column, cuts[column].names(), places, accepted, errors)
    whole = Cell(
        "", "all rows", rows.n, int(np.count_nonzero(accepted)), int(np.count_nonzero(errors))
    )
    return Breakdown(whole, tuple(cells), level, dict(cuts))


def _cells(
    column: str,
    names: Sequence[str],
    places: NDArray[np.intp],
    accepted: NDArray[np.bool_],
    errors: NDArray[np.bool_],
) -> list[Cell]:
    size = len(names)
    n, acted, wrong = (
        np.bincount(places[chosen], minlength=size)
        for chosen in (np.ones(len(places), bool), accepted, errors)
    )
    return [Cell(column, str(names[i]), n[i], acted[i], wrong[i]) for i in range(size) if n[i]]


def _class_name(label: Any, classes: Sequence[Any] | None) -> str:
    if classes is None:
        return str(label)
    return str(classes[label]) if label >= 0 else "not known to the model"
