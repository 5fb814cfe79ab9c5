"""What can befall a server while clients ask and report: each case yields its log, and what was told meanwhile."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from serving import Load, ServerProcess, make_rows, records, wait_until

from postgres import Postgres, why_not
from reliablenet.monitor.log import DecisionLog

Told = tuple[str | Path, list[Load]]
KEY = {"RELIABLENET_AUDIT_KEY": "ab" * 32}  # which servers of one PostgreSQL share
ROWS = records(make_rows(5, seed=0)[0])
PATIENCE = 300.0  # seconds: on a busy machine a server takes long to begin

no_disk = "" if sys.platform == "linux" and os.geteuid() == 0 else "To mount a disk takes root."
no_signals = "" if sys.platform == "linux" else "These are signals of Linux."


def _some(load: Load, more: int) -> None:
    """Wait until a client was told of so many more outcomes."""
    begun = len(load.reported)
    wait_until(lambda: len(load.reported) >= begun + more, PATIENCE)


@contextmanager
def killed(model: Path, folder: Path, number: int) -> Iterator[Told]:
    """kill -9."""
    log = folder / "d.db"
    with ServerProcess(model, log) as server, Load(server.url, ROWS) as load:
        _some(load, 20 * (1 + number))
        server.kill()
    yield log, [load]


@contextmanager
def stopped(model: Path, folder: Path, number: int) -> Iterator[Told]:
    """SIGTERM: what was begun is finished and told."""
    log = folder / "d.db"
    with ServerProcess(model, log) as server, Load(server.url, ROWS) as load:
        _some(load, 20 * (1 + number))
        server.send(signal.SIGTERM)
        assert server.process.wait(60) == 0
    assert load.refused == []
    yield log, [load]


@contextmanager
def killed_on_a_full_disk(model: Path, folder: Path, number: int) -> Iterator[Told]:
    """The disk fills up, the server is killed, the disk is enlarged, another server takes over."""
    disk = folder / "disk"
    disk.mkdir()
    size = f"size={1 + number % 3}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], check=True)
    try:
        log = disk / "d.db"
        with ServerProcess(model, log) as server, Load(server.url, ROWS) as load:
            wait_until(lambda: len(load.refused) > 2 * number, PATIENCE)
            server.kill()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        with ServerProcess(model, log) as server, Load(server.url, ROWS) as later:
            _some(later, 20)
        assert set(load.refused) == {503}
        assert later.refused == []
        yield log, [load, later]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@contextmanager
def database_restarted(model: Path, folder: Path, number: int) -> Iterator[Told]:
    """PostgreSQL is ended without a goodbye, and comes back."""
    with Postgres() as postgres:
        place = postgres.new_database()
        with ServerProcess(model, place, **KEY) as server, Load(server.url, ROWS) as load:
            _some(load, 20 * (1 + number))
            postgres.stop("immediate")
            wait_until(lambda: load.refused, PATIENCE)
            postgres.start()
            _some(load, 20)
        assert set(load.refused) == {503}
        yield place, [load]


@contextmanager
def one_of_two_killed(model: Path, folder: Path, number: int) -> Iterator[Told]:
    """Two servers on one PostgreSQL, one of which is killed; the other goes on."""
    with Postgres() as postgres:
        place = postgres.new_database()
        with (
            ServerProcess(model, place, **KEY) as one,
            ServerProcess(model, place, **KEY) as two,
            Load(one.url, ROWS) as first,
            Load(two.url, ROWS) as second,
        ):
            _some(first, 20 * (1 + number))
            one.kill()
            _some(second, 20)
        assert second.refused == []
        yield place, [first, second]


Case = Callable[[Path, Path, int], AbstractContextManager[Told]]
CASES: dict[str, tuple[Case, str]] = {
    "kill -9 under load": (killed, no_signals),
    "SIGTERM under load": (stopped, no_signals),
    "kill -9 on a full disk": (killed_on_a_full_disk, no_disk),
    "PostgreSQL crashes and comes back": (database_restarted, why_not()),
    "kill -9 of one of two servers on one PostgreSQL": (one_of_two_killed, why_not()),
}
FAULTS = [
    pytest.param(case, id=name, marks=pytest.mark.skipif(bool(why), reason=why))
    for name, (case, why) in CASES.items()
]


def count_kept(place: str | Path, loads: list[Load]) -> dict[str, int]:
    """Return how much clients were told, and how much of it the log lacks or has twice."""
    with DecisionLog(place) as opened:
        entries = list(opened.entries())
    there = Counter(entry.id for entry in entries)
    known = {entry.id for entry in entries if entry.wrong is not None}
    told = [name for load in loads for name in load.decisions]
    reported = [name for load in loads for name in load.reported]
    return {
        "acknowledged": len(told),
        "reported": len(reported),
        "refused": sum(len(load.refused) for load in loads),
        "lost": len(set(told) - there.keys()),
        "lost_outcomes": len(set(reported) - known),
        "twice": len(entries) - len(there) + len(told) - len(set(told)),
    }
