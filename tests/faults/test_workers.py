"""Workers that are killed or run out of memory fail their own run; all others are as without them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from study_records import TINY_FILE

from reliablenet.bench import load_profile, pending_jobs, run_jobs

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and sets limits")

METHODS = ("--methods", "erm,boosting+certified,reliablenet@eps,deep_gamblers")
# In every process of the command: whoever is at this run is killed at once, as the kernel does in want of memory.
KILLER = """
import os, signal, sys, threading, time

def watch():
    while True:
        time.sleep(0.05)
        for frame in list(sys._current_frames().values()):
            while frame is not None:
                if frame.f_code.co_name == "_work" and str(frame.f_locals.get("job")) == "other erm 0":
                    os.kill(os.getpid(), signal.SIGKILL)
                frame = frame.f_back

threading.Thread(target=watch, daemon=True).start()
"""
LIMITED = """
import resource, sys
limit, amount = sys.argv.pop(1).split("=")
resource.setrlimit(getattr(resource, limit), (int(amount), int(amount)))
from reliablenet.cli.app import main
if __name__ == "__main__":
    main()
"""
OTHER = f"""{TINY_FILE}[plans.other]
dataset = "synthetic_band"
epochs = 1000000
"""
HUGE = OTHER.replace("epochs = 1000000", "data = { dimension = 4_000_000 }")


def contents(profile: str, results: Path) -> list[dict[str, object]]:
    """Return the finished runs, but for the time they took."""
    found = load_profile(profile).open_store(results).records()
    for record in found:
        record.pop("timing", None)
    return found


@pytest.fixture(scope="session")
def undisturbed(tables, tmp_path_factory) -> list[dict[str, object]]:
    folder, name = tmp_path_factory.mktemp("undisturbed"), str(tables / "tiny.toml")
    profile = load_profile(name)
    store = profile.open_store(folder)
    assert run_jobs(pending_jobs(profile, store, methods=METHODS[1].split(",")), store) == []
    return contents(name, folder)


@pytest.mark.parametrize("options", [("--jobs", "2"), ("--jobs", "2", "--dask", "local")])
def test_a_worker_that_is_lost_once_costs_nothing_but_time(
    options, tables, start, tmp_path, undisturbed
) -> None:
    command = start(
        *("bench", "run", "--profile", tables / "tiny.toml", "--results", "results"),
        *METHODS,
        *options,
    )
    command.wait_until(lambda: list(tmp_path.glob("results/*/*/*/*.json")))
    names = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in command.children()}
    signs = ("spawn_main", "dask worker", "popen_loky")  # Dask renames its workers if it can
    workers = [pid for pid, name in names.items() if any(sign in name for sign in signs)]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    code, out, err = command.end()
    assert code == 0, err
    assert out == "4 trainings done, 0 runs failed.\n"
    assert contents(str(tables / "tiny.toml"), tmp_path / "results") == undisturbed


@pytest.mark.parametrize("options", [("--jobs", "2"), ("--jobs", "2", "--dask", "local")])
def test_a_run_that_is_always_killed_fails_and_the_others_go_on(
    options, start, tmp_path, undisturbed
) -> None:
    (tmp_path / "tiny.toml").write_text(OTHER)
    (tmp_path / "sitecustomize.py").write_text(KILLER)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    command = start(
        *("bench", "run", "--profile", "tiny.toml", "--results", "results"),
        *("--methods", "erm,boosting+certified", "--json"),
        *options,
        program="from reliablenet.cli.app import main\nif __name__ == '__main__':\n    main()",
        DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0",
        PYTHONPATH=os.pathsep.join(paths),
    )
    code, _, err = command.end()
    assert code == 1
    assert "failed: other erm 0: WorkerLost: the process was killed" in err
    assert err.count("failed: ") == 1
    found = contents(str(tmp_path / "tiny.toml"), tmp_path / "results")
    errors = {record["method"]: record.get("error", "") for record in found[:2]}
    assert errors["erm"].startswith("WorkerLost")
    assert errors["boosting+certified"] == ""
    assert found[2:] == [r for r in undisturbed if r["method"] in ("boosting+certified", "erm")]


def test_a_run_that_finds_no_memory_fails_and_the_others_go_on(
    start, tmp_path, undisturbed
) -> None:
    (tmp_path / "tiny.toml").write_text(HUGE)
    limit = 8 * 1024**3  # of address space, for each process
    command = start(
        *(f"RLIMIT_AS={limit}", "bench", "run", "--profile", "tiny.toml", "--results", "results"),
        *("--methods", "erm", "--jobs", "2"),
        program=LIMITED,
    )
    code, _, err = command.end()
    assert code == 1
    assert "failed: other erm 0: " in err
    assert "Unable to allocate" in err
    found = contents(str(tmp_path / "tiny.toml"), tmp_path / "results")
    assert "error" in found[0]
    assert found[1:] == [record for record in undisturbed if record["method"] == "erm"]
