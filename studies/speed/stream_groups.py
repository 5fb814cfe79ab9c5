"""Certify a large file by group: time and memory beside the overall certificate of the same file.

Both are measured in turn, in processes of their own, and the fastest of each counts. Time is that of the
processor: other work on the machine does not count.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from studies.runner import Block, Study
from studies.speed.predictions import certify, write_predictions

ROWS, GROUPS, TIMES = 10_000_000, 50, 3


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
