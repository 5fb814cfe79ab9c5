"""Tables in Arrow's formats, Parquet and Feather, whole or in batches of bounded memory."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from reliablenet.errors import InvalidDataError, MissingExtraError
from reliablenet.tables.columns import check_columns
from reliablenet.tables.text import first_bytes

KINDS = {b"PAR1": "Parquet", b"ARROW1": "Feather", b"FEA1": "Feather of the first version"}
INDEX_COLUMN = re.compile(r"__index_level_\d+__")  # how pandas stores an index


class ArrowTable:
    """An Arrow file, open for reading.

    Attributes
    ----------
    names : list of str
        Its columns, but for an index of pandas.
    rows : int
        How many it has, if it is Parquet, which says so.
    """

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name = file, name
        schema = file.schema_arrow if hasattr(file, "schema_arrow") else file.schema
        self.names = [name for name in schema.names if not INDEX_COLUMN.fullmatch(name)]
        self.rows = file.metadata.num_rows if hasattr(file, "iter_batches") else -1

    def frames(
        self, columns: Sequence[str] | None, rows: int | None, text: Collection[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Yield batches of some columns, or the whole table if ``rows`` is None."""
        wanted = self.names if columns is None else list(columns)
        check_columns(wanted, self.names, self._name)
        start = 0
        for batch in self._batches(wanted, rows):
            frame = arrow_frame(batch, text)[wanted]
            frame.index = pd.RangeIndex(start, start := start + len(frame))  # as that of a CSV file
            yield frame

    def _batches(self, wanted: list[str], rows: int | None) -> Iterator[Any]:
        if hasattr(self._file, "iter_batches"):
            yield from (
                [self._file.read(wanted)]
                if rows is None
                else self._file.iter_batches(rows, columns=wanted)
            )
        elif rows is None:
            yield self._file.read_all().select(wanted)
        else:
            for number in range(self._file.num_record_batches):
                whole = self._file.get_batch(number).select(wanted)
                for first in range(0, whole.num_rows, rows):
                    yield whole.slice(first, rows)


def is_arrow(path: Path) -> bool:
    """Tell by its first bytes whether a file is an Arrow file."""
    return first_bytes(path).startswith(tuple(KINDS))


@contextmanager
def opened_arrow(path: Path) -> Iterator[ArrowTable]:
    """Yield an Arrow file, open for reading."""
    start = first_bytes(path)
    kind = next(name for magic, name in KINDS.items() if start.startswith(magic))
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError(
            f"{kind} files need pyarrow: pip install 'reliablenet[parquet]'"
        ) from None
    if kind not in ("Parquet", "Feather"):
        raise InvalidDataError(
            f"{path.name} is {kind}, which is no longer read. Save it in the current Feather format, or as Parquet or CSV."
        )
    try:
        if kind == "Parquet":
            # Read ahead, all that was read would stay in memory until the end.
            with pq.ParquetFile(path, pre_buffer=False) as file:
                yield ArrowTable(file, path.name)
        else:
            with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
                yield ArrowTable(file, path.name)
    except pa.ArrowException as error:
        raise InvalidDataError(f"{path.name} is not a whole {kind} file: {error}.") from error


def arrow_frame(batch: Any, text: Collection[str] = ()) -> pd.DataFrame:
    """Return Arrow data as a frame whose types do not depend on whether values are missing."""
    import pyarrow as pa

    def as_read(field: Any) -> Any:
        if pa.types.is_decimal(field.type):
            return field.with_type(pa.float64())
        if pa.types.is_integer(field.type) and field.name in text:
            return field.with_type(pa.string())
        return field

    def dtype(kind: Any) -> Any:
        return pd.BooleanDtype() if pa.types.is_boolean(kind) else None

    table = batch.cast(pa.schema([as_read(field) for field in batch.schema]))
    frame: pd.DataFrame = table.to_pandas(
        types_mapper=dtype, date_as_object=False, ignore_metadata=True
    )
    return frame
