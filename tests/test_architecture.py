"""The page on the architecture says what the imports say, and what small runs do."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

from import_graph import LAYERS, MODULES, PACKAGE, ROOT, SOURCE, height, imports
from reliablenet.bench import measuring
from reliablenet.cli.app import app
from reliablenet.training import AdaptiveSchedule, Rows, Schedule, mlp, train

PAGE = (ROOT / "docs" / "architecture.md").read_text()
KNOWN = frozenset(MODULES)
PACKAGES = frozenset(
    ".".join(path.parent.relative_to(SOURCE).parts) for path in SOURCE.rglob("__init__.py")
)


def read_paths(page: str) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the rooms of each path with their modules, by heading."""
    found = {}
    for title, block in re.findall(r"### ([^\n]+)\n.*?```text\n(.*?)```", page, flags=re.S):
        lines = [line.split(None, 1) for line in block.splitlines()]
        found[title] = [(room, names.split(", ")) for room, names in lines]
    return found


PATHS = read_paths(PAGE)


def direct(module: str) -> set[str]:
    """Return what a module imports; from a package, also what the package offers."""
    text = (SOURCE / PACKAGE / "__init__.pyi").read_text() if module == PACKAGE else MODULES[module]
    found = {target for target, _ in imports(module, text, KNOWN)}
    for package in found & PACKAGES - {module}:
        found = found | direct(package)
    return found


def strange_steps(rooms: list[tuple[str, list[str]]]) -> list[str]:
    """Return the modules of a path that none before them imports."""
    modules = [f"{PACKAGE}.{room}.{name}" for room, names in rooms for name in names]
    reached: set[str] = set()
    strange = []
    for place, module in enumerate(modules):
        if place and module not in reached:
            strange.append(module)
        reached |= direct(module)
    return strange


def test_there_are_four_paths() -> None:
    assert len(PATHS) == 4


@pytest.mark.parametrize("title", PATHS)
def test_every_step_of_a_path_is_an_import(title: str) -> None:
    assert strange_steps(PATHS[title]) == []


@pytest.mark.parametrize("title", PATHS)
def test_no_path_comes_back_to_a_room(title: str) -> None:
    heights = [height(f"{PACKAGE}.{room}", LAYERS) for room, _ in PATHS[title]]
    assert heights == sorted(set(heights), reverse=True)


def command(*arguments: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output


def from_a_file_to_decisions() -> None:
    load_breast_cancer(as_frame=True).frame.to_csv("patients.csv", index=False)
    command("train", "patients.csv", "--target", "target", "--out", "model.rnet")


def a_batch() -> None:
    X = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    rows = Rows(X, (X[:, 0] > 0).long())
    paper = Schedule(warmup_epochs=1, epochs_per_stage=1, max_stages=2)
    for schedule in (paper, AdaptiveSchedule(warmup_epochs=2, epochs_per_stage=2)):
        train(mlp(4, 2), rows, rows, alpha=0.05, schedule=schedule)


def from_predictions_to_a_certificate() -> None:
    answers = pd.DataFrame(
        {"yes": np.linspace(0.5, 1.0, 500), "truth": ["yes"] * 480 + ["no"] * 20}
    )
    answers.to_csv("answers.csv", index=False)
    options = {"--label": "truth", "--proba": "yes", "--positive": "yes", "--alpha": "0.2"}
    command("certify", "--predictions", "answers.csv", *sum(options.items(), ()))


def a_run_of_the_benchmark() -> None:
    shared = ("--profile", "smoke", "--results", "results")
    command(
        "bench",
        "run",
        *shared,
        "--methods",
        "erm,erm+certified,reliablenet_last@eps",
        "--seeds",
        "0",
    )
    command("bench", "table", *shared)


RUNS = {
    "From a file to decisions": from_a_file_to_decisions,
    "A batch": a_batch,
    "From predictions to a certificate": from_predictions_to_a_certificate,
    "A run of the benchmark": a_run_of_the_benchmark,
}


def rooms_entered(run: Callable[[], None]) -> set[str]:
    """Return the rooms whose functions are called in a run; what an import calls does not count."""
    for module in MODULES:
        if not module.endswith("__main__"):
            importlib.import_module(module)
    files = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # no body of a class
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    rooms = {room: str(SOURCE / PACKAGE / room / "_")[:-1] for room in rooms_of_the_layers()}
    return {room for room, folder in rooms.items() if any(f.startswith(folder) for f in files)}


@pytest.mark.parametrize("title", PATHS)
def test_a_run_enters_the_rooms_of_its_path_and_no_others(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    measuring._dataset.cache_clear()  # another test may have loaded it
    assert rooms_entered(RUNS[title]) == {room for room, _ in PATHS[title]}


def rooms_of_the_layers() -> list[str]:
    layers = [layer.removeprefix(f"{PACKAGE}.") for layer in LAYERS]
    return [layer for layer in layers if (SOURCE / PACKAGE / layer).is_dir()]


def test_the_rooms_are_those_of_the_layers() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.M) == rooms_of_the_layers()


def test_the_map_for_contributors_names_every_room_in_its_order() -> None:
    chain = re.search(r"From the top: (.*?)\.", (ROOT / "CONTRIBUTING.md").read_text())
    assert re.findall(r"`(\w+)`", chain[1]) == rooms_of_the_layers()


def test_a_step_that_nobody_takes_is_noticed() -> None:
    strange = strange_steps([("certificate", ["bounds", "record"])])
    assert strange == [f"{PACKAGE}.certificate.record"]


def test_the_stub_lists_imports_alone() -> None:
    stub = ast.parse((SOURCE / PACKAGE / "__init__.pyi").read_text())
    assert all(isinstance(node, ast.ImportFrom) for node in stub.body)


@pytest.mark.parametrize("package", ["certificate", "metrics", "risk"])
def test_each_module_of_what_is_proved_has_its_own_tests(package: str) -> None:
    """Its mutants are tried against that file alone (studies/quality/mutants.py)."""
    modules = {path.stem for path in (ROOT / "src/reliablenet" / package).glob("*.py")}
    tests = {
        path.stem.removeprefix("test_") for path in (ROOT / "tests" / package).glob("test_*.py")
    }
    assert tests == modules - {"__init__"}
