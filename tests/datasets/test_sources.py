"""Source files against a real server on this machine, real processes and real archives."""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from reliablenet.datasets import sources
from reliablenet.datasets.sources import (
    SourceFile,
    data_folders,
    fetch,
    find,
    sha256_of,
)
from reliablenet.errors import DataFileError, InvalidParameterError

CONTENT = np.random.default_rng(0).bytes(300_000)
HALF = len(CONTENT) // 2
FETCH = "import sys; from reliablenet.datasets.sources import *; print(fetch(SourceFile(*sys.argv[1:])))"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """What is asked for decides how the server behaves."""

    def do_GET(self):
        server = self.server
        asked = self.headers.get("Range")
        server.requests.append((self.path, asked))
        if self.path == "/missing":
            self.send_error(404)
        elif self.path == "/silent":
            server.release.wait(20)
        elif self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/resumable")
            self.end_headers()
        elif self.path == "/encoded":
            self.answer(gzip.compress(CONTENT, mtime=0), encoding="x-gzip")
        elif self.path == "/slow":
            self.answer(CONTENT, pause=True)
        elif self.path == "/dropped":  # always, and it knows no ranges
            self.answer(CONTENT, sent=HALF)
        elif self.path == "/dropped-once":
            self.answer(CONTENT, sent=HALF if len(server.requests) == 1 else None)
        elif self.path == "/resumable" and asked:
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
            self.answer(CONTENT[begin:], status=206)
        elif self.path == "/resumable":
            self.answer(CONTENT, sent=HALF)
        else:
            self.answer(CONTENT)

    def answer(self, content, status=200, sent=None, encoding=None, pause=False):
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        if pause:
            self.wfile.write(content[:HALF])
            self.server.begun.set()
            self.server.release.wait(20)
            content = content[HALF:]
        with suppress(OSError):  # the reader was killed
            self.wfile.write(content[:sent])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.begun, server.release = [], threading.Event(), threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache is a folder of the test's own, no proxy stands before this machine."""
    monkeypatch.delenv("RELIABLENET_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    if sys.platform != "linux":  # elsewhere platformdirs asks the system, not the environment
        monkeypatch.setattr(sources, "_cache_folder", lambda: tmp_path / "reliablenet" / "data")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "reliablenet" / "data"


@pytest.fixture
def named(tmp_path, monkeypatch):
    """A folder that RELIABLENET_DATA names."""
    folder = tmp_path / "named"
    folder.mkdir()
    monkeypatch.setenv("RELIABLENET_DATA", str(folder))
    return folder


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs XDG_CACHE_HOME in a new process")


def source(server, behaviour="good", path="set/rows.csv", content=CONTENT, **more):
    return SourceFile(path, f"{server.url}/{behaviour}", digest(content), **more)


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def left_behind(cache: Path) -> list[str]:
    """Names in the cache but for locks, which are empty and stay."""
    return sorted(p.name for p in cache.rglob("*") if p.is_file() and p.suffix != ".lock")


def assert_helps(error: BaseException, file: SourceFile, folder: Path) -> str:
    """The message must hold the address, the file's name, the folder, and the variable."""
    message = str(error)
    for needed in (file.url, f"named {Path(file.path).name},", f"the folder {folder / 'set'};"):
        assert needed in message
    assert message.endswith(f"set RELIABLENET_DATA to a folder that holds {file.path}.")
    return message


def start(file: SourceFile, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FETCH, file.path, file.url, file.sha256]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **(pipes | options))


# -- downloads -----------------------------------------------------------------------------------


def test_a_file_is_downloaded_into_the_cache_without_a_word(server, cache, capfd):
    path = fetch(source(server))
    assert path == cache / "set" / "rows.csv"
    assert path.read_bytes() == CONTENT
    assert left_behind(cache) == ["rows.csv"]
    assert capfd.readouterr() == ("", "")


@linux
def test_later_calls_and_other_processes_read_the_cache(server):
    file = source(server)
    path = fetch(file)
    assert fetch(file) == path
    other = start(file)
    output, errors = other.communicate(timeout=600)
    assert (output.strip(), errors) == (str(path), "")
    assert len(server.requests) == 1


def test_an_unchanged_file_is_hashed_once_in_a_process(server, monkeypatch):
    file, hashed = source(server), []
    fetch(file)
    monkeypatch.setattr(sources, "sha256_of", lambda path: hashed.append(path) or sha256_of(path))
    path = fetch(file)
    fetch(file)
    assert hashed == [path]
    path.write_bytes(CONTENT)  # touched: who knows
    fetch(file)
    assert hashed == [path, path]
    path.write_bytes(CONTENT[::-1])  # as long as before, and found out
    fetch(file)
    assert path.read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_what_is_not_the_file_is_refused_with_both_hashes(server, cache):
    file = source(server, content=b"something else")
    with pytest.raises(DataFileError, match="the download is another file: 300000 bytes") as caught:
        fetch(file)
    message = assert_helps(caught.value, file, cache)
    assert digest(CONTENT) in message
    assert file.sha256 in message
    assert left_behind(cache) == []


def test_a_connection_that_always_breaks_is_an_error_after_a_few_attempts(server, cache):
    file = source(server, "dropped")
    with pytest.raises(DataFileError, match=r"download failed: .*IncompleteRead") as caught:
        fetch(file)
    assert_helps(caught.value, file, cache)
    assert 2 <= len(server.requests) <= 3
    assert left_behind(cache) == []


@pytest.mark.parametrize("behaviour", ["resumable", "moved"])
def test_a_broken_download_goes_on_where_it_stopped(server, behaviour):
    assert fetch(source(server, behaviour)).read_bytes() == CONTENT
    ranges = [
        int(asked[6:-1]) for path, asked in server.requests if path[1:] == behaviour and asked
    ]
    assert len(ranges) == 1
    assert 0 < ranges[0] <= HALF


def test_a_server_that_knows_no_ranges_sends_all_again(server):
    assert fetch(source(server, "dropped-once")).read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_a_compressed_file_stays_compressed_although_the_server_calls_that_an_encoding(server):
    content = gzip.compress(CONTENT, mtime=0)
    assert fetch(source(server, "encoded", content=content)).read_bytes() == content


def test_a_file_that_is_not_there_any_more(server, cache):
    file = source(server, "missing", page="https://example.org/about")
    with pytest.raises(DataFileError, match="404 Client Error: Not Found") as caught:
        fetch(file)
    assert "(see https://example.org/about)" in assert_helps(caught.value, file, cache)
    assert len(server.requests) == 1
    assert left_behind(cache) == []


def test_no_network(cache):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = SourceFile("set/rows.csv", f"http://127.0.0.1:{port}/rows.csv", digest(CONTENT))
    with pytest.raises(DataFileError, match=r"the download failed: .*refused") as caught:
        fetch(file)
    message = assert_helps(caught.value, file, cache)
    assert message.startswith("set/rows.csv is not on this computer, and")
    assert "\n" not in message
    assert "Max retries" not in message
    assert caught.value.__context__ is None  # or tblib, which Dask installs, could not pickle it
    assert str(pickle.loads(pickle.dumps(caught.value))) == message  # noqa: S301  as joblib does


def test_a_server_that_never_answers_is_given_up(server, monkeypatch):
    monkeypatch.setattr(sources, "TIMEOUT", (5.0, 0.2))
    with pytest.raises(DataFileError, match="Read timed out"):
        fetch(source(server, "silent"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_no_space_left(server, cache):
    # Real: the kernel refuses every write to /dev/full with ENOSPC. What is arranged is that the
    # temporary file lies there; a disk that is really full would need a mount.
    file = source(server)
    (cache / "set").mkdir(parents=True)
    (cache / "set" / ".rows.csv.part").symlink_to("/dev/full")
    with pytest.raises(DataFileError, match="No space left on device") as caught:
        fetch(file)
    assert_helps(caught.value, file, cache)
    assert list((cache / "set").glob("*part*")) == []
    assert fetch(file).read_bytes() == CONTENT


@linux
def test_a_quota_that_is_used_up_in_the_middle(server, cache):
    # Real: with RLIMIT_FSIZE the kernel takes the first bytes and refuses the rest with EFBIG, as a
    # disk that fills up does with ENOSPC.
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({HALF}, {HALF})); "
    file = source(server)
    command = [sys.executable, "-c", limited + FETCH, file.path, file.url, file.sha256]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 1
    assert "DataFileError: set/rows.csv is not on this computer, and it cannot be stored in" in (
        result.stderr
    )
    assert "File too large" in result.stderr
    assert left_behind(cache) == []


@linux
def test_two_processes_at_once_download_once(server, cache):
    file = source(server, "slow")
    first = start(file)
    assert server.begun.wait(600)
    second = start(file)
    assert "Another process is downloading" in second.stderr.readline()  # it waits, and says so
    assert not (cache / "set" / "rows.csv").exists()
    server.release.set()
    outputs = [process.communicate(timeout=600)[0].strip() for process in (first, second)]
    assert outputs == [str(cache / "set" / "rows.csv")] * 2
    assert len(server.requests) == 1
    assert left_behind(cache) == ["rows.csv"]


def test_threads_of_one_process_download_once(server):
    file, paths = source(server, "slow"), []
    threads = [threading.Thread(target=lambda: paths.append(fetch(file))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert server.begun.wait(600)
    server.release.set()
    for thread in threads:
        thread.join(600)
    assert len(set(paths)) == 1
    assert len(paths) == 4
    assert len(server.requests) == 1


@linux
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_dies_in_the_middle_leaves_nothing_that_passes_for_the_file(
    server, cache, blow
):
    file, part = source(server, "slow"), cache / "set" / ".rows.csv.part"
    # A test run in the background of a shell ignores SIGINT, and so would its children.
    process = start(file, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert server.begun.wait(600)
    until = time.monotonic() + 300
    while not (part.exists() and part.stat().st_size) and time.monotonic() < until:
        time.sleep(0.01)
    assert 0 < part.stat().st_size <= HALF
    process.send_signal(blow)
    process.communicate(timeout=600)
    assert part.exists() == (blow == signal.SIGKILL)  # else it had the time to clean up
    assert find([file.path]) is None
    server.release.set()
    assert fetch(file).read_bytes() == CONTENT
    assert left_behind(cache) == ["rows.csv"]


def test_a_lock_that_is_never_given_back_is_an_error_in_the_end(server, cache, monkeypatch, caplog):
    from filelock import FileLock

    monkeypatch.setattr(sources, "LOCK_SECONDS", 0.2)
    file = source(server)
    (cache / "set").mkdir(parents=True)
    holder = FileLock(cache / "set" / ".rows.csv.lock")
    taken, done = threading.Event(), threading.Event()

    def hold():
        with holder:
            taken.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert taken.wait(20)
        with pytest.raises(DataFileError, match=r"cannot be stored in .*lock") as caught:
            fetch(file)
        assert_helps(caught.value, file, cache)
    finally:
        done.set()
        thread.join()
    assert "Another process is downloading" in caplog.text


@linux
def test_a_person_who_watches_sees_a_bar_on_standard_error(server, monkeypatch):
    import pty

    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    process = start(source(server), stderr=slave)
    os.close(slave)
    output, _ = process.communicate(timeout=600)
    shown = b""
    while select.select([master], [], [], 0.2)[0]:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # the other end is closed: Linux says EIO
            break
        shown += piece
    os.close(master)
    assert process.returncode == 0
    assert output.count("\n") == 1
    assert "rows.csv" in shown.decode()
    assert "300.0/300.0 kB" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


# -- the cache folder ----------------------------------------------------------------------------


def test_a_damaged_file_in_the_cache_is_downloaded_again(server, cache):
    put(cache / "set" / "rows.csv", CONTENT[:HALF])
    assert fetch(source(server)).read_bytes() == CONTENT


def test_a_damaged_file_in_the_cache_is_named_if_there_is_no_other(server, cache):
    path = put(cache / "set" / "rows.csv", CONTENT[:HALF])
    file = source(server, "missing")
    with pytest.raises(DataFileError, match="404") as caught:
        fetch(file)
    assert assert_helps(caught.value, file, cache).startswith(f"{path} is damaged")
    assert path.read_bytes() == CONTENT[:HALF]


def test_a_cache_folder_that_cannot_be_made(server, cache, tmp_path):
    # Also true for root, whom no permission stops: a file lies where the folder should be.
    put(tmp_path / "reliablenet", b"")
    file = source(server)
    with pytest.raises(DataFileError, match=r"cannot be stored in .*Not a directory") as caught:
        fetch(file)
    assert_helps(caught.value, file, cache)
    assert server.requests == []


def test_a_cache_folder_that_is_read_only(server, cache):
    (cache / "set").mkdir(parents=True)
    (cache / "set").chmod(0o500)
    try:
        if os.access(cache / "set", os.W_OK):
            pytest.skip("this user, probably root, may write everywhere")
        with pytest.raises(DataFileError, match=r"cannot be stored in .*Permission denied"):
            fetch(source(server))
    finally:
        (cache / "set").chmod(0o700)


def test_what_the_system_refuses_to_look_up_is_our_error_too(server, cache):
    for _ in range(2):  # without the folder, the system first says that there is none
        with pytest.raises(DataFileError, match="File name too long"):
            fetch(source(server, path="set/" + "x" * 300))
        assert (cache / "set").is_dir()


def test_a_file_that_others_may_read_as_the_umask_says(server):
    mask = os.umask(0o022)
    try:
        assert fetch(source(server)).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)


# -- RELIABLENET_DATA ----------------------------------------------------------------------------


def test_the_named_folder_comes_first(server, cache, named):
    put(cache / "set" / "rows.csv")
    path = put(named / "set" / "rows.csv")
    assert data_folders() == [named, cache]
    assert fetch(source(server)) == path
    assert server.requests == []


def test_what_the_named_folder_lacks_is_downloaded_into_the_cache(server, cache, named):
    assert fetch(source(server)) == cache / "set" / "rows.csv"
    assert list(named.iterdir()) == []


def test_a_wrong_file_in_the_named_folder_is_an_error_and_stays(server, cache, named):
    put(cache / "set" / "rows.csv")
    path = put(named / "set" / "rows.csv", b"mine")
    file = source(server)
    with pytest.raises(DataFileError) as caught:
        fetch(file)
    for needed in (str(path), digest(b"mine"), file.sha256, file.url):
        assert needed in str(caught.value)
    assert path.read_bytes() == b"mine"
    assert server.requests == []


def test_alternatives_are_found_by_content(server, named):
    file = source(server, alternatives=("rows.csv", "set/Rows (1).csv"))
    wrong = put(named / "rows.csv", b"another edition")
    with pytest.raises(DataFileError, match=re.escape(f"the SHA-256 of {wrong} is")):
        fetch(file)
    right = put(named / "set" / "Rows (1).csv")
    assert fetch(file) == right
    assert wrong.read_bytes() == b"another edition"


@pytest.mark.parametrize("fault", ["does not exist", "is not a folder"])
def test_the_named_folder_must_be_one(server, named, cache, fault):
    named.rmdir()
    if fault == "is not a folder":
        put(named, b"")
    for call in (data_folders, lambda: find(["set/rows.csv"]), lambda: fetch(source(server))):
        with pytest.raises(DataFileError) as caught:
            call()
        assert f"RELIABLENET_DATA names the folder {named}, which {fault}" in str(caught.value)
        assert str(cache) in str(caught.value)


def test_an_empty_variable_names_nothing_and_a_tilde_is_home(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("RELIABLENET_DATA", "")
    assert data_folders() == [cache]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RELIABLENET_DATA", "~/mine")
    (tmp_path / "mine").mkdir()
    assert data_folders() == [tmp_path / "mine", cache]


def test_paths_in_any_script(server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "Zwischenspeicher für 数据"))
    file = source(server, behaviour="größe", path="données/größe 数.csv")
    path = fetch(file)
    assert path.name == "größe 数.csv"
    assert path.read_bytes() == CONTENT
    folder = tmp_path / "мои данные"
    mine = put(folder / "données" / "größe 数.csv")
    monkeypatch.setenv("RELIABLENET_DATA", str(folder))
    assert fetch(file) == find([file.path]) == mine


def test_a_file_behind_an_account_is_asked_for_by_its_page(cache, named):
    page = "https://example.org/form"
    file = SourceFile("set/rows.csv", "", digest(CONTENT), page)
    with pytest.raises(DataFileError, match="offers no direct download") as caught:
        fetch(file)
    message = assert_helps(caught.value, file, named)
    assert f"Get it from {page} and" in message
    wrong = put(cache / "set" / "rows.csv", b"half")
    with pytest.raises(DataFileError, match=digest(b"half")):
        fetch(file)
    put(wrong)
    assert fetch(file) == wrong


def test_find_tries_all_names_in_one_folder_before_the_next(cache, named):
    assert find(["a.csv", "b.csv"]) is None
    put(cache / "a.csv")
    (named / "a.csv").mkdir()  # a folder is no file
    assert find(["a.csv", "b.csv"]) == cache / "a.csv"
    put(named / "b.csv")
    assert find(["a.csv", "b.csv"]) == named / "b.csv"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"path": "../rows.csv"}, "`path` of SourceFile must be relative"),
        ({"path": "/etc/passwd"}, "`path` of SourceFile must be relative"),
        ({"path": "set\\rows.csv"}, "`path` of SourceFile must be relative"),
        ({"path": ""}, "`path` of SourceFile must be relative"),
        ({"alternatives": ("a/../../b",)}, "`alternatives` of SourceFile must be relative"),
        ({"sha256": "abc"}, "64 hexadecimal digits"),
        ({"sha256": "A" * 64}, "64 hexadecimal digits"),
        ({"url": "file:///etc/passwd"}, "start with https://"),
        ({"url": ""}, "`page` of SourceFile must name where"),
    ],
)
def test_a_source_file_checks_itself(settings, complaint):
    sound = {"path": "set/rows.csv", "url": "https://example.org", "sha256": "0" * 64}
    with pytest.raises(InvalidParameterError, match=re.escape(complaint)):
        SourceFile(**(sound | settings))


def test_sha256_of_a_file(tmp_path):
    assert sha256_of(put(tmp_path / "file")) == digest(CONTENT)
