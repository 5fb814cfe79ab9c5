"""`Graph`: an ONNX graph while it is put together, one node after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from reliablenet.errors import InvalidParameterError

OPSET, ML_OPSET, IR_VERSION = 20, 5, 10  # what onnxruntime 1.20 reads
ML = "ai.onnx.ml"
ROWS = "rows"
OUTPUTS = ("label", "confidence", "accepted")
INSIDE = "reliablenet/"  # before the names of all that is neither input nor output
TYPES = {
    "b": TensorProto.BOOL,
    "f": TensorProto.DOUBLE,
    "i": TensorProto.INT64,
    "U": TensorProto.STRING,
}


class Graph:
    """Nodes, constants and inputs; a value is known by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from reliablenet.export.onnx.graph import Graph
    >>> graph = Graph()
    >>> age = graph.number("age")
    >>> older = graph.add("Add", age, graph.constant(np.array([[1.0]])))
    >>> [node.op_type for node in graph.nodes], sorted(graph.inputs)
    (['Add'], ['age'])
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.outputs: list[Any] = []
        self._constants: list[Any] = []

    def number(self, column: Any) -> str:
        """Return the input of a column of numbers, of shape (n, 1) and 64 bits; NaN is missing."""
        return self._input(column, TensorProto.DOUBLE)

    def text(self, column: Any) -> str:
        """Return the input of a column of texts, of shape (n, 1); the empty text is missing."""
        return self._input(column, TensorProto.STRING)

    def is_text(self, column: Any) -> bool:
        """Tell whether a column that is an input already is one of texts."""
        return bool(self.inputs[str(column)].type.tensor_type.elem_type == TensorProto.STRING)

    def constant(self, values: NDArray[Any]) -> str:
        """Return a value that is the same for all rows."""
        name = self._name("constant")
        if values.dtype.kind == "U":
            values = values.astype(object)
        plain = np.ascontiguousarray(values).reshape(
            values.shape
        )  # which makes a vector of a number
        self._constants.append(numpy_helper.from_array(plain, name))
        return name

    def add(self, kind: str, *inputs: str, domain: str = "", **settings: Any) -> str:
        """Add a node with one output and return its name."""
        name = self._name(kind)
        self.nodes.append(helper.make_node(kind, inputs, [name], name, domain=domain, **settings))
        return name

    def cast(self, value: str, dtype: Any) -> str:
        """Return a value in another type of numpy's."""
        return self.add("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def join(self, parts: Sequence[str]) -> str:
        """Return matrices side by side."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def take(self, matrix: str, columns: Sequence[int]) -> str:
        """Return some columns of a matrix."""
        return self.add("Gather", matrix, self.constant(np.array(columns, np.int64)), axis=1)

    def give(self, name: str, value: str, dtype: np.dtype[Any]) -> None:
        """Make a value of shape (n,) an output."""
        self.nodes.append(helper.make_node("Identity", [value], [name], self._name(name)))
        self.outputs.append(helper.make_tensor_value_info(name, TYPES[dtype.kind], [ROWS]))

    def finish(self, metadata: dict[str, str], version: str) -> Any:
        """Return the whole as a model of ONNX, checked."""
        graph = helper.make_graph(
            self.nodes,
            "decide",
            list(self.inputs.values()),
            self.outputs,
            self._constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
            ir_version=IR_VERSION,
            producer_name="reliablenet",
            producer_version=version,
        )
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return model

    def _input(self, column: Any, kind: int) -> str:
        name = str(column)
        if name in OUTPUTS or name == "" or name.startswith(INSIDE):
            raise InvalidParameterError(
                f"A column {name!r} cannot be an input of a graph whose outputs are {OUTPUTS}. Rename it "
                "and fit the model again."
            )
        if name not in self.inputs:
            self.inputs[name] = helper.make_tensor_value_info(name, kind, [ROWS, 1])
        return name

    def _name(self, kind: str) -> str:
        return f"{INSIDE}{kind}_{len(self.nodes) + len(self._constants)}"
