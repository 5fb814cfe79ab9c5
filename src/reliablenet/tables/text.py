"""Text tables as people save them: compression, encoding, separator, header, and rows of one length.

pandas would fill a short row with missing values and take a long one for an index. Here every record is
counted on its way to pandas, so that a damaged file is refused with the number of the line.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, cast

from reliablenet._listing import listed
from reliablenet.errors import DataFileError, InvalidDataError, MissingExtraError
from reliablenet.tables.columns import check_distinct

SAMPLE_LINES = 2000  # the separator and the decimal sign are found in these
LONGEST_LINE = 2**28
SEPARATORS = ",;\t|"
WHOLE = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+")
EITHER_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234: is it 1.234 or 1234?
BOTH_SIGNS = re.compile(r"[+-]?\d{1,3}((\.\d{3})+,|(,\d{3})+\.)\d+")
DAMAGES = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    separator: str
    decimal: str
    names: tuple[str, ...]


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Yield the bytes of a file, decompressed; what it is, its first bytes tell, and not its name."""
    start = first_bytes(path)
    try:
        if start.startswith(b"\x1f\x8b"):
            with gzip.open(path) as file:
                yield cast(IO[bytes], file)
        elif start.startswith(b"BZh"):
            with bz2.open(path) as file:
                yield cast(IO[bytes], file)
        elif start.startswith(b"\xfd7zXZ"):
            with lzma.open(path) as file:
                yield cast(IO[bytes], file)
        elif start.startswith(b"\x28\xb5\x2f\xfd"):
            with path.open("rb") as packed, _zstandard().open(packed) as file:
                yield file
        elif start.startswith(b"PK\x03\x04"):
            with (
                zipfile.ZipFile(path) as archive,
                archive.open(_only_member(archive, path)) as file,
            ):
                yield file
        else:
            with path.open("rb") as file:
                yield file
    except DAMAGES as error:
        raise InvalidDataError(
            f"{path.name} is damaged: it cannot be decompressed ({error}). Copy it again."
        ) from error


@contextmanager
def opened_text(path: Path) -> Iterator[Iterator[str]]:
    """Yield the lines of a text file, decompressed and decoded."""
    try:
        with opened(path) as file, io.BufferedReader(cast(Any, file)) as raw:
            wide = raw.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
            with io.TextIOWrapper(raw, encoding="utf-16" if wide else "utf-8-sig") as text:
                yield _lines(text, path.name)
    except UnicodeDecodeError as error:
        name, byte = path.name, error.object[error.start]
        before = error.object[max(error.start - 12, 0) : error.start].decode("ascii", "replace")
        raise InvalidDataError(
            f"{name} is not UTF-8 text (byte 0x{byte:02x} after {before!r}). Save it as UTF-8, or "
            f"convert it: iconv -f latin1 -t utf-8 {name} > utf8-{name}"
        ) from None


def _lines(text: io.TextIOWrapper, name: str) -> Iterator[str]:
    number = 0
    while line := text.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:  # a few bytes of gzip may hold a line larger than memory
            raise InvalidDataError(
                f"{name}: line {number} has {LONGEST_LINE:,} characters or more. Is it a table?"
            )
        yield line


def first_bytes(path: Path) -> bytes:
    """Return how a file begins, or say that it is not there."""
    try:
        with path.open("rb") as file:
            return file.read(8)
    except FileNotFoundError:
        raise DataFileError(f"There is no file {path}.") from None
    except OSError as error:
        raise InvalidDataError(f"{path} cannot be read as a table: {error.strerror}.") from error


class Records:
    """What pandas reads from: a text of whole records, each with as many fields as the header.

    Parameters
    ----------
    lines : iterator of str
    name : str
        For errors.
    header : bool
        Whether the first record holds the names.

    Attributes
    ----------
    dialect : Dialect
    """

    def __init__(self, lines: Iterator[str], name: str, *, header: bool = True) -> None:
        self._name = name
        self._first = "header" if header else "first line"
        self._line = 0
        self._pending: list[str] = []  # lines of the record at hand
        sample = list(islice(lines, SAMPLE_LINES))
        self.dialect = find_dialect(sample, name, header=header)
        self._records = self._checked(self._numbered(chain(sample, lines)))
        self._rest = ""
        if header:
            next(self._records)

    def read(self, size: int = -1) -> str:
        """Return the next characters, at most ``size`` of them."""
        parts, length = [self._rest], len(self._rest)
        while size < 0 or length < size:
            record = next(self._records, "")
            if not record:
                break
            parts.append(record)
            length += len(record)
        text = "".join(parts)
        end = len(text) if size < 0 else size
        self._rest = text[end:]
        return text[:end]

    def __iter__(self) -> Iterator[str]:  # pandas asks for it before it calls a thing a file
        return self._records

    def _numbered(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            self._line += 1
            self._pending.append(line)
            yield line

    def _checked(self, lines: Iterator[str]) -> Iterator[str]:
        separator, width = self.dialect.separator, len(self.dialect.names)
        for line in lines:
            first = self._line
            if not line.strip(" \n"):  # tabs alone are a row without values
                self._pending.clear()
                continue
            if '"' not in line:
                found = line.count(separator) + 1
            else:  # a quoted field may hold separators and line ends
                try:
                    found = len(next(_parsed(chain([line], lines), separator)))
                except csv.Error:  # a field of more than 131,072 characters
                    raise InvalidDataError(
                        f"{self._name}: a quote that opens in line {first} is not closed."
                    ) from None
            record = "".join(self._pending)
            self._pending.clear()
            if self._line > first and record.count('"') % 2:
                raise InvalidDataError(
                    f"{self._name}: a quote that opens in line {first} is not closed."
                )
            if found != width:
                raise InvalidDataError(
                    f"{self._name}: line {first} has {_count(found, 'field')} where the {self._first} has "
                    f"{width}. Repair it."
                )
            yield record if record.endswith("\n") else record + "\n"


def find_dialect(lines: list[str], name: str, *, header: bool = True) -> Dialect:
    r"""Find separator, decimal sign and column names in the first lines of a table.

    Without a header, columns are called 0, 1, 2 and so on.

    Examples
    --------
    >>> from reliablenet.tables.text import find_dialect
    >>> find_dialect(["age; income\n", "31;2,5\n", "47;1,25\n"], "loans.csv")
    Dialect(separator=';', decimal=',', names=('age', 'income'))
    """
    if not any(line.strip() for line in lines):
        raise InvalidDataError(f"{name} is empty.")
    if any("\0" in line for line in lines):
        raise InvalidDataError(
            f"{name} is not a text table (it holds zero bytes). Save it as CSV or Parquet."
        )
    try:
        parsed = {separator: list(_parsed(lines, separator)) for separator in SEPARATORS}
    except csv.Error as error:
        raise InvalidDataError(
            f"{name} holds a field of more than {csv.field_size_limit():,} characters ({error}). Leave "
            "that column out, or look for a quote that is not closed."
        ) from None

    def fit(separator: str) -> tuple[float, int]:
        rows = [row for row in parsed[separator] if row]
        width = len(rows[0])
        return (sum(len(row) == width for row in rows) / len(rows) if width > 1 else 0.0), width

    separator = max(SEPARATORS, key=fit)
    first, *rows = (row for row in parsed[separator] if row)
    fields = [field.strip() for row in (rows if header else [first, *rows]) for field in row]
    names = _names(first, name) if header else tuple(str(place) for place in range(len(first)))
    return Dialect(separator, _decimal(fields, separator, name), names)


def _names(header: list[str], name: str) -> tuple[str, ...]:
    names = [field.strip() or f"Unnamed: {place}" for place, field in enumerate(header)]
    numbers = [field for field in names if NUMBER.fullmatch(field)]
    counted = names == [str(place) for place in range(len(names))]  # how pandas names an array
    if any(not WHOLE.fullmatch(n) for n in numbers) or (len(numbers) == len(names) and not counted):
        shown = ", ".join(names[:4])
        raise InvalidDataError(
            f"{name} has no header: its first line begins with {shown}. Add a first line with the "
            "names of the columns."
        )
    check_distinct(names, name)
    return tuple(names)


def _decimal(fields: list[str], separator: str, name: str) -> str:
    """Return the decimal sign; in a file separated by commas, quoted commas are text."""
    commas = [field for field in fields if COMMA_NUMBER.fullmatch(field)]
    if separator == ",":
        return "."
    grouped = next((field for field in fields if BOTH_SIGNS.fullmatch(field)), None)
    if grouped is not None:
        raise InvalidDataError(
            f"{name} groups the digits of its numbers, such as {grouped!r}. Write them without "
            "groups."
        )
    if not commas:
        return "."
    point = next((f for f in fields if "." in f and NUMBER.fullmatch(f)), None)
    if point is not None:
        raise InvalidDataError(
            f"{name} holds numbers with a decimal comma, such as {commas[0]!r}, and with a decimal "
            f"point, such as {point!r}. Write all of them with a point."
        )
    if all(EITHER_NUMBER.fullmatch(field) for field in commas):
        plain = commas[0].replace(",", "")
        raise InvalidDataError(
            f"{name} holds numbers such as {commas[0]!r}, which may mean {plain} or "
            f"{commas[0].replace(',', '.')}. Write them without groups and with a decimal point."
        )
    return ","


def _parsed(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _only_member(archive: zipfile.ZipFile, path: Path) -> str:
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    if "manifest.json" in names and "certificate.json" in names:
        raise InvalidDataError(f"{path.name} is a model and not a table.")
    tables = [name for name in names if not name.startswith("__MACOSX/")]
    if len(tables) != 1:
        raise InvalidDataError(
            f"{path.name} must hold one table; it holds {_count(len(tables), 'file')}: {listed(tables)}."
        )
    return tables[0]


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("Tables in .zst need zstandard: pip install zstandard") from None
    return zstandard


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
