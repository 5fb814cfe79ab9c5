"""What a model answers, a class or a number: how it is named, logged, and compared with a reported truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from reliablenet.methods.numbers import Numbers
from reliablenet.serve.errors import unusable
from reliablenet.tables.target import label_texts
from reliablenet.tables.tolerance import Tolerance

MOST_LETTERS = 1_000  # of a truth


@dataclass(frozen=True)
class ClassAnswers:
    """Answers that are one of several classes.

    Attributes
    ----------
    classes : tuple
        The labels that the model can give, as JSON has them.

    Examples
    --------
    >>> from reliablenet.serve.answering import ClassAnswers
    >>> ClassAnswers((0, 1)).texts([1, 0, 1]), ClassAnswers((0, 1)).read_truth(1.0, place=0)
    (['1', '0', '1'], '1')
    """

    classes: tuple[Any, ...]
    name: ClassVar[str] = "label"
    schema: ClassVar[dict[str, Any]] = {"type": ["string", "number", "boolean"]}

    @cached_property
    def _text_of(self) -> dict[Any, str]:
        return dict(zip(self.classes, label_texts(list(self.classes)).tolist(), strict=True))

    @property
    def examples(self) -> list[Any]:
        """Answers of every kind that there is."""
        return list(self.classes)

    @property
    def choices(self) -> list[str]:
        """What a person may choose from."""
        return list(self._text_of.values())

    @property
    def told(self) -> str:
        """What must be said about an answer besides its name: for a class, nothing."""
        return ""

    def texts(self, answers: Sequence[Any]) -> list[str]:
        """Return answers as the log keeps them."""
        return [self._text_of[answer] for answer in answers]

    def tolerances(self, X: Any, rows: int) -> None:
        """Return nothing: a class is right or wrong."""

    def read_truth(self, value: Any, place: int) -> str:
        """Return a truth as the log keeps it.

        One that is not a class of the model makes the label wrong; one that differs from a class in case or
        spaces alone is refused, since it was meant to be that class.
        """
        if type(value) not in (str, int, float, bool) or len(str(value)) > MOST_LETTERS:
            raise unusable(
                f"`truth` of outcome {place} must be a class: text or a number.", "truth"
            )
        text = str(label_texts([value])[0])
        if not text or "\0" in text:
            raise unusable(f"`truth` of outcome {place} must be a class; got empty text.", "truth")
        if text not in self.choices:
            folded = text.casefold().split()
            meant = (name for name in self.choices if name.casefold().split() == folded)
            for name in meant:
                raise unusable(
                    f"`truth` of outcome {place} is {text!r}, but the model calls it {name!r}.",
                    "truth",
                )
        return text


@dataclass(frozen=True)
class NumberAnswers:
    """Answers that are numbers, right within a tolerance.

    Attributes
    ----------
    tolerance : Tolerance

    Examples
    --------
    >>> from reliablenet.serve.answering import NumberAnswers
    >>> from reliablenet.tables.tolerance import Tolerance
    >>> numbers = NumberAnswers(Tolerance.of("10%", "serve"))
    >>> numbers.texts([0.1]), numbers.tolerances(None, 1), numbers.read_truth(3, place=0)
    (['0.1'], ['0.1 of the truth'], '3.0')
    """

    tolerance: Tolerance
    name: ClassVar[str] = "value"
    schema: ClassVar[dict[str, Any]] = {"type": "number"}

    @property
    def examples(self) -> list[Any]:
        """Answers of every kind that there is."""
        return [1.5]

    @property
    def choices(self) -> list[str]:
        """What a person may choose from: a number is typed."""
        return []

    @property
    def told(self) -> str:
        """When a number is right, in words."""
        return f"right if the truth is within {self.tolerance}"

    def texts(self, answers: Sequence[float]) -> list[str]:
        """Return answers as the log keeps them, with all their digits."""
        return list(map(repr, answers))

    def tolerances(self, X: Any, rows: int) -> list[str]:
        """Return how far each answer may be off."""
        return self.tolerance.rows(X, "serve").texts(rows)

    def read_truth(self, value: Any, place: int) -> str:
        """Return a truth as the log keeps it; forms send numbers as texts."""
        try:
            number = float(value) if type(value) in (int, float, str) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise unusable(
                f"`truth` of outcome {place} must be a number, such as 12.5; got {value!r:.60}.",
                "truth",
            )
        return repr(number)


Answering = ClassAnswers | NumberAnswers


def answering_of(model: Any) -> Answering:
    """Return what a model answers with."""
    target = model._target
    if isinstance(target, Numbers):
        return NumberAnswers(target.tolerance)
    return ClassAnswers(tuple(model.classes_.tolist()))
