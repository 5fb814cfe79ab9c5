"""Model files: a sealed archive of JSON, safetensors and skops. No pickle is written or read."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors, save as save_tensors
from sklearn.utils.validation import check_is_fitted
from torch import nn

from reliablenet._checks import parameter_error
from reliablenet._files import write_atomically
from reliablenet._version import __version__
from reliablenet.certificate import Certificate
from reliablenet.errors import InvalidParameterError, ModelFileError, ReliableNetError
from reliablenet.methods.abstaining import AbstainingClassifier
from reliablenet.methods.architectures import NetworkFactory
from reliablenet.methods.archive import open_sealed, seal, sha256
from reliablenet.methods.base import SelectiveClassifier
from reliablenet.methods.deep_gamblers import DeepGamblersClassifier
from reliablenet.methods.erm import ERMClassifier
from reliablenet.methods.estimators import estimator_from_bytes, estimator_to_bytes
from reliablenet.methods.evidence import Evidence
from reliablenet.methods.ledger import count_uses
from reliablenet.methods.neural import NeuralClassifier
from reliablenet.methods.posthoc import (
    CertifiedThreshold,
    ConfidenceThreshold,
    ConformalRiskControl,
    TemperatureScaling,
)
from reliablenet.methods.reliable import ReliableClassifier
from reliablenet.methods.seen import SeenRows
from reliablenet.methods.selectivenet import SelectiveNetClassifier
from reliablenet.methods.wrapping import WrappingClassifier
from reliablenet.tables.piecewise import PiecewiseEncoder
from reliablenet.tables.tabular import TabularEncoder
from reliablenet.training.forward import chunk_rows
from reliablenet.training.history import History
from reliablenet.training.schedule import Schedule

FORMAT = "reliablenet-model/1"
COMMON_MEMBERS = ("manifest.json", "certificate.json", "evidence.safetensors")
NETWORK_MEMBERS = (*COMMON_MEMBERS, "weights.safetensors", "preprocessing.json", "history.json")
ESTIMATOR_MEMBERS = (*COMMON_MEMBERS, "estimator.skops")
SEEN = "rows.safetensors"  # where rows can be compared, and never in files of 0.1
MEMBERS = [
    (*members, *more) for members in (NETWORK_MEMBERS, ESTIMATOR_MEMBERS) for more in ((SEEN,), ())
]
NETWORK_CLASSES: dict[str, type[NeuralClassifier]] = {
    "DeepGamblersClassifier": DeepGamblersClassifier,
    "ERMClassifier": ERMClassifier,
    "ReliableClassifier": ReliableClassifier,
    "SelectiveNetClassifier": SelectiveNetClassifier,
}
WRAPPER_CLASSES: dict[str, type[WrappingClassifier]] = {
    "CertifiedThreshold": CertifiedThreshold,
    "ConfidenceThreshold": ConfidenceThreshold,
    "ConformalRiskControl": ConformalRiskControl,
    "TemperatureScaling": TemperatureScaling,
}
ENCODERS = {"PiecewiseEncoder": PiecewiseEncoder, "TabularEncoder": TabularEncoder}


def save(model: Any, path: str | Path) -> Path:
    """Write a fitted model; the file appears under its name only when it is whole.

    Parameters
    ----------
    model : estimator
        A fitted method of this library. What a method wraps may be another one, or a scikit-learn
        estimator made of types that `load` accepts.
    path : str or Path
        By convention with the suffix ``.rnet``.

    Returns
    -------
    Path
    """
    check_is_fitted(model)
    if type(model).__name__ not in NETWORK_CLASSES | WRAPPER_CLASSES:
        raise InvalidParameterError(
            f"save knows {sorted(NETWORK_CLASSES | WRAPPER_CLASSES)}; got {type(model).__name__}, "
            "which has no file format."
        )
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        raise InvalidParameterError(
            "`path` of save must name a file in an existing folder, such as 'model.rnet'; "
            f"got {str(target)!r}."
        )
    methods, core = [], model
    while isinstance(core, WrappingClassifier):
        methods.append(core)
        core = core.estimator_
    parts = {
        "certificate.json": model.certificate_.to_json().encode(),
        "evidence.safetensors": model.evidence_.to_bytes(),
    }
    if model.seen_ is not None:
        parts[SEEN] = model.seen_.to_bytes()
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "versions": versions(),
        "fingerprint": model.fingerprint_,
    }
    if isinstance(core, NeuralClassifier):
        methods.append(core)
        shape = list(core.input_shape_)
        manifest["network"] = {"input_shape": shape, "chunk": chunk_rows(1 + len(shape))}
        parts["weights.safetensors"] = _weights(core.network_)
        parts["preprocessing.json"] = _preprocessing(core.encoder_)
        parts["history.json"] = core.history_.to_json().encode()
    else:
        parts["estimator.skops"] = estimator_to_bytes(core)
    manifest["methods"] = [_describe(method) for method in methods]
    manifest["sha256"] = {name: sha256(part) for name, part in parts.items()}
    parts = {"manifest.json": json.dumps(manifest, indent=2, allow_nan=False).encode()} | parts
    write_atomically(target, seal(parts))
    return target


def load(path: str | Path, *, network: NetworkFactory | None = None) -> Any:
    """Read a model that `save` wrote, ready to decide.

    What a method wraps comes back without a rule of its own: alone, it would defer every row.

    Parameters
    ----------
    path : str or Path
    network : callable, optional
        The factory that built the network, needed if it was one of your own: a file cannot hold code.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If the file is damaged, altered, foreign, or holds a type that is not on our list.
    """
    if not isinstance(path, str | Path):
        raise parameter_error("path", "load", "name a file", path)
    parts = open_sealed(Path(path), MEMBERS)
    try:
        manifest = json.loads(parts["manifest.json"])
        if manifest["format"] != FORMAT:
            raise ModelFileError(
                f"{path} has the format {manifest['format']!r}; we read {FORMAT!r}."
            )
        for name in parts.keys() - {"manifest.json"}:
            if sha256(parts[name]) != manifest["sha256"][name]:
                raise ModelFileError(f"{path} was altered: {name} does not match its hash.")
        model: Any = None
        if "estimator.skops" in parts:
            if network is not None:
                raise InvalidParameterError("`network` of load: this model has no network.")
            model = estimator_from_bytes(parts["estimator.skops"], path)
        for described in reversed(manifest["methods"]):
            if model is None:
                model = _network_method(described, manifest["network"], parts, network, path)
            else:
                model = _wrapper(described, model, path)
        certificate = Certificate.from_json(parts["certificate.json"].decode())
        if manifest.get("grouped") is True:  # files of 0.1 said so beside the certificate
            certificate = replace(certificate, unit="group")
        model._adopt(certificate)
        model.evidence_ = Evidence.from_bytes(parts["evidence.safetensors"])
        model.evidence_.check(model.certificate_, len(model.classes_))
        model.fingerprint_ = str(manifest["fingerprint"])
        model.seen_ = SeenRows.from_bytes(parts[SEEN]) if SEEN in parts else None
        if model.seen_ is not None and certificate.provenance is not None:
            # the file's certificate counts among those of this process
            count_uses(model.seen_.certified, certificate.provenance.model)
    except ReliableNetError:
        raise
    except Exception as error:  # whatever a foreign file makes its readers raise, it is refused
        raise ModelFileError(
            f"{path} cannot be read as a model of version {__version__}: "
            f"{type(error).__name__}: {error}"
        ) from error
    return model


def _describe(method: SelectiveClassifier) -> dict[str, Any]:
    """Return what a method was set to and learned, but for its classifier and its rule."""
    names = getattr(method, "feature_names_in_", None)
    settings = method.get_params(deep=False)
    settings.pop("estimator", None)
    return {
        "class": type(method).__name__,
        "settings": {name: _plain(value) for name, value in settings.items()},
        "classes": _array_to(method.classes_),
        "n_features": getattr(method, "n_features_in_", None),
        "feature_names": None if names is None else [str(name) for name in names],
        "selection_threshold": str(method.selection_threshold_),  # may be inf, which JSON lacks
        "temperature": getattr(method, "temperature_", None),
    }


def _learned(model: SelectiveClassifier, described: dict[str, Any]) -> None:
    """Set what `_describe` wrote; without the certificate of `load` the model defers every row."""
    model.classes_ = _array_from(described["classes"])
    if described["n_features"] is not None:
        model.n_features_in_ = described["n_features"]
    if described["feature_names"] is not None:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    model.selection_threshold_ = float(described["selection_threshold"])
    model.threshold_ = math.inf


def _wrapper(described: dict[str, Any], estimator: Any, path: Any) -> WrappingClassifier:
    settings = _settings_from(described["settings"])
    wrapper: WrappingClassifier = _class_of(described, WRAPPER_CLASSES, path)(estimator, **settings)
    _learned(wrapper, described)
    wrapper.estimator_ = estimator
    if isinstance(wrapper, TemperatureScaling):
        wrapper.temperature_ = float(described["temperature"])
    return wrapper


def _network_method(
    described: dict[str, Any],
    shape: dict[str, Any],
    parts: dict[str, bytes],
    factory: NetworkFactory | None,
    path: Any,
) -> NeuralClassifier:
    settings = _settings_from(described["settings"])
    settings["network"] = _factory_from(described["settings"]["network"], factory)
    model: NeuralClassifier = _class_of(described, NETWORK_CLASSES, path)(**settings)
    _learned(model, described)
    model.history_ = History.from_json(parts["history.json"].decode())
    if isinstance(model, ReliableClassifier):
        model.training_threshold_ = model.history_.threshold
    if isinstance(model, AbstainingClassifier):
        model.score_ = settings["score"]
    learned = json.loads(parts["preprocessing.json"])
    if learned is None:
        model.encoder_ = None
    else:
        kind = learned.pop("encoder", "TabularEncoder")  # files of 0.1 knew one alone
        model.encoder_ = ENCODERS[kind].from_dict(learned)
    model.input_shape_ = tuple(shape["input_shape"])
    model.network_ = model._build_network(seed=0)
    model.network_.load_state_dict(load_tensors(parts["weights.safetensors"]))
    model.network_.to(model.device).eval()
    return model


def _class_of(described: dict[str, Any], known: dict[str, Any], path: Any) -> Any:
    if described["class"] not in known:
        raise ModelFileError(f"{path} holds a {described['class']!r}, which we do not know here.")
    return known[described["class"]]


def versions() -> dict[str, str]:
    """Return what a model was made with."""
    return {
        "reliablenet": __version__,
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }


def _plain(value: Any) -> Any:
    """Return a setting as JSON can hold it; what cannot be held is named, not stored."""
    if isinstance(value, Schedule):
        return {"schedule": vars(value)}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    return {"custom": getattr(value, "__qualname__", type(value).__qualname__)}


def _settings_from(settings: dict[str, Any]) -> dict[str, Any]:
    result = dict(settings)
    for name, value in settings.items():
        if isinstance(value, dict) and "schedule" in value:
            result[name] = Schedule(**value["schedule"])
        elif isinstance(value, dict):
            result[name] = None  # a RandomState: it decided the fit and decides nothing any more
    return result


def _factory_from(stored: Any, factory: NetworkFactory | None) -> Any:
    if not isinstance(stored, dict):
        if factory is not None:
            raise InvalidParameterError(
                f"`network` of load is only for models with a network of their own; this one has "
                f"{stored!r}."
            )
        return stored
    if factory is None:
        raise ModelFileError(
            f"This model has a network of your own, built by {stored['custom']!r}; a file cannot "
            "hold code. Pass the factory: load(path, network=...)."
        )
    return factory


def _array_to(array: NDArray[Any]) -> dict[str, Any]:
    values = array.tolist()
    if array.dtype.kind not in "biufUO" or (
        array.dtype.kind == "O" and not all(isinstance(value, str) for value in values)
    ):
        raise InvalidParameterError(
            "save can store labels that are all texts, numbers or booleans; got "
            f"{sorted({type(value).__name__ for value in values})}. Convert them to text first."
        )
    return {"dtype": "object" if array.dtype.kind == "O" else array.dtype.str, "values": values}


def _array_from(stored: dict[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(stored["dtype"])
    if dtype.kind not in "biufUO":
        raise ModelFileError(f"Labels of the type {stored['dtype']!r} are refused.")
    return np.array(stored["values"], dtype=dtype)


def _weights(network: nn.Module) -> bytes:
    plain = torch.contiguous_format
    state = {
        name: tensor.detach().cpu().clone(memory_format=plain)
        for name, tensor in network.state_dict().items()
    }
    return bytes(save_tensors(state))


def _preprocessing(encoder: TabularEncoder | None) -> bytes:
    learned = (
        None if encoder is None else _plain({"encoder": type(encoder).__name__} | encoder.to_dict())
    )
    return json.dumps(learned, allow_nan=False).encode()
