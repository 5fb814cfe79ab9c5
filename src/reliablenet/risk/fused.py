"""Constraint and loss of one training step, value and gradient, without a graph of small nodes.

`psi(violation(logits, y, threshold), tau)` says the same in a dozen differentiable operations; on a
CPU these cost half as much as all the rest of a step of the paper's network. Here the gradient in
the logits is written out, from one softmax that loss and constraint share, and every constant is a
tensor beforehand (a Python number costs an operation more than its arithmetic). The tests hold this
against the plain form.
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
    """What one batch gives: gradient in the logits, psi, and log p(y) and g of shape (n, 1)."""

    gradient: Tensor
    psi: Tensor
    log_likelihood: Tensor
    g: Tensor


def step_gradient(
    logits: Tensor,
    y: Tensor,
    multiplier: Tensor,
    *,
    loss_weight: float,
    scale: float,
    threshold: float,
    tau: float,
    m1: float,
    m2: float,
) -> StepGradient:
    """Differentiate loss_weight * cross-entropy + multiplier * psi / scale in the logits.

    Parameters
    ----------
    logits : Tensor of shape (n, K)
    y : integer Tensor of shape (n,)
    multiplier : Tensor of shape ()
    loss_weight, scale : float
    threshold, tau, m1, m2 : float
        As for `violation` and `zeta`; not checked here.

    Returns
    -------
    StepGradient
    """
    least_confidence, steepness, offset, floor, slope_factor, loss_share, psi_factor = _constants(
        len(y), loss_weight, scale, threshold, tau, m1, m2, logits.dtype, logits.device
    )
    own = y.unsqueeze(-1)
    log_proba = torch.log_softmax(logits.detach(), -1)
    log_likelihood = log_proba.gather(-1, own)
    top, top_class = log_proba.max(-1, keepdim=True)
    rival, rival_class = log_proba.scatter(-1, own, -torch.inf).max(-1, keepdim=True)
    confidence = top.exp_()
    margin = rival.sub_(log_likelihood)
    g = torch.minimum(confidence - least_confidence, margin)
    s = torch.maximum(torch.addcmul(offset, g, steepness), floor).sigmoid_()
    psi = s.sum().mul_(psi_factor)
    # The slope of zeta at g, from sigmoid' = s - s^2, belongs to whichever of the two is the minimum:
    # d margin = d log p(rival) - d log p(y), d confidence = c d log p(top).
    slope = torch.addcmul(s, s, s, value=-1.0).mul_(slope_factor * multiplier)
    by_margin = slope * (g == margin)
    by_confidence = slope.sub_(by_margin).mul_(confidence)
    # The loss brings -d log p(y). From log p to logits: subtract p times the sum over classes.
    gradient = log_proba.exp_().mul_(loss_share - by_confidence)
    gradient.scatter_add_(-1, top_class, by_confidence)
    gradient.scatter_add_(-1, rival_class, by_margin)
    gradient.scatter_add_(-1, own, by_margin.add_(loss_share).neg_())
    return StepGradient(gradient, psi, log_likelihood, g)


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
) -> tuple[Tensor, ...]:
    """Return the constants of a step as tensors of shape (); they are shared, so never change them."""
    height = 1.0 + m1 * tau
    values = (
        threshold,
        1.0 / tau,
        -math.log(m2 * tau),
        SIGMOID_FLOOR,
        height / (tau * n * scale),
        loss_weight / n,
        height / n,
    )
    return torch.tensor(values, dtype=dtype, device=device).unbind()
