"""`reliablenet bench`, as typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reliablenet.bench import PROFILES
from reliablenet.bench.figures import FIGURES
from reliablenet.bench.methods import study_methods
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
    methods = study_methods(PROFILES["smoke"].plans["synthetic_band"])
    left = 2 * len(methods) + 1 - 2  # and what the figures of the band show, once
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


def test_tables_that_no_run_is_for_are_left_out_and_named(smoke) -> None:
    call("run", *smoke, "--methods", "erm", "--seeds", "0")
    shown = call("table", *smoke)
    assert shown.exit_code == 0
    assert "| synthetic_band | erm |" in shown.stdout
    assert "note: left out for want of runs: ranking" in shown.stderr


def test_the_committed_results_can_be_tabled() -> None:
    result = call("table", "--profile", "paper", "--results", str(ROOT / "results"))
    assert result.exit_code == 0, result.output
    assert "reliablenet_last+certified" in result.output


def test_a_packed_run_is_done(smoke, tmp_path) -> None:
    assert "Nothing to pack: no finished run lies in" in call("pack", *smoke).output
    chosen = ["--methods", "boosting+certified"]
    assert call("run", *smoke, *chosen).exit_code == 0
    before = call("status", *smoke).output, call("table", *smoke).output
    packed = call("pack", *smoke)
    assert packed.output == f"{tmp_path / 'smoke' / 'synthetic_band.jsonl'}: 2 runs\n"
    shutil.rmtree(tmp_path / "smoke" / "synthetic_band")
    assert (call("status", *smoke).output, call("table", *smoke).output) == before
    assert "Nothing to do" in call("run", *smoke, *chosen).output
    assert [path.name for path in (tmp_path / "smoke").iterdir()] == ["synthetic_band.jsonl"]


def test_figures_are_drawn_from_what_is_committed(tmp_path) -> None:
    committed = ["--profile", "paper", "--results", str(ROOT / "results")]
    files = {}
    for folder in ("one", "two"):
        out = tmp_path / folder
        result = call("figure", "geometry", *committed, "--out", str(out))
        assert result.exit_code == 0, result.output
        files[folder] = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(files["one"]) == {f"geometry.{kind}" for kind in ("csv", "png", "svg")}
    assert files["one"] == files["two"]
    assert files["one"]["geometry.png"].startswith(b"\x89PNG")
    assert files["one"]["geometry.csv"].count(b"\n") == 3  # a heading and two networks


def test_all_figures_that_there_is_something_for(smoke, tmp_path) -> None:
    out = ["--out", str(tmp_path / "figures")]
    result = call("figure", "all", *smoke, *out)
    assert result.exit_code == 1
    assert result.stderr.count("reliablenet bench run --profile smoke") >= 6
    call("run", *smoke, "--methods", "boosting+certified", "--seeds", "0")
    result = call("figure", "all", *smoke, *out, "--methods", "boosting+certified")
    assert result.exit_code == 0, result.output
    drawn = {path.stem for path in (tmp_path / "figures").iterdir()}
    left = {name for name in FIGURES if name.startswith(("groups", "confidence", "geometry"))}
    assert drawn == set(FIGURES) - left - {"severity_coloured_mnist", "severity_cifar10"}
    assert "groups_adult: `plan` of by_group must be one of [] in smoke" in result.stderr


def test_a_figure_that_cannot_be_drawn_says_why(smoke) -> None:
    result = call("figure", "art", *smoke)
    assert result.exit_code == 2
    assert "geometry" in result.stderr
    for arguments, said in (
        (("geometry", *smoke), "lies in"),
        (("all", *smoke, "--methods", "magic"), "`methods` of bench must be among"),
    ):
        result = call("figure", *arguments)
        assert result.exit_code == 2
        assert said in " ".join(result.stderr.split())


def test_where_no_run_is_the_command_that_makes_it_is_named(smoke, tmp_path) -> None:
    command = f"reliablenet bench run {' '.join(smoke)}"
    (tmp_path / "smoke").mkdir()
    report = ["report", str(tmp_path / "smoke"), "--out", str(tmp_path / "page.html")]
    for result, last in (
        (
            call("figure", "geometry", *smoke),
            f"{command} --datasets synthetic_band --methods geometry",
        ),
        (call("table", *smoke), command),
        (CliRunner().invoke(app, report), command),
    ):
        assert result.exit_code == 2
        assert " ".join(result.stderr.split()).endswith(f". Run: {last}")
        assert "run_jobs" not in result.stderr


def test_bad_seeds(smoke) -> None:
    result = call("run", *smoke, "--seeds", "1,x")
    assert result.exit_code == 2
    assert "--seeds must be whole numbers" in result.stderr


def test_bad_format(smoke) -> None:
    assert call("table", *smoke, "--format", "word").exit_code == 2
