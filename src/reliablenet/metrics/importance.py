"""Which columns decisions rest on: what changes when the values of one column are shuffled among the rows.

It describes a fitted rule on some rows. It does not say what causes what, and no certificate speaks of it. Of two
columns that tell the same, each can stand in for the other, and shuffling one alone changes little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import check_count, check_seed, parameter_error
from reliablenet.certificate.wording import percent
from reliablenet.errors import InvalidDataError

Places = NDArray[np.intp]
OWNER = "permutation_importance"
REPEATS, MOST_ROWS = 5, 2000
# What is measured of each shuffle. The last two need the truth.
MEASURES = (
    "decisions",
    "answers",
    "acceptance",
    "confidence",
    "confidence_change",
    "coverage_change",
    "right_change",
    "wrong_change",
)


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """What a rule says about rows.

    Attributes
    ----------
    answer : array of shape (n,)
        Labels or numbers.
    confidence : array of shape (n,)
        The score that is compared with a threshold.
    accepted : boolean array of shape (n,)
    wrong : boolean array of shape (n,), optional
        Where the truth is known: which answers are wrong.
    tolerance : array of shape (n,), optional
        Of numbers: how far an answer may move and still be the same.
    """

    answer: NDArray[Any]
    confidence: NDArray[np.float64]
    accepted: NDArray[np.bool_]
    wrong: NDArray[np.bool_] | None = None
    tolerance: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        shapes = {
            name: np.shape(values) for name, values in vars(self).items() if values is not None
        }
        if len(set(shapes.values())) > 1 or len(shapes["answer"]) != 1:
            raise InvalidDataError(f"RowAnswers needs vectors of one length; got {shapes}.")


# From a table, the place of each of its rows among those given, and the places that the values of a shuffled
# column come from, by its name, to what the rule says of these rows.
Decide = Callable[[Any, Places, Mapping[Any, Places]], RowAnswers]


@dataclass(frozen=True, eq=False)
class Importance:
    """How much decisions change when one column is shuffled, in several repeats.

    Attributes
    ----------
    columns : tuple
        Names; of an array, numbers.
    changes : dict of str to array of shape (columns, repeats)
        ``decisions``: share of rows on which is acted where it was not, or the reverse, or on another
        answer. ``answers``: share whose answer changes, acted on or not. ``acceptance``: share acted on
        where it was not, or the reverse. ``confidence``: mean absolute change of the confidence.
        ``confidence_change``, ``coverage_change``: mean confidence and share acted on, after minus before.
        ``right_change``, ``wrong_change``: share of all rows acted on rightly and wrongly, after minus
        before; only where the truth is known.
    rows, of_rows : int
        How many rows were shuffled, and how many there were to draw them from.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.metrics import RowAnswers, permutation_importance
    >>> rows = np.random.default_rng(0).normal(size=(500, 2))
    >>> def decide(rows, places, shuffled):
    ...     return RowAnswers(rows[:, 1] > 0, np.abs(rows[:, 1]), np.abs(rows[:, 1]) > 0.5)
    >>> found = permutation_importance(decide, rows)
    >>> found.to_frame()[["column", "decisions", "answers", "coverage_change"]].round(2)
       column  decisions  answers  coverage_change
    0       1       0.65      0.5              0.0
    1       0       0.00      0.0              0.0
    >>> print(found.summary())
    decisions rest most on 1 (65 % of them change if it is shuffled)
    """

    columns: tuple[Any, ...]
    changes: Mapping[str, NDArray[np.float64]]
    rows: int
    of_rows: int

    def __post_init__(self) -> None:
        shapes = {name: np.shape(values) for name, values in self.changes.items()}
        sound = (
            set(shapes) in (set(MEASURES), set(MEASURES[:-2])) and len(set(shapes.values())) == 1
        )
        if not sound or shapes["decisions"][0] != len(self.columns):
            raise InvalidDataError(
                f"An importance needs {list(MEASURES)}, each of shape ({len(self.columns)}, repeats); "
                f"got {shapes}."
            )

    @property
    def repeats(self) -> int:
        """How often each column was shuffled."""
        return int(self.changes["decisions"].shape[1])

    @cached_property
    def mean(self) -> dict[str, NDArray[np.float64]]:
        """Mean over the repeats of each measure, one for each column."""
        return {name: values.mean(axis=1) for name, values in self.changes.items()}

    @cached_property
    def spread(self) -> dict[str, NDArray[np.float64]]:
        """Standard deviation over the repeats; NaN if there was one."""
        if self.repeats == 1:
            return {name: np.full(len(self.columns), np.nan) for name in self.changes}
        return {name: values.std(axis=1, ddof=1) for name, values in self.changes.items()}

    @cached_property
    def order(self) -> list[int]:
        """Places of the columns, the most important first: by decisions, then by confidence."""
        decisions, confidence = self.mean["decisions"], self.mean["confidence"]
        ranked: list[int] = np.lexsort((-confidence, -decisions)).tolist()  # ties as they stand
        return ranked

    def to_frame(self) -> pd.DataFrame:
        """Return the mean and the spread of every measure, one row a column, the most important first."""
        table: dict[str, Any] = {"column": list(self.columns)}
        for name in self.changes:
            table |= {name: self.mean[name], f"{name}_spread": self.spread[name]}
        return pd.DataFrame(table).iloc[self.order].reset_index(drop=True)

    def summary(self, most: int = 3) -> str:
        """Return in a line which columns the decisions rest on most."""
        changed = self.mean["decisions"]
        named = [place for place in self.order if changed[place] > 0][:most]
        if not named:
            return "no decision changes, whichever column is shuffled"
        first, *others = [f"{self.columns[place]} ({percent(changed[place])}" for place in named]
        listed = [f"{first} of them change if it is shuffled)", *(f"{one})" for one in others)]
        return f"decisions rest most on {', '.join(listed)}"


def permutation_importance(
    decide: Decide,
    X: Any,
    *,
    unused: Sequence[Any] | Set[Any] = (),
    repeats: int = REPEATS,
    most_rows: int = MOST_ROWS,
    random_state: int = 0,
) -> Importance:
    """Shuffle each column among the rows, and measure what changes in the decisions on them.

    Parameters
    ----------
    decide : callable
        Takes a table like X, the place in X of each of its rows, and a mapping from the name of the column
        that is shuffled, if one is, to the places in X that its values come from. Returns `RowAnswers`. It
        is called once for each column, with all repeats below each other.
    X : data frame or array of shape (n, d)
    unused : list, tuple or set
        Columns that are known to play no part; they are not shuffled, and nothing changes.
    repeats : int
        How often each column is shuffled.
    most_rows : int
        Of more rows so many are drawn at random: d * repeats * most_rows rows are decided at most.
    random_state : int
        The same number gives the same shuffles. What is drawn for a column does not depend on the others.

    Returns
    -------
    Importance
    """
    repeats = check_count("repeats", repeats, OWNER)
    most_rows = check_count("most_rows", most_rows, OWNER, minimum=2)
    seed = check_seed("random_state", random_state, OWNER)
    if not callable(decide):
        raise parameter_error("decide", OWNER, "be a function", decide)
    if not isinstance(unused, list | tuple | set | frozenset):
        raise parameter_error("unused", OWNER, "be a list, tuple or set of columns", unused)
    frame = isinstance(X, pd.DataFrame)
    if not frame and (not isinstance(X, np.ndarray) or X.ndim != 2):
        got = f"an array of shape {X.shape}" if isinstance(X, np.ndarray) else type(X).__name__
        raise InvalidDataError(
            f"`X` of {OWNER} must be a data frame or an array of shape (n, d): what has no columns has "
            f"none to shuffle; got {got}."
        )
    if len(X) < 2:
        raise InvalidDataError(f"`X` of {OWNER} needs two rows to shuffle; got {len(X)}.")
    n = min(len(X), most_rows)
    drawn = np.arange(len(X))
    if n < len(X):
        drawn = np.sort(np.random.default_rng(seed).choice(len(X), n, replace=False))
    names = list(X.columns) if frame else list(range(X.shape[1]))
    before = _answers(decide, X.iloc[drawn] if frame else X[drawn], drawn, {})
    own = np.tile(drawn, repeats)
    whole = X.iloc[own].reset_index(drop=True) if frame else X[own]
    changes: list[dict[str, NDArray[np.float64]]] = []
    for place, name in enumerate(names):
        if name in unused:
            same = _measure(before, before, 1)
            changes.append({measure: np.repeat(zero, repeats) for measure, zero in same.items()})
            continue
        random = np.random.default_rng([seed, place])
        source = np.concatenate([random.permutation(drawn) for _ in range(repeats)])
        if frame:
            table = whole.copy(deep=False)
            table.isetitem(place, X.iloc[source, place].array)
        else:
            table = whole.copy()
            table[:, place] = X[source, place]
        after = _answers(decide, table, own, {name: source})
        changes.append(_measure(before, after, repeats))
    known = changes[0]
    return Importance(
        tuple(names), {name: np.stack([c[name] for c in changes]) for name in known}, n, len(X)
    )


def _answers(
    decide: Decide, table: Any, places: Places, shuffled: Mapping[Any, Places]
) -> RowAnswers:
    found = decide(table, places, shuffled)
    if not isinstance(found, RowAnswers) or len(found.answer) != len(places):
        got = f"{len(found.answer)}" if isinstance(found, RowAnswers) else type(found).__name__
        raise InvalidDataError(
            f"`decide` of {OWNER} must return RowAnswers for each of the {len(places)} rows; got {got}."
        )
    return found


def _measure(before: RowAnswers, after: RowAnswers, repeats: int) -> dict[str, NDArray[np.float64]]:
    """Return each measure of each repeat."""
    shape = (repeats, len(before.answer))

    def parts(values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(values).reshape(shape)

    acted, acts = before.accepted, parts(after.accepted)
    if before.tolerance is None:
        other = parts(after.answer) != before.answer
    else:
        other = np.abs(parts(after.answer) - before.answer) > before.tolerance
    moved = parts(after.confidence) - before.confidence
    found = {
        "decisions": (acts != acted) | (acts & acted & other),
        "answers": other,
        "acceptance": acts != acted,
        "confidence": np.abs(moved),
        "confidence_change": moved,
        "coverage_change": acts.astype(float) - acted,
    }
    if before.wrong is not None and after.wrong is not None:
        wrong = parts(after.wrong)
        found["right_change"] = (acts & ~wrong).astype(float) - (acted & ~before.wrong)
        found["wrong_change"] = (acts & wrong).astype(float) - (acted & before.wrong)
    return {name: np.asarray(values.mean(axis=1), np.float64) for name, values in found.items()}
