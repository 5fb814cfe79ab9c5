"""A model as it is served: loaded, hashed, noted in the log, and able to answer."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reliablenet.errors import DataFileError, InvalidDataError, ModelFileError, OddInputWarning
from reliablenet.methods import load
from reliablenet.monitor.log import DecisionLog
from reliablenet.serve.columns import Columns, Rows
from reliablenet.tables.target import label_texts


@dataclass(frozen=True)
class Answers:
    """Label, confidence and accepted of each row as JSON has them, the label as the log has it, and how many rows are odd."""

    labels: list[Any]
    texts: list[str]
    confidences: list[float]
    accepted: list[bool]
    odd: int = 0

    def cut(self, part: slice) -> Answers:
        """Return the answers to some of the rows, without the count of odd ones."""
        return Answers(
            self.labels[part], self.texts[part], self.confidences[part], self.accepted[part]
        )


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
    defer_odd : bool
        Whether rows unlike those of training are deferred.
    """

    name: str
    model: Any
    columns: Columns
    hash: str
    document: str
    rule: int
    defer_odd: bool = False

    def decide(self, rows: Rows) -> Answers:
        """Return what the model's own `decide` says of the rows.

        Columns that are missing were looked at request by request; here several may stand together.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OddInputWarning)  # counted instead
            decisions = self.model.decide(
                self.columns.frame(rows),
                defer_odd=self.defer_odd,
                allow_missing=self.columns.names or range(self.columns.width),
            )
        oddities = getattr(decisions, "oddities", None)
        labels = decisions.label.tolist()
        return Answers(
            labels,
            [self.text_of[label] for label in labels],
            decisions.confidence.tolist(),
            decisions.accepted.tolist(),
            0 if oddities is None else int(oddities.odd.sum()),
        )

    @property
    def classes(self) -> list[Any]:
        """The labels that the model can give, as JSON has them."""
        return list(self.text_of)

    @property
    def texts(self) -> list[str]:
        """The same as texts."""
        return list(self.text_of.values())

    @cached_property
    def text_of(self) -> dict[Any, str]:
        """Each label that the model can give with its text."""
        labels = self.model.classes_
        return dict(zip(labels.tolist(), label_texts(labels).tolist(), strict=True))

    @property
    def acts(self) -> bool:
        """Whether there is a certificate, or anything to act on without one."""
        return bool(math.isfinite(self.model.threshold_))


def read_model(
    path: Path,
    name: str,
    log: DecisionLog,
    *,
    defer_odd: bool = False,
    allow_missing: Collection[str] = (),
    trusted_keys: Sequence[Path] = (),
) -> ServedModel:
    """Load a model file and note in the log that it decides from now on."""
    if not path.exists():
        raise DataFileError(f"There is no model file {path}.")
    # The bytes that are hashed must be those that are loaded, also while the file is replaced.
    for _ in range(3):
        digest = _hash(path)
        model = load(path, trusted_keys=list(trusted_keys) or None)
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
    columns = Columns(model, allow_missing)
    return ServedModel(name, model, columns, digest, document, rule, defer_odd)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
