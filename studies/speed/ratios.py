"""Speed as ratios, measured side by side in one process.

Absolute times mean nothing on a shared machine; each pair is timed in turns and the best of the
repeats is compared. The networks and settings are the paper's; the rows are Adult's.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

import reliablenet as rn
from reliablenet.certificate import certified_threshold
from reliablenet.datasets import SyntheticBand, load_dataset
from reliablenet.metrics import evaluate, risk_coverage_curve
from reliablenet.risk.surrogate import M1, M2
from reliablenet.tables import TabularEncoder
from reliablenet.training import Objective, Rows, Schedule, train
from reliablenet.training.base_schedule import BaseSchedule
from reliablenet.training.loop import Run
from reliablenet.training.settings import Settings
from studies.runner import ROOT, Block, Study
from studies.speed.peers import (
    ALPHA,
    PAPER,
    TAU,
    THRESHOLD,
    cooper_loop,
    mapie_threshold,
    matrix_products,
    new_network,
    skorch_fit,
    usual_loop,
)
from studies.speed.timing import best_times, ratio

PACKAGES = ("torch", "numpy", "scikit-learn", "cooper-optim", "MAPIE", "skorch")
SIZES = (10_000, 100_000, 1_000_000)
MAPIE_ROWS = 8_000  # its table of rows times scores takes 1 GB here, and 100 times that for 80,000
COMPARED = ("erm", "erm_early_stopped", "selectivenet", "deep_gamblers")  # of equal cost
FLAT = "at most 1.2"


@dataclass(frozen=True)
class Figure:
    """One ratio, and what it was to be: "at least 3" or "at most 1.1"; nothing where none was set."""

    name: str
    ratio: float
    target: str = ""

    @property
    def met(self) -> bool | None:
        if not self.target:
            return None
        direction, bound = self.target.rsplit(" ", 1)
        low, high = sorted((self.ratio, float(bound)))
        return self.ratio == (high if direction == "at least" else low)


@dataclass(frozen=True)
class SizeFigure(Figure):
    """A ratio of costs at several sizes, with the sizes in rows and the costs."""

    rows: tuple[int, ...] = ()
    cost: tuple[float, ...] = ()


@cache
def adult() -> tuple[Rows, Rows]:
    """Return the training and selection rows of Adult as the network sees them."""
    folds = load_dataset("adult", 0).folds
    encoder = TabularEncoder().fit(folds.train.X)
    train_rows, selection = (
        Rows(torch.from_numpy(encoder.transform(fold.X)), torch.from_numpy(fold.y.astype(np.int64)))
        for fold in (folds.train, folds.selection)
    )
    return train_rows, selection


def our_fit(schedule: BaseSchedule, rows: Rows, selection: Rows) -> None:
    train(
        new_network(rows),
        rows,
        selection,
        alpha=ALPHA,
        schedule=schedule,
        threshold=THRESHOLD,
        keep="last",
    )


def constrained(epochs: int) -> Schedule:
    return Schedule(warmup_epochs=0, epochs_per_stage=epochs, max_stages=1, tau=TAU)


def epochs_in_our_loop(with_constraint: bool) -> Callable[[], object]:
    """Return one epoch of steps of our loop, without the measurement at its end."""
    settings = Settings(
        alpha=ALPHA,
        schedule=Schedule.paper(),
        objective=Objective(),
        optimisation=PAPER,
        threshold=THRESHOLD,
        aim=ALPHA,
        keep="last",
        seed=0,
        m1=M1,
        m2=M2,
        augment=None,
    )
    rows, selection = adult()
    run = Run(new_network(rows), rows, selection, settings)
    if with_constraint:
        run.constraint = run.build_constraint()
    return lambda: run.pass_over_batches(epoch=1)


def training() -> Iterator[Figure]:
    """Whole epochs against those of others, and steps against each other and their arithmetic."""
    rows, selection = adult()
    erm, bound = Schedule.erm(2), constrained(2)
    against_usual = ratio(
        lambda: usual_loop(rows, selection, 2), lambda: our_fit(erm, rows, selection), 3
    )
    yield Figure("ERM epoch of a usual loop / ours", against_usual, "at least 3")
    against_cooper = ratio(
        lambda: cooper_loop(rows, selection, 2), lambda: our_fit(bound, rows, selection), 3
    )
    yield Figure("constrained epoch with cooper / ours", against_cooper, "at least 2.5")
    against_skorch = ratio(lambda: skorch_fit(rows, 2), lambda: our_fit(erm, rows, selection), 3)
    yield Figure("skorch / our ERM", against_skorch, "at least 3")
    works = [matrix_products(rows), epochs_in_our_loop(False), epochs_in_our_loop(True)]
    products, plain, bounded = best_times(works, 40)
    yield Figure("ERM step / its matrix products", plain / products, "at most 1.6")
    yield Figure("constrained step / its matrix products", bounded / products, "at most 1.6")
    yield Figure("constrained step / ERM step", bounded / plain, "at most 1.1")


def calibrated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of two classes and labels drawn from them."""
    random = np.random.default_rng(0)
    score = random.uniform(0.5, 1.0, n)
    y = (random.uniform(size=n) > score).astype(np.int64)
    return np.column_stack([score, 1.0 - score]), y


def certification() -> Iterator[Figure]:
    """`certified_threshold` and the metrics against sorting, and against MAPIE."""
    proba, y = calibrated(1_000_000)
    score, accepted = proba.max(axis=1), proba.max(axis=1) >= THRESHOLD
    works: dict[str, Callable[[], object]] = {
        "argsort": lambda: np.argsort(score),
        "certified_threshold": lambda: certified_threshold(proba, y),
        "evaluate": lambda: evaluate(proba, y, accepted=accepted),
        "risk_coverage_curve": lambda: risk_coverage_curve(proba, y),
    }
    times = dict(zip(works, best_times(list(works.values()), 9), strict=True))
    for name, target in (
        ("certified_threshold", "at most 2"),
        ("evaluate", ""),
        ("risk_coverage_curve", ""),
    ):
        label = f"{name} / argsort, 1e6 rows"
        yield Figure(label, times[name] / times["argsort"], target)
    few, labels = calibrated(MAPIE_ROWS)
    slower = ratio(
        lambda: mapie_threshold(few, labels), lambda: certified_threshold(few, labels), 3
    )
    label = f"MAPIE / certified_threshold, {MAPIE_ROWS:,} rows and thresholds"
    yield Figure(label, slower, "at least 100")


def decisions() -> Iterator[Figure]:
    """`decide` of an array of a million rows against the network alone, at its best batch size."""
    random = np.random.default_rng(0)
    X = random.standard_normal((1_000_000, 100), dtype=np.float32)
    y = (X[:3000, 0] > 0).astype(int)
    clf = rn.ERMClassifier(epochs=1, random_state=0, verbose=False).fit(X[:3000], y)
    inputs = torch.from_numpy(X)

    def forward(size: int) -> Callable[[], None]:
        def run() -> None:
            with torch.inference_mode():
                for part in inputs.split(size):
                    clf.network_(part)

        return run

    sizes = (128, 256, 512, 1024, 4096, 16384)
    ours, *bare = best_times([lambda: clf.decide(X), *map(forward, sizes)], 3)
    label = "decide / forward pass alone, 1e6 x 100 rows"
    yield Figure(label, ours / min(bare), "at most 1.3")


def comparison() -> Iterator[Figure]:
    """`compare` of four networks in one process and in two."""
    rows = SyntheticBand(random_state=0).sample(4000)

    def run(n_jobs: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rn.compare(rows.X, rows.y, methods=COMPARED, resamples=10, n_jobs=n_jobs, verbose=False)

    run(2)  # starts the workers
    faster = ratio(lambda: run(1), lambda: run(2), 1)
    yield Figure("compare with n_jobs=1 / n_jobs=2", faster)


def band_rows(n: int) -> Rows:
    fold = SyntheticBand(random_state=0).sample(n)
    return Rows(torch.tensor(fold.X, dtype=torch.float32), torch.tensor(fold.y))


def sizes() -> Iterator[Figure]:
    """Compare the costs of a row at several sizes, in units of the smallest.

    Fits pass over as many rows at every size, so that a time is one of equally many steps.
    """
    selection, largest = band_rows(1000), SIZES[-1]
    folds = [band_rows(n) for n in SIZES]
    tables = [calibrated(n) for n in SIZES]

    def fit(rows: Rows, schedule: BaseSchedule) -> Callable[[], None]:
        return lambda: our_fit(schedule, rows, selection)

    def certify(proba: np.ndarray, y: np.ndarray) -> Callable[[], object]:
        return lambda: [certified_threshold(proba, y) for _ in range(largest // len(y))]

    times = {
        "ERM fit, a row and epoch": best_times(
            [fit(rows, Schedule.erm(largest // rows.total)) for rows in folds], 3
        ),
        "constrained fit, a row and epoch": best_times(
            [fit(rows, constrained(largest // rows.total)) for rows in folds], 3
        ),
        "certified_threshold, a row": best_times([certify(*table) for table in tables], 7),
        "memory of a fit, a row": [memory_of_fit(n) / n for n in SIZES],
    }
    for name, costs in times.items():
        relative = [value / costs[0] for value in costs]
        spread = max(relative) / min(relative)
        yield SizeFigure(f"{name}: dearest / cheapest size", spread, FLAT, SIZES, tuple(relative))


def memory_of_fit(n: int) -> float:
    """Return the bytes by which a process grows at most while it makes n rows and fits them."""
    command = [sys.executable, "-c", f"from {__name__} import grow; print(grow({n}))"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)  # noqa: S603
    return float(ended.stdout)


def grow(n: int) -> int:
    """Fit n rows of 100 columns in this process and return by how many bytes it grew at most."""

    def fit(n: int) -> None:
        X = np.random.default_rng(0).standard_normal((n, 100), dtype=np.float32)
        rn.ERMClassifier(epochs=1, random_state=0, verbose=False).fit(X, (X[:, 0] > 0).astype(int))

    fit(2000)  # whatever torch sets up once
    before = _status("VmRSS")
    fit(n)
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


PARTS: dict[str, tuple[Callable[[], Iterator[Figure]], tuple[int, ...]]] = {
    "training": (training, (1, 2)),
    "decisions": (decisions, (1, 2)),
    "certification": (certification, (1,)),
    "comparison": (comparison, (1,)),
    "sizes": (sizes, (1,)),
}


def measure(figures: Callable[[], Iterator[Figure]], threads: int) -> list[dict[str, Any]]:
    """Return a record for each figure, measured with so many threads."""
    default = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return [asdict(figure) | {"met": figure.met} for figure in figures()]
    finally:
        torch.set_num_threads(default)


def blocks() -> list[Block]:
    """Return the parts at one and, where torch is at work, at two threads; other machines and versions are others."""
    made: dict[str, Any] = {"versions": {name: version(name) for name in PACKAGES}}
    made |= {"python": platform.python_version(), "machine": platform.machine()}
    return [
        Block.once({"part": part, "threads": count} | made, partial(measure, figures, count))
        for part, (figures, threads) in PARTS.items()
        for count in threads
    ]


STUDY = Study(
    "speed",
    "ratios",
    about="How fast are we, against what others write and against the arithmetic alone?",
    cost="a quarter of an hour; needs the source files",
    blocks=blocks,
)
