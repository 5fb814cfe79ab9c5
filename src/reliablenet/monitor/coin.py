"""The audit coin: which decisions a person is to check, by a keyed hash of the decision's id.

A decision is picked with a known probability, and independently of its row, its label and its confidence,
so that the picked ones are a fair sample of all. Nobody can choose, since the id is a count; whoever has
the key can check every pick afterwards.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from reliablenet._checks import is_real, parameter_error
from reliablenet.errors import DataFileError

KEY_BYTES = 32
BLOCK_BYTES = 64  # of SHA-256
PURPOSE = b"reliablenet audit key"  # so that the commitment is no other hash of the key
MAKE_ONE = 'python -c "import secrets; print(secrets.token_hex(32))" > audit.key'


@dataclass(frozen=True)
class AuditCoin:
    """A coin that picks decisions for audit.

    Parameters
    ----------
    key : bytes
        32 bytes from a good source of chance, such as `secrets.token_bytes`.
    share : float
        Probability that a decision is picked, from 0 to 1. It is exact to 256 bits.

    Examples
    --------
    >>> from reliablenet.monitor.coin import AuditCoin
    >>> coin = AuditCoin(bytes(32), share=0.25)
    >>> picked = [coin.picks(f"run-{count}") for count in range(10_000)]
    >>> sum(picked), picked == [coin.picks(f"run-{count}") for count in range(10_000)]
    (2480, True)
    """

    key: bytes = field(repr=False)
    share: float

    def __post_init__(self) -> None:
        if not isinstance(self.key, bytes) or len(self.key) != KEY_BYTES:
            raise parameter_error(
                "key", "AuditCoin", f"be {KEY_BYTES} bytes", f"{type(self.key).__name__}"
            )
        if not is_real(self.share) or not 0.0 <= self.share <= 1.0:
            hint = "Did you mean a share such as 0.1?" if is_real(self.share) else ""
            raise parameter_error("share", "AuditCoin", "lie in [0, 1]", self.share, hint)
        # A float is a fraction, and the digest one of 2**256 equally likely numbers.
        object.__setattr__(self, "_limit", int(Fraction(self.share) * 2**256))
        # HMAC-SHA256 with the keyed halves made once: `hmac` makes them again for every message.
        padded = self.key.ljust(BLOCK_BYTES, b"\0")
        for name, pad in (("_inner", 0x36), ("_outer", 0x5C)):
            half = hashlib.sha256(bytes(byte ^ pad for byte in padded))
            object.__setattr__(self, name, half)

    def picks(self, name: str) -> bool:
        """Tell whether the decision with this id is to be audited."""
        return self.picks_each([name])[0]

    def picks_each(self, names: Iterable[str]) -> list[bool]:
        """Tell of each of several decisions whether it is to be audited."""
        inner, outer, limit = self._inner.copy, self._outer.copy, self._limit  # type: ignore[attr-defined]
        found = []
        for name in names:
            message, digest = inner(), outer()
            message.update(name.encode())
            digest.update(message.digest())
            found.append(int.from_bytes(digest.digest()) < limit)
        return found

    @property
    def commitment(self) -> str:
        """A hash of the key, which a log keeps so that no other key can take its place."""
        return hashlib.sha256(PURPOSE + self.key).hexdigest()


def read_key(path: Path) -> bytes:
    """Return the key in a file of 64 hexadecimal digits."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise DataFileError(f"There is no audit key {path}. Make one: {MAKE_ONE}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataFileError(f"The audit key {path} cannot be read: {error}.") from None
    return parse_key(text, str(path))


def parse_key(text: str, place: str) -> bytes:
    """Return the key written as 64 hexadecimal digits."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise DataFileError(
            f"The audit key in {place} must be {2 * KEY_BYTES} hexadecimal digits; got "
            f"{len(text)} characters. Make one: {MAKE_ONE}"
        )
    return key


def make_key(path: Path) -> bytes:
    """Return the key in a file, which is made if it is not there, for its owner alone to read."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return read_key(path)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(KEY_BYTES) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return read_key(path)
