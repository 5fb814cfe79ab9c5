"""What else was tried in our default for tables: python benchmarks/default_tried.py.

Certified throughput with one change each, on the four datasets that the default is judged by; what is better on three of them would
have been kept. Writes default_tried_results.json after each dataset, and goes on where it was.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import reliablenet as rn
from reliablenet.data import TabularEncoder, load_dataset
from reliablenet.methods.architectures import Architecture
from reliablenet.training import run, tabular
from reliablenet.training.descent import ClippedAdam
from reliablenet.training.objective import Objective
from reliablenet.training.schedule import Schedule

RESULTS = Path(__file__).with_name("default_tried_results.json")
DATASETS = {  # seeds and budget
    "synthetic_band": ((0, 37, 42, 123, 2026), 0.05),
    "german_credit": ((0, 37, 42, 123, 2026), 0.05),
    "adult": ((0, 37, 42), 0.05),
    "unsw_nb15": ((0,), 0.01),
}
CHANGES = ("none", "label smoothing 0.05", "cosine over 30 epochs", "periodic embeddings")
COSINE_EPOCHS = 30


@dataclass(frozen=True)
class Smoothed(Objective):
    """Cross-entropy with smoothed labels in training; what is measured stays as it is."""

    def loss(self, outputs: Tensor, y: Tensor, epoch: int) -> Tensor:
        if outputs.ndim == 2:
            return super().loss(outputs, y, epoch)
        labels = y.repeat_interleave(outputs.shape[1])
        return nn.functional.cross_entropy(outputs.flatten(0, 1), labels, label_smoothing=0.05)


class CosineAdam(ClippedAdam):
    """Adam whose rate falls to nothing over a number of steps that is set from outside."""

    total = 1

    def descend(self) -> None:
        self.taken = getattr(self, "taken", 0) + 1
        group = self.param_groups[0]
        first = group.setdefault("first", group["lr"])
        share = min(self.taken / self.total, 1.0)
        group["lr"] = first * (1e-3 + 0.5 * (1.0 + math.cos(math.pi * share)))
        super().descend()


class Periodic(nn.Module):
    """Each number as sines and cosines of learned frequencies, a linear layer and a ReLU (Gorishniy et al. 2022)."""

    def __init__(self, numbers: int, frequencies: int = 24, width: int = 12) -> None:
        super().__init__()
        self.numbers, self.width = numbers, width
        self.frequency = nn.Parameter(0.1 * torch.randn(numbers, frequencies))
        self.linear = nn.Parameter(
            torch.randn(numbers, 2 * frequencies, width) / math.sqrt(2 * frequencies)
        )
        self.bias = nn.Parameter(torch.zeros(numbers, width))

    def forward(self, x: Tensor) -> Tensor:
        angle = 2 * math.pi * x[:, : self.numbers, None] * self.frequency
        waves = torch.cat([angle.sin(), angle.cos()], -1)
        embedded = torch.einsum("nij,ijk->nik", waves, self.linear) + self.bias
        return torch.cat([embedded.relu().flatten(1), x[:, self.numbers :]], 1)


@dataclass(eq=False, repr=False)
class Changed(rn.ReliableClassifier):
    """`ReliableClassifier` with one change."""

    _: KW_ONLY
    change: str = "none"

    def _objective(self) -> Objective:
        return Smoothed() if self.change.startswith("label") else super()._objective()

    def _schedule(self) -> Schedule:
        full = super()._schedule()  # the constraint is not needed with a certified threshold
        return Schedule.erm(full.warmup_epochs, full.patience)

    def _architecture(self) -> Architecture:
        named = super()._architecture()
        if not self.change.startswith("periodic"):
            return named

        def embedded(features: int, outputs: int) -> nn.Module:
            numbers = len(self.encoder_.numbers_)
            periodic = Periodic(numbers)
            return nn.Sequential(
                periodic, tabular(features + numbers * (periodic.width - 1), outputs)
            )

        return replace(named, encoder=TabularEncoder, factory=embedded)


def throughput(name: str, seed: int, alpha: float, change: str) -> float:
    """Return the certified throughput of one fit."""
    folds = load_dataset(name, seed).folds
    optimiser: Any = CosineAdam if change.startswith("cosine") else ClippedAdam
    CosineAdam.total = COSINE_EPOCHS * math.ceil(len(folds.train) / 256)
    run.ClippedAdam = optimiser
    model = Changed(alpha=alpha, change=change, random_state=seed, verbose=False)
    model.fit(
        folds.train.X,
        folds.train.y,
        selection=folds.selection,
        certification=folds.certification,
    )
    return model.certificate_.throughput if model.certificate_.certified else 0.0


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, (seeds, alpha) in DATASETS.items():
        if name not in done:
            done[name] = {"alpha": alpha, "seeds": len(seeds), "throughput": {}}
            for change in CHANGES:
                found = [throughput(name, seed, alpha, change) for seed in seeds]
                done[name]["throughput"][change] = round(float(np.mean(found)), 4)
                print(name, change, done[name]["throughput"][change], flush=True)
            RESULTS.write_text(json.dumps(done, indent=1) + "\n")


if __name__ == "__main__":
    main()
