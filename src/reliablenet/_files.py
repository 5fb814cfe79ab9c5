"""Files that are whole or not there."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a write says that finds no room


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that its name always stands for whole content, old or new."""
    with open_atomically(path) as file:
        file.write(content)


@contextmanager
def open_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name when all was written, and vanishes if that fails."""
    # Named before it is made, so that a signal while it is made leaves nothing behind either.
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):  # it was never made
            temporary.unlink()
        if isinstance(error, OSError) and (error.errno in FULL or error.filename == str(temporary)):
            named = OSError(error.errno, error.strerror, str(path))  # as the user knows it
            raise named from None
        raise
