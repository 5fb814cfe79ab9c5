"""Constraint and loss of one training step, value and gradient, without a graph of small nodes.

`psi(violation(logits, y, threshold), tau)` says the same in a dozen differentiable operations; on a
CPU these cost half as much as all the rest of a step of the paper's network. Here the gradient in
the logits is written out, from one softmax that loss and constraint share, in as few operations as
we could find: at 256 rows each costs five microseconds, whatever it computes. Constants are tensors
beforehand, and inference mode spares the bookkeeping of autograd. The tests hold this against the
plain form.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

# Below it a sigmoid adds nothing to a sum in float32, but its slope would become a denormal number,
# and matrix products with those take several times as long.
SIGMOID_FLOOR = -40.0


class StepGradient(NamedTuple):
    """What one batch gives.

    ``gradient`` is that in the logits, ``total * weight`` is psi, or each group's part of it;
    ``confidence`` and ``margin``, of shape (n, 1), are what both loss and violation are made of.
    """

    gradient: Tensor
    total: Tensor
    weight: float
    confidence: Tensor
    margin: Tensor

    @property
    def psi(self) -> Tensor:
        """The surrogate of the batch; with groups, what the rows of each add to it."""
        return self.total * self.weight


def log_likelihood(confidence: Tensor, margin: Tensor) -> Tensor:
    """Return log p(y) of rows: p(y) is the confidence, less what the rival is ahead."""
    return confidence.log() - margin.clamp(min=0.0)


def step_gradient(
    logits: Tensor,
    y: Tensor,
    multiplier: Tensor | float,
    *,
    loss_weight: float,
    scale: float,
    threshold: float,
    tau: float,
    m1: float,
    m2: float,
    group: Tensor | None = None,
) -> StepGradient:
    """Differentiate loss_weight * cross-entropy + multiplier * psi / scale in the logits.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
    y : integer Tensor of shape (n,)
    multiplier : float, or Tensor of shape (), or of shape (G,) with groups
        That of a row's group is for what the row adds to psi.
    loss_weight, scale : float
    threshold, tau, m1, m2 : float
        As for `violation` and `zeta`; not checked here.
    group : integer Tensor of shape (n,), optional
        Group of each row, 0 to G-1; ``total`` of the answer then has shape (G,).

    Returns
    -------
    StepGradient
    """
    shared = (len(y), loss_weight, scale, threshold, tau, m1, m2)
    numbers, slope_factor, weight = _constants(*shared, logits.dtype, logits.device)
    least_confidence, steepness, offset, floor, loss_share, minus_loss_share = numbers
    with torch.inference_mode():
        own = y.unsqueeze(1)
        proba = torch.softmax(logits, 1)
        confidence, top = proba.max(1, keepdim=True)
        if logits.shape[1] == 2:  # the rival of a class is the other one
            rival = own ^ 1
            margin = logits.gather(1, rival)
        else:
            margin, rival = logits.scatter(1, own, -torch.inf).max(1, keepdim=True)
        margin.sub_(logits.gather(1, own))
        excess = confidence - least_confidence
        if 1.0 / logits.shape[1] - threshold < tau * (SIGMOID_FLOOR + math.log(m2 * tau)):
            excess = torch.maximum(excess, floor)  # or the clamp below would let it pass
        # g, the smaller of the two, cut where the sigmoid comes to nothing
        s = torch.addcmul(offset, torch.clamp(margin, floor, excess), steepness).sigmoid_()
        if group is None:
            total = s.sum()
        else:
            total = s.new_zeros(len(multiplier)).index_add_(0, group, s.squeeze(1))  # type: ignore[arg-type]
            multiplier = multiplier.index_select(0, group).unsqueeze(1)  # type: ignore[union-attr]
        # The slope of zeta, from sigmoid' = s - s^2, belongs to whichever of the two is the minimum:
        # d margin = d log p(rival) - d log p(y), d confidence = c d log p(top).
        slope = torch.addcmul(s, s, s, value=-1.0).mul_(slope_factor * multiplier)
        by_margin = slope * (excess >= margin)
        by_confidence = slope.sub_(by_margin).mul_(confidence)
        # The loss brings -d log p(y). From log p to logits: subtract p times the sum over classes.
        gradient = proba.mul_(loss_share - by_confidence)
        gradient.scatter_add_(1, top, by_confidence)
        gradient.scatter_add_(1, rival, by_margin)
        gradient.scatter_add_(1, own, minus_loss_share - by_margin)
    return StepGradient(gradient, total, weight, confidence, margin)


@lru_cache(maxsize=256)
def _constants(
    n: int,
    loss_weight: float,
    scale: float,
    threshold: float,
    tau: float,
    m1: float,
    m2: float,
    dtype: torch.dtype,
    device: torch.device,
) -> tuple[tuple[Tensor, ...], float, float]:
    """Return the constants of a step; the tensors of shape () are shared, so never change them."""
    height, offset = 1.0 + m1 * tau, -math.log(m2 * tau)
    values = (
        threshold,
        1.0 / tau,
        offset,
        tau * (SIGMOID_FLOOR - offset),
        loss_weight / n,
        -loss_weight / n,
    )
    numbers = torch.tensor(values, dtype=dtype, device=device).unbind()
    return numbers, height / (tau * n * scale), height / n
