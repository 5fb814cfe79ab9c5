"""Model files: a sealed archive of JSON, safetensors and skops. No pickle is written or read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sklearn.utils.validation import check_is_fitted
from torch import nn

from reliablenet._checks import parameter_error
from reliablenet._files import write_atomically
from reliablenet._version import __version__
from reliablenet.certificate import Certificate
from reliablenet.certificate.rule_certify import read_certificate
from reliablenet.errors import InvalidParameterError, ModelFileError, ReliableNetError
from reliablenet.modelfile.allowed_types import estimator_from_bytes, estimator_to_bytes
from reliablenet.modelfile.archive import open_sealed, seal
from reliablenet.modelfile.chain import end_with, read_chain, to_plain as chain_to_plain
from reliablenet.modelfile.manifest import (
    FORMAT,
    MANIFEST,
    from_plain,
    read_manifest,
    to_plain,
    versions,
    with_manifest,
)
from reliablenet.modelfile.network import TEXTS, NetworkParts, network_setting
from reliablenet.modelfile.registry import (
    StoredMethod,
    StoredNetwork,
    extends_known,
    find_class,
    kind_of,
    known_names,
)
from reliablenet.modelfile.signature import SIGNATURE, check_signature
from reliablenet.modelfile.team_members import OWN_MEMBERS, TEAM
from reliablenet.tables.source import Source

if TYPE_CHECKING:
    from reliablenet.modelfile.signature import Keys

CERTIFICATE, EVIDENCE, ESTIMATOR = "certificate.json", "evidence.safetensors", "estimator.skops"
BESIDE = "beside.skops"  # what a rule learned beside the estimator that it wraps
SEEN = "rows.safetensors"  # where rows can be compared, and never in files of 0.1
SOURCE = "source.json"  # where rows have columns to describe, and never in files of 0.1
COMMON_MEMBERS = (MANIFEST, CERTIFICATE, EVIDENCE)
NETWORK_MEMBERS = (*COMMON_MEMBERS, "weights.safetensors", "preprocessing.json", "history.json")
ESTIMATOR_MEMBERS = (*COMMON_MEMBERS, ESTIMATOR)
MEMBERS = [
    (*members, *seen, *source)
    for members in (
        *(
            (*NETWORK_MEMBERS, *team, *texts)
            for team in ((), (TEAM,), (TEAM, OWN_MEMBERS))
            for texts in ((), (TEXTS,))
        ),
        ESTIMATOR_MEMBERS,
        (*ESTIMATOR_MEMBERS, BESIDE),
    )
    for seen in ((SEEN,), ())
    for source in ((SOURCE,), ())
]


def save_layers(layers: Iterable[Any], path: str | Path) -> Path:
    """Write a fitted model; the file appears under its name only when it is whole.

    Parameters
    ----------
    layers : iterable
        The model and what it wraps, from the outside in: rules, and at the core a method with a network
        or a scikit-learn estimator made of types that `load` accepts.
    path : str or Path
        By convention with the suffix ``.rnet``.

    Returns
    -------
    Path
    """
    methods, core = _split(layers)
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        raise InvalidParameterError(
            "`path` of save must name a file in an existing folder, such as 'model.rnet'; "
            f"got {str(target)!r}."
        )
    model = methods[0]
    members = {
        CERTIFICATE: model.certificate_.to_json().encode(),
        EVIDENCE: model.evidence_.to_bytes(),
    }
    if model.seen_ is not None:
        members[SEEN] = model.seen_.to_bytes()
    if model.source_ is not None:
        members[SOURCE] = model.source_.to_bytes()
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "versions": versions(),
        "fingerprint": model.fingerprint_,
    }
    if core is None:
        parts = cast(StoredNetwork, methods[-1])._network_parts()
        manifest["network"] = parts.shape()
        members |= parts.to_members()
    else:
        members[ESTIMATOR] = estimator_to_bytes(core)
        beside = methods[-1]._beside()
        if beside is not None:
            members[BESIDE] = estimator_to_bytes(beside)
    manifest["methods"] = [_describe(method) for method in methods]
    if chain := getattr(model, "chain_", ()):
        manifest["chain"] = chain_to_plain(end_with(chain, members[CERTIFICATE].decode()))
    write_atomically(target, seal(with_manifest(manifest, members)))
    return target


def load(
    path: str | Path,
    *,
    network: Callable[[Any, int], nn.Module] | None = None,
    embedding: Callable[[list[str]], Any] | None = None,
    trusted_keys: Keys | None = None,
) -> Any:
    """Read a model that its `save` wrote, ready to decide.

    What a method wraps comes back without a rule of its own: alone, it would defer every row. Known are
    the methods of `reliablenet.methods`, once that is imported, as `reliablenet.load` does.

    Parameters
    ----------
    path : str or Path
    network : callable, optional
        The factory that built the network, needed if it was one of your own: a file cannot hold code.
    embedding : callable, optional
        The one that the model reads text with, needed if it was one of your own. Another one is refused:
        fixed sentences must get the same numbers.
    trusted_keys : path, or list of paths, optional
        Files of Ed25519 public keys. A file that none of them signed is refused.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is damaged, altered, foreign, holds a type that is not on our list, or is not signed
        with one of the trusted keys.
    """
    if not isinstance(path, str | Path):
        raise parameter_error("path", "load", "name a file", path)
    members = open_sealed(Path(path), MEMBERS, optional=(SIGNATURE,))
    if trusted_keys is not None:
        check_signature(members, trusted_keys, path)
    members.pop(SIGNATURE, None)
    try:
        return _restore(members, network, embedding, path)
    except ReliableNetError:
        raise
    except Exception as error:  # whatever a foreign file makes its readers raise, it is refused
        raise ModelFileError(
            f"{path} cannot be read as a model of version {__version__}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _split(layers: Iterable[Any]) -> tuple[list[StoredMethod], Any]:
    """Return the methods of a fitted model, and the scikit-learn estimator inside or None."""
    methods: list[StoredMethod] = []
    for layer in layers:
        kind = kind_of(layer)
        if not methods:
            check_is_fitted(layer)
        if kind is None and (not methods or extends_known(layer)):
            raise InvalidParameterError(
                f"save can write {known_names()}; got {type(layer).__name__}, which has no file format."
            )
        if kind is None:
            return methods, layer
        methods.append(layer)
        if kind == "network":
            break
    return methods, None


def _describe(method: StoredMethod) -> dict[str, Any]:
    """Return what a method was set to and learned, but for its classifier and its rule."""
    settings = method.get_params(deep=False)
    settings.pop("estimator", None)
    return {
        "class": type(method).__name__,
        "settings": {name: to_plain(value) for name, value in settings.items()},
        **method._learned(),
    }


def _restore(
    members: dict[str, bytes],
    factory: Callable[[Any, int], nn.Module] | None,
    embedding: Callable[[list[str]], Any] | None,
    path: Any,
) -> StoredMethod:
    """Put a model together from the inside out."""
    manifest = read_manifest(members, path)
    model: Any = None
    core: Any = object()
    if ESTIMATOR in members:
        if factory is not None:
            raise InvalidParameterError(
                "`network` of load is only for models with a network of your own; this one has none. Leave it out."
            )
        if embedding is not None:
            raise InvalidParameterError(
                "`embedding` of load is only for models that read text with one of your own; this one does not. Leave it out."
            )
        model = core = estimator_from_bytes(members[ESTIMATOR], path)
    for described in reversed(manifest["methods"]):
        settings = from_plain(described["settings"])
        if model is None:
            settings["network"] = network_setting(described["settings"]["network"], factory)
            model = find_class(described["class"], "network", path)(**settings)
            model._relearn(described)
            parts = NetworkParts.from_members(manifest["network"], members, path, embedding)
            model._restore_network(parts)
        else:
            innermost = model is core
            model = find_class(described["class"], "rule", path)(model, **settings)
            model._relearn(described)
            if innermost and BESIDE in members:
                model._restore_beside(estimator_from_bytes(members[BESIDE], path))
    certificate = read_certificate(members[CERTIFICATE].decode())
    if (
        isinstance(certificate, Certificate) and manifest.get("grouped") is True
    ):  # files of 0.1 said so beside the certificate
        certificate = replace(certificate, unit="group")
    model._restore_proof(certificate, members[EVIDENCE], members.get(SEEN))
    model.source_ = Source.from_bytes(members[SOURCE]) if SOURCE in members else None
    model.fingerprint_ = str(manifest["fingerprint"])
    if chain := read_chain(manifest.get("chain"), members[CERTIFICATE].decode(), path):
        model.chain_ = chain
    return cast(StoredMethod, model)
