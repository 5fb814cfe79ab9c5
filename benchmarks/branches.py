"""How much of src the tests reach, by package: make coverage. Takes the JSON report of coverage and writes
results/guarantees/coverage.json; fails below 95 % of all branches, or below all of risk/, certificate/ and metrics/.

Nothing is excluded: no pragma, no omitted file. What coverage itself leaves out are imports for the type checker alone.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results" / "guarantees" / "coverage.json"
COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")
LEAST, COMPLETE = 0.95, ("risk", "certificate", "metrics")


def by_package(report: dict) -> dict[str, Counter[str]]:
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
    return {
        "statements": counts["covered_lines"] / max(counts["num_statements"], 1),
        "branches": counts["covered_branches"] / counts["num_branches"]
        if counts["num_branches"]
        else 1.0,
    }


def main(path: str) -> int:
    report = json.loads(Path(path).read_text())
    results, short = {}, []
    for package, counts in sorted(by_package(report).items()):
        reached = shares(counts)
        results[package] = {key: counts[key] for key in COUNTS} | {
            name: round(share, 4) for name, share in reached.items()
        }
        least = 1.0 if package in COMPLETE else LEAST if package == "all" else 0.0
        short += [package] if min(reached.values()) < least else []
        print(f"{package:12} {reached['statements']:7.1%} {reached['branches']:7.1%}")
    for name, file in report["files"].items():
        if missing := file["missing_branches"] or file["missing_lines"]:
            print(f"{name}: {missing}")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(f"too little of {', '.join(short)}" if short else "enough")
    return len(short)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
