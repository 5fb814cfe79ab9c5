"""A large file of predictions, and what it takes the command line to certify it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CHUNK = 1_000_000


def write_predictions(path: Path, rows: int, groups: int = 0) -> None:
    """Write calibrated predictions of two classes, with groups of unequal sizes if there are any.

    They are wrong with probability 1 - confidence.
    """
    random = np.random.default_rng(0)
    names = np.array([f"site {number:02d}" for number in range(groups)])
    shares = np.arange(1, groups + 1) / np.arange(1, groups + 1).sum()
    schema = pa.schema({"y": pa.int64(), "predicted": pa.int64(), "confidence": pa.float64()})
    if groups:
        schema = schema.append(pa.field("site", pa.string()))
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            n = min(CHUNK, rows - start)
            confidence = random.uniform(0.5, 1.0, n)
            predicted = random.integers(0, 2, n)
            truth = np.where(random.random(n) < confidence, predicted, 1 - predicted)
            columns = [truth, predicted, confidence]
            if groups:
                columns.append(names[random.choice(groups, n, p=shares)])
            writer.write_table(pa.table(columns, schema))


def certify(path: Path, *options: str) -> tuple[float, int, dict[str, Any]]:
    """Let the command line certify a file; return processor seconds, peak bytes, and the certificate."""
    command = [sys.executable, "-m", "reliablenet", "certify", "--predictions", str(path)]
    command += ["--label", "y", "--predicted", "predicted", "--score", "confidence", "--json"]
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen([*command, *options], stdout=answer)  # noqa: S603
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"certify ended with {process.returncode}.")
        answer.seek(0)
        return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, json.load(answer)
