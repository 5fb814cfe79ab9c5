"""`BatchEnsemble`: many small networks in one, for tables."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from reliablenet._checks import check_count, is_real, parameter_error

BIAS_SPREAD = 0.05  # between the members' first biases


class BatchEnsemble(nn.Module):
    """Members that share their weight matrices and differ in factors, biases and heads.

    Each unit of a hidden layer has a factor of its own in each member, before the weights and after
    them (Wen et al. 2020); the first layer's weights see the same inputs for all members and are
    applied once. Factors begin as random signs after the first layer, which sets the members apart,
    and as ones elsewhere.

    In training mode it returns the members' logits, of shape (n, members, K), so that each is
    trained as a classifier of its own; in evaluation mode the logarithm of their mean probabilities,
    of shape (n, K).

    Parameters
    ----------
    n_features, n_classes : int
    width, depth, members : int
    dropout : float in [0, 1)
        Share of hidden units left out in training.
    """

    def __init__(
        self, n_features: int, n_classes: int, width: int, depth: int, members: int, dropout: float
    ) -> None:
        super().__init__()
        self.dropout = dropout
        inputs = [n_features, *[width] * (depth - 1)]
        self.shared = nn.ModuleList(nn.Linear(size, width, bias=False) for size in inputs)
        self.before = nn.ParameterList(torch.ones(members, 1, width) for _ in inputs[1:])
        signs = torch.randint(0, 2, (members, 1, width)) * 2.0 - 1.0
        self.after = nn.ParameterList([signs, *(torch.ones_like(signs) for _ in inputs[1:])])
        self.bias = nn.ParameterList(_first_bias(size, width, members) for size in inputs)
        self.head = nn.Parameter(torch.randn(members, width, n_classes) / math.sqrt(width))
        self.head_bias = nn.Parameter(torch.zeros(members, 1, n_classes))

    def forward(self, x: Tensor) -> Tensor:
        """Return the members' logits while training, else one vector of logits a row."""
        first, *others = self.shared
        hidden = torch.addcmul(self.bias[0], first(x), self.after[0])
        hidden = self._drop(functional.relu_(hidden))
        for layer, weights in enumerate(others, start=1):
            # The factors go into the weights, of which there are fewer numbers than in a batch.
            own = self.before[layer - 1].mT * weights.weight.T * self.after[layer]
            hidden = torch.baddbmm(self.bias[layer], hidden, own)
            hidden = self._drop(functional.relu_(hidden))
        logits = torch.baddbmm(self.head_bias, hidden, self.head).transpose(0, 1)
        return logits if self.training else average_members(logits)

    def _drop(self, hidden: Tensor) -> Tensor:
        """Leave units out in training, for a row the same in all members: chance is dear on a CPU."""
        if not self.training or self.dropout == 0.0:
            return hidden
        kept = torch.empty_like(hidden[0]).bernoulli_(1.0 - self.dropout)
        return hidden * kept.div_(1.0 - self.dropout)


def average_members(logits: Tensor) -> Tensor:
    """Return the logarithm of the mean probabilities of members, of shape (n, K).

    Parameters
    ----------
    logits : Tensor of shape (n, members, K)

    Examples
    --------
    >>> average_members(torch.tensor([[[0.0, 0.0], [0.0, 100.0]]])).exp()
    tensor([[0.2500, 0.7500]])
    """
    # Classes first: over an axis of two that lies last, torch takes five times as long.
    by_class = torch.log_softmax(logits.permute(2, 1, 0).contiguous(), 0)
    return (by_class.logsumexp(1) - math.log(logits.shape[1])).T.contiguous()


def tabular(
    n_features: int,
    n_classes: int,
    *,
    width: int = 96,
    depth: int = 2,
    members: int = 8,
    dropout: float = 0.1,
) -> BatchEnsemble:
    """Return the default network for tables: an ensemble of small ReLU networks.

    Parameters
    ----------
    n_features, n_classes : int
    width, depth : int
        Units of a hidden layer, and hidden layers.
    members : int
    dropout : float in [0, 1)

    Returns
    -------
    BatchEnsemble

    Examples
    --------
    >>> sum(p.numel() for p in tabular(10, 2).parameters())
    15568
    """
    sizes = {"n_features": n_features, "width": width, "depth": depth, "members": members}
    for name, value in sizes.items():
        check_count(name, value, "tabular")
    check_count("n_classes", n_classes, "tabular", minimum=2)
    if not is_real(dropout) or not 0.0 <= dropout < 1.0:
        raise parameter_error("dropout", "tabular", "lie in [0, 1)", dropout)
    return BatchEnsemble(n_features, n_classes, width, depth, members, float(dropout))


def _first_bias(inputs: int, width: int, members: int) -> Tensor:
    """Return biases as of `nn.Linear`, a little different for each member."""
    bound = 1.0 / math.sqrt(inputs)
    return torch.empty(width).uniform_(-bound, bound) + BIAS_SPREAD * torch.randn(members, 1, width)
