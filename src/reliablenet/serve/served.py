"""A model as it is served: loaded, hashed, noted in the log, and able to answer."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reliablenet.errors import DataFileError, ModelFileError, OddInputWarning
from reliablenet.methods import load
from reliablenet.monitor.log import DecisionLog
from reliablenet.monitor.score_stream import write_scores
from reliablenet.serve.answering import Answering, answering_of
from reliablenet.serve.columns import Columns
from reliablenet.serve.request_rows import Rows
from reliablenet.tables.oddities import OF_ROWS


@dataclass(frozen=True)
class Answers:
    """The answer to each row.

    Attributes
    ----------
    values, confidences, accepted : list
        As JSON has them; values are labels or numbers.
    texts : list of str
        Values as the log has them.
    tolerances : list of str or None
        Of numbers: how far each may be off.
    odd : int
        How many rows are odd.
    odd_values : dict
        How many values are, by column and by what is odd about them. What is odd about a whole column is
        left out: rows of several requests may stand in it.
    """

    values: list[Any]
    texts: list[str]
    confidences: list[float]
    accepted: list[bool]
    tolerances: list[str] | None = None
    odd: int = 0
    odd_values: dict[tuple[str, str], int] = field(default_factory=dict)

    def cut(self, part: slice) -> Answers:
        """Return the answers to some of the rows, without the counts of odd ones."""
        return Answers(
            self.values[part],
            self.texts[part],
            self.confidences[part],
            self.accepted[part],
            None if self.tolerances is None else self.tolerances[part],
        )


@dataclass(frozen=True)
class ServedModel:
    """A loaded model with all that the server tells about it.

    Attributes
    ----------
    name : str
    model : estimator
    answering : ClassAnswers or NumberAnswers
        What it answers with.
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
    answering: Answering
    columns: Columns
    hash: str
    document: str
    rule: int
    defer_odd: bool = False

    def decide(self, rows: Rows) -> Answers:
        """Return what the model's own `decide` says about the rows.

        Columns that are missing were looked at request by request; here several may stand together.
        """
        table = self.columns.table(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OddInputWarning)  # counted instead
            decisions = self.model.decide(
                table,
                defer_odd=self.defer_odd,
                allow_missing=self.columns.names or range(self.columns.width),
            )
        oddities = getattr(decisions, "oddities", None)
        found = () if oddities is None else oddities.found
        values = getattr(decisions, self.answering.name).tolist()
        return Answers(
            values,
            self.answering.texts(values),
            decisions.confidence.tolist(),
            decisions.accepted.tolist(),
            self.answering.tolerances(table, rows.size),
            0 if oddities is None else int(oddities.odd.sum()),
            {(str(one.column), one.what): one.rows for one in found if one.what in OF_ROWS},
        )

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
        raise ModelFileError(
            f"{path} changed while it was read. Write it once, under another name."
        )
    document = model.certificate_.to_json()
    rule = log.put_in_force(name, digest, document, write_scores(model))
    columns = Columns(model, allow_missing)
    answering = answering_of(model)
    return ServedModel(name, model, answering, columns, digest, document, rule, defer_odd)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
