"""Signatures: only a file that a trusted key signed, as it stands, is accepted where keys are asked for."""

from __future__ import annotations

import base64
import json
import shutil
import stat
import subprocess

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.errors import (
    DataFileError,
    InvalidDataError,
    InvalidParameterError,
    ModelFileError,
    ReliableNetError,
)
from reliablenet.modelfile.archive import SEAL, SEAL_LENGTH, open_archive, seal, sha256
from reliablenet.modelfile.signature import (
    SIGNATURE,
    check_signature,
    make_keys,
    read_keys,
    sign_file,
    signed_with,
)

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A signed model, an unsigned one, the keys of the signer and those of somebody else."""
    folder = tmp_path_factory.mktemp("signed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    model = rn.CertifiedThreshold(LogisticRegression(), 0.2, random_state=0).fit(X, X[:, 0] > 0)
    model.save(folder / "plain.rnet")
    shutil.copy(folder / "plain.rnet", folder / "signed.rnet")
    make_keys(folder / "ours")
    make_keys(folder / "theirs")
    sign_file(folder / "signed.rnet", folder / "ours")
    return folder


def test_a_signed_file_loads_with_its_key_and_without_any(folder) -> None:
    X = np.random.default_rng(1).normal(size=(50, 2))
    expected = rn.load(folder / "plain.rnet").decide(X)
    for keys in (
        None,
        folder / "ours.pub",
        [str(folder / "theirs.pub"), folder / "ours.pub"],
        (folder / "ours.pub").read_bytes(),
        read_keys(folder / "ours.pub"),
    ):
        found = rn.load(folder / "signed.rnet", trusted_keys=keys).decide(X)
        np.testing.assert_array_equal(found.accepted, expected.accepted)
        np.testing.assert_array_equal(found.confidence, expected.confidence)


def test_what_is_not_signed_with_a_trusted_key_is_refused_by_name(folder) -> None:
    with pytest.raises(ModelFileError, match=r"plain.rnet is not signed. Only"):
        rn.load(folder / "plain.rnet", trusted_keys=folder / "ours.pub")
    mark = signed_with(folder / "signed.rnet")
    with pytest.raises(ModelFileError, match=f"with the key {mark[:16]}, which is not one of the"):
        rn.load(folder / "signed.rnet", trusted_keys=folder / "theirs.pub")
    assert signed_with(folder / "plain.rnet") == ""


def test_no_key_stands_in_the_file(folder) -> None:
    content = (folder / "signed.rnet").read_bytes()
    for name in ("ours", "ours.pub"):
        lines = (folder / name).read_text().splitlines()
        assert not any(line.encode() in content for line in lines if "-----" not in line)
    raw = read_keys(folder / "ours.pub")[0].public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    assert raw not in content
    assert raw.hex().encode() not in content
    assert stat.S_IMODE((folder / "ours").stat().st_mode) == 0o600


def test_a_thousand_altered_files_and_keys_are_refused(folder, tmp_path) -> None:
    """By one who knows the format, seals anew and has keys of their own, but not the trusted one."""
    rng = np.random.default_rng(0)
    trusted = read_keys(folder / "ours.pub")
    members = open_archive(folder / "signed.rnet")
    stored = json.loads(members[SIGNATURE])
    names = sorted(members)
    other = ed25519.Ed25519PrivateKey.generate()
    path, tried = tmp_path / "altered.rnet", 0

    def refuse(content: bytes) -> None:
        nonlocal tried
        path.write_bytes(content)
        with pytest.raises(ReliableNetError):
            check_signature(open_archive(path), trusted, path)
        tried += 1

    for _ in range(400):  # one byte of one member, or of the signature itself
        name = names[rng.integers(len(names))]
        place, change = int(rng.integers(len(members[name]))), int(rng.integers(1, 256))
        content = bytearray(members[name])
        content[place] ^= change
        changed = dict(members)
        changed[name] = bytes(content)
        if name == SIGNATURE and _means_the_same(changed[name], stored):
            continue
        refuse(seal(changed))
    whole = (folder / "signed.rnet").read_bytes()
    body = whole[:-SEAL_LENGTH]
    for _ in range(300):  # one byte of the archive, sealed again
        content = bytearray(body)
        content[int(rng.integers(len(body)))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(content) + SEAL + sha256(bytes(content)).encode())
        try:
            found = open_archive(path)
        except ReliableNetError:
            tried += 1
            continue
        if found == members:  # a date or a flag that nobody reads
            continue
        with pytest.raises(ReliableNetError):
            check_signature(found, trusted, path)
        tried += 1
    for _ in range(350):  # signatures of others, under the name of the trusted key
        forged = dict(stored)
        forged["signature"] = _text(
            other.sign(rng.bytes(64)) if rng.random() < 0.5 else rng.bytes(64)
        )
        refuse(seal(members | {SIGNATURE: json.dumps(forged).encode()}))
    for name in names:  # a member less, and the same member under another name
        refuse(seal({k: v for k, v in members.items() if k != name}))
        if name != SIGNATURE:
            left = {k: v for k, v in members.items() if k != name}
            refuse(seal(left | {f"{name}.old": members[name]}))
    assert tried >= 1000


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _means_the_same(content: bytes, stored: dict[str, str]) -> bool:
    try:
        return json.loads(content) == stored
    except ValueError:
        return False


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"format": "other"}', b"\xff", b'{"format": "reliablenet-signature/1", "key": 1}']
)  # fmt: skip
def test_a_signature_that_is_none_is_refused(folder, tmp_path, text) -> None:
    members = open_archive(folder / "signed.rnet") | {SIGNATURE: text}
    (tmp_path / "m.rnet").write_bytes(seal(members))
    with pytest.raises(ModelFileError, match=r"signature of .* cannot be read"):
        rn.load(tmp_path / "m.rnet", trusted_keys=folder / "ours.pub")


def test_to_sign_again_replaces_the_signature(folder, tmp_path) -> None:
    path = tmp_path / "m.rnet"
    shutil.copy(folder / "signed.rnet", path)
    mark = sign_file(path, folder / "theirs")
    assert signed_with(path) == mark
    rn.load(path, trusted_keys=folder / "theirs.pub")
    with pytest.raises(ModelFileError, match="not one of the trusted keys"):
        rn.load(path, trusted_keys=folder / "ours.pub")


def test_locked_keys_need_their_password(folder, tmp_path) -> None:
    make_keys(tmp_path / "locked", b"secret")
    path = tmp_path / "m.rnet"
    shutil.copy(folder / "plain.rnet", path)
    for password, message in ((None, "is locked"), (b"wrong", "password is wrong")):
        with pytest.raises(InvalidDataError, match=message) as raised:
            sign_file(path, tmp_path / "locked", password)
        assert "secret" not in str(raised.value)
    sign_file(path, tmp_path / "locked", b"secret")
    rn.load(path, trusted_keys=tmp_path / "locked.pub")
    with pytest.raises(InvalidDataError, match="is not locked"):
        sign_file(path, folder / "ours", b"needless")


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_keys_of_openssh(folder, tmp_path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "id"], check=True
    )
    path = tmp_path / "m.rnet"
    shutil.copy(folder / "plain.rnet", path)
    sign_file(path, tmp_path / "id")
    several = tmp_path / "keys"
    several.write_bytes(b"# who may sign\n\n" + (tmp_path / "id.pub").read_bytes())
    rn.load(path, trusted_keys=several)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"no key", InvalidDataError, "holds something that is not a public key"),
        (b"", InvalidDataError, "holds no public key"),
        ("private", InvalidDataError, "is a private key. Trust its public key"),
        (None, DataFileError, "There is no key file"),
    ],
)
def test_files_that_hold_no_public_key_are_named(folder, tmp_path, content, error, message) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes((folder / "ours").read_bytes() if content == "private" else content)
    with pytest.raises(error, match=message):
        rn.load(folder / "signed.rnet", trusted_keys=path)


@pytest.mark.parametrize("keys", [[], 7, [None]])
def test_what_names_no_key_is_refused(folder, keys) -> None:
    with pytest.raises(InvalidParameterError, match="trusted_keys"):
        rn.load(folder / "signed.rnet", trusted_keys=keys)


def test_other_kinds_of_keys_are_refused(folder, tmp_path) -> None:
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    key = rsa.generate_private_key(65537, 2048)
    (tmp_path / "rsa").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (tmp_path / "rsa.pub").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    with pytest.raises(InvalidDataError, match="is not an Ed25519 key"):
        sign_file(folder / "plain.rnet", tmp_path / "rsa")
    with pytest.raises(InvalidDataError, match="holds a key that is not Ed25519"):
        rn.load(folder / "signed.rnet", trusted_keys=tmp_path / "rsa.pub")
    with pytest.raises(DataFileError, match="exists already; a key is never written over"):
        make_keys(tmp_path / "rsa")
