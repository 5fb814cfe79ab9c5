"""The long form of tests/fuzz: more than 100,000 cases, counted by target and outcome.

python benchmarks/fuzz.py            about half an hour on one core; writes results/guarantees/fuzz.json
python benchmarks/fuzz.py certify    the targets with this in their name, and writes nothing
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("fuzz", "methods")]

from fuzz_case import Fault, run_case  # noqa: E402
from fuzz_files import FILES, run_file  # noqa: E402
from fuzz_models import MODELS, MUTATIONS, good_file, mutants, run_mutant  # noqa: E402
from fuzz_targets import SLOW, TARGETS  # noqa: E402

QUICK_CASES, SLOW_CASES, FILE_CASES, MODEL_SEEDS = 1500, 150, 4500, 50
MEMORY = 12 * 1024**3  # a case that asks for more is told so


def main(pattern: str = "") -> int:
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found: dict[str, dict[str, int]] = {}
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for group, name, case, count in targets(Path(folder)):
            if pattern not in name:
                continue
            outcomes: Counter[str] = Counter()
            for seed in range(count):
                try:
                    outcomes[case(seed)] += 1
                except Fault as fault:
                    outcomes["fault"] += 1
                    faults.append(str(fault))
                    print(fault, flush=True)
            found[f"{group}: {name}"] = dict(sorted(outcomes.items()))
            print(name, dict(outcomes), flush=True)
            if not pattern:
                write(found, faults)
    return 1 if faults else 0


def targets(folder: Path) -> Iterator[tuple[str, str, Callable[[int], str], int]]:
    """Yield group, name, a function of the case's number, and how many cases to run."""
    for name, target in TARGETS.items():
        count = SLOW_CASES if name in SLOW else QUICK_CASES
        yield "function", name, lambda seed, n=name, t=target: run_case(n, t, seed), count
    for name, file in FILES.items():
        case = lambda seed, n=name, t=file: run_file(n, t, seed, folder)  # noqa: E731
        yield "file", name, case, FILE_CASES
    for kind in MODELS:
        yield "file", f"models, {kind}", model_cases(kind, folder), MODEL_SEEDS * MUTATIONS


def model_cases(kind: str, folder: Path) -> Callable[[int], str]:
    """Return altered model files, one a call, and another model after each `MUTATIONS`."""
    stream: list[Iterator[bytes]] = []

    def case(number: int) -> str:
        seed, place = divmod(number, MUTATIONS)
        if place == 0:
            stream[:] = [mutants(good_file(kind, seed, folder), seed)]
        story = f"seed {seed}, case {place}"
        return run_mutant(kind, next(stream[0]), folder / "case.rnet", story)

    return case


def write(found: dict[str, dict[str, int]], faults: list[str]) -> None:
    total = sum(sum(outcomes.values()) for outcomes in found.values())
    path = ROOT / "results" / "guarantees" / "fuzz.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"cases": total, "faults": faults, "targets": found}, indent=1)
    path.write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
