"""Numbers as what is predicted: right within a tolerance, decided by value, kept as evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays, save as save_arrays

from reliablenet._checks import check_finite, check_threshold, parameter_error
from reliablenet.certificate import Certificate, Promise, RuleCertificate
from reliablenet.certificate.labels import LabelsSeen
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError
from reliablenet.methods.held_out import check_counts, pack_groups, take_groups
from reliablenet.methods.judging import with_tolerance
from reliablenet.methods.targets import Target
from reliablenet.tables.folds import Folds
from reliablenet.tables.oddities import Oddities
from reliablenet.tables.tolerance import Margin, Tolerance, Values

NAMES = ("score", "value", "truth", "tolerance")  # of the numbers in evidence


@dataclass(frozen=True)
class NumberDecisions:
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

    value: Values
    confidence: Values
    accepted: NDArray[np.bool_]
    oddities: Oddities | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def odd(self) -> NDArray[np.bool_]:
        """Which rows are unlike those that the model was trained on."""
        return np.zeros(len(self), bool) if self.oddities is None else self.oddities.odd

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """Return the decisions as a data frame, one row each."""
        return pd.DataFrame(
            {"value": self.value, "confidence": self.confidence, "accepted": self.accepted},
            index=index,
        )


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


@dataclass(frozen=True, eq=False)
class NumberEvidence:
    """What a fitted method said of each row of the certification fold, and what was true.

    It holds no features: whoever gets the model does not get the data.

    Attributes
    ----------
    score : array of shape (n,)
        What is compared with the threshold.
    value, truth : array of shape (n,)
        Predicted and true number.
    tolerance : array of shape (n,)
        How far the value may be off in this row, in units of `y`.
    row : integer array of shape (n,)
        Number of the row in the table given to `fit`, from 0; -1 where the fold was given by itself.
    by : dict of arrays of shape (n,)
        Groups of the rows, where a promise speaks of them.

    Examples
    --------
    >>> from reliablenet.methods.numbers import NumberEvidence
    >>> rows = NumberEvidence([0.9, 0.8], [40.0, 20.0], [43.0, 30.0], [5.0, 5.0], [4, 7])
    >>> rows.wrong.tolist(), len(rows)
    ([False, True], 2)
    """

    score: Values
    value: Values
    truth: Values
    tolerance: Values
    row: NDArray[np.int64]
    by: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = np.shape(self.score)
        for name in (*NAMES, "row"):
            values = np.asarray(getattr(self, name), np.int64 if name == "row" else np.float64)
            if len(shape) != 1 or values.shape != shape:
                raise InvalidDataError(
                    "Evidence of numbers needs five vectors of one length; got "
                    f"{ {entry: np.shape(getattr(self, entry)) for entry in (*NAMES, 'row')} }."
                )
            check_finite(name, values, "NumberEvidence")
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.score)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NumberEvidence):
            return NotImplemented
        same = all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in (*NAMES, "row")
        )
        groups = ({name: part.tolist() for name, part in each.by.items()} for each in (self, other))
        return same and next(groups) == next(groups)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which values are off by more than the tolerance."""
        return np.asarray(np.abs(self.truth - self.value) > self.tolerance)

    @property
    def predicted(self) -> Values:
        """The values, as the evidence of labels calls them."""
        return self.value

    @property
    def top_probability(self) -> Values:
        """The estimated chance of being right, as the evidence of labels has it: the score."""
        return self.score

    def scored(self) -> ScoredRows:
        """Return scores and verdicts, as certificates, metrics and curves are computed from them."""
        return ScoredRows(
            self.score,
            self.wrong,
            0.0,
            top_probability=self.score,
            truth=self.truth,
            predicted=self.value,
            by=self.by or None,
            tolerance=self.tolerance,
        )

    def to_bytes(self) -> bytes:
        """Return the arrays as safetensors."""
        arrays = {name: getattr(self, name) for name in (*NAMES, "row")}
        return bytes(save_arrays(arrays | pack_groups(self.by)))

    @classmethod
    def from_bytes(cls, content: bytes) -> NumberEvidence:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(content)
        by = take_groups(arrays)
        stored = dict.fromkeys(NAMES, np.dtype(np.float64)) | {"row": np.dtype(np.int64)}
        types = {name: values.dtype for name, values in arrays.items()}
        if types != stored:
            raise InvalidDataError(f"Evidence must hold the arrays {[*stored]}; got {types}.")
        return cls(**arrays, by=by)


@dataclass(frozen=True)
class Numbers(Target):
    """`y` holds numbers, and a prediction is right within a tolerance.

    Attributes
    ----------
    tolerance : Tolerance
    """

    tolerance: Tolerance

    def learn(self, model: Any, y: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        """Check that `y` holds numbers that differ."""
        values = _as_numbers(y, type(model).__name__)
        if len(values) and values.min() == values.max():
            raise InvalidDataError(
                f"`y` of {type(model).__name__} holds a single value, {values[0]:g} "
                f"(n_samples = {len(values)}): there is nothing to predict."
            )
        return values

    def encode(self, model: Any, y: NDArray[Any], owner: str) -> Values:
        """Return the numbers as float64."""
        return _as_numbers(y, owner)

    def encode_fresh(
        self, model: Any, y: NDArray[Any], owner: str, seen: LabelsSeen | None = None
    ) -> Values:
        """Return the numbers as float64."""
        return _as_numbers(y, owner)

    def decode(self, model: Any, y: Values) -> Values:
        """Return the numbers as they are."""
        return y

    def answers(self, model: Any, outputs: NumberOutputs) -> Values:
        """Return the value of each row."""
        return outputs.value

    def decisions(
        self,
        answers: Values,
        score: Values,
        accepted: NDArray[np.bool_],
        oddities: Oddities | None,
    ) -> NumberDecisions:
        """Return value, confidence and accepted of each row."""
        return NumberDecisions(answers, score, accepted, oddities)

    def evidence(self, rows: ScoredRows, numbers: NDArray[np.intp]) -> NumberEvidence:
        """Return scores, values and truth, and the tolerance of each row."""
        value: Any = rows.predicted
        truth: Any = rows.truth
        tolerance: Any = rows.tolerance
        return NumberEvidence(rows.score, value, truth, tolerance, numbers, rows.by or {})

    def read_evidence(
        self, model: Any, content: bytes, certificate: Certificate | RuleCertificate
    ) -> NumberEvidence:
        """Read scores, values and truth; the tolerance must be the one that was set."""
        evidence = NumberEvidence.from_bytes(content)
        check_counts(evidence.scored(), certificate)
        if certificate.tolerance != str(self.tolerance):
            raise InvalidDataError(
                f"The certificate is about the tolerance {certificate.tolerance!r}, the model about "
                f"{str(self.tolerance)!r}."
            )
        if self.tolerance.kind != "column":
            set_before = self.tolerance.rows(None, "load").of(evidence.truth)
            if not np.array_equal(evidence.tolerance, set_before):
                raise InvalidDataError(
                    "The evidence has another tolerance than the model, which was set to "
                    f"{self.tolerance}."
                )
        return evidence

    def describe(self, certificate: Any) -> Any:
        """Return a certificate, or one with parts, that has the tolerance in words."""
        return with_tolerance(certificate, str(self.tolerance))

    def strata(self, y: Values) -> NDArray[Any]:
        """Return one stratum: quantiles of `y` would look at the rows to certify on."""
        return np.zeros(len(y), np.intp)

    def check_threshold(self, model: Any, threshold: float) -> None:
        """Raise unless it is a probability."""
        check_threshold("threshold", threshold, type(model).__name__)

    def learned(self, model: Any) -> dict[str, Any]:
        """Return nothing: the tolerance is a setting."""
        return {}

    def relearn(self, model: Any, learned: dict[str, Any]) -> None:
        """Set nothing."""

    def warn_of_folds(self, model: Any, folds: Folds) -> None:
        """Warn of nothing: numbers have no classes that a fold could lack."""


def check_promise(promise: Promise | None, owner: str) -> None:
    """Raise on a promise about classes, which numbers have not."""
    kinds = () if promise is None else {part.kind for part in promise.simple()}
    if {"by_predicted", "by_class", "cost"} & set(kinds):
        raise parameter_error(
            "promise",
            owner,
            "be about all rows, those acted on or groups: numbers have no classes",
            str(promise),
        )


def _as_numbers(y: NDArray[Any], owner: str) -> Values:
    try:
        values = np.asarray(y).astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"`y` of {owner} must hold numbers; got {str(np.ravel(y)[0])!r}. Labels are for "
            "ReliableClassifier."
        ) from None
    return values
