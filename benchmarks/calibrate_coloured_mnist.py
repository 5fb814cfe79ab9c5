"""How hard Coloured MNIST is for ERM: python benchmarks/calibrate_coloured_mnist.py --help.

Trains cnn5 with the paper's optimiser for one setting of the knobs and prints, after every epoch,
the accuracy at correlation 0.9 and the error at 0.1, both on MNIST's test images.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from reliablenet.datasets.coloured_mnist import WEAKENING, load
from reliablenet.datasets.colouring import Weakening
from reliablenet.tables.folds import Fold
from reliablenet.training import History, Rows, Schedule, cnn5, train
from reliablenet.training.forward import evaluate_logits


def as_rows(fold: Fold) -> Rows:
    return Rows(torch.from_numpy(fold.X), torch.from_numpy(fold.y.astype(np.int64)))


def error(network: torch.nn.Module, fold: Fold) -> float:
    rows = as_rows(fold)
    return float((evaluate_logits(network, rows.X).argmax(1) != rows.y).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("downsampling", "window"):
        parser.add_argument(f"--{name}", type=int, default=getattr(WEAKENING, name))
    for name in ("noise", "occlusion"):
        parser.add_argument(f"--{name}", type=float, default=getattr(WEAKENING, name))
    parser.add_argument("--images", type=int, help="training images before the cut; all 60,000")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    knobs = Weakening(chosen.downsampling, chosen.noise, chosen.occlusion, chosen.window)
    start = time.perf_counter()
    data = load(chosen.seed, images=chosen.images, weakening=knobs)
    loaded = time.perf_counter() - start
    print(f"{knobs}, {len(data.folds.train)} training images, painted in {loaded:.1f} s")
    torch.manual_seed(chosen.seed)
    network = cnn5((3, 28, 28), 10)
    sets = [data.sweeps[level] for level in (0.9, 0.1)]

    def show(history: History) -> bool:
        high, low = (error(network, fold) for fold in sets)
        epoch = history.records[-1]
        print(
            f"epoch {epoch.epoch}: loss {epoch.loss:.4f}, on the selection fold "
            f"{epoch.loss_selection:.4f}; accuracy at 0.9 {1 - high:.4f}, error at 0.1 {low:.4f}; "
            f"{time.perf_counter() - start:.0f} s",
            flush=True,
        )
        return False

    history = train(
        network,
        as_rows(data.folds.train),
        as_rows(data.folds.selection),
        alpha=0.01,
        schedule=Schedule.erm(chosen.epochs),
        seed=chosen.seed,
        after_epoch=show,
    )
    print(f"lowest selection-fold loss: epoch {history.chosen_epoch}")


if __name__ == "__main__":
    main()
