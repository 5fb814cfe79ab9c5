"""A model as it is served: loaded, hashed, noted in the log, and able to answer."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reliablenet.errors import DataFileError, InvalidDataError, ModelFileError
from reliablenet.methods import load
from reliablenet.monitor.log import DecisionLog
from reliablenet.serve.columns import Columns, Rows
from reliablenet.tables.target import label_texts


@dataclass(frozen=True)
class Answers:
    """Label, confidence and accepted of each row as JSON has them, and the label as the log has it."""

    labels: list[Any]
    texts: list[str]
    confidences: list[float]
    accepted: list[bool]


@dataclass(frozen=True)
class ServedModel:
    """A loaded model with all that the server tells of it.

    Attributes
    ----------
    name : str
    model : estimator
    columns : Columns
    hash : str
        SHA-256 of the file.
    document : str
        The certificate as JSON.
    rule : int
        Its number in the log.
    """

    name: str
    model: Any
    columns: Columns
    hash: str
    document: str
    rule: int

    def decide(self, rows: Rows) -> Answers:
        """Return what the model's own `decide` says of the rows."""
        decisions = self.model.decide(self.columns.frame(rows))
        labels = decisions.label.tolist()
        return Answers(
            labels,
            label_texts(decisions.label).tolist(),
            decisions.confidence.tolist(),
            decisions.accepted.tolist(),
        )

    @property
    def classes(self) -> list[Any]:
        """The labels that the model can give, as JSON has them."""
        return list(self.model.classes_.tolist())

    @property
    def texts(self) -> list[str]:
        """The same as texts."""
        return list(label_texts(self.model.classes_).tolist())

    @property
    def acts(self) -> bool:
        """Whether there is a certificate, or anything to act on without one."""
        return bool(math.isfinite(self.model.threshold_))


def read_model(path: Path, name: str, log: DecisionLog) -> ServedModel:
    """Load a model file and note in the log that it decides from now on."""
    if not path.exists():
        raise DataFileError(f"There is no model file {path}.")
    # The bytes that are hashed must be those that are loaded, also while the file is replaced.
    for _ in range(3):
        digest = _hash(path)
        model = load(path)
        if _hash(path) == digest:
            break
    else:
        raise ModelFileError(f"{path} changes while it is read. Write it once, under another name.")
    if not hasattr(model, "classes_"):
        raise InvalidDataError(
            f"`serve` takes models that predict classes; {path} holds a {type(model).__name__}."
        )
    document = model.certificate_.to_json()
    rule = log.put_in_force(name, digest, document)
    return ServedModel(name, model, Columns(model), digest, document, rule)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
