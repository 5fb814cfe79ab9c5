"""How much of src the tests reach, by package.

Nothing is excluded: no pragma, no omitted file. What coverage itself leaves out are imports for the type checker alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from studies.runner import ROOT, Block, Record, Study

COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")
LEAST, COMPLETE = 0.95, ("risk", "certificate", "metrics")


def measure() -> list[Record]:
    """Run all tests, with the processes they start, and return the counts of each package."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "pytest", "-n", "auto", "-q", "--cov"]
        subprocess.run([*command, f"--cov-report=json:{path}"], cwd=ROOT, check=True)  # noqa: S603
        report = json.loads(path.read_text())
    for name, file in report["files"].items():
        if missing := file["missing_branches"] or file["missing_lines"]:
            print(f"{name}: {missing}")
    return [
        {"package": package} | {key: counts[key] for key in COUNTS} | shares(counts)
        for package, counts in sorted(by_package(report).items())
    ]


def by_package(report: dict[str, Any]) -> dict[str, Counter[str]]:
    """Sum up the counts of each package, those of the modules beside them, and all."""
    packages: dict[str, Counter[str]] = {}
    for name, file in report["files"].items():
        parts = Path(name).parts
        inside = parts[parts.index("reliablenet") + 1 :]
        counts = Counter({key: file["summary"][key] for key in COUNTS})
        for package in ("all", inside[0] if len(inside) > 1 else "modules"):
            packages[package] = packages.get(package, Counter()) + counts
    return packages


def shares(counts: Counter[str]) -> dict[str, float]:
    """Return the share of statements and of branches that were reached; of none, all."""
    pairs = {
        "statements": ("covered_lines", "num_statements"),
        "branches": ("covered_branches", "num_branches"),
    }
    return {
        name: round(counts[reached] / counts[total], 4) if counts[total] else 1.0
        for name, (reached, total) in pairs.items()
    }


def complaints(records: list[Record]) -> list[str]:
    """Say which packages the tests reach too little of."""
    found = []
    for record in records:
        package = record["package"]
        least = 1.0 if package in COMPLETE else LEAST if package == "all" else 0.0
        all_reached = record["covered_lines"] == record["num_statements"]
        all_reached &= record["covered_branches"] == record["num_branches"]
        share = min(record["statements"], record["branches"])
        if share < least or (least == 1.0 and not all_reached):
            found.append(f"The tests reach {share:.1%} of {package}; they must reach {least:.0%}.")
    return found


STUDY = Study(
    "quality",
    "coverage",
    about="How many statements and branches do the tests reach?",
    cost="a quarter of an hour",
    blocks=lambda: [Block.once({}, measure)],
    complaints=complaints,
)
