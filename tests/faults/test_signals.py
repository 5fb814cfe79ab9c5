"""Ctrl-C and SIGTERM: a message, an exit code, no half file, no process left behind."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

COMMANDS = {
    "train": ("train", "{tables}/large.csv", "--target", "y", "--out", "m.rnet"),
    "compare": ("compare", "{tables}/large.csv", "--target", "y", "--out", "c.json"),
    "demo": ("demo", "--out", "."),
    "bench": (
        *("bench", "run", "--profile", "{tables}/tiny.toml", "--results", "results"),
        *("--seeds", "0,1,2,3,4,5,6,7,8,9"),
    ),
}
CASES = [
    ("train", signal.SIGINT),
    ("compare", signal.SIGINT),
    ("compare --jobs 2", signal.SIGINT),
    ("demo", signal.SIGINT),
    ("bench", signal.SIGINT),
    ("bench --jobs 2", signal.SIGINT),
    ("train", signal.SIGTERM),
    ("compare --jobs 2", signal.SIGTERM),
    ("bench --jobs 2", signal.SIGTERM),
    ("bench --jobs 2 --dask local", signal.SIGTERM),
]


@pytest.mark.parametrize(("line", "blow"), CASES)
def test_a_long_command_ends_at_once_and_leaves_what_was_finished(
    line, blow, tables, start, tmp_path
) -> None:
    name, *options = line.split()
    arguments = [part.format(tables=tables) for part in COMMANDS[name]]
    begun = time.monotonic()
    command = start(*arguments, *options)
    if name == "bench":
        command.wait_until(lambda: list(tmp_path.glob("results/*/*/*/*.json")))
    else:
        busy = 9 if "--jobs" in options else 4  # importing takes some three for each worker
        command.wait_until(lambda: command.seconds() > busy)
    struck = time.monotonic()
    slowness = max(1.0, (struck - begun) / command.seconds())  # others may keep the processor busy
    if blow == signal.SIGINT:  # a terminal sends it to all processes of the command
        os.killpg(command.process.pid, blow)
    code, _, err = command.end(blow if blow == signal.SIGTERM else None)
    assert time.monotonic() - struck < 30 * slowness
    assert code == (130 if blow == signal.SIGINT else 143), err
    assert "Traceback" not in err
    assert {signal.SIGINT: "Interrupted.", signal.SIGTERM: "Terminated."}[blow] in err
    command.wait_for_children()
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.suffix in (".json", ".npy") and name == "bench" for path in kept), kept


PROGRAM = """
from pathlib import Path
from reliablenet.bench import load_profile, pending_jobs, run_jobs
import sys
if __name__ == "__main__":
    profile = load_profile(sys.argv[1])
    store = profile.open_store(Path("results"))
    run_jobs(pending_jobs(profile, store), store, n_jobs=2)
"""


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_a_process_that_ends_without_tidying_up(
    blow, tables, start, tmp_path
) -> None:
    """A program of one's own has no handler for SIGTERM."""
    command = start(tables / "tiny.toml", program=PROGRAM)
    command.wait_until(lambda: list(tmp_path.glob("results/*/*/*/*.json")))
    assert len(command.children()) >= 2
    assert command.end(blow)[0] == -blow
    command.wait_for_children()
