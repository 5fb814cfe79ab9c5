"""Archives that are whole, damaged or hostile."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from reliablenet.datasets.unpacking import read_members
from reliablenet.errors import DataFileError

CONTENT = np.random.default_rng(0).bytes(100_000)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


MEMBERS = {"set/a.bin": CONTENT[:70_000], "set/b.bin": CONTENT[70_000:100_000]}
HASHES = {name: digest(content) for name, content in MEMBERS.items()}
KINDS = ["set.tar", "set.tar.gz", "set.tar.xz", "set.zip"]


def pack(path: Path, members: dict[str, bytes], prefix: str = "") -> Path:
    """Write an archive of the kind that the name tells."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(prefix + name, content)
        return path
    mode = {".gz": "w:gz", ".xz": "w:xz"}.get(path.suffix, "w")
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """Where to write an archive; the name tells the kind."""
    folder = tmp_path / "archives"
    folder.mkdir()
    return folder / request.param


@pytest.mark.parametrize("prefix", ["", "./"])
def test_members_are_read_in_the_order_asked_for(place, prefix):
    archive = pack(place, MEMBERS | {"set/c.bin": b"unasked"}, prefix)
    backwards = dict(reversed(HASHES.items()))
    contents = read_members(archive, backwards)
    assert list(contents) == list(backwards)
    assert contents == MEMBERS
    dotted = {f"./{name}": value for name, value in HASHES.items()}
    assert read_members(archive, dotted) == {f"./{name}": MEMBERS[name] for name in MEMBERS}


def test_an_altered_member_is_refused_by_name(place):
    archive = pack(place, MEMBERS | {"set/b.bin": b"altered"})
    with pytest.raises(DataFileError, match=r"set/b\.bin in the archive .* is altered") as caught:
        read_members(archive, HASHES)
    for needed in (str(archive), digest(b"altered"), HASHES["set/b.bin"]):
        assert needed in str(caught.value)


def test_a_missing_member_is_named(place):
    archive = pack(place, {"set/a.bin": MEMBERS["set/a.bin"], "b.bin": b""})
    with pytest.raises(DataFileError, match=r"lacks set/b\.bin\."):
        read_members(archive, HASHES)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE]
)
def test_a_tar_member_that_is_no_regular_file_is_refused(tmp_path, kind):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    with tarfile.open(tmp_path / "set.tar", "w") as archive:
        member = tarfile.TarInfo("a.bin")
        member.type, member.linkname = kind, str(secret)
        archive.addfile(member)
    with pytest.raises(DataFileError, match=r"a\.bin in the archive .* is not a regular file"):
        read_members(tmp_path / "set.tar", {"a.bin": digest(b"secret")})


@pytest.mark.parametrize("name", ["a.bin", "a.bin/"])
def test_a_zip_member_that_is_no_regular_file_is_refused(tmp_path, name):
    member = zipfile.ZipInfo(name)
    if name == "a.bin":
        member.external_attr = 0o120777 << 16  # a symbolic link
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr(member, b"")
    with pytest.raises(DataFileError, match="is not a regular file"):
        read_members(tmp_path / "set.zip", {name: digest(b"")})


def test_nothing_is_ever_written(place):
    archive = pack(place, {"../evil": b"evil", "/tmp/evil": b"evil"} | MEMBERS)  # noqa: S108
    before = sorted(place.parent.parent.rglob("*"))
    assert read_members(archive, HASHES) == MEMBERS
    assert read_members(archive, {"../evil": digest(b"evil")}) == {"../evil": b"evil"}
    assert sorted(place.parent.parent.rglob("*")) == before
    assert not Path("/tmp/evil").exists()  # noqa: S108


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9])
def test_a_truncated_archive_is_refused(place, share):
    content = pack(place, MEMBERS).read_bytes()
    place.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataFileError, match=re.escape(str(place))):
        read_members(place, HASHES)


def test_a_damaged_archive_gives_the_true_content_or_our_error(place):
    members = {name: content[:2000] for name, content in MEMBERS.items()}
    hashes = {name: digest(content) for name, content in members.items()}
    content, generator, refused = pack(place, members).read_bytes(), np.random.default_rng(1), 0
    for count in [1, 5] * 150:
        damaged = np.frombuffer(content, np.uint8).copy()
        damaged[generator.integers(len(content), size=count)] = generator.integers(256, size=count)
        place.write_bytes(damaged.tobytes())
        try:
            assert read_members(place, hashes) == members
        except DataFileError:
            refused += 1
    assert refused > 50


def test_an_archive_that_is_not_there(place):
    with pytest.raises(DataFileError, match="No such file"):
        read_members(place, HASHES)
