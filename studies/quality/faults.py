"""How the tests of faults ended: a full disk, a killed process, a clock that jumps."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from studies.runner import ROOT, Block, Record, Study


def endings() -> list[Record]:
    """Run tests/faults and return how many tests of each kind ended in which way."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "tests/faults", "-q", f"--junitxml={report}"]
        subprocess.run(command, cwd=ROOT)  # noqa: S603 - the report says how they ended
        found: dict[str, Counter[str]] = {}
        for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it
            kind = str(case.get("classname")).rsplit(".", 1)[-1].removeprefix("test_")
            ended = next((child.tag for child in case), "passed")
            found.setdefault(kind, Counter())[ended] += 1
    return [{"kind": kind} | dict(counts) for kind, counts in sorted(found.items())]


def failed(record: Record) -> int:
    """Return how many tests of a kind failed."""
    return int(record.get("failure", 0) + record.get("error", 0))


def complaints(records: list[Record]) -> list[str]:
    """Say which kinds have failures."""
    return [f"{failed(one)} tests of {one['kind']} fail." for one in records if failed(one)]


STUDY = Study(
    "quality",
    "faults",
    about="Does every fault end in an answer or a clear error?",
    cost="five minutes",
    blocks=lambda: [Block.once({}, endings)],
    complaints=complaints,
)
