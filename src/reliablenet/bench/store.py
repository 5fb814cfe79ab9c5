"""Where runs are kept: one file a run while a study is at work, and packed, one file a dataset.

Both lie in the folder of a profile. A working run is ``<plan>/<method>/<seed>.json`` with its curves
beside it, written atomically, so that many processes can share a folder. ``<plan>.jsonl`` is a pack:
one line a run, sorted by method and seed, with the curves in the line. Reading sees both.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._files import write_atomically
from reliablenet.errors import DataFileError

FORMAT = "reliablenet-study-run/1"
READ = (FORMAT, "reliablenet-run/1")  # the second is what version 0.1 wrote
GRID = np.linspace(0.005, 1.0, 200)  # coverages at which curves are stored
Record = dict[str, Any]
Curves = NDArray[np.float32]


def settings_hash(settings: dict[str, Any]) -> str:
    """Return a short hash of all that decides the outcome of a run."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Store:
    """The runs of one profile, below its folder.

    Parameters
    ----------
    folder : Path
        Of the profile; here runs are written.
    others : tuple of Path
        Folders of profiles that it extends: their runs of the same settings count as its own.
    """

    folder: Path
    others: tuple[Path, ...] = ()

    def path(self, plan: str, method: str, seed: int) -> Path:
        """Return where the record of a working run lies."""
        return self.folder / plan / method / f"{seed}.json"

    def pack_path(self, plan: str) -> Path:
        """Return where the packed runs of a plan lie."""
        return self.folder / f"{plan}.jsonl"

    def read(self, plan: str, method: str, seed: int) -> Record | None:
        """Return the record of a run, failed ones included; None if there is none that can be read."""
        return next((record for record, _ in self._found(plan, method, seed)), None)

    def read_finished(self, plan: str, method: str, seed: int, wanted: str) -> Record | None:
        """Return the record of a run if it succeeded with the settings of this hash."""
        found = self._found_finished(plan, method, seed, wanted)
        return next((record for record, _ in found), None)

    def curves(self, plan: str, method: str, seed: int, wanted: str) -> Curves:
        """Return a finished run's risk by coverage on the certification fold and the first shift."""
        for _, read_curves in self._found_finished(plan, method, seed, wanted):
            return read_curves()
        raise FileNotFoundError(f"No finished run of {plan} {method} {seed} in {self.folder}.")

    def records(self) -> list[Record]:
        """Return every record that can be read, by plan, method and seed."""
        found = (self.read(*key) for key in sorted(self._working_keys() | self._packed_keys()))
        return [record for record in found if record is not None]

    def check_writable(self) -> None:
        """Raise unless records can be written, before hours of work are lost."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder) as file:
                file.write(bytes(4096))  # a full disk may still have room for a name
        except OSError as error:
            raise DataFileError(
                f"Results cannot be written to {self.folder}: {error.strerror}. Name another folder."
            ) from error

    def write(
        self, plan: str, method: str, seed: int, record: Record, curves: Curves | None
    ) -> None:
        """Write a record, after its curves, so that a record never lacks them.

        A failure does not replace what another process has finished in the meantime.
        """
        if "error" in record and Store(self.folder).read_finished(
            plan, method, seed, record["hash"]
        ):
            return
        path = self.path(plan, method, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        if curves is not None:
            buffer = io.BytesIO()
            np.save(buffer, curves, allow_pickle=False)
            write_atomically(path.with_suffix(".npy"), buffer.getvalue())
        text = json.dumps({"format": FORMAT} | record, indent=1, allow_nan=False)
        write_atomically(path, text.encode())

    def pack(self) -> dict[str, int]:
        """Write the finished working runs of each plan into its pack; return how many runs it holds.

        A working run replaces the packed one of the same method and seed. Working files stay. A
        pack is the same to the byte whenever its runs are.
        """
        keys = self._working_keys()
        counts = {}
        for plan in sorted({plan for plan, _, _ in keys}):
            path = self.pack_path(plan)
            lines = dict(_read_pack(path))
            for _, method, seed in sorted(key for key in keys if key[0] == plan):
                working = self._read_working(plan, method, seed)
                if working is not None and "error" not in working[0]:
                    lines[method, seed] = _line(*working)
            if lines:
                text = "".join(lines[key] + "\n" for key in sorted(lines))
                if not path.is_file() or path.read_text(encoding="utf-8") != text:
                    write_atomically(path, text.encode())
                counts[plan] = len(lines)
        return counts

    def _found_finished(
        self, plan: str, method: str, seed: int, wanted: str
    ) -> Iterator[tuple[Record, Callable[[], Curves]]]:
        for folder in (self.folder, *self.others):
            for record, read_curves in Store(folder)._found(plan, method, seed):
                if "error" not in record and record["hash"] == wanted:
                    yield record, read_curves

    def _found(
        self, plan: str, method: str, seed: int
    ) -> Iterator[tuple[Record, Callable[[], Curves]]]:
        """Yield the working run of this folder, then the packed one, each with a way to its curves."""
        path = self.path(plan, method, seed)
        record = _read_record(path)
        if record is not None:
            yield record, lambda: _load_curves(path.with_suffix(".npy"))
        line = _read_pack(self.pack_path(plan)).get((method, seed))
        if line is not None:
            packed = json.loads(line)
            curves = packed.pop("curves", None)
            yield packed, lambda: _unpack_curves(curves, f"{plan} {method} {seed}")

    def _read_working(
        self, plan: str, method: str, seed: int
    ) -> tuple[Record, Curves | None] | None:
        path = self.path(plan, method, seed)
        record = _read_record(path)
        if record is None:
            return None
        curves = path.with_suffix(".npy")
        return record, _load_curves(curves) if curves.is_file() else None

    def _working_keys(self) -> set[tuple[str, str, int]]:
        paths = self.folder.glob("*/*/*.json")
        return {
            (path.parent.parent.name, path.parent.name, int(path.stem))
            for path in paths
            if path.stem.isdecimal()
        }

    def _packed_keys(self) -> set[tuple[str, str, int]]:
        return {
            (path.stem, method, seed)
            for path in self.folder.glob("*.jsonl")
            for method, seed in _read_pack(path)
        }


def _read_record(path: Path) -> Record | None:
    """Return the record of a file; None if it is not there or not whole: it will be run again."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("format") in READ else None


def _load_curves(path: Path) -> Curves:
    return np.asarray(np.load(path, allow_pickle=False))


def _line(record: Record, curves: Curves | None) -> str:
    """Return a run as one line. The shortest decimal of a float32 gives its bits back."""
    if curves is not None:
        shortest = [float(str(value)) for value in curves.astype(np.float32).ravel()]
        record = record | {"curves": np.reshape(shortest, curves.shape).tolist()}
    return json.dumps(record, separators=(",", ":"), allow_nan=False)


def _unpack_curves(curves: Any, run: str) -> Curves:
    if curves is None:
        raise FileNotFoundError(f"The packed run {run} has no curves.")
    return np.array(curves, dtype=np.float32)


def _read_pack(path: Path) -> dict[tuple[str, int], str]:
    """Return the lines of a pack by method and seed, unparsed; none if there is no such file."""
    try:
        state = path.stat()
    except OSError:
        return {}
    return _index_pack(path, (state.st_ino, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=32)  # a pack may be written anew while a process lives: then its state differs
def _index_pack(path: Path, _state: tuple[int, int, int]) -> dict[tuple[str, int], str]:
    """Return the lines of a pack. One that cannot be read is an error: packing would lose it."""
    lines: dict[tuple[str, int], str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            key = str(record["method"]), int(record["seed"])
            whole = record["format"] in READ
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise DataFileError(
                f"Line {number} of {path} is not a run of a study. Restore the file."
            )
        if key in lines:
            raise DataFileError(
                f"{path} holds two runs of {key[0]} with seed {key[1]}; the second is in line "
                f"{number}. Delete one of them."
            )
        lines[key] = line
    return lines
