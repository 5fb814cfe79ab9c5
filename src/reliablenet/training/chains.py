"""Passes of a network forward and backward without a graph, by the operations that autograd would run.

To record a graph and to walk it costs as much as all matrix products of a step of the paper's tabular
network, and of our ensemble half of the time goes into fresh memory for what a graph keeps. `find_chain`
tells whether a network is one of the two; the tests compare results with autograd's to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from reliablenet.training.kernels import (
    HOOKS_OF_MODULES,
    HOOKS_OF_WEIGHTS,
    LOG_SOFTMAX_BACKWARD,
    RELU_BACKWARD,
    RELU_BACKWARD_INTO,
)
from reliablenet.training.networks import BatchEnsemble, Network, PiecewiseLayer


class DenseChain:
    """Forward and backward pass of linear layers with ReLU between them, without a graph.

    Parameters
    ----------
    layers : sequence of nn.Linear
        From the inputs to the logits. Their ``grad`` becomes a buffer that `backward` overwrites.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from reliablenet.training.chains import DenseChain
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


class EnsembleChain:
    """Forward and backward pass of a `BatchEnsemble` in training mode, without a graph.

    What is as large as all hidden units of all members lies in buffers, which the next batch of the same
    size overwrites.

    Parameters
    ----------
    pieces : PiecewiseLayer or None
        What spreads the inputs, if anything does.
    ensemble : BatchEnsemble
        The ``grad`` of its weights becomes a buffer that `backward` overwrites.

    Examples
    --------
    >>> import torch
    >>> from reliablenet.training import tabular
    >>> from reliablenet.training.chains import EnsembleChain
    >>> ensemble = tabular(2, 3, members=4)
    >>> chain = EnsembleChain(None, ensemble)
    >>> chain.forward(torch.ones(5, 2)).shape
    torch.Size([5, 4, 3])
    >>> chain.backward(torch.ones(5, 4, 3))
    >>> ensemble.head_bias.grad.flatten(1)
    tensor([[5., 5., 5.],
            [5., 5., 5.],
            [5., 5., 5.],
            [5., 5., 5.]])
    """

    def __init__(self, pieces: PiecewiseLayer | None, ensemble: BatchEnsemble) -> None:
        self._pieces = pieces
        self._ensemble = ensemble
        self._shared: list[Any] = list(ensemble.shared)
        for weight in ensemble.parameters():
            weight.grad = torch.zeros_like(weight)
        self._buffers: dict[int, list[Tensor]] = {}  # by number of rows
        self._inputs = self._first = torch.empty(0)  # what went into the first layer, and came out
        self._hidden: list[Tensor] = []  # by layer
        self._kept: list[Tensor | None] = []  # by layer: the factors of units that dropout keeps
        self._own: list[
            tuple[Tensor, Tensor]
        ] = []  # of each layer but the first: weights of its members

    def forward(self, X: Tensor) -> Tensor:
        """Return the members' logits, of shape (n, members, K), and remember what `backward` needs."""
        net = self._ensemble
        with torch.inference_mode():
            self._inputs = X if self._pieces is None else self._pieces(X)
            self._first = self._inputs.mm(self._shared[0].weight.t())
            self._hidden, self._kept, self._own = [], [], []
            buffers = self._find_buffers(len(X))
            self._rectify(torch.addcmul(net.bias[0], self._first, net.after[0], out=buffers[0]))
            for layer in range(1, len(self._shared)):
                half = net.before[layer - 1].mT * self._shared[layer].weight.T
                own = half * net.after[layer]
                self._own.append((half, own))
                summed = torch.baddbmm(net.bias[layer], self._hidden[-1], own, out=buffers[layer])
                self._rectify(summed)
            logits = torch.baddbmm(net.head_bias, self._hidden[-1], net.head)
            return logits.transpose(0, 1).contiguous()

    def _find_buffers(self, n: int) -> list[Tensor]:
        """Return memory for the hidden units of n rows: of each layer, and one more."""
        if n not in self._buffers:
            members, width, _ = self._ensemble.head.shape
            self._buffers[n] = [
                self._first.new_empty(members, n, width) for _ in range(len(self._shared) + 1)
            ]
        return self._buffers[n]

    def _rectify(self, hidden: Tensor) -> None:
        """Put ReLU and dropout on the units of the next layer, in place."""
        kept = self._ensemble.draw_kept(hidden)
        hidden.relu_()
        self._hidden.append(hidden if kept is None else hidden.mul_(kept))
        self._kept.append(kept)

    def backward(self, gradient: Tensor) -> None:
        """Set the gradients of all weights, from that in the logits of the last `forward`."""
        net, hidden = self._ensemble, self._hidden
        with torch.inference_mode():
            by_logits = gradient.transpose(0, 1)
            torch.bmm(hidden[-1].mT, by_logits, out=net.head.grad)
            torch.sum(by_logits, 1, keepdim=True, out=net.head_bias.grad)
            into = self._find_buffers(len(gradient))[-1]
            flow = torch.bmm(by_logits, net.head.mT, out=into)
            for layer in reversed(range(len(hidden))):
                if (kept := self._kept[layer]) is not None:
                    flow.mul_(kept)
                # a unit that dropout left out passes nothing on either way
                RELU_BACKWARD_INTO(flow, hidden[layer], 0, grad_input=flow)
                torch.sum(flow, 1, keepdim=True, out=net.bias[layer].grad)
                if layer:
                    flow = self._through_members(flow, layer)
            # the units themselves are no longer needed, so that products can take their place
            products = torch.mul(flow, self._first, out=hidden[0])
            torch.sum(products, 1, keepdim=True, out=net.after[0].grad)
            by_first = torch.mul(flow, net.after[0], out=hidden[0]).sum(0)
            torch.mm(by_first.t(), self._inputs, out=self._shared[0].weight.grad)

    def _through_members(self, flow: Tensor, layer: int) -> Tensor:
        """Set the gradients of the weights of a layer, and return that in the units before it."""
        net, below = self._ensemble, layer - 1
        half, own = self._own[below]
        by_own = torch.bmm(self._hidden[below].mT, flow)
        torch.sum(by_own * half, 1, keepdim=True, out=net.after[layer].grad)
        by_half = by_own * net.after[layer]
        weight = self._shared[layer].weight
        torch.sum(by_half * weight.T, 2, keepdim=True, out=net.before[below].grad.mT)
        torch.sum(by_half * net.before[below].mT, 0, out=weight.grad.T)
        return torch.bmm(flow, own.mT, out=self._hidden[layer])


def cross_entropy_gradient(logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean cross-entropy and its gradient in the logits, with the bits of autograd.

    Only for logits of a chain: where torch lacks what this needs, `find_chain` finds none.

    Parameters
    ----------
    logits : Tensor of shape (n, K), or (n, members, K) of an ensemble
    y : integer Tensor of shape (n,)

    Returns
    -------
    loss : Tensor of shape ()
        Of an ensemble the mean over its members.
    gradient : Tensor
        Of the shape of ``logits``.

    Examples
    --------
    >>> import torch
    >>> from reliablenet.training.chains import cross_entropy_gradient
    >>> loss, gradient = cross_entropy_gradient(torch.zeros(1, 2), torch.tensor([1]))
    >>> round(loss.item(), 4), gradient
    (0.6931, tensor([[ 0.5000, -0.5000]]))
    """
    if logits.ndim == 3:
        loss, gradient = cross_entropy_gradient(
            logits.flatten(0, 1), y.repeat_interleave(logits.shape[1])
        )
        return loss, gradient.view_as(logits)
    with torch.inference_mode():
        log_proba = torch.log_softmax(logits, 1)
        loss = torch.nn.functional.nll_loss(log_proba, y)
        gradient = torch.zeros_like(log_proba).scatter_(1, y.unsqueeze(1), -1.0 / len(y))
        return loss, LOG_SOFTMAX_BACKWARD(gradient, log_proba, 1, logits.dtype)


def find_chain(network: nn.Module) -> DenseChain | EnsembleChain | None:
    """Return the chain that a network is, None if it is anything else or anyone watches its passes."""
    modules = _flatten(network)
    kinds = [type(module) for module in modules]
    alternating = [nn.Linear, *(nn.ReLU, nn.Linear) * (len(kinds) // 2)]
    last = modules[-1] if modules else None
    layers: list[Any]
    if kinds == alternating:
        layers = [module for module in modules if isinstance(module, nn.Linear)]
        weights = [weight for layer in layers for weight in (layer.weight, layer.bias)]
    elif type(last) is BatchEnsemble and kinds[:-1] in ([], [PiecewiseLayer]):
        layers = list(last.shared)
        weights = list(last.parameters())
    else:
        return None
    plain = (
        None not in (RELU_BACKWARD, RELU_BACKWARD_INTO, LOG_SOFTMAX_BACKWARD)
        and all(type(layer) is nn.Linear for layer in layers)
        and len({id(weight) for weight in weights}) == len(weights)
        and all(_is_plain(weight) for weight in weights)
        and not any(_is_watched(module, HOOKS_OF_MODULES) for module in network.modules())
    )
    if not plain:
        return None
    if isinstance(last, BatchEnsemble):
        pieces: Any = modules[0] if len(modules) > 1 else None
        return EnsembleChain(pieces, last)
    return DenseChain(layers)


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
        and not _is_watched(weight, HOOKS_OF_WEIGHTS)
    )


def _is_watched(owner: nn.Module | Tensor, names: Sequence[str]) -> bool:
    return any(getattr(owner, name, "unknown") for name in names)
