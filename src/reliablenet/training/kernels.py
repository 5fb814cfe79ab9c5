"""Everything that torch does not promise to keep, for speed.

Each part says what it stands for in public torch and has its bits; the tests compare the two. Names
that begin with an underscore belong to torch alone, so each is looked up once, here. Where a version of
torch lacks one, the public way takes its place:

* without ``_fused_adam_``, ``_foreach_add_`` or ``_foreach_norm`` `ClippedAdam` calls
  ``clip_grad_norm_``, then ``Adam.step``;
* `ClippedAdam` calls two methods of torch's optimiser in their plain form: as they stand, their first call
  in a process imports ``torch._dynamo``, which takes seconds;
* without ``_foreach_mul_`` or ``_foreach_lerp_`` `scale` and `blend` take the tensors one by one;
* without ``aten.threshold_backward`` or ``aten._log_softmax_backward_data``, or where the hooks of a module or a weight cannot be seen,
  `chains.find_chain` finds no chain, and autograd does the work;
* without the two questions of ``FAST_BFLOAT16`` a processor counts as one that is slow with bfloat16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

FUSED_ADAM: Any = getattr(torch, "_fused_adam_", None)
ADD_TO_ALL: Any = getattr(torch, "_foreach_add_", None)
NORM_OF_ALL: Any = getattr(torch, "_foreach_norm", None)
SCALE_ALL: Any = getattr(torch, "_foreach_mul_", None)
BLEND_ALL: Any = getattr(torch, "_foreach_lerp_", None)
_RELU_BACKWARD: Any = getattr(torch.ops.aten, "threshold_backward", None)
RELU_BACKWARD: Any = getattr(_RELU_BACKWARD, "default", None)
RELU_BACKWARD_INTO: Any = getattr(_RELU_BACKWARD, "grad_input", None)  # a tensor that is there
_LOG_SOFTMAX_BACKWARD: Any = getattr(torch.ops.aten, "_log_softmax_backward_data", None)
LOG_SOFTMAX_BACKWARD: Any = getattr(_LOG_SOFTMAX_BACKWARD, "default", None)
# Whether the processor multiplies matrices of bfloat16: in tiles, or in long registers.
FAST_BFLOAT16: Any = [
    ask
    for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    if (ask := getattr(torch.cpu, name, None)) is not None
]
_OPTIMIZER: Any = torch.optim.Optimizer
ADD_GROUP: Any = getattr(_OPTIMIZER.add_param_group, "__wrapped__", _OPTIMIZER.add_param_group)
FORGET_GRADIENTS: Any = getattr(_OPTIMIZER.zero_grad, "__wrapped__", _OPTIMIZER.zero_grad)
HOOKS_OF_MODULES = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)
HOOKS_OF_WEIGHTS = ("_backward_hooks", "_post_accumulate_grad_hooks")

SURELY_WITHIN = 0.999  # a norm this far within the limit is scaled by 1, however it is rounded
DENORMAL = 1e-40


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
        self._one_kind = len(kinds) == 1 and next(iter(kinds))[0] == "cpu"
        self._known: object = None  # the state that the moments were taken from
        self._moments: list[list[Tensor]] = []

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add weights, as torch does."""
        ADD_GROUP(self, param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, as torch does."""
        FORGET_GRADIENTS(self, set_to_none)

    def _begin(self) -> None:
        """Give each weight the moments that torch's fused Adam begins with."""
        for weight in self._weights:
            self.state[weight] = {
                "step": torch.zeros((), dtype=torch.float32, device=weight.device),
                "exp_avg": torch.zeros_like(weight, memory_format=torch.preserve_format),
                "exp_avg_sq": torch.zeros_like(weight, memory_format=torch.preserve_format),
            }

    def descend(self) -> None:
        """Clip the gradients that the weights hold, and move the weights."""
        if self.shrinkage:
            with torch.no_grad():
                scale(list[Tensor](self._weights), 1.0 - self.shrinkage)
        gradients = [weight.grad for weight in self._weights if weight.grad is not None]
        ready = self._one_kind and len(gradients) == len(self._weights)
        ready = ready and len(self.state) in (0, len(self._weights))
        if not ready or None in (FUSED_ADAM, ADD_TO_ALL, NORM_OF_ALL):
            nn.utils.clip_grad_norm_(self._weights, self.clip_norm)
            self.step()
            return
        norm = torch.linalg.vector_norm(torch.stack(NORM_OF_ALL(gradients)))
        if not norm.item() < SURELY_WITHIN * self.clip_norm:  # also where it is NaN
            # the factor of `clip_grad_norm_`
            factor = torch.clamp(self.clip_norm / (norm + 1e-6), max=1.0)
            scale(gradients, factor)
        if not self.state:
            self._begin()
        if self._known is not self.state:  # the first time, and after `load_state_dict`
            names = ("exp_avg", "exp_avg_sq", "step")
            self._moments = [[self.state[w][name] for w in self._weights] for name in names]
            self._known = self.state
        means, squares, steps = self._moments
        group = self.param_groups[0]
        with torch.no_grad():
            ADD_TO_ALL(steps, 1)
            FUSED_ADAM(
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


def scale(tensors: list[Tensor], factor: Tensor | float) -> None:
    """Multiply each tensor by a number, in place."""
    if SCALE_ALL is not None:
        SCALE_ALL(tensors, factor)
        return
    for tensor in tensors:
        tensor.mul_(factor)


def blend(targets: list[Tensor], sources: list[Tensor], weight: float) -> None:
    """Move each tensor towards another by this share of the way, in place."""
    if BLEND_ALL is not None:
        BLEND_ALL(targets, sources, weight)
        return
    for target, source in zip(targets, sources, strict=True):
        target.lerp_(source, weight)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Count numbers below 1e-38 as zero while this lasts, where the processor can.

    The gradients of a network that has learned its rows by heart fade into such numbers, and a
    matrix product with them takes several times as long.
    """
    before = are_flushed()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def are_flushed() -> bool:
    """Tell whether this thread counts denormal numbers as zero."""
    return float(torch.tensor(DENORMAL) * 1.0) == 0.0
