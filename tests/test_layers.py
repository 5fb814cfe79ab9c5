"""Imports go one way, those inside functions too, which import-linter and Python itself let pass.

A lazy import may save time. It must not hide that a lower room needs a higher one, or that two modules need
each other.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PACKAGE = "reliablenet"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
LAYERS = next(c["layers"] for c in SETTINGS["contracts"] if c["type"] == "layers")  # highest first


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path.read_text() for path in SOURCE.rglob("*.py")}


def imports(
    name: str, text: str, known: frozenset[str], *, hints: bool = True
) -> Iterator[tuple[str, int]]:
    """Yield each module of ours that a module imports anywhere in its text, and the line.

    Without ``hints`` those are left out that only a type checker reads.
    """
    nodes = list(ast.walk(ast.parse(text)))
    unread = {
        part
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not hints
        for statement in node.body
        for part in ast.walk(statement)
    }
    for node in nodes:
        if node in unread:
            continue
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}, line {node.lineno}: a relative import"
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            found = [arg.value for arg in node.args if is_text(arg)]
        for target in found:
            while target and target not in known:  # a name in a module
                target = target.rpartition(".")[0]
            if target:
                yield target, node.lineno


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def height(module: str, layers: list[str]) -> int:
    """Return the number of the layer from below; the package itself, which offers all, is on top."""
    if module == PACKAGE:
        return len(layers)
    places = [n for n, layer in enumerate(layers[::-1]) if f"{module}.".startswith(f"{layer}.")]
    return places[0] if places else -1  # what belongs to no layer may be imported by all


def against_the_layers(modules: dict[str, str], layers: list[str]) -> list[str]:
    """Return every import of a higher room by a lower one. The top room may import the package."""
    known = frozenset(modules)
    found = []
    for name, text in modules.items():
        own = height(name, layers)
        for target, line in imports(name, text, known) if own >= 0 else ():
            through_the_door = target == PACKAGE and own == len(layers) - 1
            if height(target, layers) > own and not through_the_door:
                found.append(f"{name}, line {line}, imports {target}")
    return found


def find_cycle(modules: dict[str, str]) -> list[str]:
    """Return modules that need each other to run, in their order, or nothing."""
    known = frozenset(modules)
    needs = {
        name: {target for target, _ in imports(name, text, known, hints=False)} - {name}
        for name, text in modules.items()
        if name != PACKAGE  # offers names that it imports when they are asked for
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_room_is_a_layer() -> None:
    folders = {f"{PACKAGE}.{path.parent.name}" for path in SOURCE.glob(f"{PACKAGE}/*/__init__.py")}
    assert folders <= set(LAYERS) <= set(MODULES)


def test_no_import_goes_against_the_layers() -> None:
    assert against_the_layers(MODULES, LAYERS) == []


def test_no_two_modules_need_each_other() -> None:
    assert find_cycle(MODULES) == []


@pytest.mark.parametrize(
    "text",
    [
        "from p.high import thing",
        "def f():\n    from p.high.part import thing",
        "def f():\n    import p.high.part as part",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.high",
        "class C:\n    def f(self):\n        return import_module('p.high.part')",
        "import importlib\nimportlib.import_module('p.high')",
    ],
)
def test_an_import_is_found_wherever_it_stands(text) -> None:
    modules = {"p.low": text, "p.high": "", "p.high.part": "import p.low"}
    found = against_the_layers(modules, ["p.high", "p.low"])
    assert len(found) == 1
    assert found[0].startswith(f"p.low, line {len(text.splitlines())}, imports p.high")
    assert against_the_layers({**modules, "p.low": "import math"}, ["p.high", "p.low"]) == []


def test_the_package_itself_is_for_the_top_room() -> None:
    text = "def f():\n    import reliablenet as rn"
    modules = {"reliablenet": "", "reliablenet.low": text, "reliablenet.high": text}
    found = against_the_layers(modules, ["reliablenet.high", "reliablenet.low"])
    assert found == ["reliablenet.low, line 2, imports reliablenet"]


def test_a_hidden_cycle_is_found() -> None:
    modules = {
        "p.a": "import p.b",
        "p.b": "def f():\n    from p.a import thing",
        "p.c": "import p.a",
    }
    assert set(find_cycle(modules)) == {"p.a", "p.b"}
    assert find_cycle({**modules, "p.b": ""}) == []
    assert find_cycle({**modules, "p.b": "if TYPE_CHECKING:\n    import p.a"}) == []
