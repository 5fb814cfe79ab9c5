"""How hard Coloured MNIST is for ERM, by how much the digits are weakened.

Trains cnn5 with the paper's optimiser and notes, after every epoch, the accuracy at correlation 0.9 and the error at 0.1,
both on MNIST's test images.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch

from reliablenet.datasets.coloured_mnist import WEAKENING, load
from reliablenet.datasets.colouring import Weakening
from reliablenet.tables.folds import Fold
from reliablenet.training import History, Rows, Schedule, cnn5, train
from reliablenet.training.forward import evaluate_logits
from studies.runner import Block, Study

EPOCHS, SEED = 12, 0
WEAKENINGS = (WEAKENING,)  # add one to try it


def as_rows(fold: Fold) -> Rows:
    """Return a fold as tensors."""
    return Rows(torch.from_numpy(fold.X), torch.from_numpy(fold.y.astype(np.int64)))


def error(network: torch.nn.Module, fold: Fold) -> float:
    """Return the share of a fold that a network predicts wrongly."""
    rows = as_rows(fold)
    return float((evaluate_logits(network, rows.X).argmax(1) != rows.y).double().mean())


def course(weakening: Weakening) -> dict[str, Any]:
    """Return the course of a training on digits weakened so much."""
    data = load(SEED, weakening=weakening)
    torch.manual_seed(SEED)
    network = cnn5((3, 28, 28), 10)
    high, low = (data.sweeps[level] for level in (0.9, 0.1))
    epochs: list[dict[str, float]] = []

    def note(history: History) -> bool:
        last = history.records[-1]
        epochs.append(
            {"loss": last.loss, "loss_selection": last.loss_selection}
            | {"accuracy_at_0.9": 1 - error(network, high), "error_at_0.1": error(network, low)}
        )
        return False

    history = train(
        network,
        as_rows(data.folds.train),
        as_rows(data.folds.selection),
        alpha=0.01,
        schedule=Schedule.erm(EPOCHS),
        random_state=SEED,
        after_epoch=note,
    )
    return {"epochs": epochs, "lowest_selection_loss": history.chosen_epoch}


def blocks() -> list[Block]:
    """Return the ways to weaken digits."""
    return [
        Block.once(
            asdict(weakening) | {"seed": SEED, "trained": EPOCHS}, partial(course, weakening)
        )
        for weakening in WEAKENINGS
    ]


STUDY = Study(
    "default",
    "coloured_mnist",
    about="How hard is Coloured MNIST for ERM?",
    cost="an hour; needs the source files",
    blocks=blocks,
)
