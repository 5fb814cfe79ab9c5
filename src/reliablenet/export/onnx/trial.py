"""Rows on which a graph is tried before it is written: it must decide as the model does, or is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
from numpy.typing import NDArray

from reliablenet.certificate.promise import plain_label
from reliablenet.errors import ExportError, InvalidDataError
from reliablenet.export.parts import TOLERANCE, Parts
from reliablenet.tables.columns import row_number
from reliablenet.tables.piecewise import PiecewiseEncoder
from reliablenet.tables.values import read_numbers, text_codes

AT_ONCE = (
    1024  # rows that a graph is run on together: what a network makes of more leaves the cache
)
MADE_UP = 2000
UNSEEN = "a text that no row of training had"
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
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    table = {str(name): name for name in frame.columns}
    for one in session.get_inputs():
        name = one.name
        values = frame[table[name]] if name in table else pd.Series(others[name], dtype=object)
        if one.type == "tensor(string)":
            found[name] = _texts(values, name)[:, None]
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
            each = [
                f"row {_number(X, row)} ({_words(ours.label[row], ours.confidence[row], ours.accepted[row])}; "
                f"in the graph {_words(label[row], confidence[row], accepted[row])})"
                for row in wrong[:NAMED].tolist()
            ]
            more = f" and {len(wrong) - NAMED:,} more" if len(wrong) > NAMED else ""
            raise ExportError(
                f"The graph is not written: it decides {len(wrong):,} of {len(same):,} {name} otherwise "
                f"than the model, or with a confidence that is off by more than {TOLERANCE:.5f}: "
                f"{', '.join(each)}{more}."
            )
        self.gap = max(self.gap, float(gap.max(initial=0.0)))


def make_up_rows(
    parts: Parts, columns: Sequence[Any] | None, grouping: Sequence[str] = (), seed: int = 0
) -> tuple[Any, dict[str, NDArray[Any]] | None]:
    """Return rows that meet every level, edge and gap of an encoder, and the groups of these rows.

    Parameters
    ----------
    parts : Parts
    columns : sequence or None
        Of the frames that the model takes; None if it knows no names, as of arrays, which have no gaps.
    grouping : sequence of str
        Columns whose groups must be known to decide, features or not.
    seed : int
    """
    random = np.random.default_rng(seed)
    encoder = parts.encoder
    named = columns is not None or bool(encoder.categories_)
    table = pd.DataFrame(index=range(MADE_UP), columns=encoder.columns_, dtype=np.float64)
    for place, column in enumerate(encoder.numbers_):
        table[column] = _numbers(encoder, place, random, gaps=named)
    for column, levels in zip(encoder.categories_, encoder.levels_, strict=True):
        table[column] = random.choice(np.array([*levels, UNSEEN, None], object), MADE_UP)
    groups: dict[str, NDArray[Any]] = {}
    for name in grouping:
        drawn = random.choice(np.array([*_known_groups(parts, name), None], object), MADE_UP)
        if name in encoder.numbers_:  # both what the encoder and what the rule knows
            own = random.random(MADE_UP) < 0.5
            table[name] = table[name].where(own, pd.Series(drawn).astype(np.float64))
        elif name in encoder.dropped_:
            table[name] = drawn
        groups[name] = table[name].to_numpy() if name in table else drawn
    if not named:
        return table.fillna(0.0).to_numpy(np.float64), groups or None
    return table if columns is None else table.reindex(columns=list(columns)), groups or None


def _known_groups(parts: Parts, name: str) -> list[Any]:
    """Return the values of a column that a rule knows, also as one of several."""
    found: list[Any] = []
    for table in parts.rule.tables if parts.rule else ():
        if table.key == (name,):
            found += table.values
        elif name in table.key:
            pairs = [str(label).split(", ") for label in table.values]
            place = table.key.index(name)
            found += [pair[place] for pair in pairs if len(pair) == len(table.key)]
    return found


def _numbers(encoder: Any, place: int, random: Any, *, gaps: bool) -> NDArray[np.float64]:
    mean, scale = encoder.means_[place], encoder.scales_[place]
    known = [encoder.medians_[place], mean]
    if isinstance(encoder, PiecewiseEncoder):
        known += [*encoder.edges_[place], *encoder.ranges_[place]]
        known += [] if encoder.dominant_[place] is None else [encoder.dominant_[place]]
    if gaps:
        known.append(np.nan)
    drawn = mean + 2.0 * scale * random.standard_normal(MADE_UP)
    exact = random.random(MADE_UP) < 0.5
    found: NDArray[np.float64] = np.where(exact, random.choice(np.array(known), MADE_UP), drawn)
    return found


def _texts(values: pd.Series[Any], name: str) -> NDArray[Any]:
    codes, texts = text_codes(values)
    if "" in texts and (codes == texts.index("")).any():
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
