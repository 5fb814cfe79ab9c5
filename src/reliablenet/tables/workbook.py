"""Excel workbooks, read as the lines of the CSV file that saving the sheet would give."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

from reliablenet._warn import warn_user
from reliablenet.errors import ColumnWarning, InvalidDataError, MissingExtraError
from reliablenet.tables.text import first_bytes

OLD = b"\xd0\xcf\x11\xe0"  # how .xls files begin


def is_workbook(path: Path) -> bool:
    """Tell by its content whether a file is a workbook of Excel."""
    start = first_bytes(path)
    if start.startswith(OLD):
        raise InvalidDataError(
            f"{path.name} is a workbook of an old kind, or locked with a password. Save it as .xlsx or "
            "CSV first."
        )
    if not start.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.startswith("xl/") for name in archive.namelist())
    except zipfile.BadZipFile:
        return False  # the reader of compressed tables says what is wrong


@contextmanager
def opened_workbook(path: Path) -> Iterator[Iterator[str]]:
    """Yield the rows of the first sheet as lines of CSV; a sheet of any size is read as it goes."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtraError(
            "Excel workbooks need openpyxl: pip install 'reliablenet[excel]'"
        ) from None
    with path.open("rb") as file:  # of a path, openpyxl would look at the name
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except Exception as error:  # openpyxl raises whatever it stumbles over
            raise InvalidDataError(f"{path.name} cannot be read as a workbook: {error}.") from error
        if not book.worksheets:
            raise InvalidDataError(f"{path.name} has no sheet with cells.")
        first, *others = book.worksheets
        if others:
            names = [sheet.title for sheet in others]
            warn_user(
                f"{path.name} has {1 + len(others)} sheets; the first, {first.title!r}, is read. "
                f"For another one ({names[0]!r}, say) move it to the front.",
                ColumnWarning,
            )
        yield _lines(first, path.name)


def _lines(sheet: Any, name: str) -> Iterator[str]:
    line, width = io.StringIO(), 0
    writer = csv.writer(line, lineterminator="\n")
    rows = sheet.iter_rows(values_only=True)
    while True:
        try:
            row = next(rows, None)
        except Exception as error:  # damaged XML, found as it is read
            raise InvalidDataError(f"{name} cannot be read as a workbook: {error}.") from error
        if row is None:
            return
        cells = [_text(cell) for cell in row]
        filled = max((place for place, cell in enumerate(cells, 1) if cell), default=0)
        if not filled:
            continue
        width = width or filled  # cells behind the header may have been touched and left empty
        line.seek(0)
        line.truncate()
        writer.writerow(cells[:width] + [""] * (width - len(cells)) + cells[width:filled])
        yield line.getvalue()


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat(" ") if cell.time() != datetime.min.time() else str(cell.date())
    return cell.isoformat() if isinstance(cell, date) else str(cell)
