"""Tables of docs/robustness.md, from what benchmarks/faults.py and benchmarks/fuzz.py wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results" / "guarantees"
OUTCOMES = {
    "right answer": "right",
    "answer": "answered",
    "our error": "our error",
    "documented error": "scikit-learn's error",
    "no memory": "no memory",
    "fault": "faults",
}


def fault_cases() -> str:
    """Return how many tests of each kind of fault there are, and how they ended."""
    lines = [
        "| tests/faults | tests | passed | skipped | failed |",
        "| --- | --: | --: | --: | --: |",
    ]
    for kind, ended in _read("faults.json").items():
        failed = ended.get("failure", 0) + ended.get("error", 0)
        counts = [sum(ended.values()), ended.get("passed", 0), ended.get("skipped", 0), failed]
        lines.append(f"| {kind.replace('_', ' ')} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines) + "\n"


def fuzz_cases() -> str:
    """Return the outcomes of the long form, by target."""
    found = _read("fuzz.json")
    lines = ["| target | cases | " + " | ".join(OUTCOMES.values()) + " |"]
    lines.append("| --- |" + " --: |" * (len(OUTCOMES) + 1))
    for name, outcomes in found["targets"].items():
        counts = [outcomes.get(kind, 0) for kind in OUTCOMES]
        cells = [f"{count:,}" if count else "" for count in counts]
        lines.append(f"| {name} | {sum(counts):,} | " + " | ".join(cells) + " |")
    lines.append(f"| all | {found['cases']:,} | " + " | ".join([""] * len(OUTCOMES)) + " |")
    return "\n".join(lines) + "\n"


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text())
    return found


ROBUSTNESS = {"fault_cases": fault_cases, "fuzz_cases": fuzz_cases}
