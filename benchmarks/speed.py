"""Speed as ratios, measured side by side in one process: python benchmarks/speed.py.

Absolute times mean nothing on a shared machine; each pair is timed in turns and the best of the
repeats is compared, which is the run that the rest of the machine disturbed least.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reliablenet.certificate import certified_threshold
from reliablenet.data import SyntheticBand
from reliablenet.risk.surrogate import M1, M2
from reliablenet.training import Objective, Optimisation, Rows, Schedule, mlp, train
from reliablenet.training.loop import _Run, _Settings

RESULTS = Path(__file__).with_name("results.json")
BATCH = 256


def ratio(ours: Callable[[], object], theirs: Callable[[], object], repeats: int) -> float:
    """Time two pieces of work in turns and return the ratio of their best times."""
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        for number, work in enumerate((ours, theirs)):
            start = time.perf_counter()
            work()
            best[number] = min(best[number], time.perf_counter() - start)
    return best[0] / best[1]


def band_rows(n: int) -> Rows:
    fold = SyntheticBand(seed=0).sample(n)
    return Rows(torch.tensor(fold.X, dtype=torch.float32), torch.tensor(fold.y))


def constrained_step(repeats: int = 150) -> float:
    """One epoch of constrained steps against one of unconstrained steps, in our loop."""
    rows, selection = band_rows(5000), band_rows(500)

    def run(constrained: bool) -> _Run:
        torch.manual_seed(0)
        settings = _Settings(
            alpha=0.05,
            schedule=Schedule.paper(),
            objective=Objective(),
            optimisation=Optimisation(),
            threshold=0.8,
            keep="last",
            seed=0,
            m1=M1,
            m2=M2,
        )
        state = _Run(mlp(10, 2), rows, selection, settings)
        if constrained:
            state.constraint = state.build_constraint()
        return state

    ours, plain = run(True), run(False)
    return ratio(
        lambda: ours.pass_over_batches(epoch=1), lambda: plain.pass_over_batches(epoch=1), repeats
    )


def epoch_against_dataloader(repeats: int = 7) -> float:
    """Whole ERM epochs of ours, measurement included, against the usual loop on the same rows."""
    rows, selection = band_rows(20_000), band_rows(500)

    def ours() -> None:
        train(mlp(10, 2), rows, selection, alpha=0.05, schedule=Schedule.erm(2), keep="last")

    def usual() -> None:
        network = mlp(10, 2)
        optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-4)
        loader = DataLoader(TensorDataset(*rows), batch_size=BATCH, shuffle=True)
        for _ in range(2):
            total = 0.0
            for X, y in loader:
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(network(X), y)
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 5.0)
                optimiser.step()
                total += loss.item() * len(y)
            with torch.no_grad():
                (network(selection.X).argmax(1) == selection.y).float().mean().item()

    return ratio(ours, usual, repeats)


def threshold_against_argsort(repeats: int = 9) -> float:
    """`certified_threshold` of a million rows of probabilities against sorting their scores."""
    random = np.random.default_rng(0)
    score = random.uniform(0.5, 1.0, 1_000_000)
    proba = np.column_stack([score, 1.0 - score])
    y = (random.uniform(size=len(score)) > score).astype(int)
    return ratio(lambda: certified_threshold(proba, y), lambda: np.argsort(score), repeats)


def main() -> None:
    default = torch.get_num_threads()
    results: dict[str, object] = {"torch": torch.__version__, "machine": platform.machine()}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        results[f"constrained step / unconstrained step, {threads} threads"] = constrained_step()
        results[f"our epoch / DataLoader epoch, {threads} threads"] = epoch_against_dataloader()
    torch.set_num_threads(default)
    results["certified_threshold / argsort, 1e6 rows"] = threshold_against_argsort()
    for name, value in results.items():
        print(f"{name:55s} {value:.2f}" if isinstance(value, float) else f"{name:55s} {value}")
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
