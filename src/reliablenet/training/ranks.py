"""The processes of a `torch.distributed` group as the training loop sees them; without one, it is alone.

Every function here but `world` and `rank` is a collective operation: all ranks call it, or all wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from reliablenet.errors import InvalidDataError

T = TypeVar("T")


def world() -> int:
    """Return how many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process among them, from 0."""
    return dist.get_rank() if world() > 1 else 0


def from_first(value: T) -> T:
    """Return what rank 0 gave."""
    if world() == 1:
        return value
    held: list[Any] = [value]
    dist.broadcast_object_list(held, src=0)
    return held[0]  # type: ignore[no-any-return]


def gather(value: T) -> list[T]:
    """Return what each rank gave, in order."""
    if world() == 1:
        return [value]
    held: list[Any] = [None] * world()
    dist.all_gather_object(held, value)
    return held


def add_up(values: Sequence[float], device: torch.device) -> list[float]:
    """Return the sum over ranks of each number, in double precision."""
    if world() == 1:
        return list(values)
    totals = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(totals)
    sums: list[float] = totals.tolist()
    return sums


def average_gradients(parameters: Sequence[nn.Parameter], rows: int) -> None:
    """Make every gradient the mean over all ranks' rows, also where their batches are unequal."""
    if world() == 1:
        return
    gradients = [weights.grad for weights in parameters if weights.grad is not None]
    # One message: the gradients of this rank's sum, and its number of rows behind them.
    flat = torch.cat([gradient.flatten() for gradient in gradients] + [gradients[0].new_ones(1)])
    flat *= rows
    dist.all_reduce(flat)
    flat /= flat[-1].clone()
    parts = flat[:-1].split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view(gradient.shape))


def share(tensors: Iterable[Tensor]) -> None:
    """Give every rank the tensors of rank 0, in place."""
    if world() > 1:
        for tensor in tensors:
            dist.broadcast(tensor, src=0)


def check_agreement(value: str) -> None:
    """Raise on every rank unless all of them are about to train the same model."""
    held = gather(value)
    others = [number for number, other in enumerate(held) if other != held[0]]
    if others:
        raise InvalidDataError(
            "All processes of a torch.distributed group train one model together, and must give "
            "the same rows, settings and first weights to it (a DataLoader for training: its own "
            f"part of the rows); rank {others[0]} differs from rank 0. Set random_state to a "
            "number and load the data alike. To train a separate model in each process, run them "
            "without a group."
        )


def gather_states(states: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return random states of all ranks, those of one name end to end; `own_state` cuts them up."""
    held = gather(states)
    return {name: torch.cat([one[name] for one in held]) for name in states}


def own_state(states: Tensor) -> Tensor:
    """Return the part of this rank in what `gather_states` put together."""
    return states.view(world(), -1)[rank()].clone()
