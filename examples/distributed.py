"""Training on rows that are never held at once, on one process or several.

Alone: python distributed.py. On two processes: torchrun --standalone --nproc-per-node 2 distributed.py.
"""

from __future__ import annotations

import os

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import Dataset

import reliablenet as rn


class Visits(Dataset[tuple[Tensor, int]]):
    """Rows made when they are asked for; yours might read a file or a database."""

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.seed = n, seed

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        random = np.random.default_rng((self.seed, place))
        row = random.standard_normal(20, dtype=np.float32)  # numbers, encoded and scaled
        label = row[0] + row[1] * row[2] + random.logistic(0, 0.5) > 0
        return torch.from_numpy(row), int(label)  # a class index


def main() -> None:
    together = "WORLD_SIZE" in os.environ  # torchrun sets it
    if together:
        dist.init_process_group("gloo")  # "nccl" with GPUs, and device="cuda" below
    first = not together or dist.get_rank() == 0
    world = dist.get_world_size() if together else 1

    clf = rn.ReliableClassifier(
        alpha=0.05,
        schedule=rn.training.Schedule(
            warmup_epochs=4, epochs_per_stage=2, max_stages=3, tau=0.02, dual_rate=0.3
        ),
        batch_size=256 // world,  # of one process: together they take 256 rows a step
        random_state=0,
    )
    # Every process says the same; each reads its share of the training rows.
    clf.fit(Visits(4000, 0), selection=Visits(1000, 1), certification=Visits(2000, 2))

    if first:  # all hold the same model
        print(f"processes: {world}, epochs: {len(clf.history_.records)}")
        print("certified:", clf.certificate_.certified, "because", clf.certificate_.reason)
        print(f"acts on:   {clf.accept(Visits(1000, 3)).mean():.1%} of new rows")
        clf.save("model.rnet")
    if together:
        dist.barrier()
        dist.destroy_process_group()
        os._exit(0)  # gloo's threads may outlive the interpreter


if __name__ == "__main__":
    main()
