"""Speed of training on two processes against one on the same rows and global batches, as ratios.

Each side has one thread a process; the sides take turns, and the best
epoch of each counts, so that other work on the machine disturbs both alike.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise

import torch
import torch.distributed as dist

from reliablenet.training import History, Optimisation, Rows, Schedule, mlp, ranks, train
from studies.runner import ROOT, Block, Study

ROWS, FEATURES = 30_162, 104  # Adult's training rows, encoded
BATCHES = (256, 1024, 4096)  # of one of two processes
WIDTHS = (128, 512)
ROUNDS = 4
TWO_PROCESSES = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
SCHEDULE = Schedule(warmup_epochs=2, epochs_per_stage=4, max_stages=1, tau=0.05)


def epoch_seconds(batch: int, width: int) -> dict[str, float]:
    """Return the seconds of the best plain and the best constrained epoch."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(ROWS, FEATURES, generator=generator)
    rows = Rows(X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).long())
    torch.manual_seed(0)
    times = [time.perf_counter()]

    def note(history: History) -> bool:
        times.append(time.perf_counter())
        return False

    train(
        mlp(FEATURES, 2, width=width),
        rows,
        Rows(rows.X[:500], rows.y[:500]),
        alpha=0.05,
        schedule=SCHEDULE,
        optimisation=Optimisation(batch_size=2 * batch // ranks.world()),
        threshold=0.8,
        after_epoch=note,
    )
    seconds = [end - start for start, end in pairwise(times)]
    warm = SCHEDULE.warmup_epochs
    return {"plain": min(seconds[:warm]), "constrained": min(seconds[warm:])}


def work(batch: int, width: int) -> None:
    """Measure in this process, one of two if torchrun started it, and print what was found."""
    torch.set_num_threads(1)
    together = "WORLD_SIZE" in os.environ
    if together:
        dist.init_process_group("gloo")
    found = epoch_seconds(batch, width)
    if ranks.rank() == 0:
        print(json.dumps(found), flush=True)
    if together:
        dist.barrier()
        dist.destroy_process_group()
        os._exit(0)  # gloo's threads may outlive the interpreter


def launch(batch: int, width: int, *launcher: str) -> dict[str, float]:
    """Measure in a process of its own, or in two."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    answer = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, *launcher, "-m", __spec__.name, str(batch), str(width)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def ratios(batch: int, width: int) -> dict[str, float]:
    """Return the best epoch on two processes over the best on one, plain and constrained."""
    rounds = [(launch(batch, width), launch(batch, width, *TWO_PROCESSES)) for _ in range(ROUNDS)]
    return {
        kind: round(min(two[kind] for _, two in rounds) / min(one[kind] for one, _ in rounds), 2)
        for kind in ("plain", "constrained")
    }


def blocks() -> list[Block]:
    """Return the batches and widths."""
    return [
        Block.once(
            {"batch": batch, "width": width, "rows": ROWS, "torch": torch.__version__},
            partial(ratios, batch, width),
        )
        for batch in BATCHES
        for width in WIDTHS
    ]


STUDY = Study(
    "speed",
    "distributed",
    about="How much faster is an epoch on two processes than on one?",
    cost="ten minutes",
    blocks=blocks,
)


if __name__ == "__main__":  # as `launch` starts it
    work(*map(int, sys.argv[1:]))
