"""A model as a folder that MLflow reads: a Python function, its signature, an example and the certificate.

The folder is described by one file of YAML, which JSON is as well, so that neither MLflow nor a pickle is needed to
write it. What MLflow loads is the model file, by our own module.
"""

from __future__ import annotations

import json
import math
import platform
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reliablenet._version import __version__
from reliablenet.certificate import Certificate, RuleCertificate
from reliablenet.errors import InvalidParameterError

LOADER = "reliablenet.serve.pyfunc"
MODEL, CERTIFICATE, METRICS = "model.rnet", "certificate.json", "metrics.json"
EXAMPLE, REQUEST = "input_example.json", "serving_input_example.json"
TYPES = {"b": "boolean", "i": "long", "u": "long", "f": "double"}


def write_folder(model: Any, file: Path, folder: Path) -> None:
    """Write the folder; it appears under its name only when it is whole.

    Parameters
    ----------
    model : estimator
        Fitted.
    file : Path
        Its model file.
    folder : Path
        To be made.
    """
    if folder.exists() or not folder.parent.is_dir():
        raise InvalidParameterError(
            f"`folder` of an MLflow model must name a new folder in an existing one; got {folder}."
        )
    columns = input_columns(model)
    described = describe(model, columns)
    example = None if columns is None else example_row(model, columns)
    with tempfile.TemporaryDirectory(dir=folder.parent) as parent:
        made = Path(parent) / "model"
        made.mkdir()
        shutil.copyfile(file, made / MODEL)
        (made / CERTIFICATE).write_text(model.certificate_.to_json(), encoding="utf-8")
        _write_json(made / METRICS, metrics(model.certificate_))
        if example is not None:
            split = {"columns": list(example), "data": [list(example.values())]}
            _write_json(made / EXAMPLE, split)
            _write_json(made / REQUEST, {"dataframe_split": split})
            described["saved_input_example_info"] = {
                "artifact_path": EXAMPLE,
                "serving_input_path": REQUEST,
                "type": "dataframe",
                "pandas_orient": "split",
            }
        _write_json(made / "MLmodel", described)
        needs = [f"reliablenet=={__version__}"]
        (made / "requirements.txt").write_text("\n".join(needs) + "\n")
        python = platform.python_version()
        _write_json(
            made / "python_env.yaml",
            {"python": python, "build_dependencies": ["pip"], "dependencies": needs},
        )
        _write_json(
            made / "conda.yaml",
            {"name": "model", "dependencies": [f"python={python}", "pip", {"pip": needs}]},
        )
        made.replace(folder)


def describe(model: Any, columns: dict[str, str] | None) -> dict[str, Any]:
    """Return what the file ``MLmodel`` says."""
    if columns is None:
        shape = [-1, *getattr(model, "input_shape_", (model.n_features_in_,))]
        inputs: list[Any] = [
            {"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": shape}}
        ]
    else:
        inputs = [{"type": kind, "name": name, "required": True} for name, kind in columns.items()]
    classes = getattr(model, "classes_", None)
    answer = {"type": "double", "name": "value", "required": True}
    if classes is not None:
        kind = TYPES.get(classes.dtype.kind, "string")
        answer = {"type": kind, "name": "label", "required": True}
    outputs = [
        answer,
        {"type": "double", "name": "confidence", "required": True},
        {"type": "boolean", "name": "accepted", "required": True},
    ]
    return {
        "flavors": {
            "python_function": {
                "loader_module": LOADER,
                "data": MODEL,
                "env": {"conda": "conda.yaml", "virtualenv": "python_env.yaml"},
                "python_version": platform.python_version(),
            }
        },
        "signature": {"inputs": json.dumps(inputs), "outputs": json.dumps(outputs), "params": None},
        "metadata": {"certificate": json.loads(model.certificate_.to_json())},
        "utc_time_created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
    }


def input_columns(model: Any) -> dict[str, str] | None:
    """Return the columns that must be sent, with MLflow's types; None for a model of arrays."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    if model.profile_ is None:
        raise InvalidParameterError(
            "An MLflow model needs the kinds of its columns, which this model does not know: it was made by "
            "version 0.1. Fit it again."
        )
    kinds = {
        column.name: "double" if column.kind == "number" else "string"
        for column in model.profile_.columns
    }
    found = {str(name): kinds[name] for name in names if name in kinds}
    for table in model.rule_.tables:
        for name in table.key:
            if name in model.rule_.columns and name not in found:
                texts = len(table.key) > 1 or any(isinstance(one, str) for one in table.values)
                found[name] = "string" if texts else "double"
    return found


def example_row(model: Any, columns: dict[str, str]) -> dict[str, Any]:
    """Return a made-up row: medians and the commonest categories, rounded as the profile has them."""
    known = {column.name: column for column in model.profile_.columns}
    row: dict[str, Any] = {}
    for name, kind in columns.items():
        column = known.get(name)
        groups = model.rule_.values_of(name)
        if column is not None and kind == "double":
            row[name] = column.quartiles[1]
        elif column is not None and column.levels:
            counts = column.counts[1:-1]
            row[name] = column.levels[counts.index(max(counts))]
        else:
            row[name] = groups[0] if groups else None
    return row


def metrics(certificate: Certificate | RuleCertificate) -> dict[str, float]:
    """Return the numbers of a certificate by name, as MLflow keeps metrics; infinite ones are left out.

    Examples
    --------
    >>> from reliablenet.certificate import Certificate
    >>> from reliablenet.export.mlflow import metrics
    >>> counts = {"errors": 0, "accepted": 60, "n": 100}
    >>> found = metrics(Certificate(**counts, alpha=0.05, rho=0.05, threshold=0.9, kind="fixed"))
    >>> found["certified"], found["errors"], round(found["upper_bound"], 4)
    (1.0, 0.0, 0.0295)
    """
    found: dict[str, float] = {}
    parts = certificate.parts if isinstance(certificate, RuleCertificate) else (certificate,)
    for part in parts:
        before = f"{part.name}/" if part.name else ""
        for name in ("alpha", "threshold", "upper_bound", "n", "accepted", "errors"):
            found[before + name] = float(getattr(part, name))
    found["certified"] = float(certificate.certified)
    found["rho"] = float(certificate.rho)
    found["coverage"] = float(certificate.coverage)
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
