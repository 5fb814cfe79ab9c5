"""An archive that was altered and sealed again, as an attacker can, is refused or read: never more."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import reliablenet as rn
from reliablenet.modelfile.archive import (
    SEAL,
    SEAL_LENGTH,
    check_stored,
    open_sealed,
    seal,
    sha256,
)

PARTS = {"a.json": b'{"format": 1}', "b.bin": b"0123456789"}
WHOLE = seal(PARTS)
BODY = WHOLE[:-SEAL_LENGTH]
DIRECTORY, END = BODY.index(b"PK\x01\x02"), BODY.index(b"PK\x05\x06")


def sealed_again(body: bytes) -> bytes:
    return body + SEAL + sha256(body).encode()


def put(place: int, value: bytes, body: bytes = BODY) -> bytes:
    """Return the archive with other bytes at a place."""
    return body[:place] + value + body[place + len(value) :]


def short(value: int) -> bytes:
    return struct.pack("<H", value)


def long(value: int) -> bytes:
    return struct.pack("<L", value)


def with_huge_size() -> bytes:
    """A directory entry whose size stands in a field of eight bytes, and is beyond all memory."""
    info = zipfile.ZipInfo("a.json")
    info.extra = struct.pack("<HHQQ", 1, 16, 2**62, 2**62)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, b"x")
        archive.comment = SEAL + b"0" * 64
    body = buffer.getvalue()[:-SEAL_LENGTH]
    entry = body.index(b"PK\x01\x02")
    return put(entry + 20, b"\xff" * 8, body)


# What an entry of the directory says, by its place in the entry, is in the specification of zip, 4.3.12.
FORGED: dict[str, bytes] = {
    "a member longer than the file": put(
        DIRECTORY + 20, long(2**32 - 2), put(DIRECTORY + 24, long(11))
    ),
    "a size beyond the file": put(DIRECTORY + 24, long(2**32 - 2)),
    "a size of eight bytes beyond all memory": with_huge_size(),
    "a member before the file": put(END + 16, long(2**31)),
    "a member behind the file": put(DIRECTORY + 42, long(2**31)),
    "a directory before the file": put(END + 12, long(2**31)),
    "an unknown compression": put(DIRECTORY + 10, short(77)),
    "deflate": put(DIRECTORY + 10, short(8)),
    "encryption": put(DIRECTORY + 8, short(1)),
    "strong encryption": put(DIRECTORY + 8, short(64)),
    "a patch": put(DIRECTORY + 8, short(32)),
    "a version of the future": put(DIRECTORY + 6, short(255)),
    "a name that is no UTF-8": put(DIRECTORY + 46, b"\xff\xfe", put(DIRECTORY + 8, short(0x800))),
    "a name as long as can be": put(DIRECTORY + 28, short(2**16 - 1)),
    "another name in the header": put(30, b"z"),
    "a wrong checksum": put(DIRECTORY + 16, long(1)),
    "a torn directory": BODY[:DIRECTORY] + BODY[END:],
    "no directory": BODY[:DIRECTORY],
    "no end": BODY[:END],
    "half": BODY[: len(BODY) // 2],
    "two letters": b"PK",
}


def outcome(read: Callable[[], object]) -> str:
    """Return whether bytes were read or refused; anything else is raised."""
    try:
        read()
    except rn.errors.ModelFileError:
        return "refused"
    return "read"


def both(body: bytes, path: Path) -> tuple[str, str]:
    path.write_bytes(sealed_again(body))
    return (
        outcome(lambda: open_sealed(path, [list(PARTS)])),
        outcome(lambda: check_stored(sealed_again(body), path)),
    )


def altered() -> Iterator[bytes]:
    """Yield the archive cut at every place, and with every byte and field changed in several ways."""
    for place in range(len(BODY)):
        yield BODY[:place]
        yield BODY[:place] + BODY[place + 1 :]
        for value in {0, 1, 0x7F, 0x80, 0xFF, BODY[place] ^ 1, BODY[place] ^ 8, BODY[place] ^ 32}:
            yield put(place, bytes([value]))
        for width in (2, 4, 8):
            for value in (b"\x00", b"\x7f", b"\xff"):
                yield put(place, value * width)[: len(BODY)]


def test_what_was_sealed_comes_back(tmp_path) -> None:
    path = tmp_path / "model.rnet"
    path.write_bytes(WHOLE)
    assert open_sealed(path, [["other"], list(PARTS)]) == PARTS
    check_stored(WHOLE, path)


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_archive_is_refused(kind, tmp_path) -> None:
    opened, _ = both(FORGED[kind], tmp_path / "model.rnet")
    assert opened == "refused"


def test_whatever_byte_was_changed_the_file_is_read_or_refused(tmp_path) -> None:
    path = tmp_path / "model.rnet"
    outcomes = [found for body in altered() for found in both(body, path)]
    assert set(outcomes) == {"read", "refused"}


@pytest.mark.parametrize(
    "error",
    [
        EOFError(),
        KeyError("a.json"),
        MemoryError(),
        NotImplementedError("compression type 77"),
        OverflowError("too large"),
        RuntimeError("encrypted"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no start"),
        ValueError("negative seek value -1"),
        struct.error("too short"),
        zipfile.LargeZipFile("large"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("method", ["__init__", "read"])
def test_whatever_zipfile_raises_is_a_refusal(error, method, tmp_path, monkeypatch) -> None:
    path = tmp_path / "model.rnet"
    path.write_bytes(WHOLE)

    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(zipfile.ZipFile, method, broken)
    with pytest.raises(rn.errors.ModelFileError, match="is not a whole archive") as refusal:
        open_sealed(path, [list(PARTS)])
    assert refusal.value.__cause__ is error
    if method == "__init__":
        with pytest.raises(rn.errors.ModelFileError, match="is not a whole archive"):
            check_stored(WHOLE, path)


def test_an_interrupt_is_no_refusal(tmp_path, monkeypatch) -> None:
    path = tmp_path / "model.rnet"
    path.write_bytes(WHOLE)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_sealed(path, [list(PARTS)])


def test_a_file_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch) -> None:
    def too_large(_: Path) -> bytes:
        raise MemoryError

    monkeypatch.setattr(Path, "read_bytes", too_large)
    with pytest.raises(rn.errors.ModelFileError, match="does not fit into memory"):
        open_sealed(tmp_path / "model.rnet", [list(PARTS)])


def test_an_archive_within_the_archive_may_not_grow(tmp_path) -> None:
    for kind in ("deflate", "a size beyond the file", "a size of eight bytes beyond all memory"):
        with pytest.raises(rn.errors.ModelFileError, match=r"compressed members|larger than it is"):
            check_stored(sealed_again(FORGED[kind]), tmp_path / "model.rnet")
