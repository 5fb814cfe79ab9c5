"""What loading costs.

Times are ratios within one process, or rates where nothing is there to compare with; memory is the
peak of what numpy allocates.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import pandas as pd

from reliablenet.datasets import adult, load_dataset
from reliablenet.datasets.sources import fetch
from reliablenet.tables import TabularEncoder
from studies.runner import Block, Study
from studies.speed.timing import ratio, seconds


def adult_against_pandas(repeats: int = 9) -> float:
    """Files to the float32 matrices of all folds, as a multiple of reading the CSV files."""

    def ours() -> None:
        folds = load_dataset("adult").folds
        encoder = TabularEncoder().fit(folds.train.X)
        for fold in vars(folds).values():
            encoder.transform(fold.X)

    def theirs() -> None:
        training, test = (fetch(file) for file in adult.FILES)
        pd.read_csv(training, header=None)
        pd.read_csv(test, header=None, skiprows=1)

    return ratio(ours, theirs, repeats)


def coloured_images_a_second(repeats: int = 3) -> float:
    """Images of all folds and of the shift, from files to float32 arrays."""

    def images() -> int:
        dataset = load_dataset("coloured_mnist")
        parts = [*vars(dataset.folds).values(), *dataset.shifts.values()]
        return sum(len(part) for part in parts)

    count = images()
    return count / min(seconds(images) for _ in range(repeats))


def cifar_memory() -> float:
    """Peak memory while the folds are built, as a multiple of their float32 arrays."""
    tracemalloc.start()
    folds = load_dataset("cifar10").folds
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / sum(fold.X.nbytes for fold in vars(folds).values())


MEASURES: dict[tuple[str, str], Callable[[], float]] = {
    ("adult: files to matrices / pandas.read_csv", "at most 3"): adult_against_pandas,
    ("coloured_mnist: images a second", "at least 20000"): coloured_images_a_second,
    ("cifar10: peak memory / float32 arrays of the folds", "at most 1.5"): cifar_memory,
}


def rounded(measure: Callable[[], float]) -> dict[str, float]:
    """Return the record of a measure."""
    return {"value": round(measure(), 3)}


def blocks() -> list[Block]:
    """Return the measures."""
    return [
        Block.once({"what": what, "target": target}, partial(rounded, measure))
        for (what, target), measure in MEASURES.items()
    ]


STUDY = Study(
    "speed",
    "loading",
    about="What does loading a dataset cost?",
    cost="a minute; needs the source files",
    blocks=blocks,
)
