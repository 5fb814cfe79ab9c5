"""Certify a large file by group: time and memory beside the overall certificate of the same file.

Both are measured in turn, in processes of their own, and the fastest of each counts. Time is that of the
processor: other work on the machine does not count.
"""

from __future__ import annotations

import json
import os
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

ROWS, GROUPS, CHUNK, TIMES = 10_000_000, 50, 1_000_000, 3


def write_predictions(path: Path, rows: int, groups: int) -> None:
    """Write calibrated predictions of two classes, with groups of unequal sizes."""
    random = np.random.default_rng(0)
    names = np.array([f"site {number:02d}" for number in range(groups)])
    shares = np.arange(1, groups + 1) / np.arange(1, groups + 1).sum()
    schema = pa.schema(
        {"y": pa.int64(), "predicted": pa.int64(), "confidence": pa.float64(), "site": pa.string()}
    )
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            n = min(CHUNK, rows - start)
            confidence = random.uniform(0.5, 1.0, n)
            predicted = random.integers(0, 2, n)
            truth = np.where(random.random(n) < confidence, predicted, 1 - predicted)
            site = names[random.choice(groups, n, p=shares)]
            writer.write_table(pa.table([truth, predicted, confidence, site], schema))


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


def measure(rows: int = ROWS, groups: int = GROUPS, times: int = TIMES) -> dict[str, Any]:
    """Return time and memory of both certificates, and how many groups were certified."""
    found: dict[str, list[Any]] = {"overall": [], "by_group": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.parquet"
        write_predictions(path, rows, groups)
        for _ in range(times):
            found["overall"].append(certify(path))
            found["by_group"].append(certify(path, "--by", "site"))
    seconds = {name: round(min(run[0] for run in runs), 2) for name, runs in found.items()}
    parts = found["by_group"][0][2]["parts"]
    return {
        "overall_seconds": seconds["overall"],
        "by_group_seconds": seconds["by_group"],
        "ratio": round(seconds["by_group"] / seconds["overall"], 2),
        "overall_peak_bytes": max(run[1] for run in found["overall"]),
        "by_group_peak_bytes": max(run[1] for run in found["by_group"]),
        "groups_certified": sum(part["certified"] for part in parts),
    }


def blocks(rows: int = ROWS) -> list[Block]:
    """Return a tenth of the rows, to see that memory hardly grows, and all of them."""
    return [
        Block.once({"rows": count, "groups": GROUPS}, partial(measure, count))
        for count in (rows // 10, rows)
    ]


STUDY = Study(
    "speed",
    "stream_groups",
    about="What does a certificate by group cost beside the overall one?",
    cost="five minutes, and a quarter of a gigabyte of disk",
    blocks=blocks,
)
