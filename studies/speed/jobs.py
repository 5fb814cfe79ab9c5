"""What two processes save in `bench run`, on a part of the paper's study.

The same runs with `--jobs 1` and with `--jobs 2`, in turns; the best of each counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from typing import Any

from studies.runner import Block, Study
from studies.speed.timing import times_in_turns

PART = ["--profile", "paper", "--datasets", "synthetic_band,adult", "--seeds", "0,37"]
ROUNDS = 1


def run(jobs: int) -> None:
    """Run the part from nothing, start-up included."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "reliablenet", "bench", "run", *PART]
        subprocess.run(  # noqa: S603 - our own command
            [*command, "--results", folder, "--jobs", str(jobs)],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            check=True,
            capture_output=True,
        )


def measure() -> dict[str, Any]:
    """Return all times, and the best with two processes over the best with one."""
    one, two = times_in_turns([partial(run, 1), partial(run, 2)], ROUNDS)
    taken = {"1": one, "2": two}
    return {
        "seconds": {jobs: [round(time, 1) for time in times] for jobs, times in taken.items()},
        "ratio": round(min(two) / min(one), 3),
    }


STUDY = Study(
    "speed",
    "jobs",
    about="What do two processes save in `bench run`?",
    cost="a quarter of an hour; needs the source files",
    blocks=lambda: [Block.once({"part": " ".join(PART)}, measure)],
)
