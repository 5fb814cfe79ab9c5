"""`DenseChain`: forward and backward pass of linear layers with ReLU between them, written out.

To record a graph and to walk it costs as much as all matrix products of a step of the paper's
tabular network. Here are the operations that autograd runs, in its order, so that the gradients are
the same to the bit; the tests hold them against autograd.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from reliablenet.training.networks import Network

RELU_BACKWARD = torch.ops.aten.threshold_backward.default
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class DenseChain:
    """Linear layers with ReLU between them, whose gradients need no graph.

    Parameters
    ----------
    layers : sequence of nn.Linear
        From the inputs to the logits. Their ``grad`` becomes a buffer that `backward` overwrites.

    Examples
    --------
    >>> layer = nn.Linear(2, 1)
    >>> chain = DenseChain([layer])
    >>> _ = chain.forward(torch.tensor([[3.0, 4.0]]))
    >>> chain.backward(torch.tensor([[2.0]]))
    >>> layer.weight.grad, layer.bias.grad
    (tensor([[6., 8.]]), tensor([2.]))
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self._weights = [layer.weight.detach() for layer in layers]
        self._biases = [layer.bias.detach() for layer in layers]
        for layer in layers:
            layer.weight.grad = torch.zeros_like(layer.weight)
            layer.bias.grad = torch.zeros_like(layer.bias)
        self._gradients = [(layer.weight.grad, layer.bias.grad) for layer in layers]
        self._inputs: list[Tensor] = []

    def forward(self, X: Tensor) -> Tensor:
        """Return the logits of a batch, and remember what went into each layer."""
        with torch.inference_mode():
            self._inputs = [X]
            for weight, bias in zip(self._weights[:-1], self._biases[:-1], strict=True):
                self._inputs.append(torch.addmm(bias, self._inputs[-1], weight.t()).relu_())
            return torch.addmm(self._biases[-1], self._inputs[-1], self._weights[-1].t())

    def backward(self, gradient: Tensor) -> None:
        """Set the gradients of all weights, from that in the logits of the last `forward`."""
        with torch.inference_mode():
            for number in reversed(range(len(self._weights))):
                inputs, (by_weight, by_bias) = self._inputs[number], self._gradients[number]
                torch.mm(gradient.t(), inputs, out=by_weight)
                torch.sum(gradient, 0, out=by_bias)
                if number:
                    gradient = RELU_BACKWARD(gradient.mm(self._weights[number]), inputs, 0)


def find_chain(network: nn.Module) -> DenseChain | None:
    """Return the chain that a network is, None if it is anything else or anyone watches its passes."""
    modules = _flatten(network)
    layers = [module for module in modules if type(module) is nn.Linear]
    weights = [weight for layer in layers for weight in (layer.weight, layer.bias)]
    plain = (
        [type(module) for module in modules]
        == [nn.Linear, *(nn.ReLU, nn.Linear) * (len(layers) - 1)]
        and len({id(weight) for weight in weights}) == len(weights)
        and all(_is_plain(weight) for weight in weights)
        and not any(getattr(module, name) for module in network.modules() for name in HOOKS)
    )
    return DenseChain(layers) if plain else None


def _flatten(module: nn.Module) -> list[nn.Module]:
    """Return the modules that a batch passes through, one after the other."""
    if type(module) in (Network, nn.Sequential):
        return [leaf for child in module.children() for leaf in _flatten(child)]
    return [module]


def _is_plain(weight: Tensor | None) -> bool:
    return (
        weight is not None
        and weight.requires_grad
        and weight.device.type == "cpu"
        and not weight._backward_hooks
        and not weight._post_accumulate_grad_hooks
    )
