"""What two processes save in `bench run`, on a part of the paper's study: python benchmarks/jobs.py.

The same runs with `--jobs 1` and with `--jobs 2`, in turns; the best of each counts. Writes jobs_results.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RESULTS = Path(__file__).with_name("jobs_results.json")
PART = ["--profile", "paper", "--datasets", "synthetic_band,adult", "--seeds", "0,37"]
ROUNDS = 1


def seconds(jobs: int) -> float:
    """Return how long a run from nothing takes, start-up included."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reliablenet", "bench", "run", *PART]
        start = time.perf_counter()
        subprocess.run(  # noqa: S603 - our own command
            [*command, "--results", folder, "--jobs", str(jobs)],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - start


def main() -> None:
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(ROUNDS):
        for jobs, taken in times.items():
            taken.append(seconds(jobs))
    ratio = min(times[2]) / min(times[1])
    result = {
        "part": " ".join(PART),
        "seconds": {str(jobs): [round(t, 1) for t in taken] for jobs, taken in times.items()},
        "ratio": round(ratio, 3),
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(f"--jobs 2 takes {ratio:.2f} of the time of --jobs 1")


if __name__ == "__main__":
    main()
