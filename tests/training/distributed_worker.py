"""One process of `test_distributed.py`: python distributed_worker.py RANK WORLD FOLDER.

Trains on its slice of every global batch and writes what it holds at the end to FOLDER. In a world
of 1, `experiments` gets the whole batches and needs no group.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import cross_entropy

from reliablenet.training import JCWConstraint, mlp

STEPS, BATCH, ROWS = 30, 64, 1280
WEIGHTS = "body.0.weight"
UNEQUAL = (0, 10, 48)  # in the second experiment the first rank has 10 rows, the second 38


def rows_of(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X, noise = (torch.randn(ROWS, width, generator=generator) for width in (10, 1))
    return X, (X[:, 0] + noise[:, 0] > 0).long()


def train(rank: int, world: int) -> dict[str, torch.Tensor]:
    X, y = rows_of(seed=0)
    torch.manual_seed(0)
    plain = mlp(X.shape[1], 2, width=32)
    network = nn.parallel.DistributedDataParallel(plain) if world > 1 else plain
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    constraint = JCWConstraint(alpha=0.2, threshold=0.6, rows=ROWS, tau=0.2)
    for step in range(STEPS):
        start = step * BATCH % ROWS
        mine = slice(start + rank * BATCH // world, start + (rank + 1) * BATCH // world)
        logits = network(X[mine])
        loss = cross_entropy(logits, y[mine]) + constraint.penalty(logits, y[mine])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        constraint.step()
    return plain.state_dict() | {
        f"constraint.{k}": v.clone() for k, v in constraint.state_dict().items()
    }


def unequal_batches(rank: int, world: int) -> dict[str, torch.Tensor]:
    X, y = rows_of(seed=1)
    mine = slice(0, UNEQUAL[-1]) if world == 1 else slice(UNEQUAL[rank], UNEQUAL[rank + 1])
    logits = X[mine, :2].clone().requires_grad_()
    constraint = JCWConstraint(alpha=0.2, threshold=0.6, rows=ROWS, tau=0.2)
    for piece in (slice(0, 5), slice(5, None)):  # two micro-batches before one step
        constraint.penalty(logits[piece], y[mine][piece])
    constraint.step()
    return {"unequal.multiplier": constraint.multiplier, "unequal.ema": constraint.violation_ema}


def groups(rank: int, world: int) -> dict[str, torch.Tensor]:
    """A budget for each of three groups; the ranks hold unequal parts of them, one none of the last."""
    X, y = rows_of(seed=2)
    group = torch.where(torch.arange(ROWS) % BATCH < 8, 2, (X[:, 1] > 0.8).long())
    torch.manual_seed(0)
    plain = mlp(X.shape[1], 2, width=16)
    network = nn.parallel.DistributedDataParallel(plain) if world > 1 else plain
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    constraint = JCWConstraint(alpha=0.2, threshold=0.6, groups=3, rows=ROWS, tau=0.2)
    for step in range(STEPS):
        start = step * BATCH % ROWS
        mine = slice(start + rank * BATCH // world, start + (rank + 1) * BATCH // world)
        logits = network(X[mine])
        penalty = constraint.penalty(logits, y[mine], group[mine])
        optimiser.zero_grad()
        (cross_entropy(logits, y[mine]) + penalty).backward()
        optimiser.step()
        constraint.step()
    return {"groups.weight": plain.state_dict()[WEIGHTS]} | {
        f"groups.{k}": v.clone() for k, v in constraint.state_dict().items()
    }


def experiments(rank: int, world: int) -> dict[str, torch.Tensor]:
    return train(rank, world) | unequal_batches(rank, world) | groups(rank, world)


def main(rank: int, world: int, folder: Path) -> None:
    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # no name service, no firewall
    dist.init_process_group(
        "gloo",
        init_method=(folder / "rendezvous").as_uri(),
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=600),
    )
    save_file(experiments(rank, world), folder / f"rank{rank}.safetensors")
    dist.barrier()
    dist.destroy_process_group()
    # Gloo's threads may outlive the interpreter and abort it (pytorch#179291); all is written.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
