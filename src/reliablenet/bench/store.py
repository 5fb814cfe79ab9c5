"""Store: one JSON file a run, and its risk-coverage curves beside it; whole or not there."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._files import write_atomically
from reliablenet.errors import DataFileError

FORMAT = "reliablenet-run/1"


def settings_hash(settings: dict[str, Any]) -> str:
    """Return a short hash of all that decides the outcome of a run."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Store:
    """Results of one profile below a folder: ``<plan>/<method>/<seed>.json``.

    Parameters
    ----------
    folder : Path
        Of the profile; here results are written.
    others : tuple of Path
        Folders of profiles that it extends: their runs of the same settings count as its own.
    """

    folder: Path
    others: tuple[Path, ...] = ()

    def path(self, plan: str, method: str, seed: int) -> Path:
        """Return where the record of a run lies."""
        return self.folder / plan / method / f"{seed}.json"

    def read(self, plan: str, method: str, seed: int) -> dict[str, Any] | None:
        """Return the record of a run, failed ones included; None if there is none that can be read."""
        try:
            record = json.loads(self.path(plan, method, seed).read_text())
        except (OSError, ValueError):
            return None
        whole = isinstance(record, dict) and record.get("format") == FORMAT
        return record if whole else None

    def read_finished(
        self, plan: str, method: str, seed: int, wanted: str
    ) -> dict[str, Any] | None:
        """Return the record of a run if it succeeded with the settings of this hash."""
        for folder in (self.folder, *self.others):
            record = Store(folder).read(plan, method, seed)
            if record is not None and "error" not in record and record["hash"] == wanted:
                return record
        return None

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
        self, plan: str, method: str, seed: int, record: dict[str, Any], curves: NDArray[Any] | None
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

    def curves(self, plan: str, method: str, seed: int, wanted: str) -> NDArray[np.float32]:
        """Return a finished run's risk by coverage on the certification fold and the first shift."""
        for folder in (self.folder, *self.others):
            store = Store(folder)
            if store.read_finished(plan, method, seed, wanted) is not None:
                path = store.path(plan, method, seed).with_suffix(".npy")
                return np.asarray(np.load(path, allow_pickle=False))
        raise FileNotFoundError(f"No finished run of {plan} {method} {seed} in {self.folder}.")

    def records(self) -> list[dict[str, Any]]:
        """Return every record that can be read, in the order of their paths."""
        found = []
        for path in sorted(self.folder.glob("*/*/*.json")):
            record = self.read(path.parent.parent.name, path.parent.name, int(path.stem))
            if record is not None:
                found.append(record)
        return found
