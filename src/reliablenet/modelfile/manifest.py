"""The manifest of a model file: what it holds, made with what, and the hash of each member."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray

from reliablenet._version import __version__
from reliablenet.certificate import Promise
from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.modelfile.archive import sha256
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.schedule import schedule_from_dict

FORMAT = "reliablenet-model/1"
MANIFEST = "manifest.json"
LABEL_KINDS = "biufUO"  # numpy's letters for booleans, numbers and texts
RENAMED_SETTINGS = {"score": "scored_by"}  # of version 0.1


def with_manifest(manifest: dict[str, Any], members: dict[str, bytes]) -> dict[str, bytes]:
    """Return all members of a file, the manifest with their hashes first."""
    hashes = {name: sha256(member) for name, member in members.items()}
    text = json.dumps(manifest | {"sha256": hashes}, indent=2, allow_nan=False)
    return {MANIFEST: text.encode()} | members


def read_manifest(members: dict[str, bytes], path: Any) -> dict[str, Any]:
    """Return the manifest, or raise if it is of another format or a member is not the one it names."""
    manifest: dict[str, Any] = json.loads(members[MANIFEST])
    if manifest["format"] != FORMAT:
        raise ModelFileError(f"{path} has the format {manifest['format']!r}; we read {FORMAT!r}.")
    for name in members.keys() - {MANIFEST}:
        if sha256(members[name]) != manifest["sha256"][name]:
            raise ModelFileError(f"{path} was altered: {name} does not match its hash.")
    return manifest


def versions() -> dict[str, str]:
    """Return what a model is made with."""
    return {
        "reliablenet": __version__,
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }


def to_plain(value: Any) -> Any:
    """Return a setting as JSON can hold it; what cannot be held is named, not stored."""
    if isinstance(value, BaseSchedule):
        return {"schedule": vars(value)}
    if isinstance(value, Promise):
        return {"promise": value.to_dict()}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: to_plain(item) for name, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    return {"custom": getattr(value, "__qualname__", type(value).__qualname__)}


def from_plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as a method takes them; None for those that could not be held."""
    result = {RENAMED_SETTINGS.get(name, name): value for name, value in settings.items()}
    for name, value in result.copy().items():
        if isinstance(value, dict) and "schedule" in value:
            result[name] = schedule_from_dict(value["schedule"])
        elif isinstance(value, dict) and "promise" in value:
            result[name] = Promise.from_dict(value["promise"])
        elif isinstance(value, dict):
            result[name] = None  # a RandomState: it decided the fit and decides nothing any more
    return result


def labels_to_plain(labels: NDArray[Any]) -> dict[str, Any]:
    """Return labels and their type as JSON can hold them."""
    values, kind = labels.tolist(), labels.dtype.kind
    texts = all(isinstance(value, str) for value in values)
    if kind not in LABEL_KINDS or (kind == "O" and not texts):
        raise InvalidParameterError(
            "save can store labels that are all texts, numbers or booleans; got "
            f"{sorted({type(value).__name__ for value in values})}. Convert them to text first."
        )
    return {"dtype": "object" if kind == "O" else labels.dtype.str, "values": values}


def labels_from_plain(stored: dict[str, Any]) -> NDArray[Any]:
    """Return the labels that `labels_to_plain` described."""
    dtype = np.dtype(stored["dtype"])
    if dtype.kind not in LABEL_KINDS:
        raise ModelFileError(f"Labels of the type {stored['dtype']!r} are refused.")
    return np.array(stored["values"], dtype=dtype)
