"""The chain of certificates of a model: which came before, why it was renewed, and when.

The certificate in force is the last link; each link names the hash of the one before it, so that none can be
left out, changed or put in between without all later ones failing to match.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from reliablenet._checks import parameter_error
from reliablenet.certificate.rule_certify import read_certificate
from reliablenet.certificate.sealing import digest
from reliablenet.errors import ModelFileError, ReliableNetError

FIRST = "first certificate"


@dataclass(frozen=True)
class Link:
    """A certificate in the chain of a model.

    Attributes
    ----------
    certificate : str
        SHA-256 of its JSON.
    predecessor : str
        Hash of the link before; "" for the first.
    reason : str
        Why it was made.
    date : str
        When, in ISO form; "" for the first one, whose date no file tells.
    document : str
        Its JSON; "" for the one in force, which stands by itself.
    """

    certificate: str
    predecessor: str
    reason: str
    date: str
    document: str = ""

    @property
    def sha256(self) -> str:
        """The hash that the next link names."""
        values = asdict(self)
        values.pop("document")
        return digest(values)


def add_link(chain: Sequence[Link], before: str, after: str, reason: str) -> tuple[Link, ...]:
    """Return the chain with a new certificate at its end.

    Parameters
    ----------
    chain : sequence of Link
        So far; empty if the certificate was never renewed.
    before, after : str
        JSON of the certificate that was in force, and of the new one.
    reason : str

    Returns
    -------
    tuple of Link

    Examples
    --------
    >>> from reliablenet.modelfile.chain import add_link
    >>> chain = add_link([], "old", "new", "the source changed")
    >>> [link.reason for link in chain], chain[1].predecessor == chain[0].sha256
    (['first certificate', 'the source changed'], True)
    """
    if not isinstance(reason, str) or not reason.strip():
        raise parameter_error("reason", "add_link", "say why", reason)
    known = [*end_with(chain, before)] or [Link(_sha256(before), "", FIRST, "")]
    last = known[-1] = replace(known[-1], document=before)
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    return (*known, Link(_sha256(after), last.sha256, reason.strip(), moment))


def end_with(chain: Sequence[Link], text: str) -> tuple[Link, ...]:
    """Return the chain with this JSON of the certificate in force, which a later version words differently."""
    return (*chain[:-1], *(replace(link, certificate=_sha256(text)) for link in chain[-1:]))


def to_plain(chain: Sequence[Link]) -> list[dict[str, str]]:
    """Return the chain as JSON can hold it."""
    return [asdict(link) for link in chain]


def read_chain(stored: Any, in_force: str, path: Any) -> tuple[Link, ...]:
    """Return the chain that a manifest holds; refuse one that does not fit together.

    Parameters
    ----------
    stored : object
        What the manifest has; None in files whose certificate was never renewed.
    in_force : str
        JSON of the certificate of the file.
    path : object
        The file, for messages.
    """
    if stored is None:
        return ()
    names = {entry.name for entry in fields(Link)}
    texts = isinstance(stored, list) and all(
        isinstance(link, dict)
        and set(link) == names
        and all(isinstance(text, str) for text in link.values())
        for link in stored
    )
    if not texts or len(stored) < 2:
        raise ModelFileError(f"{path} has a chain of certificates that cannot be read.")
    chain = tuple(Link(**link) for link in stored)
    for place, link in enumerate(chain):
        before = chain[place - 1] if place else None
        last = place == len(chain) - 1
        fits = link.predecessor == ("" if before is None else before.sha256)
        fits &= link.certificate == _sha256(in_force if last else link.document)
        fits &= bool(link.document) != last
        fits &= before is None or _moment(link.date, path) >= _moment(before.date, path)
        if not fits:
            raise ModelFileError(
                f"{path} was altered: certificate {place + 1} of {len(chain)} does not fit into the chain."
            )
        if not last:
            try:
                read_certificate(link.document)
            except ReliableNetError as error:
                raise ModelFileError(
                    f"{path} was altered: certificate {place + 1} of its chain: {error}"
                ) from error
    return chain


def _moment(date: str, path: Any) -> datetime:
    if not date:
        return datetime.min.replace(tzinfo=UTC)
    try:
        found = datetime.fromisoformat(date)
    except ValueError:
        found = datetime.min
    if found.tzinfo is None:
        raise ModelFileError(f"{path} has a chain of certificates with the date {date!r}.")
    return found


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
