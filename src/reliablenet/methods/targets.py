"""What `y` holds, labels or numbers: everything in a fit that depends on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from reliablenet._checks import check_threshold
from reliablenet._warn import warn_user
from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.certificate.labels import (
    LabelsSeen,
    class_indices,
    known_indices,
    warn_of_twins,
)
from reliablenet.certificate.scored import ScoredRows, top_entries
from reliablenet.errors import FoldWarning, InvalidDataError
from reliablenet.methods.decisions import Decisions, Outputs
from reliablenet.methods.evidence import Evidence
from reliablenet.methods.promised import check_classes
from reliablenet.modelfile.manifest import labels_from_plain, labels_to_plain
from reliablenet.tables.folds import Folds
from reliablenet.tables.oddities import Oddities


class Target(ABC):
    """How an act-or-defer estimator reads `y`, keeps it in folds and gives it back.

    It holds no state of a fit: what is learned of `y` is set on the estimator, which every method takes
    as ``model``.
    """

    @abstractmethod
    def learn(self, model: Any, y: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        """Check the `y` of a fit and set on the model what it must know about it."""

    @abstractmethod
    def encode(self, model: Any, y: NDArray[Any], owner: str) -> NDArray[Any]:
        """Return `y` as folds hold it, or raise where the model cannot learn from it."""

    @abstractmethod
    def encode_fresh(
        self, model: Any, y: NDArray[Any], owner: str, seen: LabelsSeen | None = None
    ) -> NDArray[Any]:
        """Return the truth of rows to certify or to measure on, as folds hold it.

        Where ``seen`` is given, other rows will come; it then checks what only all labels can tell.
        """

    @abstractmethod
    def decode(self, model: Any, y: NDArray[Any]) -> NDArray[Any]:
        """Return the `y` of a fold as the user gave it."""

    @abstractmethod
    def answers(self, model: Any, outputs: Any) -> NDArray[Any]:
        """Return what is predicted for each row, as the user knows it."""

    @abstractmethod
    def decisions(
        self,
        answers: NDArray[Any],
        score: NDArray[np.float64],
        accepted: NDArray[np.bool_],
        oddities: Oddities | None,
    ) -> Any:
        """Return what to do with each row, as a record."""

    @abstractmethod
    def evidence(self, rows: ScoredRows, numbers: NDArray[np.intp]) -> Any:
        """Return what scored rows of a certification fold show; ``numbers`` are theirs in the table."""

    @abstractmethod
    def read_evidence(
        self, model: Any, content: bytes, certificate: Certificate | RuleCertificate
    ) -> Any:
        """Read the evidence of a model file, or raise if it contradicts the certificate."""

    def describe(self, certificate: Any) -> Any:
        """Return a certificate that says what a wrong prediction is."""
        return certificate

    @abstractmethod
    def strata(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return what the training and the selection fold get the same shares of."""

    @abstractmethod
    def check_threshold(self, model: Any, threshold: float) -> None:
        """Raise on a threshold that no score can be compared with."""

    @abstractmethod
    def learned(self, model: Any) -> dict[str, Any]:
        """Return what a model file keeps of it."""

    @abstractmethod
    def relearn(self, model: Any, learned: dict[str, Any]) -> None:
        """Set what `learned` returned."""

    @abstractmethod
    def warn_of_folds(self, model: Any, folds: Folds) -> None:
        """Warn of a fold that lacks something of `y`."""


class Labels(Target):
    """`y` holds labels of any kind; folds hold their places in ``classes_``."""

    def learn(self, model: Any, y: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
        """Learn ``classes_``, unless they are known."""
        check_classification_targets(y)
        model.classes_ = model._find_classes(y) if classes is None else classes
        check_classes(model.promise, model.classes_)
        return y

    def encode(self, model: Any, y: NDArray[Any], owner: str) -> NDArray[np.intp]:
        """Return the place of each label among the classes."""
        return class_indices(y, model.classes_, owner)

    def encode_fresh(
        self, model: Any, y: NDArray[Any], owner: str, seen: LabelsSeen | None = None
    ) -> NDArray[np.intp]:
        """Return the place of each label, -1 for a class that the model does not know."""
        return known_indices(y, model.classes_, owner, seen=seen)

    def decode(self, model: Any, y: NDArray[Any]) -> NDArray[Any]:
        """Return the labels."""
        labels: NDArray[Any] = model.classes_[y]
        return labels

    def answers(self, model: Any, outputs: Outputs) -> NDArray[Any]:
        """Return the most probable class of each row."""
        labels: NDArray[Any] = model.classes_[top_entries(outputs.proba)[1]]
        return labels

    def decisions(
        self,
        answers: NDArray[Any],
        score: NDArray[np.float64],
        accepted: NDArray[np.bool_],
        oddities: Oddities | None,
    ) -> Decisions:
        """Return label, confidence and accepted of each row."""
        return Decisions(answers, score, accepted, oddities)

    def evidence(self, rows: ScoredRows, numbers: NDArray[np.intp]) -> Evidence:
        """Return scores, predicted and true classes."""
        return Evidence.of(rows, numbers)

    def read_evidence(
        self, model: Any, content: bytes, certificate: Certificate | RuleCertificate
    ) -> Evidence:
        """Read scores, predicted and true classes."""
        evidence = Evidence.from_bytes(content)
        evidence.check(certificate, len(model.classes_))
        return evidence

    def strata(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return the classes."""
        return y

    def check_threshold(self, model: Any, threshold: float) -> None:
        """Raise unless it lies in (1/K, 1]."""
        check_threshold("threshold", threshold, type(model).__name__, len(model.classes_))

    def learned(self, model: Any) -> dict[str, Any]:
        """Return the classes."""
        return {"classes": labels_to_plain(model.classes_)}

    def relearn(self, model: Any, learned: dict[str, Any]) -> None:
        """Set the classes."""
        model.classes_ = labels_from_plain(learned["classes"])

    def warn_of_folds(self, model: Any, folds: Folds) -> None:
        """Warn of classes that a fold lacks."""
        warn_of_missing_classes(folds, model.classes_)


LABELS = Labels()


def find_classes(labels: NDArray[Any], owner: str) -> NDArray[Any]:
    """Return the different labels in their order, or raise if there is only one."""
    classes: NDArray[Any] = np.unique(labels)
    if len(classes) < 2:
        raise InvalidDataError(
            f"`y` of {owner} must hold at least two classes; got 1 class: {classes.tolist()}."
        )
    warn_of_twins(classes.tolist(), owner)
    return classes


def warn_of_missing_classes(folds: Folds, classes: NDArray[Any]) -> None:
    """Warn of classes that a fold lacks; labels are class indices."""
    gaps = []
    for name, fold in vars(folds).items():
        known = fold.y[fold.y >= 0]
        missing = classes[np.bincount(known, minlength=len(classes)) == 0]
        if len(missing) and len(fold):  # a method that trains nothing has no training fold
            gaps.append(f"{name} fold: {missing[:10].tolist()}")
    if gaps:
        where = "; ".join(gaps)
        warn_user(
            f"Some classes are missing from a fold ({where}). A class that training never sees "
            "cannot be predicted, and a certificate says little about one that the "
            "certification fold lacks. Merge rare classes or give more rows.",
            FoldWarning,
        )
