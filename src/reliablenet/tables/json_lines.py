"""Tables of JSON lines: one object a line, as programs that log their answers write them.

A field of an object inside a field has a name with a dot, ``doc.question``, and an entry of a list the
number of its place, ``scores.0``. What a line lacks is missing in its row.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import pandas as pd

from reliablenet.errors import InvalidDataError
from reliablenet.tables.columns import check_columns

SAMPLE_LINES = 2000  # the names of the fields are found in these, where rows come in batches


def looks_like_json(line: str) -> bool:
    """Tell whether the first line of a file is one of JSON and not a header.

    Examples
    --------
    >>> from reliablenet.tables.json_lines import looks_like_json
    >>> looks_like_json('{"score": 0.9}'), looks_like_json("score,right")
    (True, False)
    """
    return line.lstrip().startswith(("{", "["))


def json_names(lines: Iterable[str], name: str) -> list[str]:
    """Return the names of the fields in the first lines, in the order in which they come."""
    return _names(islice(_records(lines, name), SAMPLE_LINES))


def json_frames(
    lines: Iterable[str],
    name: str,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    *,
    text: Collection[str] = (),
) -> Iterator[pd.DataFrame]:
    r"""Yield the rows of JSON lines, or all at once if ``rows`` is None.

    Parameters
    ----------
    lines : iterable of str
    name : str
        What to call the file in errors.
    columns : sequence of str, optional
        Those to read, in this order; all by default.
    rows : int, optional
        The most rows of a frame.
    text : collection of str
        Columns to leave as they are written.

    Yields
    ------
    DataFrame

    Examples
    --------
    >>> from reliablenet.tables.json_lines import json_frames
    >>> lines = ['{"acc": 1, "doc": {"id": 7}}\n', '{"acc": 0, "doc": {"id": 8}, "scores": [0.5]}\n']
    >>> next(json_frames(lines, "samples.jsonl", ["acc", "doc.id", "scores.0"]))
       acc  doc.id  scores.0
    0    1       7       NaN
    1    0       8       0.5
    """
    records = _records(lines, name)
    sample = list(records if columns is None and rows is None else islice(records, SAMPLE_LINES))
    if columns is None:
        columns = _names(sample)
    else:
        present = _names(sample)
        unseen = [column for column in columns if column not in present]
        found = [c for c in unseen if any(find_field(record, c) is not None for record in sample)]
        check_columns(columns, [*present, *found], name)
    start, records = 0, chain(sample, records)
    while batch := [
        [find_field(record, column) for column in columns] for record in islice(records, rows)
    ]:
        values = zip(*batch, strict=True)
        yield pd.DataFrame(
            {
                column: [_written(value) for value in entries] if column in text else entries
                for column, entries in zip(columns, values, strict=True)
            },
            index=pd.RangeIndex(start, start := start + len(batch)),
        )


def find_field(record: Any, name: str) -> Any:
    """Return a field by its name, None if it is not there.

    Examples
    --------
    >>> from reliablenet.tables.json_lines import find_field
    >>> record = {"exact_match": 1, "doc": {"id": 7}, "resps": [["yes", -0.2]]}
    >>> [find_field(record, name) for name in ("exact_match", "doc.id", "resps.0.1", "doc.text")]
    [1, 7, -0.2, None]
    """
    if isinstance(record, dict):
        if name in record:
            return record[name]
        for place in (i for i, sign in enumerate(name) if sign == "."):
            if (found := find_field(record.get(name[:place]), name[place + 1 :])) is not None:
                return found
    elif isinstance(record, list):
        number, _, rest = name.partition(".")
        if number.isdecimal() and int(number) < len(record):
            entry = record[int(number)]
            return find_field(entry, rest) if rest else entry
    return None


def _records(lines: Iterable[str], name: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            story = getattr(error, "msg", str(error))
            whole = " A file that is one list must become one object a line." * (number == 1)
            raise InvalidDataError(
                f"{name}: line {number} is not a JSON object of its own ({story}).{whole}"
            ) from None
        if not isinstance(record, dict):
            raise InvalidDataError(
                f"{name}: line {number} is JSON, but not an object with named fields such as "
                '{"score": 0.9, "correct": true}. Write one such object a line.'
            )
        yield record


def _names(records: Iterable[dict[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for record in records:
        names.update(dict.fromkeys(_field_names(record)))
    return list(names)


def _field_names(record: dict[str, Any]) -> Iterator[str]:
    for name, value in record.items():
        if isinstance(value, dict) and value:
            yield from (f"{name}.{inner}" for inner in _field_names(value))
        else:
            yield name


def _written(value: Any) -> str | None:
    """Return a value as the text of a cell, None if it is missing."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value != value:
        return None
    return str(value) if isinstance(value, bool | int | float) else json.dumps(value)
