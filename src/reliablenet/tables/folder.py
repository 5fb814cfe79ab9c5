"""Folders of Parquet, as Spark, Dask and others write them: one table, its files in the order of their numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pandas as pd

from reliablenet._listing import listed
from reliablenet.errors import DataFileError, InvalidDataError
from reliablenet.tables.arrow import opened_arrow
from reliablenet.tables.columns import check_columns
from reliablenet.tables.text import first_bytes


def parquet_files(folder: Path) -> list[Path]:
    """Return the files of a folder, part 2 before part 10.

    What begins with a dot or an underscore, such as ``_SUCCESS``, is not part of the table. Whatever else
    is there must be Parquet: a file that is passed over could be rows that are missed.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> from reliablenet.tables.folder import parquet_files
    >>> with tempfile.TemporaryDirectory() as name:
    ...     for part in (10, 2):
    ...         pd.DataFrame({"x": [part]}).to_parquet(f"{name}/part.{part}.parquet")
    ...     [file.name for file in parquet_files(Path(name))]
    ['part.2.parquet', 'part.10.parquet']
    """
    inside = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    inside.sort(key=lambda path: [_as_number(text) for text in re.split(r"(\d+)", path.name)])
    if folders := [path.name for path in inside if path.is_dir()]:
        raise InvalidDataError(
            f"{folder} holds folders: {listed(folders)}. Give one of them; a table is a folder of files."
        )
    if strangers := [path.name for path in inside if not first_bytes(path).startswith(b"PAR1")]:
        raise InvalidDataError(
            f"{folder} must hold Parquet files alone; it also holds {listed(strangers)}. Move such files "
            "elsewhere, or give them by themselves."
        )
    if not inside:
        raise DataFileError(f"{folder} holds no Parquet files.")
    return inside


def folder_names(folder: Path) -> list[str]:
    """Return the columns that every file of a folder has, in the order of the first."""
    first, *others = (_names(path) for path in parquet_files(folder))
    return [name for name in first if all(name in other for other in others)]


def folder_frames(
    folder: Path, columns: Sequence[str] | None, rows: int | None, text: Collection[str]
) -> Iterator[pd.DataFrame]:
    """Yield batches of the files in turn, or each file whole if ``rows`` is None; rows are numbered throughout."""
    files = parquet_files(folder)
    wanted = folder_names(folder) if columns is None else list(columns)
    for path in files:  # before the first is read
        check_columns(wanted, _names(path), path.name)
    start = 0
    for path in files:
        with opened_arrow(path) as table:
            for frame in table.frames(wanted, rows, text):
                if len(frame):
                    frame.index = pd.RangeIndex(start, start := start + len(frame))
                    yield frame


def has_rows(path: Path) -> bool:
    """Tell whether a Parquet file holds any rows; none is read."""
    with opened_arrow(path) as table:
        return table.rows > 0


def _names(path: Path) -> list[str]:
    with opened_arrow(path) as table:
        return table.names


def _as_number(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdigit() else (-1, text)
