"""How many certification rows of the datasets are copies of others: needs the source files."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from reliablenet.datasets import DATASETS, load_dataset
from reliablenet.tables.copies import count_copies
from reliablenet.tables.folds import Fold, Folds
from studies.runner import Block, Study


def blocks() -> list[Block]:
    """Return every dataset, and Adult without its one fine column too."""
    sources = [(name, "") for name in sorted(DATASETS)]
    sources.insert(sources.index(("adult", "")) + 1, ("adult", "fnlwgt"))
    return [
        Block.once(
            {"dataset": f"{name} without {left_out}" if left_out else name},
            partial(count, name, left_out),
        )
        for name, left_out in sources
    ]


def count(name: str, left_out: str) -> dict[str, Any]:
    """Count twins and copies among the certification rows of a dataset, without a column or with all."""
    folds = load_dataset(name, random_state=0).folds
    if left_out:
        parts = (folds.train, folds.selection, folds.certification)
        folds = Folds(*(Fold(part.X.drop(columns=left_out), part.y) for part in parts))
    found = count_copies(folds.certification, (folds.train, folds.selection))
    return asdict(found) | {"warned": found.suspicious}


STUDY = Study(
    "guarantees",
    "copies",
    about="How many certification rows of the datasets are copies of others?",
    cost="a minute; needs the source files",
    blocks=blocks,
)
