"""`reliablenet bench`, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reliablenet.bench.trainings import METHODS
from reliablenet.cli.app import app

ROOT = Path(__file__).parents[2]


@pytest.fixture
def smoke(tmp_path) -> list[str]:
    return ["--profile", "smoke", "--results", str(tmp_path)]


def call(*arguments: str):
    return CliRunner().invoke(app, ["bench", *arguments])


def test_run_status_table(smoke, tmp_path) -> None:
    chosen = ["--methods", "erm,boosting+certified", "--seeds", "0"]
    result = call("run", *smoke, *chosen)
    assert result.exit_code == 0, result.output
    assert "2 trainings done, 0 runs failed" in result.output
    assert "Nothing to do" in call("run", *smoke, *chosen).output
    status = call("status", *smoke).output.splitlines()
    left = 2 * sum(not method.startswith("images") for method in METHODS) - 2
    assert status[1].split() == ["synthetic_band", "2", "0", str(left)]
    counts = json.loads(call("status", *smoke, "--json").stdout)
    assert counts["synthetic_band"] == {"runs": 2, "failed": 0, "left": left}
    again = call("run", *smoke, *chosen, "--json")
    assert json.loads(again.stdout) == {"trainings": 0, "failures": []}
    shown = call("table", *smoke, "--out", str(tmp_path / "tables"))
    assert "| synthetic_band | boosting+certified |" in shown.output
    names = sorted(path.name for path in (tmp_path / "tables").iterdir())
    assert names == [
        f"{t}.{s}"
        for t in ("agreement", "in_distribution", "matched_coverage", "ranking")
        for s in ("csv", "md", "tex")
    ]


def test_the_committed_results_can_be_tabled() -> None:
    result = call("table", "--profile", "paper", "--results", str(ROOT / "results"))
    assert result.exit_code == 0, result.output
    assert "reliablenet_last+certified" in result.output


def test_bad_seeds(smoke) -> None:
    result = call("run", *smoke, "--seeds", "1,x")
    assert result.exit_code == 2
    assert "--seeds must be whole numbers" in result.stderr


def test_bad_format(smoke) -> None:
    assert call("table", *smoke, "--format", "word").exit_code == 2
