"""Training on images as ratios, measured side by side in one process.

A usual loop has a DataLoader that mirrors and moves images one by one, float32 and rows first. Ours is `resnet9` as its name brings
it: batches by index, images moved together, channels last, and bfloat16 where the processor is fast with it. The same network, the same
optimiser, random pixels of CIFAR-10's shape; absolute speed is noted beside the ratios, and means something on an idle machine alone.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from reliablenet.methods.architectures import build_network
from reliablenet.risk.surrogate import M1, M2
from reliablenet.training import Objective, Optimisation, Rows, Schedule, Stream, resnet9
from reliablenet.training.devices import has_fast_bfloat16
from reliablenet.training.loop import Run
from reliablenet.training.settings import Settings
from studies.runner import Block, Study
from studies.speed.ratios import Figure
from studies.speed.timing import best_times

SHAPE, CLASSES, BATCH, MARGIN = (3, 32, 32), 10, 256, 4
IMAGES, REPEATS = 1024, 5


class MovedImages(Dataset[Any]):
    """Images that are mirrored and moved one by one, as transforms do."""

    def __init__(self, X: Tensor, y: Tensor) -> None:
        self.X, self.y = X, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        image = self.X[place]
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        image = nn.functional.pad(image, (MARGIN,) * 4)
        top, left = (int(torch.randint(0, 2 * MARGIN + 1, ())) for _ in range(2))
        return image[:, top : top + SHAPE[1], left : left + SHAPE[2]], self.y[place]


def rows(n: int) -> Rows:
    """Return images of noise, and labels at random."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, *SHAPE, generator=generator)
    return Rows(X, torch.randint(CLASSES, (n,), generator=generator))


def usual_epoch(known: Rows) -> Callable[[], object]:
    """Return an epoch of a usual loop."""
    how = Optimisation.fast_images()
    network = resnet9(SHAPE, CLASSES)
    optimiser = torch.optim.SGD(
        network.parameters(),
        how.learning_rate,
        momentum=how.momentum,
        nesterov=True,
        weight_decay=how.weight_decay,
    )
    loader = DataLoader(MovedImages(*known), BATCH, shuffle=True)

    def epoch() -> None:
        network.train()
        for X, y in loader:
            loss = nn.functional.cross_entropy(network(X), y)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), how.clip_norm)
            optimiser.step()

    return epoch


def our_epoch(
    known: Rows, *, constrained: bool = False, loader: bool = False, bfloat16: bool = True
) -> Callable[[], object]:
    """Return an epoch of steps of our loop, without the measurement at its end."""
    settings = Settings(
        alpha=0.03,
        schedule=Schedule.paper(),
        objective=Objective(),
        optimisation=replace(Optimisation.fast_images(), bfloat16=bfloat16),
        threshold=0.8,
        aim=0.03,
        keep="last",
        seed=0,
        m1=M1,
        m2=M2,
        augment="flips+crops",
    )
    network = build_network(resnet9, SHAPE, [], CLASSES, CLASSES, 0, "study")
    source = Stream(DataLoader(TensorDataset(*known), BATCH, shuffle=True)) if loader else known
    run = Run(network, source, rows(BATCH), settings)
    if constrained:
        run.constraint = run.build_constraint()
    return lambda: run.pass_over_batches(epoch=1)


def measure() -> list[dict[str, Any]]:
    """Return the ratios."""
    known = rows(IMAGES)
    works = [
        usual_epoch(known),
        our_epoch(known),
        our_epoch(known, constrained=True),
        our_epoch(known, loader=True),
        our_epoch(known, bfloat16=False),
    ]
    usual, plain, constrained, loaded, whole = best_times(works, REPEATS)
    figures = (
        Figure("usual loop with a DataLoader / ours", usual / plain, "at least 2.5"),
        Figure("usual loop with a DataLoader / ours in float32", usual / whole),
        Figure("constrained step / plain step", constrained / plain, "at most 1.05"),
        Figure("from a DataLoader / from memory", loaded / plain),
    )
    machine = {
        "bfloat16": has_fast_bfloat16(torch.device("cpu")),
        "threads": torch.get_num_threads(),
        "on": platform.machine(),
        "images_a_second": round(IMAGES / plain),
    }
    return [asdict(figure) | {"met": figure.met} | machine for figure in figures]


def blocks() -> list[Block]:
    """Return the one block."""
    return [Block.once({"images": IMAGES, "batch": BATCH, "repeats": REPEATS}, measure)]


STUDY = Study(
    "speed",
    "image_steps",
    about="How fast are steps on images, plain and constrained, against a usual loop?",
    cost="two minutes on an idle machine",
    blocks=blocks,
)
