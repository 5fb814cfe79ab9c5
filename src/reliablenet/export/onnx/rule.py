"""The rule as nodes of a graph: which rows reach the threshold of their group and predicted class."""

from __future__ import annotations

import math

import numpy as np

from reliablenet.certificate.promise import Label
from reliablenet.certificate.rule import ALL, Rule, Thresholds
from reliablenet.errors import InvalidParameterError
from reliablenet.export.onnx.graph import ML, Graph


def add_rule(graph: Graph, rule: Rule, score: str, place: str, classes: list[Label]) -> str:
    """Return for each row whether it is accepted.

    Parameters
    ----------
    graph : Graph
        With the columns of the features among its inputs.
    rule : Rule
    score, place : str
        Of shape (n,): the acceptance score, and the place of the predicted class.
    classes : list
        In the order of their places.
    """
    accepted = ""
    for table in rule.tables:
        limit = _limit(graph, table, place, classes)
        reached = graph.add("GreaterOrEqual", score, limit)
        if table.key != (ALL,):  # nothing reaches "no threshold"
            there = graph.add("Less", limit, graph.constant(np.array(math.inf)))
            reached = graph.add("And", reached, there)
        accepted = graph.add("And", accepted, reached) if accepted else reached
    return accepted


def _limit(graph: Graph, table: Thresholds, place: str, classes: list[Label]) -> str:
    """Return the threshold of each row, infinite where it has none."""
    if table.key == (ALL,):
        return graph.constant(np.array(table.values[ALL]))
    if table.key == ("predicted",):
        each = [table.values.get(label, math.inf) for label in classes]
        return graph.add("Gather", graph.constant(np.array(each)), place)
    if not table.values:  # no group has a certificate
        return graph.constant(np.array(math.inf))
    number = _group_number(graph, table)
    limits = graph.constant(np.array([*table.values.values(), math.inf]))
    return graph.add("Gather", limits, number)


def _group_number(graph: Graph, table: Thresholds) -> str:
    """Return the place of each row's group among those of the table, the last for any other."""
    groups = list(table.values)
    texts = [_is_text_group(graph, name, table) for name in table.key]
    if not any(texts) and len(texts) == 1:
        column = graph.number(table.key[0])
        equal = graph.cast(
            graph.add("Equal", column, graph.constant(np.array([groups], np.float64))), np.float32
        )
        # the last is found where no other is
        always = graph.constant(np.full((1, 1), 0.5, np.float32))
        rows = graph.add("Expand", always, graph.add("Shape", column))
        return graph.add("ArgMax", graph.join([equal, rows]), axis=1, keepdims=0)
    if not all(texts):
        raise InvalidParameterError(
            f"A graph cannot cross {', '.join(table.key)}: groups of several columns must all be texts. Make "
            "the numbers among them texts, or one column of groups, and fit the model again."
        )
    joined, *others = (graph.text(name) for name in table.key)
    comma = graph.constant(np.array([[", "]])) if others else ""
    for other in others:
        joined = graph.add("StringConcat", graph.add("StringConcat", joined, comma), other)
    found = graph.add(
        "LabelEncoder",
        joined,
        domain=ML,
        keys_strings=[str(group) for group in groups],
        values_int64s=list(range(len(groups))),
        default_int64=len(groups),
    )
    return graph.add("Squeeze", found, graph.constant(np.array([1])))


def _is_text_group(graph: Graph, name: str, table: Thresholds) -> bool:
    """Tell whether a column of groups is given as texts: as the feature is, or as the groups are."""
    if name in graph.inputs:
        return graph.is_text(name)
    return len(table.key) > 1 or any(isinstance(group, str) for group in table.values)
