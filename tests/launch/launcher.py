"""Commands from a process that has imported the slow libraries already; `launch_server` says what is forked there."""

from __future__ import annotations

import atexit
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from launch_client import ask, read_number

SERVER = Path(__file__).with_name("launch_server.py")
SHIM = """#!{python} -SE
import sys
sys.path.insert(0, {folder!r})
from launch_client import main
main({place!r}, ["-c", {script!r}, *sys.argv[1:]])
"""
# What the installed script does.
SCRIPT = "import sys; sys.argv[0] = 'reliablenet'; from reliablenet.cli.app import main; main()"


class Launcher:
    """A server, which ends with the process that started it.

    Parameters
    ----------
    settings
        Of the environment, for libraries that read them when they are imported.
    """

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="launch-"))
        self.place = str(self.folder / "socket")
        self.server = subprocess.Popen(
            [sys.executable, SERVER, self.place], env=os.environ | settings
        )
        while not os.path.exists(self.place):
            assert self.server.poll() is None, "the launcher did not start"
            time.sleep(0.02)

    @property
    def commands(self) -> Path:
        """A folder for PATH, in which `reliablenet` is started from here."""
        folder = self.folder / "bin"
        if not folder.exists():
            folder.mkdir()
            shim = folder / "reliablenet"
            shim.write_text(
                SHIM.format(
                    python=sys.executable,
                    folder=str(SERVER.parent),
                    place=self.place,
                    script=SCRIPT,
                )
            )
            shim.chmod(0o755)
        return folder

    def close(self) -> None:
        """End the server; what it started goes on."""
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.folder)


class Process:
    """What `subprocess.Popen` is, as far as the tests ask, of a command from a launcher."""

    def __init__(
        self, launcher: Launcher, arguments: list[str], cwd: Path, env: Mapping[str, str]
    ) -> None:
        self.returncode: int | None = None
        self._printed = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        self._texts: list[str] = []
        with open(os.devnull) as nothing:
            streams = [nothing.fileno(), *(file.fileno() for file in self._printed)]
            self.pid, self._connection = ask(
                launcher.place, arguments, streams, str(cwd), dict(env)
            )

    def _wait(self, timeout: float | None) -> bool:
        if self.returncode is None and select.select([self._connection], [], [], timeout)[0]:
            self.returncode = read_number(self._connection)
            self._connection.close()
        return self.returncode is not None

    def poll(self) -> int | None:
        """Return the exit code, None while it is at work."""
        self._wait(0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Strike, if it is still there."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end and return what was printed."""
        if not self._wait(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        while self._printed:
            with self._printed.pop(0) as file:
                file.seek(0)
                self._texts.append(file.read())
        return self._texts[0], self._texts[1]


@cache
def launcher() -> Launcher:
    """Return the launcher of this process of tests."""
    made = Launcher()
    atexit.register(made.close)
    return made
