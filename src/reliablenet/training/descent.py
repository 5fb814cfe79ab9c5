"""`ClippedAdam`: one step down a clipped gradient, without the bookkeeping of torch's optimisers."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

# What the fused Adam of torch ends in; another version may keep it elsewhere.
KERNEL = getattr(torch, "_fused_adam_", None)
SURELY_WITHIN = 0.999  # a norm this far within the limit is scaled by 1, however it is rounded


class ClippedAdam(torch.optim.Adam):
    """Adam whose `descend` clips the norm of the gradient first, with the bits of torch's own two calls.

    Of those, more than half of the time at the paper's network goes into the grouping of tensors,
    which never changes. On the CPU it is done once.

    Parameters
    ----------
    parameters : iterable of nn.Parameter
    learning_rate, weight_decay, clip_norm : float
    decoupled : bool
        See `Optimisation`.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: float,
        weight_decay: float,
        clip_norm: float,
        *,
        decoupled: bool = False,
    ) -> None:
        penalty = 0.0 if decoupled else weight_decay
        super().__init__(parameters, lr=learning_rate, weight_decay=penalty, fused=True)
        self.clip_norm = clip_norm
        self.shrinkage = learning_rate * weight_decay if decoupled else 0.0
        self._weights: list[nn.Parameter] = self.param_groups[0]["params"]
        kinds = {(weight.device.type, weight.dtype) for weight in self._weights}
        self._one_kind = len(kinds) == 1 and next(iter(kinds))[0] == "cpu" and KERNEL is not None
        self._known: object = None  # the state that the moments were taken from
        self._moments: list[list[Tensor]] = []

    def descend(self) -> None:
        """Clip the gradients that the weights hold, and move the weights."""
        if self.shrinkage:
            with torch.no_grad():
                torch._foreach_mul_(list[Tensor](self._weights), 1.0 - self.shrinkage)
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        ready = self._one_kind and len(gradients) == len(self.state) == len(self._weights)
        if not ready or KERNEL is None:  # before the first step there are no moments
            nn.utils.clip_grad_norm_(self._weights, self.clip_norm)
            self.step()
            return
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        if not norm.item() < SURELY_WITHIN * self.clip_norm:  # also where it is NaN
            # the factor of `clip_grad_norm_`
            factor = torch.clamp(self.clip_norm / (norm + 1e-6), max=1.0)
            torch._foreach_mul_(gradients, factor)
        if self._known is not self.state:  # the first time, and after `load_state_dict`
            names = ("exp_avg", "exp_avg_sq", "step")
            self._moments = [[self.state[w][name] for w in self._weights] for name in names]
            self._known = self.state
        means, squares, steps = self._moments
        group = self.param_groups[0]
        with torch.no_grad():
            torch._foreach_add_(steps, 1)
            KERNEL(
                self._weights,
                gradients,
                means,
                squares,
                [],
                steps,
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=False,
                grad_scale=None,
                found_inf=None,
            )
