"""Certify a file of predictions far larger than memory should hold.

Writes a Parquet file of labels and predictions, lets the command line certify it in a process of its own, and notes
the peak of that process's memory.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from studies.runner import Block, Study
from studies.speed.predictions import certify, write_predictions
from studies.speed.timing import seconds

ROWS = 50_000_000


def measure(rows: int = ROWS) -> dict[str, Any]:
    """Return the size of the file, memory and time of certifying it, and the certificate."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        write_predictions(path, rows)
        size = path.stat().st_size
        found: list[tuple[float, int, dict[str, Any]]] = []
        taken = seconds(lambda: found.append(certify(path)))
    _, peak, certificate = found[0]
    return {
        "file_bytes": size,
        "peak_bytes": peak,
        "seconds": round(taken, 1),
        "certificate": certificate,
    }


def blocks(rows: int = ROWS) -> list[Block]:
    """Return the one file."""
    return [Block.once({"rows": rows}, partial(measure, rows))]


STUDY = Study(
    "speed",
    "stream",
    about="How much memory does it take to certify a large file?",
    cost="a minute, and half a gigabyte of disk",
    blocks=blocks,
)
