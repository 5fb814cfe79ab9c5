"""Networks as nodes of a graph: each kind of layer is an entry in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from reliablenet.errors import InvalidParameterError
from reliablenet.export.onnx.graph import Graph
from reliablenet.training.networks import BatchEnsemble, Network, PiecewiseLayer

Adder = Callable[[Graph, str, Any], str]


def add_layer(graph: Graph, value: str, layer: nn.Module) -> str:
    """Return what a layer makes of a matrix, in evaluation mode."""
    adder = LAYERS.get(type(layer))
    if adder is None:
        known = sorted(kind.__name__ for kind in LAYERS)
        raise InvalidParameterError(
            f"A graph can hold layers of the kinds {known}; the network has a {type(layer).__name__}."
        )
    return adder(graph, value, layer)


def _linear(graph: Graph, value: str, layer: nn.Linear) -> str:
    product = graph.add("MatMul", value, graph.constant(_numbers(layer.weight.T)))
    if layer.bias is None:
        return product
    return graph.add("Add", product, graph.constant(_numbers(layer.bias)))


def _sequence(graph: Graph, value: str, layers: nn.Sequential) -> str:
    for layer in layers:
        value = add_layer(graph, value, layer)
    return value


def _network(graph: Graph, value: str, network: Network) -> str:
    return add_layer(graph, add_layer(graph, value, network.body), network.head)


def _pieces(graph: Graph, value: str, layer: PiecewiseLayer) -> str:
    """Spread positions among bins over one column a bin."""
    spread = graph.add(
        "Clip",
        graph.add(
            "Sub", graph.take(value, layer.source.tolist()), graph.constant(_numbers(layer.first))
        ),
        graph.constant(np.array(0.0, np.float32)),
        graph.constant(np.array(1.0, np.float32)),
    )
    stay = layer.stay.tolist()
    return graph.join([graph.take(value, stay), spread]) if stay else spread


def _ensemble(graph: Graph, value: str, network: BatchEnsemble) -> str:
    """Return the logarithm of the members' mean probabilities; from the logits on in 64 bits."""
    first, *others = network.shared
    hidden = add_layer(graph, value, first)
    hidden = graph.add("Mul", hidden, graph.constant(_numbers(network.after[0])))
    hidden = graph.add("Relu", graph.add("Add", hidden, graph.constant(_numbers(network.bias[0]))))
    for layer, shared in enumerate(others, start=1):
        own: Any = network.before[layer - 1].mT * shared.weight.T * network.after[layer]
        hidden = graph.add("MatMul", hidden, graph.constant(_numbers(own)))
        hidden = graph.add("Add", hidden, graph.constant(_numbers(network.bias[layer])))
        hidden = graph.add("Relu", hidden)
    logits = graph.add("MatMul", hidden, graph.constant(_numbers(network.head)))
    logits = graph.add("Add", logits, graph.constant(_numbers(network.head_bias)))
    each = graph.add("Softmax", graph.cast(logits, np.float64), axis=-1)
    mean = graph.add("ReduceMean", each, graph.constant(np.array([0])), keepdims=0)
    return graph.add("Log", mean)


def _same(graph: Graph, value: str, layer: nn.Module) -> str:
    return value


def _numbers(tensor: Tensor) -> NDArray[Any]:
    values: NDArray[Any] = tensor.detach().cpu().numpy()
    return values


LAYERS: dict[type[nn.Module], Adder] = {
    BatchEnsemble: _ensemble,
    Network: _network,
    PiecewiseLayer: _pieces,
    nn.Dropout: _same,
    nn.Identity: _same,
    nn.Linear: _linear,
    nn.ReLU: lambda graph, value, layer: graph.add("Relu", value),
    nn.Sequential: _sequence,
    nn.Sigmoid: lambda graph, value, layer: graph.add("Sigmoid", value),
    nn.Tanh: lambda graph, value, layer: graph.add("Tanh", value),
}
