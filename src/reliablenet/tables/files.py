"""Tables from files: CSV in its many forms, JSON lines or Parquet, whole or in batches of bounded memory."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from reliablenet.errors import InvalidDataError, MissingExtraError
from reliablenet.tables.columns import check_columns
from reliablenet.tables.json_lines import json_frames, json_names, looks_like_json
from reliablenet.tables.text import Records, first_bytes, opened_text

BATCH_ROWS = 65_536
MISSING = ["?", ".", "-", "--", "Null", "NAN", "Nan", "NaT"]  # beside those that pandas knows
INDEX_COLUMN = re.compile(r"__index_level_\d+__")  # how pandas stores an index in Parquet


@contextmanager
def local_file(path: str | Path) -> Iterator[Path]:
    """Yield a file that can be read more than once: the path, or a copy of standard input for ``-``."""
    if str(path) != "-":
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "standard input"  # errors show this name
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield copy


def read_table(path: str | Path, *, text: Collection[str] = ()) -> pd.DataFrame:
    r"""Read a table whole.

    JSON lines have one object a line; fields inside fields get names with dots. Separator (comma, semicolon, tab, bar), decimal comma, compression (gz, bz2, xz, zip, zst) and
    byte order mark are found out. A damaged file is refused with the number of the line.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, JSON lines or Parquet.
    text : collection of str
        Columns to leave as they are written, where pandas would see numbers.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> from pathlib import Path
    >>> from reliablenet.tables.files import read_table
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "loans.csv"
    ...     _ = file.write_text("age;rate\n31;2,5\n?;1,25\n")
    ...     read_table(file)
        age  rate
    0  31.0  2.50
    1   NaN  1.25
    """
    path = Path(path)
    if _is_parquet(path):
        with _parquet(path) as file:
            return _arrow_frame(file.read(_columns_of(file)))
    with opened_text(path) as lines:
        frames = _text_frames(lines, path, None, None, text)
        if (frame := next(frames, None)) is None:
            raise InvalidDataError(f"{path.name} has a header and no rows.")
        return frame


def read_batches(
    path: str | Path,
    columns: Sequence[str] | None = None,
    rows: int = BATCH_ROWS,
    *,
    text: Collection[str] = (),
) -> Iterator[pd.DataFrame]:
    r"""Read a table of any size, some rows at a time.

    Parameters
    ----------
    path : str or Path
        As for `read_table`.
    columns : sequence of str, optional
        Those to read, in this order; all by default.
    rows : int
        The most rows of a batch.
    text : collection of str
        Columns to leave as they are written. In a batch alone, postcodes may look like numbers.

    Yields
    ------
    DataFrame

    Examples
    --------
    >>> from pathlib import Path
    >>> from reliablenet.tables.files import read_batches
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "letters.csv"
    ...     _ = file.write_text("x,letter\n1,a\n2,b\n3,c\n")
    ...     [batch["letter"].tolist() for batch in read_batches(file, ["letter"], rows=2)]
    [['a', 'b'], ['c']]
    """
    path = Path(path)
    if not _is_parquet(path):
        with opened_text(path) as lines:
            yield from _text_frames(lines, path, columns, rows, text)
        return
    with _parquet(path) as file:
        wanted = _columns_of(file)
        if columns is not None:
            check_columns(columns, wanted, path.name)
            wanted = list(columns)
        start = 0
        for batch in file.iter_batches(rows, columns=wanted):
            frame = _arrow_frame(batch)[wanted]
            frame.index = pd.RangeIndex(start, start := start + len(frame))  # as that of a CSV file
            yield frame


def column_names(path: str | Path) -> list[str]:
    """Return the names of a table's columns; no row is read."""
    path = Path(path)
    if _is_parquet(path):
        with _parquet(path) as file:
            return _columns_of(file)
    with opened_text(path) as lines:
        first, lines = _peeked(lines)
        if looks_like_json(first):
            return json_names(lines, path.name)
        return list(Records(lines, path.name).dialect.names)


def _text_frames(
    lines: Iterator[str],
    path: Path,
    columns: Sequence[str] | None,
    rows: int | None,
    text: Collection[str],
) -> Iterator[pd.DataFrame]:
    """Yield batches, or the whole table if ``rows`` is None."""
    first, lines = _peeked(lines)
    if looks_like_json(first):
        return (_tidy(frame) for frame in json_frames(lines, path.name, columns, rows, text=text))
    return _csv_frames(Records(lines, path.name), path, columns, rows, text)


def _peeked(lines: Iterator[str]) -> tuple[str, Iterator[str]]:
    """Return the first line that is not blank, and all lines."""
    blank: list[str] = []
    for line in lines:
        blank.append(line)
        if line.strip():
            return line, chain(blank, lines)
    return "", iter(blank)


def _csv_frames(
    records: Records,
    path: Path,
    columns: Sequence[str] | None,
    rows: int | None,
    text: Collection[str],
) -> Iterator[pd.DataFrame]:
    dialect = records.dialect
    if columns is not None:
        check_columns(columns, dialect.names, path.name)
    options: dict[str, Any] = {
        "sep": dialect.separator,
        "decimal": dialect.decimal,
        "header": None,
        "names": dialect.names,
        "usecols": columns,
        "index_col": False,
        "skipinitialspace": True,
        "na_values": MISSING,
        "dtype": {name: str for name in dialect.names if name in text},
        "low_memory": False,  # the type of a column is decided once for all its rows
        "chunksize": rows,
    }
    try:
        made = pd.read_csv(records, **options)  # type: ignore[call-overload]
        for frame in [made] if rows is None else made:
            if len(frame):
                yield _tidy(frame if columns is None else frame[list(columns)])
    except pd.errors.EmptyDataError:
        pass
    except pd.errors.ParserError as error:
        raise InvalidDataError(f"{path.name} cannot be read as a table: {error}.") from error


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """Make true and false with gaps a column of booleans, as it would be without gaps."""
    for column in (name for name, kind in frame.dtypes.items() if kind.kind == "O"):
        if pd.api.types.infer_dtype(frame[column], skipna=True) == "boolean":
            frame = frame.astype({column: "boolean"})
    return frame


def _is_parquet(path: Path) -> bool:
    return first_bytes(path).startswith(b"PAR1")


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(
            "Parquet files need pyarrow: pip install 'reliablenet[parquet]'"
        ) from None
    try:
        # Read ahead, all that was read would stay in memory until the end.
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except pa.ArrowException as error:
        raise InvalidDataError(f"{path.name} is not a whole Parquet file: {error}.") from error


def _columns_of(file: Any) -> list[str]:
    return [name for name in file.schema_arrow.names if not INDEX_COLUMN.fullmatch(name)]


def _arrow_frame(batch: Any) -> pd.DataFrame:
    """Return Arrow data as a frame whose types do not depend on whether values are missing."""
    import pyarrow as pa

    def dtype(kind: Any) -> Any:
        return pd.BooleanDtype() if pa.types.is_boolean(kind) else None

    fields = [
        field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
        for field in batch.schema
    ]
    table = batch.cast(pa.schema(fields))
    frame: pd.DataFrame = table.to_pandas(
        types_mapper=dtype, date_as_object=False, ignore_metadata=True
    )
    return frame
