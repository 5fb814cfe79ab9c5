"""Constraint and loss of one training step, value and gradient, without a graph of small nodes.

`psi(violation(logits, y, threshold), tau)` says the same in a dozen differentiable operations; on a
CPU these cost half as much as all the rest of a step of the paper's network. Here the gradient in
the logits is written out, from one softmax that loss and constraint share. The tests hold it against the plain form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class StepGradient(NamedTuple):
    """What one batch gives: gradient in the logits, psi, and per row log p(y) and violation g."""

    gradient: Tensor
    psi: Tensor
    log_likelihood: Tensor
    g: Tensor


@torch.no_grad()
def step_gradient(
    logits: Tensor,
    y: Tensor,
    *,
    loss_weight: float,
    multiplier: Tensor,
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
    loss_weight : float
    multiplier : Tensor of shape ()
    scale : float
    threshold, tau, m1, m2 : float
        As for `violation` and `zeta`; not checked here.

    Returns
    -------
    StepGradient
    """
    n, own = len(y), y.unsqueeze(-1)
    height = 1.0 + m1 * tau
    log_proba = torch.log_softmax(logits, -1)
    log_likelihood = log_proba.gather(-1, own)
    top, top_class = log_proba.max(-1, keepdim=True)
    rival, rival_class = log_proba.scatter(-1, own, -torch.inf).max(-1, keepdim=True)
    margin = rival - log_likelihood
    confidence = top.exp_()
    g = torch.minimum(confidence - threshold, margin)
    s = (g / tau).sub_(math.log(m2 * tau)).sigmoid_()
    # d zeta / d g with the mean's 1/n, from sigmoid' = s - s^2; then split by what the minimum is.
    slope = torch.addcmul(s, s, s, value=-1.0).mul_(height / (tau * n * scale)).mul_(multiplier)
    by_confidence = slope * (g < margin)
    by_margin = slope.sub_(by_confidence)
    # In log p: d confidence = c d log p(top), d margin = d log p(rival) - d log p(y).
    gradient = torch.zeros_like(log_proba)
    gradient.scatter_(-1, rival_class, by_margin)
    gradient.scatter_(-1, own, torch.rsub(by_margin, -loss_weight / n))
    gradient.scatter_add_(-1, top_class, by_confidence.mul_(confidence))
    gradient = torch._log_softmax_backward_data(gradient, log_proba, -1, logits.dtype)
    return StepGradient(gradient, s.mean().mul_(height), log_likelihood, g)
