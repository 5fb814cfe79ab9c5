"""The long form of tests/fuzz: more than 100,000 cases, counted by target and outcome."""

from __future__ import annotations

import contextlib
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from studies.runner import ROOT, Block, Record, Study

sys.path[:0] = [str(ROOT / "tests" / name) for name in ("fuzz", "methods")]

from fuzz_case import Fault, run_case  # noqa: E402
from fuzz_files import FILES, run_file  # noqa: E402
from fuzz_models import MODELS, MUTATIONS, good_file, mutants, run_mutant  # noqa: E402
from fuzz_targets import SLOW, TARGETS  # noqa: E402

QUICK_CASES, SLOW_CASES, FILE_CASES, MODEL_SEEDS = 1500, 150, 4500, 50
MEMORY = 12 * 1024**3  # a case that asks for more is told so

Case = Callable[[int], str]  # the number of a case becomes its outcome


def run_cases(open_target: Callable[[Path], Case], count: int) -> Record:
    """Count the outcomes of so many cases of a target, and keep what its faults say."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        case = open_target(Path(folder))
        for number in range(count):
            try:
                outcomes[case(number)] += 1
            except Fault as fault:
                outcomes["fault"] += 1
                faults.append(str(fault))
                print(fault, flush=True)
    return {"outcomes": dict(sorted(outcomes.items())), "faults": faults}


def function_cases(name: str, target: Any, folder: Path) -> Case:
    """Return calls of a function with odd arguments."""
    return partial(run_case, name, target)


def file_cases(name: str, target: Any, folder: Path) -> Case:
    """Return readings of odd files."""
    return lambda number: str(run_file(name, target, number, folder))


def model_cases(kind: str, folder: Path) -> Case:
    """Return altered model files, one a call, and another model after each `MUTATIONS`."""
    stream: list[Iterator[bytes]] = []

    def case(number: int) -> str:
        seed, place = divmod(number, MUTATIONS)
        if place == 0:
            stream[:] = [mutants(good_file(kind, seed, folder), seed)]
        story = f"seed {seed}, case {place}"
        return run_mutant(kind, next(stream[0]), folder / "case.rnet", story)

    return case


def targets() -> Iterator[tuple[str, Callable[[Path], Case], int]]:
    """Yield the name of each target, what opens it in a folder, and how many cases to run."""
    for name, target in TARGETS.items():
        count = SLOW_CASES if name in SLOW else QUICK_CASES
        yield f"function: {name}", partial(function_cases, name, target), count
    for name, file in FILES.items():
        yield f"file: {name}", partial(file_cases, name, file), FILE_CASES
    for kind in MODELS:
        yield f"file: models, {kind}", partial(model_cases, kind), MODEL_SEEDS * MUTATIONS


def blocks() -> list[Block]:
    """Return the targets."""
    return [
        Block.once({"target": name, "cases": count}, partial(run_cases, open_target, count))
        for name, open_target, count in targets()
    ]


STUDY = Study(
    "quality",
    "fuzz",
    about="Does odd input end in an answer or a clear error?",
    cost="half an hour",
    blocks=blocks,
    complaints=lambda records: [fault for record in records for fault in record["faults"]],
)
