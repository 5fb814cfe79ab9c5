"""The Open Inference Protocol, version 2: tensors in, tensors out, one a column."""

from __future__ import annotations

import math
from typing import Any

from reliablenet.serve.answering import Answering
from reliablenet.serve.columns import Columns
from reliablenet.serve.desk import Answer
from reliablenet.serve.errors import unusable
from reliablenet.serve.request_rows import Rows

WHOLE = frozenset(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
REAL = frozenset({"FP16", "FP32", "FP64"})
TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(sorted(WHOLE), (int,)),
    **dict.fromkeys(sorted(REAL), (int, float)),
    "BOOL": (bool,),
    "BYTES": (str,),
}


def read_rows(body: Any, columns: Columns) -> Rows:
    """Return the rows of an inference request: a tensor of n values a column, or one of (n, d)."""
    inputs = body.get("inputs") if isinstance(body, dict) else None
    if not isinstance(inputs, list) or not inputs:
        raise unusable("`inputs` must be a list of tensors, one for each column.")
    found: dict[str, list[Any]] = {}
    for tensor in inputs:
        name, shape, values = _read_tensor(tensor)
        if name in found:
            raise unusable(f"Column {name!r} appears twice in `inputs`.", name)
        if columns.names is None:
            if len(inputs) > 1 or len(shape) != 2:
                raise unusable(
                    f"This model takes one tensor of shape [rows, {columns.width}]; got shape {shape}.",
                    name,
                )
            width = shape[1]
            rows = [values[start : start + width] for start in range(0, len(values), max(width, 1))]
            return columns.from_lists(rows)
        if len(shape) not in (1, 2) or shape[1:] not in ([], [1]):
            raise unusable(f"Column {name!r} must have the shape [rows]; got {shape}.", name)
        found[name] = values
    if not next(iter(found.values())):
        raise unusable("The request holds no row.")
    return columns.from_columns(found)


def _read_tensor(tensor: Any) -> tuple[str, list[int], list[Any]]:
    if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
        raise unusable("Each of `inputs` must be an object with name, shape, datatype and data.")
    name, shape, kind = tensor["name"], tensor.get("shape"), tensor.get("datatype")
    if not isinstance(shape, list) or not shape or any(type(n) is not int or n < 0 for n in shape):
        raise unusable(f"The shape of {name!r} must be a list of whole numbers.", name)
    if not isinstance(kind, str) or kind not in TYPES:
        raise unusable(
            f"The datatype of {name!r} must be one of {list(TYPES)}; got {kind!r}.", name
        )
    data = tensor.get("data")
    values = _flat(data) if isinstance(data, list) else None
    if values is None:
        raise unusable(f"The data of {name!r} must be a list.", name)
    if len(values) != math.prod(shape):
        raise unusable(
            f"The data of {name!r} must hold {math.prod(shape)} values, as its shape says; got "
            f"{len(values)}.",
            name,
        )
    allowed = {*TYPES[kind], type(None)}
    if not set(map(type, values)) <= allowed:
        place = next(i for i, value in enumerate(values) if type(value) not in allowed)
        raise unusable(f"Column {name!r} holds no {kind} in row {place}.", name)
    return name, shape, values


def _flat(data: list[Any]) -> list[Any]:
    """Return nested lists as one; tensors may be sent either way."""
    while data and all(isinstance(value, list) for value in data):
        data = [value for part in data for value in part]
    return data


def write_answer(
    answer: Answer, title: str, name: str, version: str, request: str | None
) -> dict[str, Any]:
    """Return decisions as five tensors; the title is that of the first."""
    answers, logged = answer.answers, answer.logged
    kind = _datatype(answers.values)
    values = [str(value) for value in answers.values] if kind == "BYTES" else answers.values
    outputs = [
        (title, kind, values),
        ("confidence", "FP64", answers.confidences),
        ("accepted", "BOOL", answers.accepted),
        ("id", "BYTES", logged.ids),
        ("audit", "BOOL", logged.audit),
    ]
    return {
        "model_name": name,
        "model_version": version,
        **({} if request is None else {"id": request}),
        "outputs": [
            {"name": output, "datatype": datatype, "shape": [len(data)], "data": data}
            for output, datatype, data in outputs
        ],
    }


def describe(columns: Columns, name: str, version: str, answering: Answering) -> dict[str, Any]:
    """Return what the protocol tells about a model: its inputs and outputs."""
    if columns.names is None:
        inputs = [{"name": "inputs", "datatype": "FP64", "shape": [-1, columns.width]}]
    else:
        inputs = [
            {
                "name": column,
                "datatype": "FP64" if column in columns.numbers else "BYTES",
                "shape": [-1],
            }
            for column in columns.names
        ]
    kinds = {
        answering.name: _datatype(answering.examples),
        "confidence": "FP64",
        "accepted": "BOOL",
    }
    outputs = {**kinds, "id": "BYTES", "audit": "BOOL"}
    return {
        "name": name,
        "versions": [version],
        "platform": "reliablenet",
        "inputs": inputs,
        "outputs": [
            {"name": title, "datatype": kind, "shape": [-1]} for title, kind in outputs.items()
        ],
    }


def _datatype(values: list[Any]) -> str:
    """Return the datatype that all values have; of unequal ones, that of texts."""
    kinds = {type(value) for value in values}
    known = {bool: "BOOL", int: "INT64", float: "FP64"}
    return known.get(kinds.pop(), "BYTES") if len(kinds) == 1 else "BYTES"
