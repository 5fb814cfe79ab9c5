"""A sealed archive: a plain zip that ends in the SHA-256 of every byte before.

Damage anywhere is noticed. It is no signature, which `signature` makes: whoever can change the file can also
seal it again.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reliablenet.errors import ModelFileError, ReliableNetError

SEAL = b"sha256:"
SEAL_LENGTH = len(SEAL) + 64


def sha256(content: bytes) -> str:
    """Return the hash of bytes as text."""
    return hashlib.sha256(content).hexdigest()


def seal(parts: dict[str, bytes]) -> bytes:
    """Return the bytes of a zip without compression or dates, ending in a hash of all the rest."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.comment = SEAL + b"0" * 64
    body = buffer.getvalue()[:-SEAL_LENGTH]
    return body + SEAL + sha256(body).encode()


def open_sealed(
    path: Path, wanted: Sequence[Sequence[str]], optional: Sequence[str] = ()
) -> dict[str, bytes]:
    """Return the members of a sealed file after checking every byte of it.

    ``wanted`` lists the sets of members that a file may have, beside those in ``optional``.
    """
    members = open_archive(path)
    names = sorted(members.keys() - set(optional))
    if names not in [sorted(known) for known in wanted]:
        raise ModelFileError(f"{path} must hold one of {wanted}; it holds {names}.")
    return members


def open_archive(path: Path) -> dict[str, bytes]:
    """Return all members of a sealed file, whichever they are, after checking every byte of it."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError, MemoryError) as error:  # ValueError: a name with a zero byte
        reason = getattr(error, "strerror", None) or str(error) or "it does not fit into memory"
        raise ModelFileError(f"No model file can be read at {path}: {reason}.") from error
    body, end = content[:-SEAL_LENGTH], content[-SEAL_LENGTH:]
    if not end.startswith(SEAL) or not body.startswith(b"PK"):
        raise ModelFileError(
            f"{path} is not a ReliableNet model file, or its end is missing. Copy or save it again."
        )
    if end != SEAL + sha256(body).encode():
        raise ModelFileError(
            f"{path} was damaged or altered after it was written: its hash does not match. "
            "Copy or save it again."
        )
    with _open_stored(content, path) as archive:
        names = sorted(archive.namelist())
        if len(set(names)) < len(names):
            raise ModelFileError(f"{path} holds a member twice, which we never write.")
        return {name: archive.read(name) for name in names}


def check_stored(content: bytes, path: Path) -> None:
    """Refuse an inner archive that is not one, or that would grow when it is read."""
    with _open_stored(content, path):
        pass


@contextmanager
def _open_stored(content: bytes, path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive whose members stand in it as they are, which is how we write them.

    On an altered one zipfile raises nearly anything, here or in the caller's block; each is a refusal.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise ModelFileError(f"{path} holds compressed members, which we never write.")
            if sum(entry.file_size for entry in entries) > len(content):
                raise ModelFileError(f"{path} holds members that claim to be larger than it is.")
            yield archive
    except ReliableNetError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{path} is not a whole archive: {error!r}. Copy or save it again."
        ) from error
