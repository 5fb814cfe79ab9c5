"""How many certification rows of the datasets are copies of others: needs the source files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from reliablenet.datasets import DATASETS, load_dataset
from reliablenet.tables.copies import count_copies
from reliablenet.tables.folds import Fold, Folds


def run() -> list[dict[str, Any]]:
    """Count twins and copies in every dataset, and in Adult without its one fine column."""
    records = []
    for name in sorted(DATASETS):
        folds = load_dataset(name, random_state=0).folds
        records.append(_record(name, folds))
        if name == "adult":
            records.append(_record("adult without fnlwgt", _without(folds, "fnlwgt")))
    return records


def _record(name: str, folds: Folds) -> dict[str, Any]:
    found = count_copies(folds.certification, (folds.train, folds.selection))
    return {"dataset": name} | asdict(found) | {"warned": found.suspicious}


def _without(folds: Folds, column: str) -> Folds:
    parts = (folds.train, folds.selection, folds.certification)
    return Folds(*(Fold(part.X.drop(columns=column), part.y) for part in parts))
