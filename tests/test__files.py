"""A file is whole or not there, whatever strikes while it is written, and errors name it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from reliablenet._files import open_atomically, write_atomically

STRIKES = """
import os, random, signal, time
from pathlib import Path
from reliablenet._files import write_atomically

def strike(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, strike)
moments, path, struck, tried = random.Random(0), Path("run.json"), 0, 0
began = time.perf_counter()
for _ in range(20):
    write_atomically(path, b"a" * 1000)
once = (time.perf_counter() - began) / 20  # how long it takes: disks differ
while tried < 2000 and time.perf_counter() < began + 60:  # a loaded disk takes its time
    tried += 1
    try:
        signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, 1.5 * once))
        write_atomically(path, b"ab"[tried % 2 :][:1] * 1000)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        struck += 1
    assert set(os.listdir()) <= {"run.json"}, os.listdir()
    assert not path.exists() or path.read_bytes() in (b"a" * 1000, b"b" * 1000)
print(struck, tried)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer")
def test_a_signal_at_any_moment_leaves_nothing_behind(tmp_path) -> None:
    """In a process of its own: a file that was struck as it was opened is closed with a warning."""
    program = [sys.executable, "-c", STRIKES]
    # Coverage keeps a lock for good if it is struck while it holds it.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        program, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    struck, tried = map(int, done.stdout.split())
    assert tried > 100
    assert struck > tried / 20


def test_a_failure_leaves_the_old_file(tmp_path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), open_atomically(path) as file:
        file.writelines([b"new", "no bytes"])
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("place", ["none/model", "file/model", "folder", "n" * 250])
def test_an_error_names_the_file_that_was_asked_for(place, tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=place) as raised:
        write_atomically(tmp_path / place, b"content")
    assert raised.value.filename == str(tmp_path / place)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_others_may_read_it_as_the_umask_says(tmp_path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "model", b"content")
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o640
