"""`reliablenet demo` and the examples, run as a user runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from launcher import Process, launcher

import reliablenet as rn
from reliablenet.methods import default_methods

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


def rates(text: str) -> dict[tuple[str, int], list[float]]:
    """Return acted, right, wrong and bound of each line of the demo's tables, by method and table."""
    lines = re.findall(
        r"^   (\w+) +([01]\.\d{3})  ([01]\.\d{3})  ([01]\.\d{3}) +\d+/\d+  ([01]\.\d{4})",
        text,
        flags=re.MULTILINE,
    )
    names = [name for name, *_ in lines]
    return {
        (name, names[:place].count(name)): [float(figure) for figure in figures]
        for place, (name, *figures) in enumerate(lines)
    }


def test_the_demo_certifies_saves_loads_and_decides(tmp_path) -> None:
    result = run("-m", "reliablenet", "demo", "--out", "made/here", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert (
        len(re.findall(r"Use \w+: within alpha = 0.0\d it acts rightly on 0", result.stdout)) == 2
    )
    assert re.search(r"acted on \d+ of 60, \d+ of these wrongly; deferred \d+", result.stdout)
    assert "What next" in result.stdout
    assert "examples/" not in result.stdout  # there are none beside an installed package
    lines = [line for line in result.stdout.splitlines() if "python" not in line]
    assert max(map(len, lines)) <= 88
    assert "More to see: made/here/breast-cancer.html" in result.stdout
    for page in ("breast-cancer.html", "record/record.html"):
        assert (tmp_path / "made/here" / page).read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "made/here/breast-cancer.onnx").stat().st_size > 1000
    regions = re.findall(r"^   (calm|noisy) (.*)$", result.stdout, re.MULTILINE)
    wrong = {name: list(map(float, re.findall(r"wrong (0\.\d+)", line))) for name, line in regions}
    assert wrong["noisy"][0] > 0.05  # a budget for all rows promises nothing to a region
    assert max(wrong["calm"][1], wrong["noisy"][1]) <= 0.05
    assert "rows of the same source: no alarm." in result.stdout
    assert re.search(r"noisy region alone: an alarm after \d+ rows", result.stdout)
    assert "The source changed" in result.stdout
    assert rn.load(tmp_path / "made/here/breast-cancer.rnet").certificate_.certified
    printed = rates(result.stdout)
    assert len(printed) == 2 * len(default_methods())
    for acted, right, wrong, bound in printed.values():
        assert acted == pytest.approx(right + wrong, abs=0.0011)  # each is rounded
        assert wrong < bound <= 0.05
        assert right > 0.6
    truth = dict(
        re.findall(r"^   (\S.*?) +JCW (0\.\d+), acts rightly", result.stdout, re.MULTILINE)
    )
    chosen = list(truth)[-1]
    assert re.fullmatch(r"the best of \d+", chosen)  # those that rank rows alike count once
    assert float(truth[chosen]) <= 0.05
    over = ", ".join(name for name, jcw in truth.items() if float(jcw) > 0.05)
    assert ("More than alpha: " in result.stdout) == bool(over)
    assert f"More than alpha: {over}." in result.stdout or not over


EXAMPLE = """
import runpy, sys, warnings
warnings.simplefilter(sys.argv.pop(1))
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def run_example(name: str, *arguments: str, cwd: Path, warnings: str = "error") -> str:
    """Run an example and return what it printed."""
    line = ["-c", EXAMPLE, warnings, str(ROOT / "examples" / name), *arguments]
    process = Process(launcher(), line, cwd, os.environ)
    out, err = process.communicate(timeout=1200)
    assert process.returncode == 0, err
    return out


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples").glob("*.py")))
def test_every_example_runs(example: str, tmp_path) -> None:
    questions = Path(os.environ.get("RELIABLENET_DATA", "data")) / "banking77" / "train.csv"
    if example == "route_bank_questions.py" and not questions.is_file():
        pytest.skip("needs the files of banking77; set RELIABLENET_DATA")
    assert "certified" in run_example(example, cwd=tmp_path)


def test_the_table_example_takes_a_file(tmp_path) -> None:
    lines = [f"{i},{'ab'[i % 2]},{'yes' if i % 2 else 'no'}" for i in range(600)]
    (tmp_path / "table.csv").write_text("\n".join(["number,letter,answer", *lines]))
    line = ("table_to_certificate.py", "table.csv", "answer", "0.1")
    printed = run_example(*line, cwd=tmp_path, warnings="default")  # a column numbers the rows
    assert "certified: True" in printed


def test_version_and_help_without_torch(tmp_path) -> None:
    assert (
        run("-m", "reliablenet", "--version", cwd=tmp_path).stdout
        == f"reliablenet {rn.__version__}\n"
    )
    code = (
        "import sys; from reliablenet.cli.app import app; app(['--help'], standalone_mode=False);"
        "heavy = {'torch', 'sklearn', 'scipy', 'pandas', 'numpy', 'skops'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    result = run("-c", code, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "demo" in result.stdout
