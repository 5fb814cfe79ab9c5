"""The whole graph: encoder, network and trees, their average, the rule, and their description."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reliablenet._version import __version__
from reliablenet.certificate.promise import plain_label
from reliablenet.errors import InvalidParameterError
from reliablenet.export.onnx.encoder import add_encoder
from reliablenet.export.onnx.graph import Graph
from reliablenet.export.onnx.layers import add_layer
from reliablenet.export.onnx.rule import add_rule
from reliablenet.export.onnx.trees import add_grown
from reliablenet.export.parts import Parts
from reliablenet.training.growing import Grown
from reliablenet.training.objective import Objective
from reliablenet.training.team import Team

FORMAT = "reliablenet-onnx/1"
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)  # as `TemperatureScaling` has it


def build(parts: Parts, about: dict[str, str]) -> Any:
    """Return an ONNX model that decides as a classifier does.

    Parameters
    ----------
    parts : Parts
    about : dict
        What its metadata say besides, by name.

    Returns
    -------
    onnx.ModelProto
        Inputs: one for each column in use, of shape (n, 1). Outputs of shape (n,): ``label``, as the
        classes are; ``confidence``, 64 bits; ``accepted``, a truth value.
    """
    if parts.rule is None:
        raise InvalidParameterError("A graph needs the rule by which rows are accepted.")
    graph = Graph()
    matrix, sound = add_encoder(graph, parts.encoder)
    proba = _probabilities(graph, parts, matrix)
    place = graph.add("ArgMax", proba, axis=1, keepdims=0)
    for temperature in parts.temperatures:
        proba = _scaled(graph, proba, temperature)
    score = graph.add("ReduceMax", proba, graph.constant(np.array([1])), keepdims=0)
    names = [plain_label(label) for label in parts.classes]
    accepted = add_rule(graph, parts.rule, score, place, names)
    classes = _plain_classes(parts.classes)
    graph.give("label", graph.add("Gather", graph.constant(classes), place), classes.dtype)
    graph.give("confidence", score, np.dtype(np.float64))
    graph.give("accepted", graph.add("And", accepted, sound), np.dtype(bool))
    return graph.finish({"format": FORMAT} | about, __version__)


def _probabilities(graph: Graph, parts: Parts, matrix: str) -> str:
    """Return class probabilities of shape (n, K), in 64 bits."""
    if type(parts.objective) is not Objective:
        raise InvalidParameterError(
            "A graph cannot hold an acceptance score that the network has learned "
            f"({type(parts.objective).__name__}). Use ReliableClassifier or ERMClassifier."
        )
    outputs = graph.cast(add_layer(graph, matrix, parts.network), np.float64)
    network = graph.add("Softmax", outputs, axis=1)
    return network if parts.team is None else _average(graph, parts.team, network, matrix, parts)


def _average(graph: Graph, team: Team, network: str, matrix: str, parts: Parts) -> str:
    """Return the average of network and members by weight, added in the order of `Team.combine`."""
    first, *weights = (graph.constant(np.array(weight)) for weight in team.weights)
    total = graph.add("Mul", network, first)
    for weight, member in zip(weights, team.members, strict=True):
        if not isinstance(member, Grown):
            raise InvalidParameterError(
                "A graph cannot hold a classifier of your own among the members: "
                f"{type(getattr(member, 'estimator', member)).__name__}."
            )
        said = add_grown(graph, matrix, member, len(parts.classes))
        total = graph.add("Add", total, graph.add("Mul", said, weight))
    return graph.add("Min", total, graph.constant(np.array(1.0)))


def _scaled(graph: Graph, proba: str, temperature: float) -> str:
    least = graph.constant(np.array(LEAST_PROBABILITY))
    logits = graph.add("Log", graph.add("Max", proba, least))
    divided = graph.add("Div", logits, graph.constant(np.array(temperature)))
    return graph.add("Softmax", divided, axis=1)


def _plain_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes in a type that a graph has: texts, truth values, whole or other numbers."""
    kinds = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
    if classes.dtype.kind in kinds:
        return classes.astype(kinds[classes.dtype.kind])
    return np.array([str(label) for label in classes])
