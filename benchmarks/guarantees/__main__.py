"""Run the simulations and write results/guarantees/: python -m benchmarks.guarantees [NAME ...].

All of it takes hours on two cores; `fits` and `rules` continue where they were stopped.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.guarantees import (
    compare,
    copies,
    fits,
    folds,
    groups,
    rules,
    ties,
    validity,
    voids,
    wording,
)

from reliablenet._files import write_atomically

RESULTS = Path(__file__).parents[2] / "results" / "guarantees"
SECTIONS: dict[str, Callable[[], Iterable[Any]]] = {
    "validity": lambda: [validity.run()],
    "folds": lambda: [folds.run()],
    "ties": lambda: [ties.run()],
    "groups": lambda: [groups.run()],
    "voids": lambda: [voids.run()],
    "copies": lambda: [copies.run()],
    "compare": lambda: [compare.run()],
    "wording": lambda: [wording.run()],
    "fits": lambda: fits.run(done=stored("fits")),
    "rules": lambda: rules.run(done=stored("rules")),
}


def stored(name: str) -> list[dict[str, Any]]:
    """Return what an earlier run wrote down, if there was one."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else []


def main(names: list[str]) -> None:
    """Run the named sections, or all, and write each down as it goes."""
    strangers = [name for name in names if name not in SECTIONS]
    if strangers:
        sys.exit(f"There is no section {strangers[0]}; there are {', '.join(SECTIONS)}.")
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in names or SECTIONS:
        start = time.perf_counter()
        for records in SECTIONS[name]():
            lines = ",\n".join(json.dumps(record) for record in records)
            write_atomically(RESULTS / f"{name}.json", f"[\n{lines}\n]\n".encode())
            draws = sum(record.get("draws", 0) for record in records)
            seconds = time.perf_counter() - start
            print(f"{name}: {len(records)} settings, {draws:,} draws, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
