"""What a fitted method says about rows: what it computes for each, and what to do with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reliablenet.certificate.scored import ScoredRows, proba_rows, top_entries
from reliablenet.tables.oddities import Oddities
from reliablenet.tables.tolerance import Margin, Values


class DecidedRows:
    """What decisions about labels and about numbers have in common."""

    _answer: ClassVar[str]
    confidence: Values
    accepted: NDArray[np.bool_]
    oddities: Oddities | None

    def __len__(self) -> int:
        return len(self.accepted)

    @property
    def odd(self) -> NDArray[np.bool_]:
        """Which rows are unlike those that the model was trained on."""
        return np.zeros(len(self), bool) if self.oddities is None else self.oddities.odd

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """Return the decisions as a data frame, one row each."""
        columns = (self._answer, "confidence", "accepted")
        return pd.DataFrame({name: getattr(self, name) for name in columns}, index=index)


@dataclass(frozen=True)
class Decisions(DecidedRows):
    """What to do with each row: act on ``label`` where ``accepted``, else defer to a person.

    Attributes
    ----------
    label : array of shape (n,)
        Predicted class, also for deferred rows.
    confidence : array of shape (n,)
        The score that was compared with the threshold.
    accepted : boolean array of shape (n,)
    oddities : Oddities or None
        What does not look like the rows that the model was trained on; ``oddities.odd`` says which rows.
    """

    _answer = "label"
    label: NDArray[Any]
    confidence: NDArray[np.float64]
    accepted: NDArray[np.bool_]
    oddities: Oddities | None = field(default=None, repr=False)


@dataclass(frozen=True)
class NumberDecisions(DecidedRows):
    """What to do with each row: act on ``value`` where ``accepted``, else defer to a person.

    Attributes
    ----------
    value : array of shape (n,)
        Predicted number, also for deferred rows.
    confidence : array of shape (n,)
        Estimated chance that the value is within the tolerance; it was compared with the threshold.
    accepted : boolean array of shape (n,)
    oddities : Oddities or None
        What does not look like the rows that the model was trained on; ``oddities.odd`` says which rows.
    """

    _answer = "value"
    value: Values
    confidence: Values
    accepted: NDArray[np.bool_]
    oddities: Oddities | None = field(default=None, repr=False)


class RowOutputs(Protocol):
    """What a fitted method computes for rows, whatever it predicts."""

    def acceptance(self) -> NDArray[np.float64]:
        """Return the acceptance score of each row."""

    def scored(self, y: NDArray[Any]) -> ScoredRows:
        """Return scores and verdicts of rows whose truth is encoded as folds hold it."""


class Outputs(NamedTuple):
    """Class probabilities of shape (n, K), and the acceptance score where it is not their top."""

    proba: NDArray[np.float64]
    score: NDArray[np.float64] | None = None

    def acceptance(self) -> NDArray[np.float64]:
        """Return the acceptance score of each row."""
        return top_entries(self.proba)[0] if self.score is None else self.score

    def scored(self, y: NDArray[np.intp]) -> ScoredRows:
        """Return scores and verdicts of rows whose labels are class indices, -1 where not known."""
        return proba_rows(self.proba, y, self.score)


class NumberOutputs(NamedTuple):
    """Values of shape (n,), the chance that each is within the tolerance, and that tolerance."""

    value: Values
    confidence: Values
    margin: Margin

    def acceptance(self) -> Values:
        """Return the acceptance score of each row."""
        return self.confidence

    def scored(self, y: Values) -> ScoredRows:
        """Return scores and verdicts of rows whose truth is known."""
        wrong = ~self.margin.within(self.value, y)
        return ScoredRows(
            self.confidence,
            wrong,
            0.0,
            top_probability=self.confidence,
            truth=y,
            predicted=self.value,
            tolerance=self.margin.of(y),
        )
