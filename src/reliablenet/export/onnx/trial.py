"""Rows on which a graph is tried before it is written: it must decide as the model does, or is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
from numpy.typing import NDArray

from reliablenet._listing import listed
from reliablenet.certificate.promise import plain_label
from reliablenet.errors import ExportError, InvalidDataError
from reliablenet.export.parts import CATEGORY, DATE, DAYS, TEXT, TOLERANCE
from reliablenet.tables.columns import row_number
from reliablenet.tables.dates import read_days, write_dates
from reliablenet.tables.values import read_numbers, text_codes

AT_ONCE = (
    1024  # rows that a graph is run on together: what a network makes of more leaves the cache
)
NAMED = 5  # rows that a refusal names

Groups = Mapping[str, NDArray[Any]]


def open_graph(content: bytes) -> Any:
    """Return a graph ready to run, on one thread."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3
    return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])


def feeds(session: Any, X: Any, groups: Groups | None = None) -> dict[str, NDArray[Any]]:
    """Return rows as the inputs of a graph: numbers as 64 bits, texts with nothing where missing.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
    X : data frame or array
        Rows as the model takes them.
    groups : mapping of arrays, optional
        Columns that are no features.
    """
    others, found = groups or {}, {}
    kinds = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    table = {str(name): name for name in frame.columns}
    for one in session.get_inputs():
        name = one.name
        values = frame[table[name]] if name in table else pd.Series(others[name], dtype=object)
        kind = kinds[name]
        if kind == DAYS:
            found[name] = read_days(values)[:, None]
        elif kind in (DATE, TEXT, CATEGORY):
            written = write_dates(values) if kind == DATE else values
            found[name] = _texts(written, name, kind)[:, None]
        elif name in table:
            found[name] = read_numbers(values, name)[:, None]
        else:
            numbers = [np.nan if pd.isna(v) else float(plain_label(v)) for v in values]
            found[name] = np.array(numbers)[:, None]
    return found


def run(session: Any, given: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Return label, confidence and accepted of rows, some at a time."""
    rows = len(next(iter(given.values())))
    parts = [
        session.run(None, {name: part[at : at + AT_ONCE] for name, part in given.items()})
        for at in range(0, rows, AT_ONCE)
    ]
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


@dataclass
class Trial:
    """What came of comparing a graph with the model.

    Attributes
    ----------
    rows : int
        Rows of the user's that both decided alike.
    certified : int
        Certification rows among them.
    made_up : int
        Rows made up from what the encoder knows.
    gap : float
        The largest difference of confidence.
    """

    session: Any = field(repr=False)
    rows: int = 0
    certified: int = 0
    made_up: int = 0
    gap: float = 0.0

    def compare(self, X: Any, groups: Groups | None, ours: Any, name: str) -> None:
        """Run the graph on rows and raise unless it decides as the model did."""
        label, confidence, accepted = run(self.session, feeds(self.session, X, groups))
        gap = np.abs(confidence - ours.confidence)
        same_label = np.array(label == _as_given(ours.label), bool)
        same = same_label & (accepted == ours.accepted) & (gap <= TOLERANCE)
        if not same.all():
            wrong = np.flatnonzero(~same)

            def told(row: int) -> str:
                own = _words(ours.label[row], ours.confidence[row], ours.accepted[row])
                found = _words(label[row], confidence[row], accepted[row])
                return f"row {_number(X, row)} ({own}; in the graph {found})"

            raise ExportError(
                f"The graph is not written: it decides {len(wrong):,} of {len(same):,} {name} differently "
                f"from the model, or with a confidence that is off by more than {TOLERANCE:.5f}: "
                f"{listed(wrong.tolist(), NAMED, told)}."
            )
        self.gap = max(self.gap, float(gap.max(initial=0.0)))


def _texts(values: pd.Series[Any], name: str, kind: str) -> NDArray[Any]:
    codes, texts = text_codes(values)
    if kind == CATEGORY and "" in texts and (codes == texts.index("")).any():
        row = row_number(values, int((codes == texts.index("")).argmax()))
        raise InvalidDataError(
            f"Column {name!r} holds the empty text in row {row}, which in a graph means that a value is "
            "missing. Leave it missing, or give it a name."
        )
    found: NDArray[Any] = np.array([*texts, ""], dtype=object)[codes]
    return found


def _as_given(labels: NDArray[Any]) -> NDArray[Any]:
    return labels.astype(object) if labels.dtype.kind in "UO" else labels


def _number(X: Any, row: int) -> int:
    return row_number(X, row) if isinstance(X, pd.DataFrame) else row


def _words(label: Any, confidence: float, accepted: bool) -> str:
    return f"{label}, {confidence:.7f}, {'accepted' if accepted else 'deferred'}"
