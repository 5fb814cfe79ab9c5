"""Records as text: strict JSON with a hash of its values, and the checks that a text must pass."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from reliablenet.errors import InvalidDataError

FOLLOWING = (
    *("verdict", "reason", "notes", "promise_text"),
    *("upper_bound", "error_accepted_interval", "sha256"),
)


def seal(values: dict[str, Any]) -> str:
    """Return plain values as JSON, with their hash."""
    return json.dumps(values | {"sha256": digest(values)}, indent=2, allow_nan=False)


def read_values(text: str | bytes, formats: tuple[str, ...], what: str) -> dict[str, Any]:
    """Return the values of the text of `what`, which must be in one of these formats, the newest first."""
    try:
        values = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidDataError(f"This is not the JSON of a {what}: {error}.") from error
    if not isinstance(values, dict) or values.get("format") not in formats:
        raise InvalidDataError(f"This is not a {what} of the format {formats[0]!r}.")
    return values


def unseal(values: dict[str, Any], names: Iterable[str], what: str) -> dict[str, Any]:
    """Return the entries of these names; refuse values that lack one or do not match their hash."""
    names = tuple(names)
    missing = [name for name in names if name not in values]
    if missing:
        raise InvalidDataError(f"The {what} lacks {missing}.")
    sealed = {name: value for name, value in values.items() if name != "sha256"}
    if values.get("sha256") != digest(sealed):
        raise InvalidDataError(f"The {what} was altered: its values do not match its hash.")
    return {name: values[name] for name in names}


def check_derived(values: dict[str, Any], certificate: Any, names: Iterable[str]) -> None:
    """Refuse a text whose statements about a certificate do not follow from its counts."""
    for name in names:
        told, follows = values.get(name), getattr(certificate, name)
        if told != follows:
            raise InvalidDataError(
                f"The certificate's {name!r} ({told!r}) does not follow from its counts "
                f"({follows!r}): the text was altered."
            )


def lasting(values: Any) -> Any:
    """Return the values of a certificate that stay the same from version to version.

    Another version may word what follows from them differently, and another build of the special
    functions may differ in the last bits of a bound.
    """
    if isinstance(values, dict):
        return {key: lasting(one) for key, one in values.items() if key not in FOLLOWING}
    return [lasting(one) for one in values] if isinstance(values, list) else values


def digest(values: dict[str, Any]) -> str:
    """Return the SHA-256 of plain values, whatever their order."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
