"""What the package claims was tried: Pythons by the committed result, lower bounds by what the study installs."""

from __future__ import annotations

import re
import tomllib

from studies.quality import release
from studies.runner import ROOT, read_records

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_no_python_is_claimed_that_was_not_tried() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    tried = {
        record["python"]: record["tests"]
        for record in read_records("quality", "release")
        if record.get("found") and record["dependencies"] == "tested"
    }
    assert claimed
    assert claimed == [version for version in release.PYTHONS if version in tried]
    assert min(ended["passed"] for ended in tried.values()) > 3000


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(line for one in release.EXTRAS for line in extras[one])]
    bounds = {line for line in asked if not line.startswith("torch>")}
    assert all(re.fullmatch(r"[\w.\[\]-]+>=[\d.]+", line) for line in asked)
    assert release.oldest() == sorted(line.replace(">=", "==") for line in bounds)


def test_every_tool_of_the_tests_is_pinned() -> None:
    assert set(release.TOOLS) - set(release.pins()) == set()
