"""A command of the launcher is what the same command would be if Python had been started for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from launcher import Process, launcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hands over file descriptors")

TELL = """
import os, signal, sys
print(__name__, sys.argv, os.getcwd(), os.environ.get("WORD"), "torch" in sys.modules, file=sys.stderr)
print(os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
print(sys.stdin.read() == "", "reliablenet" in sys.modules)
sys.exit(5)
"""


def start(code: str, *arguments: str, cwd: Path, **settings: str) -> Process:
    return Process(launcher(), ["-c", code, *arguments], cwd, os.environ | settings)


def test_it_has_its_own_arguments_folder_environment_streams_session_and_code(tmp_path) -> None:
    process = start(TELL, "one", "two", cwd=tmp_path, WORD="said")
    out, err = process.communicate()
    assert process.returncode == 5
    assert out == "True True\nTrue False\n"
    assert err == f"__main__ ['-c', 'one', 'two'] {tmp_path} said True\n"


def test_an_error_is_shown_and_is_exit_code_1_and_what_runs_at_exit_runs(tmp_path) -> None:
    code = "import atexit; atexit.register(print, 'bye'); raise ValueError('no')"
    process = start(code, cwd=tmp_path)
    out, err = process.communicate()
    assert (process.returncode, out) == (1, "bye\n")
    assert err.endswith("ValueError: no\n")


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it_and_nothing_else(tmp_path, blow) -> None:
    process, other = (start("import time; time.sleep(60)", cwd=tmp_path) for _ in range(2))
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=0.01)
    process.send_signal(blow)
    process.communicate()
    assert process.returncode == -blow
    assert other.poll() is None
    other.send_signal(signal.SIGKILL)
    other.communicate()


def test_a_shell_finds_it_under_the_name_of_the_command(tmp_path) -> None:
    path = f"{launcher().commands}{os.pathsep}{os.environ['PATH']}"
    line = "reliablenet plan --alpha 0.05 | head -1; reliablenet plan --help | head -2"
    line += '; reliablenet inspect none.rnet; echo "code $?"'
    ended = subprocess.run(
        ["bash", "-c", line],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )
    first, _, usage, last = ended.stdout.splitlines()
    assert first.startswith("59 certification rows")
    assert usage.startswith(" Usage: reliablenet plan")
    assert last == "code 5"
    assert "none.rnet" in ended.stderr
