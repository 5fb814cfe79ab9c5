"""Outcomes from a table with a row for each decision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reliablenet._checks import is_flag
from reliablenet.errors import InvalidDataError
from reliablenet.monitor.monitor import Monitor
from reliablenet.tables.files import TableFile, column_names, read_batches
from reliablenet.tables.target import label_texts

YES, NO = ("true", "yes", "1", "1.0"), ("false", "no", "0", "0.0")


@dataclass(frozen=True)
class OutcomeColumns:
    """Which columns of a table hold what; "" where there is none.

    Attributes
    ----------
    accepted : str
        Whether the row was acted on.
    wrong : str
        Whether the prediction was wrong; empty while that is not known. Or
    predicted, truth : str
        what was predicted and what was true; the truth is empty while it is not known.
    audited : str
        Whether the coin picked the row.
    probability : str
        With which probability, where that varies.
    group : str
        The group of the row.
    """

    accepted: str = "accepted"
    wrong: str = "wrong"
    predicted: str = ""
    truth: str = ""
    audited: str = ""
    probability: str = ""
    group: str = ""


def watch_table(path: Path | TableFile, monitor: Monitor, columns: OutcomeColumns) -> Monitor:
    """Feed a monitor with the rows of a table, in their order; CSV, Parquet or JSON lines of any size.

    Parameters
    ----------
    path : Path
    monitor : Monitor
        It is fed, and returned.
    columns : OutcomeColumns

    Returns
    -------
    Monitor
    """
    by_label = bool(columns.predicted and columns.truth)
    outcome = [columns.predicted, columns.truth] if by_label else [columns.wrong]
    rest = [columns.audited, columns.probability, columns.group]
    wanted = list(dict.fromkeys([columns.accepted, *outcome, *filter(None, rest)]))
    texts = {*wanted} - {columns.probability}
    number = 0
    wrong: Any
    for frame in read_batches(path, wanted, text=texts):
        accepted = _flags(frame, columns.accepted)
        if by_label:
            truth = label_texts(frame[columns.truth])
            unknown = np.asarray(pd.isna(frame[columns.truth]))
            wrong = np.where(unknown, None, label_texts(frame[columns.predicted]) != truth)
        else:
            wrong = _flags(frame, columns.wrong)
        audited = _flags(frame, columns.audited) if columns.audited else None
        monitor.update(
            accepted,
            wrong,
            audited,
            pending=np.asarray(pd.isna(wrong)),
            by=frame[columns.group].to_numpy(object) if columns.group else None,
            predicted=frame[columns.predicted].to_numpy(object) if by_label else None,
            truth=frame[columns.truth].to_numpy(object) if by_label else None,
            probability=frame[columns.probability].to_numpy(float) if columns.probability else None,
        )
        number += len(frame)
    if number == 0:
        raise InvalidDataError(f"{path.name} has a header and no rows.")
    return monitor


def default_columns(path: Path | TableFile, given: OutcomeColumns) -> OutcomeColumns:
    """Return the columns to read: those given, and ``audited``, ``probability`` where the table has them."""
    present = column_names(path)
    values = vars(given).copy()
    for name in ("audited", "probability"):
        if not values[name] and name in present:
            values[name] = name
    return OutcomeColumns(**values)


def _flags(frame: pd.DataFrame, column: str) -> Any:
    """Return yes, no or None for each entry, as people write them."""
    codes, distinct = pd.factorize(frame[column])
    meanings = np.array([*(_flag(value, column) for value in distinct), None], dtype=object)
    return meanings[codes]


def _flag(value: Any, column: str) -> bool:
    text = str(value).strip().lower()
    if is_flag(value) or text in (*YES, *NO):
        return text in YES
    raise InvalidDataError(
        f"Column {column!r} must hold true and false, yes and no, or 1 and 0; it holds {value!r}."
    )
