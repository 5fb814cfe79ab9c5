"""Would the tests notice an error in risk/, certificate/ or metrics/?

Each mutant is one small change of one file, and must make a test fail. Survivors are listed with the reason why no test
could tell them from the original (mutation_equivalent.json); a survivor without one, a reason without its survivor, or
fewer than 95 % killed is an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from studies.quality.mutants import modules
from studies.runner import ROOT, Block, Record, Study

EQUIVALENT = Path(__file__).with_name("mutation_equivalent.json")
LEAST_KILLED = 0.95


def try_module(module: str) -> Record:
    """Try every mutant of a module, in a process that has not imported us; give survivors their reasons."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [sys.executable, "-m", "studies.quality.mutants", module, str(path)]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=ROOT, env=environment, check=True)  # noqa: S603 - our own
        found: Record = json.loads(path.read_text())
    reasons = reasons_of(module)
    for survivor in found["survivors"]:
        survivor["reason"] = reasons.get((survivor["line"], survivor["becomes"]), "")
    return found


def reasons_of(module: str) -> dict[tuple[str, str], str]:
    """Return why survivors are equivalent, by the line and what it becomes."""
    entries = json.loads(EQUIVALENT.read_text()).get(module, [])
    return {(entry["line"], entry["becomes"]): entry["reason"] for entry in entries}


def complaints(records: list[Record]) -> list[str]:
    """Say which survivors have no reason, which reasons no survivor, and whether too many survive."""
    found = []
    for record in records:
        module = record["module"]
        seen = {(entry["line"], entry["becomes"]) for entry in record["survivors"]}
        explained = set(reasons_of(module))
        found += [f"{module}: {key} survives without a reason." for key in seen - explained]
        found += [f"{module}: {key} has a reason and does not survive." for key in explained - seen]
    total, survived = (sum(record[what] for record in records) for what in ("mutants", "survived"))
    killed = 1 - survived / total
    print(f"{total - survived} of {total} mutants killed: {killed:.1%}")
    if killed < LEAST_KILLED:
        found.append(f"{killed:.1%} of the mutants are killed; {LEAST_KILLED:.0%} must be.")
    return found


def blocks() -> list[Block]:
    """Return the modules."""
    return [Block.once({"module": module}, partial(try_module, module)) for module in modules()]


STUDY = Study(
    "quality",
    "mutation",
    about="Would the tests notice an error in risk/, certificate/ or metrics/?",
    cost="half an hour",
    blocks=blocks,
    complaints=complaints,
)
