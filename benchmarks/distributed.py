"""Speed of training on two processes against one on the same rows and global batches, as ratios.

python benchmarks/distributed.py. Each side has one thread a process; the sides take turns, and the best
epoch of each counts, so that other work on the machine disturbs both alike.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import torch
import torch.distributed as dist

from reliablenet.training import History, Optimisation, Rows, Schedule, mlp, ranks, train

RESULTS = Path(__file__).with_name("distributed_results.json")
ROWS, FEATURES = 30_162, 104  # Adult's training rows, encoded
BATCHES = (256, 1024, 4096)  # of one of two processes
WIDTHS = (128, 512)
ROUNDS = 4
SCHEDULE = Schedule(warmup_epochs=2, epochs_per_stage=4, max_stages=1, tau=0.05)


def measure(batch: int, width: int) -> dict[str, float]:
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


def worker() -> None:
    torch.set_num_threads(1)
    together = "WORLD_SIZE" in os.environ
    if together:
        dist.init_process_group("gloo")
    found = {f"{batch} {width}": measure(batch, width) for batch in BATCHES for width in WIDTHS}
    if ranks.rank() == 0:
        print(json.dumps(found), flush=True)
    if together:
        dist.barrier()
        dist.destroy_process_group()
        os._exit(0)  # gloo's threads may outlive the interpreter


def launch(*prefix: str) -> dict[str, dict[str, float]]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    command = [sys.executable, *prefix, __file__, "worker"]
    answer = subprocess.run(  # noqa: S603
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, dict[str, float]] = json.loads(answer.stdout)
    return found


def main() -> None:
    pair = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    best: dict[tuple[int, str, str], float] = {}
    for _ in range(ROUNDS):
        for world, prefix in ((1, ()), (2, pair)):
            for setting, seconds in launch(*prefix).items():
                for kind, value in seconds.items():
                    key = (world, setting, kind)
                    best[key] = min(value, best.get(key, value))
    results: dict[str, object] = {"torch": torch.__version__, "rows": ROWS}
    for (world, setting, kind), value in best.items():
        if world == 1:
            batch, width = setting.split()
            name = f"2 processes / 1, {kind} epoch, batch {batch} a process, width {width}"
            results[name] = round(best[2, setting, kind] / value, 2)
    for name, ratio in results.items():
        print(f"{name:70s} {ratio}")
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    worker() if sys.argv[1:] == ["worker"] else main()
