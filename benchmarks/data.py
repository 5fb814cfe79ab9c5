"""What loading costs: RELIABLENET_DATA=... python benchmarks/data.py [adult] [mnist] [cifar10].

Times are ratios within one process, or rates where nothing is there to compare with; memory is the
peak of what numpy allocates.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from reliablenet.datasets import adult, load_dataset
from reliablenet.datasets.sources import fetch
from reliablenet.tables import TabularEncoder

RESULTS = Path(__file__).with_name("data_results.json")


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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

    times = [(seconds(ours), seconds(theirs)) for _ in range(repeats)]  # in turns
    return min(first for first, _ in times) / min(second for _, second in times)


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


MEASURES: dict[str, Callable[[], float]] = {
    "adult": adult_against_pandas,
    "mnist": coloured_images_a_second,
    "cifar10": cifar_memory,
}
LABELS = {
    "adult": "adult: files to matrices / pandas.read_csv (at most 3)",
    "mnist": "coloured_mnist: images a second (at least 20000)",
    "cifar10": "cifar10: peak memory / float32 arrays of the folds (at most 1.5)",
}


def main() -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in sys.argv[1:] or MEASURES:
        results[LABELS[name]] = round(MEASURES[name](), 3)
        print(f"{LABELS[name]}: {results[LABELS[name]]}")
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
