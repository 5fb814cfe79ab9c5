"""Which methods a model file can hold, and what each gives to the file.

This room knows no method. Each enters itself when its module is imported, with `stored_as`; importing
`reliablenet.methods` imports all of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar

from numpy.typing import NDArray

from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.modelfile.network import NetworkParts
from reliablenet.tables.source import Source

Kind = Literal["network", "rule"]
Class = TypeVar("Class", bound=type[Any])

_classes: dict[str, type[Any]] = {}
_kinds: dict[str, Kind] = {}


class Bytes(Protocol):
    """A record that can be written."""

    def to_bytes(self) -> bytes:
        """Return the record as bytes."""


class StoredMethod(Protocol):
    """What a fitted method gives so that a file can hold it.

    Attributes
    ----------
    certificate_ : Certificate or RuleCertificate
    evidence_ : record
        Row by row, what the certificate counts.
    seen_ : record or None
        Rows that the method has seen; None where they cannot be compared.
    source_ : Source or None
        What is known of the rows that it was made from, in counts.
    fingerprint_ : str
    """

    classes_: NDArray[Any]
    certificate_: Certificate | RuleCertificate
    fingerprint_: str
    source_: Source | None

    @property
    def evidence_(self) -> Bytes: ...  # noqa: D102

    @property
    def seen_(self) -> Bytes | None: ...  # noqa: D102

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name."""

    def _learned(self) -> dict[str, Any]:
        """Return what was learned, as JSON can hold it, but for certificate and network."""

    def _relearn(self, learned: dict[str, Any]) -> None:
        """Set what `_learned` returned; until `_restore_proof` the method defers every row."""

    def _restore_proof(
        self, certificate: Certificate | RuleCertificate, evidence: bytes, seen: bytes | None
    ) -> None:
        """Act by a certificate again, if the evidence bears it out."""

    def _beside(self) -> Any:
        """Return what was learned beside the scikit-learn estimator inside, or None."""

    def _restore_beside(self, learned: Any) -> None:
        """Set what `_beside` returned, or raise if it is nothing of the kind."""


class StoredNetwork(StoredMethod, Protocol):
    """What a method with a network of its own gives besides."""

    def _network_parts(self) -> NetworkParts:
        """Return the network and what goes with it."""

    def _restore_network(self, parts: NetworkParts) -> None:
        """Build the network again."""


def stored_as(kind: Kind) -> Callable[[Class], Class]:
    """Let model files hold the objects of a class, under the name of the class.

    Parameters
    ----------
    kind : {"network", "rule"}
        "network": a `StoredNetwork`, called with its settings. "rule": a `StoredMethod` around another
        classifier, called with that classifier and its settings.

    Returns
    -------
    decorator
        Of the class alone: a subclass may have learned more than its base knows how to store.
    """

    def enter(added: Class) -> Class:
        name, known = added.__name__, _classes.get(added.__name__)
        if known is not None and known.__module__ != added.__module__:
            raise InvalidParameterError(
                f"Model files know a class by its name, and {name!r} is that of "
                f"{known.__module__}.{name} already. Give the new one another name."
            )
        _classes[name], _kinds[name] = added, kind
        return added

    return enter


def known_names() -> list[str]:
    """Return the names of all classes that files can hold."""
    return sorted(_classes)


def kind_of(model: object) -> Kind | None:
    """Return how an object is stored; None if its very class is not registered."""
    name = type(model).__name__
    return _kinds[name] if _classes.get(name) is type(model) else None


def extends_known(model: object) -> bool:
    """Tell whether a class that is not registered is derived from one that is."""
    return kind_of(model) is None and isinstance(model, tuple(_classes.values()))


def find_class(name: Any, kind: Kind, path: Any) -> Any:
    """Return the class that a file names."""
    if not isinstance(name, str) or _kinds.get(name) != kind:
        raise ModelFileError(
            f"{path} holds a model of class {name!r}, which is not registered as a {kind}. Import the module that defines it, or load it with the version that wrote it."
        )
    return _classes[name]
