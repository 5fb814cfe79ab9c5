"""Decisions on tables of any size: what is asked of each row, the counts, and folders decided file by file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pandas as pd

from reliablenet._dask import map_cluster
from reliablenet._files import open_atomically
from reliablenet._listing import listed
from reliablenet.cli.cluster import check_visible, naming
from reliablenet.cli.model_rows import EXPLAINED, decide_batches
from reliablenet.errors import InvalidDataError
from reliablenet.methods.dask_frames import no_decisions
from reliablenet.tables.files import BATCH_ROWS, TableFile
from reliablenet.tables.folder import has_rows, parquet_files
from reliablenet.tables.oddities import OddCounts

if TYPE_CHECKING:
    from pyarrow import Schema, Table

FOOTER = b"reliablenet"  # where a file of decisions says what it was made from


@dataclass
class Summary:
    """What was decided on any number of rows, in counts."""

    rows: int = 0
    accepted: int = 0
    oddities: OddCounts = field(default_factory=OddCounts)
    without_certificate: Counter[str] = field(default_factory=Counter)
    why: Counter[str] = field(default_factory=Counter)

    def merge(self, later: Summary) -> None:
        """Take in what was decided of later rows."""
        self.rows, self.accepted = self.rows + later.rows, self.accepted + later.accepted
        self.oddities = OddCounts.joined([self.oddities, later.oddities])
        self.without_certificate += later.without_certificate
        self.why += later.why

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON can hold them."""
        return {
            "rows": self.rows,
            "accepted": self.accepted,
            "oddities": self.oddities.to_dict(),
            "without_certificate": dict(self.without_certificate),
            "why": dict(self.why),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Summary:
        """Read what `to_dict` returned."""
        counters = (Counter(values[name]) for name in ("without_certificate", "why"))
        odd = OddCounts.from_dict(values["oddities"])
        return cls(values["rows"], values["accepted"], odd, *counters)


@dataclass(frozen=True)
class Asked:
    """What is asked of each row.

    Attributes
    ----------
    keep : tuple of str
        Columns to write beside each decision.
    defer_odd, explain : bool
    allow_missing : tuple of str
    """

    keep: tuple[str, ...] = ()
    defer_odd: bool = False
    explain: bool = False
    allow_missing: tuple[str, ...] = ()

    def decide(
        self, model: Any, file: TableFile, summary: Summary
    ) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        """Yield the columns to keep and the decisions, batch by batch, and count them."""
        strangers: Counter[Any] = Counter()
        asked = (self.keep, self.defer_odd, self.allow_missing, strangers, self.explain)
        for decisions, kept, why in decide_batches(model, file, *asked):
            frame = decisions.to_frame()
            if self.defer_odd:
                frame["odd"] = decisions.odd
            groups = {"missing" if k is None else str(k): n for k, n in strangers.items()}
            strangers.clear()
            odd = OddCounts() if decisions.oddities is None else decisions.oddities.counted()
            reasons = Counter(why["why"][~decisions.accepted]) if self.explain else Counter()
            accepted = int(decisions.accepted.sum())
            summary.merge(Summary(len(decisions), accepted, odd, Counter(groups), reasons))
            yield kept, pd.concat([frame, why], axis=1)


def write_csv(model: Any, file: TableFile, target: IO[bytes], asked: Asked) -> Summary:
    """Write the decisions on a table as CSV."""
    summary = Summary()
    for kept, frame in asked.decide(model, file, summary):
        first = summary.rows == len(frame)
        whole = pd.concat([kept, frame], axis=1)
        whole.to_csv(target, header=first, index=False, lineterminator="\n")
    return summary


def decide_folder(
    model: Any, source: Path, out: Path, asked: Asked, seal: str, client: Any = None
) -> Summary:
    """Write the decisions on a folder of Parquet as a folder with files of the same names.

    Each file is whole or not there, and says in its footer what it was made from: of files that are there
    and were made from the same, by the same model, only the counts are read.

    Parameters
    ----------
    model : fitted estimator
    source, out : Path
        Folders; the second is made if it is not there.
    asked : Asked
    seal : str
        SHA-256 of the model file.
    client : distributed.Client, optional
        Of a cluster whose workers see both folders under the same names; each file is read, decided and
        written there.

    Returns
    -------
    Summary
    """
    files = parquet_files(source.resolve())
    out.mkdir(exist_ok=True)
    names = {path.name for path in files}
    others = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
    if strangers := [name for name in others if name not in names]:
        raise InvalidDataError(
            f"{out} holds other files: {listed(strangers)}. Name an empty folder, or "
            "one that does not exist."
        )
    target = out.resolve()
    marks = {path.name: _mark(path, asked, seal) for path in files}
    done = {name: _finished(target / name, marks[name]) for name in names}
    left = [path for path in files if done[path.name] is None]
    arguments = {path.name: (path, target / path.name, asked, marks[path.name]) for path in left}
    if client is None:
        found: Iterator[Summary] = (write_parquet(model, *item) for item in arguments.values())
    else:
        found = map_cluster(client, write_parquet, model, arguments)
    done |= dict(zip(arguments, found, strict=True))
    whole = Summary()
    for path in files:
        part = done[path.name]
        assert part is not None  # noqa: S101
        whole.merge(part)
    if whole.rows == 0:
        raise InvalidDataError(f"{source} has no rows.")
    for path in out.glob(".*"):  # of a run that was killed
        if path.name[1:].rpartition(".")[0] in names:
            path.unlink(missing_ok=True)
    return whole


def write_parquet(
    model: Any, source: Path, target: Path, asked: Asked, mark: dict[str, Any]
) -> Summary:
    """Write the decisions on a Parquet file as another one, which is whole or not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_visible(source, target.parent)
    summary = Summary()
    with naming(source), pq.ParquetFile(source, pre_buffer=False) as kept_from:
        kept = _Kept(kept_from, asked.keep)
        schema = _schema(model, asked, kept_from.schema_arrow)
        with (
            open_atomically(target) as file,
            pq.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            if has_rows(source):
                for _, frame in asked.decide(model, TableFile(source), summary):
                    decided = pa.schema([schema.field(name) for name in frame.columns])
                    table = pa.Table.from_pandas(frame, decided, preserve_index=False)
                    columns = [*kept.take(len(frame)).columns, *table.columns]
                    writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            counted = json.dumps(mark | {"summary": summary.to_dict()})
            writer.add_key_value_metadata({FOOTER: counted.encode()})
    return summary


class _Kept:
    """Columns of a Parquet file with the types that they have there, as many rows at a time as are asked for."""

    def __init__(self, file: Any, columns: tuple[str, ...]) -> None:
        self._batches = (
            file.iter_batches(BATCH_ROWS, columns=list(columns)) if columns else iter(())
        )
        self._columns = columns
        self._table: Any = None

    def take(self, rows: int) -> Table:
        """Return the next rows."""
        import pyarrow as pa

        if not self._columns:
            return pa.table({})
        parts = [] if self._table is None else [self._table]
        while sum(part.num_rows for part in parts) < rows:
            parts.append(pa.Table.from_batches([next(self._batches)]))
        whole = pa.concat_tables(parts).select(list(self._columns))
        self._table = whole.slice(rows)
        return whole.slice(0, rows)


def _schema(model: Any, asked: Asked, source: Schema) -> Schema:
    """Return the columns of a file of decisions and their types, the same for every file."""
    import pyarrow as pa

    kept = [pa.field(name, source.field(name).type) for name in asked.keep]
    classes = getattr(model, "classes_", None)
    types = {
        "label": pa.float64() if classes is None else pa.array(classes).type,
        "why": pa.string(),
        "lowered_by": pa.string(),
        **dict.fromkeys(("accepted", "odd"), pa.bool_()),
    }
    names = [*no_decisions(model, asked.defer_odd).columns, *(EXPLAINED if asked.explain else ())]
    return pa.schema([*kept, *(pa.field(name, types.get(name, pa.float64())) for name in names)])


def _mark(path: Path, asked: Asked, seal: str) -> dict[str, Any]:
    """Return what decisions on a file are made from."""
    stat = path.stat()
    settings = asdict(asked) | {"keep": list(asked.keep)}
    settings.pop("allow_missing")  # it refuses or not, and decides nothing
    return {"model": seal, "bytes": stat.st_size, "modified": stat.st_mtime_ns, **settings}


def _finished(path: Path, mark: Mapping[str, Any]) -> Summary | None:
    """Return what a file counted that was made from the same; None if there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return None
    try:
        found = json.loads((pq.read_metadata(path).metadata or {}).get(FOOTER, b"{}"))
    except pa.ArrowException:
        found = {}
    if {name: found.get(name) for name in mark} != dict(mark):
        return None
    return Summary.from_dict(found["summary"])
