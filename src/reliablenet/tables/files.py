"""Tables from files: CSV in its many forms, JSON lines, Excel, Parquet or Feather, or a folder of Parquet."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from reliablenet.errors import InvalidDataError
from reliablenet.tables.arrow import is_arrow, opened_arrow
from reliablenet.tables.columns import check_columns
from reliablenet.tables.folder import folder_frames, folder_names
from reliablenet.tables.json_lines import json_frames, json_names, looks_like_json
from reliablenet.tables.text import Records, opened_text
from reliablenet.tables.workbook import is_workbook, opened_workbook

BATCH_ROWS = 65_536
MISSING = ["?", ".", "-", "--", "Null", "NAN", "Nan", "NaT"]  # beside those that pandas knows


@dataclass(frozen=True)
class TableFile:
    """A file that holds a table, or a folder of Parquet.

    Attributes
    ----------
    path : Path
    header : bool
        Whether the first line names the columns. Without names they are called 0, 1, 2 and so on.
    """

    path: Path
    header: bool = True

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.path.name


@contextmanager
def local_file(path: str | Path, *, header: bool = True) -> Iterator[TableFile]:
    """Yield a file that can be read more than once: the path, or a copy of standard input for ``-``."""
    if str(path) != "-":
        yield TableFile(Path(path), header)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "standard input"  # errors show this name
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield TableFile(copy, header)


def read_table(path: str | Path | TableFile, *, text: Collection[str] = ()) -> pd.DataFrame:
    r"""Read a table whole.

    Separator (comma, semicolon, tab, bar), decimal comma, compression (gz, bz2, xz, zip, zst) and byte
    order mark are found out. JSON lines have one object a line; fields inside fields get names with
    dots. Of a workbook the first sheet is read. A damaged file is refused with the number of the line.

    Parameters
    ----------
    path : str, Path or TableFile
        CSV, TSV, JSON lines, Excel (.xlsx), Parquet or Feather, or a folder of Parquet files.
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
    file = _as_file(path)
    frames = list(_frames(file, None, None, text))  # one, but of a folder
    if not any(map(len, frames)):
        raise InvalidDataError(f"{file.name} has a header and no rows.")
    return frames[0] if len(frames) == 1 else pd.concat(frames)


def read_batches(
    path: str | Path | TableFile,
    columns: Sequence[str] | None = None,
    rows: int = BATCH_ROWS,
    *,
    text: Collection[str] = (),
) -> Iterator[pd.DataFrame]:
    r"""Read a table of any size, some rows at a time.

    Parameters
    ----------
    path : str, Path or TableFile
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
    yield from _frames(_as_file(path), columns, rows, text)


def column_names(path: str | Path | TableFile) -> list[str]:
    """Return the names of a table's columns; no row is read."""
    file = _as_file(path)
    if file.path.is_dir():
        _check_header(file)
        return folder_names(file.path)
    if is_arrow(file.path):
        _check_header(file)
        with opened_arrow(file.path) as table:
            return table.names
    with _opened_lines(file) as lines:
        first, lines = _peeked(lines)
        if looks_like_json(first):
            _check_header(file)
            return json_names(lines, file.name)
        return list(Records(lines, file.name, header=file.header).dialect.names)


def _as_file(path: str | Path | TableFile) -> TableFile:
    return path if isinstance(path, TableFile) else TableFile(Path(path))


def _check_header(file: TableFile) -> None:
    """Refuse to read a file without its names if its format gives every column one."""
    if not file.header:
        raise InvalidDataError(
            f"{file.name} names its columns, as every file of its kind does. Read it with its header."
        )


def _frames(
    file: TableFile, columns: Sequence[str] | None, rows: int | None, text: Collection[str]
) -> Iterator[pd.DataFrame]:
    """Yield batches, or the whole table if ``rows`` is None; of a folder, each file whole."""
    if file.path.is_dir():
        _check_header(file)
        yield from folder_frames(file.path, columns, rows, text)
        return
    if is_arrow(file.path):
        _check_header(file)
        with opened_arrow(file.path) as table:
            yield from table.frames(columns, rows, text)
        return
    with _opened_lines(file) as lines:
        first, lines = _peeked(lines)
        if looks_like_json(first):
            _check_header(file)
            for frame in json_frames(lines, file.name, columns, rows, text=text):
                yield _tidy(frame)
        else:
            records = Records(lines, file.name, header=file.header)
            yield from _csv_frames(records, file.name, columns, rows, text)


def _opened_lines(file: TableFile) -> AbstractContextManager[Iterator[str]]:
    return (opened_workbook if is_workbook(file.path) else opened_text)(file.path)


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
    name: str,
    columns: Sequence[str] | None,
    rows: int | None,
    text: Collection[str],
) -> Iterator[pd.DataFrame]:
    dialect = records.dialect
    if columns is not None:
        check_columns(columns, dialect.names, name)
    options: dict[str, Any] = {
        "sep": dialect.separator,
        "decimal": dialect.decimal,
        "header": None,
        "names": dialect.names,
        "usecols": columns,
        "index_col": False,
        "skipinitialspace": True,
        "na_values": MISSING,
        "dtype": {column: str for column in dialect.names if column in text},
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
        raise InvalidDataError(f"{name} cannot be read as a table: {error}.") from error


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """Make true and false with gaps a column of booleans, as it would be without gaps."""
    for column in (name for name, kind in frame.dtypes.items() if kind.kind == "O"):
        if pd.api.types.infer_dtype(frame[column], skipna=True) == "boolean":
            frame = frame.astype({column: "boolean"})
    return frame
