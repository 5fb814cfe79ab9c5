"""`Tolerance`: how far a number may be off and still be right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet._checks import is_real, parameter_error
from reliablenet._listing import listed
from reliablenet.errors import InvalidDataError

Values = NDArray[np.float64]
OF_THE_TRUTH = " of the truth"


@dataclass(frozen=True)
class Margin:
    """The tolerance of some rows: v is right for the truth y if ``|y - v| <= amount`` (times |y|).

    Attributes
    ----------
    amount : float or array of shape (n,)
        One for all rows, or one a row.
    relative : bool
        Whether it is a share of the truth.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.tables.tolerance import Margin
    >>> Margin(5.0).within(np.array([40.0, 40.0]), np.array([45.0, 46.0])).tolist()
    [True, False]
    >>> Margin(0.1, relative=True).within(np.array([90.0, 110.1]), np.array([100.0, 100.0])).tolist()
    [True, False]
    """

    amount: float | Values
    relative: bool = False

    def of(self, truth: Values) -> Values:
        """Return how far a value may be off and still be right, given the truth of each row."""
        if self.relative:
            return np.asarray(np.abs(truth) * self.amount)
        return np.asarray(np.broadcast_to(self.amount, truth.shape)).copy()

    def of_all(self, truths: Values) -> Values:
        """Return the same for several truths: of all rows, or of shape (n, truths) where rows differ."""
        if isinstance(self.amount, np.ndarray):
            return np.repeat(self.amount[:, None], len(truths), axis=1)
        return self.of(truths)

    def within(self, value: Values, truth: Values) -> NDArray[np.bool_]:
        """Tell which of the values are right."""
        return np.asarray(np.abs(truth - value) <= self.of(truth))

    def texts(self, rows: int) -> list[str]:
        """Return the tolerance of each row as a text, from which `from_text` makes it again."""
        end = OF_THE_TRUTH if self.relative else ""
        if isinstance(self.amount, np.ndarray):
            return [f"{amount!r}{end}" for amount in self.amount.tolist()]
        return [f"{self.amount!r}{end}"] * rows

    @classmethod
    def from_text(cls, text: str) -> Margin:
        """Read the tolerance of one row.

        Examples
        --------
        >>> from reliablenet.tables.tolerance import Margin
        >>> [Margin.from_text(text) for text in Margin(0.1, relative=True).texts(1)]
        [Margin(amount=0.1, relative=True)]
        """
        amount = text.removesuffix(OF_THE_TRUTH)
        return cls(float(amount), relative=amount != text)

    def take(self, places: Any) -> Margin:
        """Return the tolerance of some of the rows."""
        if isinstance(self.amount, np.ndarray):
            return Margin(self.amount[places], self.relative)
        return self


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be off, as it was set before any truth was seen.

    Attributes
    ----------
    kind : {"absolute", "relative", "column"}
    amount : float
        In units of `y`, or as a share of the truth; 0 for a column.
    column : str
        The column of X with the tolerance of each row, in units of `y`.

    Examples
    --------
    >>> from reliablenet.tables.tolerance import Tolerance
    >>> [str(Tolerance.of(setting, "fit")) for setting in (5, "10%", "allowed")]
    ['5', '10 % of the truth', 'the tolerance in "allowed"']
    """

    kind: Literal["absolute", "relative", "column"]
    amount: float = 0.0
    column: str = ""

    @classmethod
    def of(cls, setting: Any, owner: str) -> Tolerance:
        """Read a setting: a number, a text such as "10%", or the name of a column."""
        expected = (
            'be a number above 0, a text such as "10%" (of the truth) or the name of a column'
        )
        if isinstance(setting, Tolerance):
            return setting
        if is_real(setting):
            if not 0.0 < setting < math.inf:
                raise parameter_error("tolerance", owner, expected, setting)
            return cls("absolute", float(setting))
        if not isinstance(setting, str) or not setting.strip():
            advice = "How far may a value be off and still be right? Say so before you fit."
            raise parameter_error("tolerance", owner, expected, setting, advice)
        text = setting.strip()
        share = _number(text[:-1]) if text.endswith("%") else None
        if share is not None:
            if not 0.0 < share < 100.0:
                advice = "At 100 % of the truth, always answering 0 would be right."
                raise parameter_error(
                    "tolerance", owner, "lie between 0 % and 100 %", setting, advice
                )
            return cls("relative", share / 100.0)
        number = _number(text)
        if number is not None:
            return cls.of(number, owner)
        return cls("column", column=setting)

    def rows(self, X: Any, owner: str) -> Margin:
        """Return the tolerance of rows: of all alike, or as their column says."""
        if self.kind != "column":
            return Margin(self.amount, self.kind == "relative")
        if not isinstance(X, pd.DataFrame) or self.column not in X.columns:
            where = f"columns {listed(X.columns)}" if isinstance(X, pd.DataFrame) else "an array"
            raise InvalidDataError(
                f"`tolerance` of {owner} names the column {self.column!r}, and X has {where}. Give a "
                "data frame with that column, or a number."
            )
        values = pd.to_numeric(X[self.column], errors="coerce").to_numpy(np.float64)
        bad = ~((values > 0.0) & (values < math.inf))
        if bad.any():
            row = int(bad.argmax())
            raise InvalidDataError(
                f"The column {self.column!r}, the tolerance of {owner}, must hold numbers above 0; row "
                f"{row} has {X[self.column].iloc[row]!r}."
            )
        return Margin(values)

    def __str__(self) -> str:
        if self.kind == "relative":
            return amount_text(self.amount, relative=True)
        if self.kind == "absolute":
            return amount_text(self.amount)
        return f'the tolerance in "{self.column}"'


def amount_text(amount: float, *, relative: bool = False) -> str:
    """Return how far off is still right, for a reader.

    Examples
    --------
    >>> from reliablenet.tables.tolerance import amount_text
    >>> amount_text(5.0), amount_text(0.1, relative=True)
    ('5', '10 % of the truth')
    """
    return f"{100 * amount:g} %{OF_THE_TRUTH}" if relative else f"{amount:g}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
