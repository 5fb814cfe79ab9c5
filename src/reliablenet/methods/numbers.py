"""Numbers as what is predicted: each is right within a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._checks import check_threshold, parameter_error
from reliablenet.certificate import Certificate, Promise, RuleCertificate
from reliablenet.certificate.labels import LabelsSeen
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError
from reliablenet.methods.decisions import NumberDecisions, NumberOutputs
from reliablenet.methods.evidence import NumberEvidence, check_counts
from reliablenet.methods.judging import with_tolerance
from reliablenet.methods.targets import Target
from reliablenet.tables.folds import Folds
from reliablenet.tables.oddities import Oddities
from reliablenet.tables.tolerance import Tolerance, Values


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
