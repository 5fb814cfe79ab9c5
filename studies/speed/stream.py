"""Certify a file of predictions far larger than memory should hold.

Writes a Parquet file of labels and predictions, lets the command line certify it in a process of its own, and notes
the peak of that process's memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from studies.runner import Block, Study
from studies.speed.timing import seconds

ROWS, CHUNK = 50_000_000, 1_000_000


def write_predictions(path: Path, rows: int) -> None:
    """Write calibrated predictions of two classes: wrong with probability 1 - confidence."""
    random = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, CHUNK):
        n = min(CHUNK, rows - start)
        confidence = random.uniform(0.5, 1.0, n)
        predicted = random.integers(0, 2, n)
        truth = np.where(random.random(n) < confidence, predicted, 1 - predicted)
        part = pa.table({"y": truth, "predicted": predicted, "confidence": confidence})
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def certify(path: Path) -> dict[str, Any]:
    """Let the command line certify a file and return the certificate."""
    command = ["-m", "reliablenet", "certify", "--predictions", str(path), "--label", "y"]
    command += ["--predicted", "predicted", "--score", "confidence", "--json"]
    answer = subprocess.run([sys.executable, *command], capture_output=True, check=True).stdout  # noqa: S603
    certificate: dict[str, Any] = json.loads(answer)
    return certificate


def measure(rows: int = ROWS) -> dict[str, Any]:
    """Return the size of the file, memory and time of certifying it, and the certificate."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        write_predictions(path, rows)
        size, found = path.stat().st_size, []
        taken = seconds(lambda: found.append(certify(path)))
    # Of all children the largest; there was one.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {
        "file_bytes": size,
        "peak_bytes": peak,
        "seconds": round(taken, 1),
        "certificate": found[0],
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
