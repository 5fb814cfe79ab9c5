"""`Value`: a value of a graph that is written as an expression, such as ``year * 365 + day``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reliablenet.export.onnx.graph import Graph


@dataclass(frozen=True, eq=False)
class Value:
    """A value of numbers or truth values; what it meets is another one, or a plain number.

    Whole numbers are divided as ``//`` does it if neither is negative.

    Examples
    --------
    >>> from reliablenet.export.onnx.arithmetic import Value
    >>> from reliablenet.export.onnx.graph import Graph
    >>> graph = Graph()
    >>> age = Value(graph, graph.number("age"), float)
    >>> late = (age + 1.0 >= 18.0) & ~(age == 40.0)
    >>> [node.op_type for node in graph.nodes]
    ['Add', 'GreaterOrEqual', 'Equal', 'Not', 'And']
    """

    graph: Graph
    name: str
    dtype: Any

    def __add__(self, other: Any) -> Value:
        return self._with("Add", other)

    def __sub__(self, other: Any) -> Value:
        return self._with("Sub", other)

    def __mul__(self, other: Any) -> Value:
        return self._with("Mul", other)

    def __floordiv__(self, other: Any) -> Value:
        return self._with("Div", other)

    def __truediv__(self, other: Any) -> Value:
        return self._with("Div", other)

    def __mod__(self, other: Any) -> Value:
        return self._with("Mod", other)

    def __lt__(self, other: Any) -> Value:
        return self._with("Less", other, bool)

    def __le__(self, other: Any) -> Value:
        return self._with("LessOrEqual", other, bool)

    def __gt__(self, other: Any) -> Value:
        return self._with("Greater", other, bool)

    def __ge__(self, other: Any) -> Value:
        return self._with("GreaterOrEqual", other, bool)

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return self._with("Equal", other, bool)

    def __and__(self, other: Any) -> Value:
        return self._with("And", other)

    def __or__(self, other: Any) -> Value:
        return self._with("Or", other)

    def __invert__(self) -> Value:
        return Value(self.graph, self.graph.add("Not", self.name), bool)

    def to(self, dtype: Any) -> Value:
        """Return the value in another type."""
        return Value(self.graph, self.graph.cast(self.name, dtype), dtype)

    def where(self, then: Any, otherwise: Any) -> Value:
        """Return one where this truth value holds, and another elsewhere; one of them is a value."""
        dtype = then.dtype if isinstance(then, Value) else otherwise.dtype
        names = [_name(self.graph, value, dtype) for value in (then, otherwise)]
        return Value(self.graph, self.graph.add("Where", self.name, *names), dtype)

    def look_up(self, table: Any) -> Value:
        """Return the entries of a table at these places."""
        values = np.array(table)
        found = self.graph.add("Gather", self.graph.constant(values), self.name)
        return Value(self.graph, found, values.dtype)

    def _with(self, kind: str, other: Any, dtype: Any = None) -> Value:
        name = _name(self.graph, other, self.dtype)
        return Value(self.graph, self.graph.add(kind, self.name, name), dtype or self.dtype)


def _name(graph: Graph, value: Any, dtype: Any) -> str:
    return value.name if isinstance(value, Value) else graph.constant(np.array(value, dtype))
