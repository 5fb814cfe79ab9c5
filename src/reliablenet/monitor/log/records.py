"""What a decision log holds, as records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from reliablenet.errors import InvalidDataError
from reliablenet.tables.tolerance import Margin


class Entry(NamedTuple):
    """A decision, and its outcome where that is known.

    Attributes
    ----------
    number : int
        Rises with every decision of the log; gaps mean nothing.
    id : str
        The run of the server that decided, and a count of its decisions.
    time : float
        When it was decided, in seconds since 1970.
    model, certificate : str
        SHA-256 of the model file and of the certificate's JSON.
    label : str
        What was predicted, as a text; a number with all its digits.
    confidence : float
    accepted : bool
        Whether it was acted on.
    audit : bool
        Whether the coin picked it for a person to check.
    share : float
        The probability of that.
    group : str or None
    truth : str or None
        What turned out; None while that is not known, or where only right or wrong was told.
    wrong : bool or None
        Whether the label was wrong; None while that is not known.
    learned : float or None
        When the outcome came.
    rule : int
        Number of the model and certificate among those that were in force.
    tolerance : str or None
        Of a number: how far it may be off and still be right.
    """

    number: int
    id: str
    time: float
    model: str
    certificate: str
    label: str
    confidence: float
    accepted: bool
    audit: bool
    share: float
    group: str | None
    truth: str | None
    wrong: bool | None
    learned: float | None
    rule: int
    tolerance: str | None = None


class Rule(NamedTuple):
    """A model with its certificate, in force from ``time`` on until the next.

    ``scores`` are those of its certification rows, counted, where they are known.
    """

    number: int
    time: float
    name: str
    model: str
    certificate: str
    document: str
    scores: str | None = None


class Logged(NamedTuple):
    """What decisions were given when they were logged.

    Attributes
    ----------
    ids : list of str
    audit : list of bool
        Whether the coin picked each for a person to check.

    Examples
    --------
    >>> from reliablenet.monitor.log import Logged
    >>> Logged(["a-0", "a-1", "a-2"], [True, False, False]).cut(slice(1, 3))
    Logged(ids=['a-1', 'a-2'], audit=[False, False])
    """

    ids: list[str]
    audit: list[bool]

    def cut(self, part: slice) -> Logged:
        """Return what some of them were given."""
        return Logged(self.ids[part], self.audit[part])


class Status(StrEnum):
    """What became of an outcome that was reported."""

    RECORDED = "recorded"
    KNOWN = "already recorded"
    OTHER = "another outcome is recorded"
    UNKNOWN = "no such decision"


@dataclass(frozen=True)
class Outcome:
    """How a decision turned out.

    Attributes
    ----------
    id : str
        Of the decision.
    truth : str or None
        The true class or number, as a text.
    wrong : bool or None
        Whether the label was wrong, where that is all that is known.
    """

    id: str
    truth: str | None = None
    wrong: bool | None = None

    def __post_init__(self) -> None:
        if (self.truth is None) == (self.wrong is None):
            raise InvalidDataError(
                f"The outcome of {self.id!r} must hold either the truth, or whether the label was "
                "wrong."
            )

    def judge(self, label: str, tolerance: str | None = None) -> bool:
        """Tell whether a label was wrong, or a number off by more than its tolerance.

        Examples
        --------
        >>> from reliablenet.monitor.log import Outcome
        >>> Outcome("a", truth="no").judge("yes"), Outcome("b", truth="43.0").judge("40.5", "5.0")
        (True, False)
        """
        if self.truth is None:
            return bool(self.wrong)
        if tolerance is None:
            return self.truth != label
        try:
            truth = float(self.truth)
        except ValueError:
            raise InvalidDataError(
                f"The truth of {self.id!r} must be a number, as its prediction was; got "
                f"{self.truth!r}."
            ) from None
        margin = Margin.from_text(tolerance)
        return not margin.within(np.array([float(label)]), np.array([truth]))[0]
