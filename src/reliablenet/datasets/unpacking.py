"""Members of a tar or zip archive, read into memory and verified; nothing is unpacked to disk."""

from __future__ import annotations

import hashlib
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from reliablenet.errors import DataFileError

# RuntimeError: an encrypted member, or a compression unknown here; ValueError: a garbled name
ARCHIVE_FAULTS = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


MOST_BYTES = 2**30  # of a member; none of ours has a tenth of it


def read_members(archive: Path, members: Mapping[str, str]) -> dict[str, bytes]:
    """Read files out of a tar or zip archive into memory; nothing is unpacked to disk.

    Parameters
    ----------
    archive : Path
        A zip archive if its name ends in ``.zip``, else a tar archive, compressed or not.
    members : mapping of str to str
        Name in the archive to SHA-256. A leading ``./`` makes no difference.

    Returns
    -------
    dict of str to bytes
        In the order and under the names of ``members``.

    Raises
    ------
    DataFileError
        If the archive is damaged, or a member is missing, altered, huge, or no regular file.

    Examples
    --------
    >>> import hashlib
    >>> import zipfile
    >>> from pathlib import Path
    >>> from reliablenet.datasets.unpacking import read_members
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     archive = Path(folder) / "letters.zip"
    ...     with zipfile.ZipFile(archive, "w") as writer:
    ...         writer.writestr("./a.txt", "A")
    ...     read_members(archive, {"a.txt": hashlib.sha256(b"A").hexdigest()})
    {'a.txt': b'A'}
    """
    walk = _walk_zip if archive.suffix.lower() == ".zip" else _walk_tar
    wanted = {_plain(name): name for name in members}
    contents: dict[str, bytes] = {}
    try:
        for found, size, read in walk(archive):
            name = wanted.pop(_plain(found), None)
            if name is None:
                continue
            if read is None:
                raise DataFileError(f"{name} in the archive {archive} is not a regular file.")
            if size > MOST_BYTES:  # a bomb: small on disk, larger than memory
                raise DataFileError(
                    f"{name} in the archive {archive} would take {size:,} bytes. Replace the archive "
                    "with a fresh copy."
                )
            contents[name] = _check_member(read(), name, members[name], archive)
            if not wanted:
                break  # what follows need not be decompressed
    except DataFileError:
        raise
    except ARCHIVE_FAULTS as error:
        raise DataFileError(
            f"The archive {archive} is damaged or cannot be read: {error}. "
            "Replace it with a fresh copy."
        ) from error
    if wanted:
        raise DataFileError(
            f"The archive {archive} lacks {', '.join(sorted(wanted.values()))}. "
            "Replace it with a fresh copy."
        )
    return {name: contents[name] for name in members}


def _plain(name: str) -> str:
    while name.startswith("./"):
        name = name[2:]
    return name


def _walk_tar(archive: Path) -> Iterator[tuple[str, int, Callable[[], bytes] | None]]:
    """Yield each member's name, its size and, for a regular file, a function that reads it."""
    with tarfile.open(archive) as reader:
        for member in reader:  # in one pass: to seek back would decompress all again
            read = partial(_read_tar, reader, member) if member.isreg() else None
            yield member.name, member.size, read


def _read_tar(reader: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    with cast(BinaryIO, reader.extractfile(member)) as file:
        return file.read()


def _walk_zip(archive: Path) -> Iterator[tuple[str, int, Callable[[], bytes] | None]]:
    """Yield each member's name, its size and, for a regular file, a function that reads it."""
    with zipfile.ZipFile(archive) as reader:
        for member in reader.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)  # 0 if the writer knew no Unix
            regular = kind in (0, stat.S_IFREG) and not member.is_dir()
            read = partial(reader.read, member) if regular else None
            yield member.filename, member.file_size, read


def _check_member(content: bytes, name: str, sha256: str, archive: Path) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise DataFileError(
            f"{name} in the archive {archive} is altered: its SHA-256 is {digest}, expected "
            f"{sha256}. Replace the archive with a fresh copy."
        )
    return content
