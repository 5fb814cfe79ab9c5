"""Signatures of model files: Ed25519 over every other member, so that a file tells who vouches for it.

The hash at the end of a file shows damage; whoever alters a file can make it anew. A signature cannot be made
without the private key. Of a key only its fingerprint is written into files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from reliablenet._checks import parameter_error
from reliablenet._files import open_atomically, write_atomically
from reliablenet.errors import DataFileError, InvalidDataError, MissingExtraError, ModelFileError
from reliablenet.modelfile.archive import open_archive, seal, sha256

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    Keys = str | Path | bytes | Ed25519PublicKey | Sequence[str | Path | bytes | Ed25519PublicKey]

SIGNATURE = "signature.json"
FORMAT = "reliablenet-signature/1"
PEM_END = b"-----END PUBLIC KEY-----"
SHOWN = 16  # digits of a fingerprint in messages


def make_keys(path: str | Path, password: bytes | None = None) -> tuple[Path, Path]:
    """Write a new private key, for its owner alone to read, and beside it the public key.

    Parameters
    ----------
    path : str or Path
        Of the private key; the public one has the same name with ``.pub`` behind. Neither may exist.
    password : bytes, optional
        Which locks the private key.

    Returns
    -------
    private, public : Path
    """
    ed25519, serialization = _library()
    private, public = Path(path), Path(f"{path}.pub")
    for file in (private, public):
        if file.exists():
            raise DataFileError(f"{file} exists already; a key is never written over.")
    key = ed25519.Ed25519PrivateKey.generate()
    lock = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)
    with os.fdopen(os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(secret)
    write_atomically(
        public,
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
    )
    return private, public


def sign_file(path: str | Path, key: str | Path, password: bytes | None = None) -> str:
    """Sign a model file in place; a signature that it had is replaced.

    Parameters
    ----------
    path : str or Path
        The model file.
    key : str or Path
        File of an Ed25519 private key, PEM or that of OpenSSH.
    password : bytes, optional
        If the key is locked.

    Returns
    -------
    str
        Fingerprint of the key.
    """
    secret = _private_key(Path(key), password)
    target = Path(path)
    members = open_archive(target)
    members.pop(SIGNATURE, None)
    mark = fingerprint(secret.public_key())
    made = base64.b64encode(secret.sign(_message(members))).decode()
    text = json.dumps({"format": FORMAT, "key": mark, "signature": made})
    with open_atomically(target) as file:
        file.write(seal(members | {SIGNATURE: text.encode()}))
    return mark


def check_signature(members: dict[str, bytes], keys: Any, path: Any) -> str:
    """Return the fingerprint of the trusted key that signed a file's members; raise if none did."""
    trusted = {fingerprint(key): key for key in read_keys(keys)}
    if SIGNATURE not in members:
        raise ModelFileError(
            f"{path} is not signed. Only files signed with a trusted key are accepted."
        )
    mark, signature = _read_signature(members[SIGNATURE], path)
    if mark not in trusted:
        raise ModelFileError(
            f"{path} is signed with the key {mark[:SHOWN]}, which is not one of the trusted keys: "
            f"{', '.join(other[:SHOWN] for other in sorted(trusted))}."
        )
    from cryptography.exceptions import InvalidSignature

    try:
        trusted[mark].verify(
            signature, _message({k: v for k, v in members.items() if k != SIGNATURE})
        )
    except InvalidSignature:
        raise ModelFileError(
            f"{path} was altered after it was signed: its signature does not fit."
        ) from None
    return mark


def signed_with(path: str | Path) -> str:
    """Return the fingerprint of the key that a file says it is signed with, "" if none; not checked."""
    members = open_archive(Path(path))
    return _read_signature(members[SIGNATURE], path)[0] if SIGNATURE in members else ""


def read_keys(keys: Any) -> list[Ed25519PublicKey]:
    """Return public keys: of files, of their content, or as they are.

    A file may hold several, PEM or the lines of OpenSSH.
    """
    ed25519, _ = _library()
    several = list(keys) if isinstance(keys, list | tuple | set | frozenset) else [keys]
    found: list[Ed25519PublicKey] = []
    for entry in several:
        if isinstance(entry, ed25519.Ed25519PublicKey):
            found.append(entry)
        elif isinstance(entry, bytes):
            found += _public_keys(entry, "trusted_keys")
        elif isinstance(entry, str | Path):
            found += _public_keys(_content(Path(entry)), str(entry))
        else:
            raise parameter_error("trusted_keys", "load", "name files of public keys", entry)
    if not found:
        raise parameter_error("trusted_keys", "load", "hold at least one public key", keys)
    return found


def fingerprint(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a public key."""
    _, serialization = _library()
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()


def _message(members: dict[str, bytes]) -> bytes:
    """Return what is signed: the format, and the name and hash of every member."""
    lines = [f"{FORMAT}\n", *(f"{sha256(members[name])} {name}\n" for name in sorted(members))]
    return "".join(lines).encode()


def _read_signature(content: bytes, path: Any) -> tuple[str, bytes]:
    try:
        stored = json.loads(content)
        if stored["format"] != FORMAT:
            raise ValueError(f"the format {stored['format']!r}")
        mark, signature = stored["key"], base64.b64decode(stored["signature"], validate=True)
        if not isinstance(mark, str) or len(mark) != 64 or set(mark) - set("0123456789abcdef"):
            raise ValueError("the key's fingerprint")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"The signature of {path} cannot be read: {error}.") from None
    return mark, signature


def _private_key(path: Path, password: bytes | None) -> Ed25519PrivateKey:
    ed25519, serialization = _library()
    content = _content(path)
    ssh = b"OPENSSH PRIVATE KEY" in content
    read = serialization.load_ssh_private_key if ssh else serialization.load_pem_private_key
    try:
        key: Any = read(content, password or None)
    except TypeError:
        reason = "is locked: give its password" if not password else "is not locked"
        raise InvalidDataError(f"The key {path} {reason}.") from None
    except Exception:  # what a reader says of a key may tell of it
        raise InvalidDataError(
            f"{path} is not a private key that can be read, or the password is wrong."
        ) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InvalidDataError(f"{path} is not an Ed25519 key.")
    return cast("Ed25519PrivateKey", key)


def _public_keys(content: bytes, name: str) -> list[Ed25519PublicKey]:
    ed25519, serialization = _library()
    if b"PRIVATE KEY" in content:
        raise InvalidDataError(f"{name} is a private key. Trust its public key, and keep this one.")
    if PEM_END in content:
        texts = [part + PEM_END + b"\n" for part in content.split(PEM_END)[:-1]]
        read = serialization.load_pem_public_key
    else:
        lines = (line.strip() for line in content.splitlines())
        texts = [line for line in lines if line and not line.startswith(b"#")]
        read = serialization.load_ssh_public_key
    found = []
    for text in texts:
        try:
            key = read(text)
        except Exception:
            raise InvalidDataError(f"{name} holds something that is not a public key.") from None
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise InvalidDataError(f"{name} holds a key that is not Ed25519.")
        found.append(key)
    if not found:
        raise InvalidDataError(f"{name} holds no public key.")
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataFileError(f"There is no key file {path}.") from None
    except OSError as error:
        raise DataFileError(f"The key file {path} cannot be read: {error.strerror}.") from None


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtraError(
            "Signatures need cryptography: pip install 'reliablenet[sign]'"
        ) from None
    return ed25519, serialization
