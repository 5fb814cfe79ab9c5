"""Certify a file of predictions far larger than memory should hold: python benchmarks/stream.py [ROWS].

Writes a Parquet file of labels and predictions, 50 million rows by default, lets the command line certify
it in a process of its own, and puts the peak of that process's memory into stream_results.json.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).with_name("stream_results.json")
CHUNK = 1_000_000


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


def main(rows: int = 50_000_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        write_predictions(path, rows)
        size = path.stat().st_size
        command = ["-m", "reliablenet", "certify", "--predictions", str(path), "--label", "y"]
        command += ["--predicted", "predicted", "--score", "confidence", "--json"]
        start = time.perf_counter()
        answer = subprocess.run([sys.executable, *command], capture_output=True, check=True).stdout  # noqa: S603
        seconds = time.perf_counter() - start
    # Of all children the largest; there was one.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    result = {
        "rows": rows,
        "file_bytes": size,
        "peak_bytes": peak,
        "seconds": round(seconds, 1),
        "certificate": json.loads(answer),
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{rows:,} rows, {size / 1e6:,.0f} MB: peak of {peak / 1e6:,.0f} MB, {seconds:.0f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
