"""Run tests/faults and write down how each ended: python benchmarks/faults.py."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "tests/faults", "-q", f"--junitxml={report}"]
        code = subprocess.run(command, cwd=ROOT).returncode  # noqa: S603
        cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it
        found: dict[str, Counter[str]] = {}
        for case in cases:
            kind = str(case.get("classname")).rsplit(".", 1)[-1].removeprefix("test_")
            ended = next((child.tag for child in case), "passed")
            found.setdefault(kind, Counter())[ended] += 1
    path = ROOT / "results" / "guarantees" / "faults.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({kind: dict(n) for kind, n in sorted(found.items())}, indent=1) + "\n"
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
