"""Source files: found in the user's folders, or downloaded and verified; never half-written."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from reliablenet._checks import parameter_error
from reliablenet._version import __version__
from reliablenet.errors import DataFileError

FOLDER_VARIABLE = "RELIABLENET_DATA"
TIMEOUT = (10.0, 30.0)  # seconds to connect, and between two pieces of the file
ATTEMPTS = 3  # a broken download goes on where it stopped, if anything had arrived
LOCK_SECONDS = 3600.0  # a process that was stopped while it downloads must not stop others for ever
CHUNK = 1 << 16
HEX_DIGITS = frozenset("0123456789abcdef")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SourceFile:
    """A file of a public dataset.

    Attributes
    ----------
    path : str
        Below the data folder, with forward slashes: ``"adult/adult.data"``.
    url : str
        Where its publisher offers it; empty if that takes an account or a form, and then ``page``
        tells where to get it.
    sha256 : str
        Of the whole file, in lower case.
    page : str
        A page for people, named in messages.
    alternatives : tuple of str
        Other relative paths under which users may hold the same content.

    Examples
    --------
    >>> from reliablenet.datasets.sources import SourceFile
    >>> SourceFile("iris/iris.data", "https://example.org/iris.data", sha256="0" * 64).name
    'iris.data'
    """

    path: str
    url: str
    sha256: str
    page: str = ""
    alternatives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, paths in (("path", (self.path,)), ("alternatives", self.alternatives)):
            for path in paths:
                pure = PurePosixPath(path)
                if not pure.name or pure.is_absolute() or ".." in pure.parts or "\\" in path:
                    expected = "be relative, with forward slashes and no '..'"
                    raise parameter_error(name, "SourceFile", expected, path)
        if len(self.sha256) != 64 or not HEX_DIGITS.issuperset(self.sha256):
            raise parameter_error(
                "sha256", "SourceFile", "be 64 hexadecimal digits in lower case", self.sha256
            )
        if self.url and not self.url.startswith(("https://", "http://")):
            raise parameter_error("url", "SourceFile", "start with https:// or http://", self.url)
        if not self.url and not self.page:
            raise parameter_error(
                "page", "SourceFile", "name where to get a file that has no url", self.page
            )

    @property
    def name(self) -> str:
        """Last part of the path."""
        return PurePosixPath(self.path).name


def data_folders() -> list[Path]:
    """Return the folders where source files are looked for, first to last.

    Returns
    -------
    list of Path
        What the environment variable ``RELIABLENET_DATA`` names, if it is set, then our folder in
        the user's cache, which need not exist yet.

    Raises
    ------
    DataFileError
        If ``RELIABLENET_DATA`` names no folder.
    """
    named = os.environ.get(FOLDER_VARIABLE, "")
    if not named:
        return [_cache_folder()]
    folder = Path(named).expanduser().absolute()
    if not folder.is_dir():
        fault = "is not a folder" if folder.exists() else "does not exist"
        raise DataFileError(
            f"{FOLDER_VARIABLE} names the folder {folder}, which {fault}. Correct it, or unset it "
            f"to use the cache folder {_cache_folder()}."
        )
    return [folder, _cache_folder()]


def find(paths: Sequence[str]) -> Path | None:
    """Return the first of some files that exists in a data folder; its content is not checked.

    Parameters
    ----------
    paths : sequence of str
        Relative to a data folder, with forward slashes. All are looked for in the first folder
        before the next is tried.

    Returns
    -------
    Path or None
    """
    return next((p for folder in data_folders() for p in _existing(folder, paths)), None)


def fetch(file: SourceFile) -> Path:
    """Return a local path with verified content: found, or downloaded into the cache folder.

    A file in ``RELIABLENET_DATA`` is never written or replaced: if none there has the right
    content, that is an error. A wrong file in the cache folder is downloaded again.

    Parameters
    ----------
    file : SourceFile

    Returns
    -------
    Path

    Raises
    ------
    DataFileError
        If the file is damaged, or is not there and cannot be downloaded; the message holds the
        source's address, the file's name and the folder to put it in.
    """
    *named, cache = data_folders()
    try:
        for folder in named:
            if found := _search(folder, file):
                return found
        if found := _search(cache, file, strict=not file.url):
            return found
    except DataFileError:
        raise
    except OSError as error:
        raise DataFileError(f"{file.path} cannot be read: {error}.") from error
    if not file.url:
        raise _failure(file, "its publisher offers no direct download")
    return _download(file, cache)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits, read piece by piece.

    Examples
    --------
    >>> from pathlib import Path
    >>> from reliablenet.datasets.sources import sha256_of
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as empty:
    ...     sha256_of(Path(empty.name))[:16]
    'e3b0c44298fc1c14'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cache_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("reliablenet") / "data"


def _existing(folder: Path, paths: Sequence[str]) -> Iterator[Path]:
    return (folder / path for path in paths if (folder / path).is_file())


def _search(folder: Path, file: SourceFile, *, strict: bool = True) -> Path | None:
    """Return the file in a folder, whatever its name; if strict, complain if all are wrong."""
    wrong = []
    for path in _existing(folder, (file.path, *file.alternatives)):
        digest = _remembered_sha256(path)
        if digest == file.sha256:
            return path
        wrong.append(f"the SHA-256 of {path} is {digest}")
    if wrong and strict:
        raise DataFileError(
            f"{file.path} is not what its publisher offers: {'; '.join(wrong)}; expected "
            f"{file.sha256}. Replace it with the file from {_source(file)}, or delete it."
        )
    return None


def _remembered_sha256(path: Path) -> str:
    state = path.stat()
    return _sha256_of_state(path, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@lru_cache(maxsize=256)
def _sha256_of_state(path: Path, size: int, mtime_ns: int, ctime_ns: int) -> str:
    return sha256_of(path)  # once in a process, as long as the file is not touched


def _source(file: SourceFile) -> str:
    return f"{file.url} (see {file.page})" if file.url and file.page else file.url or file.page


def _failure(file: SourceFile, fault: str) -> DataFileError:
    first, cached = data_folders()[0], _cache_folder() / file.path
    state = f"{file.path} is not on this computer"
    if os.path.isfile(cached):  # unlike the method, it never raises
        state = f"{cached} is damaged (its SHA-256 is not {file.sha256})"
    return DataFileError(
        f"{state}, and {fault}. Get it from {_source(file)} and put it, named {file.name}, into "
        f"the folder {(first / file.path).parent}; or set {FOLDER_VARIABLE} to a folder that holds "
        f"{file.path}."
    )


def _download(file: SourceFile, cache: Path) -> Path:
    """Download a file next to its place, and put it there once its content is verified."""
    import requests
    import urllib3

    target = cache / file.path
    # One name for all attempts, guarded by the lock: what a killed process leaves is overwritten.
    part = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            if found := _search(cache, file, strict=False):
                return found  # another process was quicker
            try:
                _transfer(file, part)
                digest = sha256_of(part)
                if digest != file.sha256:
                    raise _failure(
                        file,
                        f"the download is another file: {part.stat().st_size} bytes with SHA-256 "
                        f"{digest}; expected {file.sha256}",
                    )
                os.replace(part, target)
            finally:
                part.unlink(missing_ok=True)
    except DataFileError:
        raise
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        fault = f"the download failed: {_reason(error)}"
    except OSError as error:
        fault = f"it cannot be stored in {target.parent}: {error}"
    else:
        return target
    # Here, and not above: the story of the network would fill the screen, and cannot be pickled.
    raise _failure(file, fault)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Keep other processes from downloading the same file; a lock dies with its process."""
    from filelock import FileLock, Timeout

    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("Another process is downloading %s; waiting for it.", target)
        lock.acquire(timeout=LOCK_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _transfer(file: SourceFile, part: Path) -> None:
    """Write what the server sends; go on where a broken connection stopped."""
    import requests
    from pooch import HTTPDownloader

    with part.open("wb") as output, _progress(file.name) as bar:
        for remaining in reversed(range(ATTEMPTS)):
            begin = output.tell()
            headers = {"Accept-Encoding": "identity", "User-Agent": f"reliablenet/{__version__}"}
            if begin:
                headers["Range"] = f"bytes={begin}-"
            with ExitStack() as responses:
                settings = {
                    "timeout": TIMEOUT,
                    "headers": headers,
                    "hooks": {"response": partial(_prepare, output, responses)},
                }
                downloader = HTTPDownloader(progressbar=bar, chunk_size=CHUNK, **settings)
                try:
                    downloader(file.url, output, None)
                    break
                except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                    # Without a single byte the network is down: no use to let the user wait.
                    if not remaining or output.tell() == begin:
                        raise
        output.flush()
        os.fsync(output.fileno())  # on disk before it gets its name


def _prepare(output: BinaryIO, responses: ExitStack, response: Any, **_: Any) -> None:
    """See to a response before its content is read."""
    responses.callback(response.close)  # pooch leaves it open if the connection breaks
    # Some servers declare a .gz file as an encoding of its content; we want the file as it is.
    response.raw.headers.pop("Content-Encoding", None)
    if response.status_code == 200 and output.tell():  # asked for the rest, it sends all
        output.seek(0)
        output.truncate()


def _reason(error: BaseException) -> str:
    """Return the innermost explanation: requests wraps it three times."""
    while True:
        first = error.args[0] if error.args else None
        inner = getattr(error, "reason", first)
        if not isinstance(inner, BaseException):
            return first if isinstance(first, str) else str(error) or type(error).__name__
        error = inner


@contextmanager
def _progress(name: str) -> Iterator[_Bar | bool]:
    """Yield a bar on standard error if a person is watching, else False."""
    if not sys.stderr.isatty():
        yield False
        return
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield _Bar(progress, name)


class _Bar:
    """What pooch expects of a progress bar, drawn by rich."""

    def __init__(self, progress: Any, name: str) -> None:
        self.total = 0  # set by pooch; 0 if the server does not tell
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    def update(self, n: int) -> None:
        self._progress.update(self._task, total=self.total or None, advance=n)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.refresh()
