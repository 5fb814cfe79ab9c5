"""`Graph`: an ONNX graph while it is put together, one node after the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from reliablenet.errors import InvalidParameterError
from reliablenet.export.parts import CATEGORY, NUMBER

OPSET, ML_OPSET, RUNTIME_OPSET, IR_VERSION = 20, 5, 1, 10  # what onnxruntime 1.20 reads
ML = "ai.onnx.ml"
RUNTIME = "com.microsoft"  # operators that onnxruntime alone has
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

    def __init__(self, parent: Graph | None = None) -> None:
        self.nodes: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.kinds: dict[str, str] = {}
        self.outputs: list[Any] = []
        self._constants: list[Any] = []
        self._parts = 0
        self._prefix = parent._new_prefix() if parent else INSIDE
        self._domains: set[str] = parent._domains if parent else {ML}

    def number(self, column: Any, kind: str = NUMBER) -> str:
        """Return the input of a column of numbers, of shape (n, 1) and 64 bits; NaN is missing."""
        return self._input(column, kind, TensorProto.DOUBLE)

    def text(self, column: Any, kind: str = CATEGORY) -> str:
        """Return the input of a column of texts, of shape (n, 1); the empty text is missing."""
        return self._input(column, kind, TensorProto.STRING)

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

    def whole(self, value: int | Sequence[int]) -> str:
        """Return a whole number of 64 bits, or a vector of them, that is the same for all rows."""
        return self.constant(np.array(value, np.int64))

    def cut(self, values: str, begin: int, end: int) -> str:
        """Return the values from one place up to another, which counts from the end if it is negative."""
        return self.add("Slice", values, self.whole([begin]), self.whole([end]))

    def add(self, kind: str, *inputs: str, domain: str = "", **settings: Any) -> str:
        """Add a node with one output and return its name."""
        return self.add_several(kind, 1, *inputs, domain=domain, **settings)[0]

    def add_several(
        self, kind: str, count: int, *inputs: str, domain: str = "", **settings: Any
    ) -> list[str]:
        """Add a node with some outputs and return their names."""
        name = self._name(kind)
        names = [name, *(f"{name}_{place}" for place in range(1, count))]
        self.nodes.append(helper.make_node(kind, inputs, names, name, domain=domain, **settings))
        self._domains |= {domain} - {""}
        return names

    def part(self) -> Graph:
        """Return an empty graph that runs inside this one, and can use what this one has before it."""
        return Graph(self)

    def enter(self, kind: int) -> str:
        """Return an input of a part, of a type of `onnx.TensorProto`."""
        name = f"{self._prefix}input_{len(self.inputs)}"
        self.inputs[name] = helper.make_tensor_value_info(name, kind, None)
        return name

    def leave(self, value: str, kind: int) -> None:
        """Make a value an output of a part."""
        name = f"{self._prefix}output_{len(self.outputs)}"
        self.nodes.append(helper.make_node("Identity", [value], [name], name))
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def scan(self, part: Graph, *given: str) -> list[str]:
        """Run a part on one slice after the other along the first axis, and return its outputs, stacked."""
        body, count = part._proto("each"), len(given)
        return self.add_several("Scan", len(part.outputs), *given, body=body, num_scan_inputs=count)

    def choose(self, condition: str, then: Graph, otherwise: Graph) -> list[str]:
        """Return the outputs of one part where a truth value holds, and those of another if not."""
        branches = {"then_branch": then._proto("then"), "else_branch": otherwise._proto("else")}
        return self.add_several("If", len(then.outputs), condition, **branches)

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
        """Return the whole as a checked ONNX model, whose metadata also hold the kind of each column."""
        versions = {"": OPSET, ML: ML_OPSET, RUNTIME: RUNTIME_OPSET}
        used = ["", *sorted(self._domains)]
        model = helper.make_model(
            self._proto("decide"),
            opset_imports=[helper.make_opsetid(domain, versions[domain]) for domain in used],
            ir_version=IR_VERSION,
            producer_name="reliablenet",
            producer_version=version,
        )
        columns = {"columns": json.dumps(self.kinds, ensure_ascii=False)}
        helper.set_model_props(model, metadata | columns)
        onnx.checker.check_model(model)
        return model

    def _input(self, column: Any, kind: str, dtype: int) -> str:
        name = str(column)
        if name in OUTPUTS or name == "" or name.startswith(INSIDE):
            raise InvalidParameterError(
                f"A column {name!r} cannot be an input of a graph whose outputs are {OUTPUTS}. Rename it "
                "and fit the model again."
            )
        if name not in self.inputs:
            self.inputs[name] = helper.make_tensor_value_info(name, dtype, [ROWS, 1])
            self.kinds[name] = kind
        return name

    def _proto(self, name: str) -> Any:
        inputs = list(self.inputs.values())
        return helper.make_graph(self.nodes, name, inputs, self.outputs, self._constants)

    def _new_prefix(self) -> str:
        self._parts += 1
        return f"{self._prefix}{self._parts}/"

    def _name(self, kind: str) -> str:
        return f"{self._prefix}{kind}_{len(self.nodes) + len(self._constants)}"
