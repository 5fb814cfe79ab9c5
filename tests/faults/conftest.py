"""What the tests of faults share: commands in processes of their own, a small table, small disks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from launcher import Process, launcher
from study_records import TINY_FILE

from reliablenet.datasets import SyntheticBand


class Command:
    """A command in a session of its own, so that whatever it leaves behind can be found."""

    def __init__(self, *arguments: object, cwd: Path, program: str = "", **settings: str) -> None:
        line, environment = list(map(str, arguments)), os.environ | {"OMP_NUM_THREADS": "1"}
        self.process: Process | subprocess.Popen[str]
        if not program and "LD_PRELOAD" not in settings:
            self.process = Process(
                launcher(), ["-m", "reliablenet", *line], cwd, environment | settings
            )
            return
        self.process = subprocess.Popen(
            [sys.executable, *(["-c", program] if program else ["-m", "reliablenet"]), *line],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment | {"PYTHONUNBUFFERED": "1"} | settings,
            # A shell starts background jobs with SIGINT ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def seconds(self) -> float:
        """Return the processor time used so far: unlike the clock, it tells how far a command is."""
        ticks = 0
        for pid in [self.process.pid, *self.children()]:
            with suppress(OSError):  # it has just ended
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def wait_until(self, ready: Callable[[], object], limit: float = 600.0) -> None:
        """Wait until something is so, while the command is at work."""
        end = time.monotonic() + limit
        while not ready():
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end, "it never came so far"
            time.sleep(0.02)

    def children(self) -> list[int]:
        """Return the processes of the session, but for the command itself."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has just ended
                continue
            if int(fields[3]) == self.process.pid != int(entry.name) and fields[0] != "Z":
                found.append(int(entry.name))
        return found

    def wait_for_children(self, limit: float = 120.0) -> None:
        """Wait until no process of the session is left: a worker looks for its parent every second."""
        end = time.monotonic() + limit
        while self.children():
            assert time.monotonic() < end, f"still there: {self.children()}"
            time.sleep(0.1)

    def end(self, blow: int | None = None, limit: float = 600.0) -> tuple[int, str, str]:
        """Strike if asked to, wait for the end, and return the exit code and what was printed."""
        if blow is not None:
            self.process.send_signal(blow)
        out, err = self.process.communicate(timeout=limit)
        return self.process.returncode, out, err


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., Command]]:
    """A function that starts a command in the test's folder; nothing of it outlives the test."""
    begun: list[Command] = []

    def start(*arguments: object, **settings: object) -> Command:
        begun.append(Command(*arguments, **({"cwd": tmp_path} | settings)))
        return begun[-1]

    yield start
    for command in begun:
        for pid in [
            *command.children(),
            *([command.process.pid] if command.process.poll() is None else []),
        ]:
            os.kill(pid, signal.SIGKILL)
        command.process.communicate()


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> Path:
    """A folder with a small table, a large one, rows without labels, and a profile for bench."""
    folder = tmp_path_factory.mktemp("tables")
    band = SyntheticBand(random_state=0)
    for name, n in (("small", 300), ("large", 60_000)):
        rows = band.sample(n)
        lines = [",".join([*(f"x{i}" for i in range(rows.X.shape[1])), "y"])]
        lines += [
            ",".join([*(f"{v:.4f}" for v in x), "no" if y else "yes"])
            for x, y in zip(rows.X, rows.y, strict=True)
        ]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        (folder / f"{name}-rows.csv").write_text(
            "\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n"
        )
    (folder / "tiny.toml").write_text(TINY_FILE)
    return folder


@pytest.fixture(scope="session")
def model(tables) -> Path:
    """A model file, trained on the small table."""
    done = Command(
        *("train", "small.csv", "--target", "y", "--alpha", "0.3", "--out", "model.rnet"),
        cwd=tables,
    ).end()
    assert done[0] == 0, done
    return tables / "model.rnet"


def mount(*arguments: str) -> None:
    """Mount something, or skip where only root may."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this user may not mount: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A disk of 512 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder))
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def read_only(tmp_path) -> Iterator[Callable[[], Path]]:
    """A folder, and a function that makes it read-only, for root too."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    mounted = []

    def protect() -> Path:
        mount("--bind", str(folder), str(folder))
        mounted.append(folder)
        mount("-o", "remount,ro,bind", str(folder))
        return folder

    protect.folder = folder
    yield protect
    for place in mounted:
        subprocess.run(["umount", str(place)], check=True)
