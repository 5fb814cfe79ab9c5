"""Imports go one way, those inside functions too, which import-linter and Python itself let pass.

A lazy import may save time. It must not hide that a lower room needs a higher one, or that two modules need
each other.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

from import_graph import (
    LAYERS,
    MODULES,
    PACKAGE,
    SOURCE,
    height,
    imports,
)


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


def needed_by(start: str, modules: dict[str, str]) -> set[str]:
    """Return all modules of ours that a module needs to run, those that others need for it too."""
    known, found, waiting = frozenset(modules), {start}, [start]
    while waiting:
        name = waiting.pop()
        new = {target for target, _ in imports(name, modules[name], known, hints=False)} - found
        found |= new
        waiting += new
    return found - {start}


def test_the_constraint_needs_the_mathematics_of_the_risk_alone() -> None:
    """It works in a loop of one's own, without ours."""
    needed = needed_by(f"{PACKAGE}.training.constraint", MODULES)
    risk = {name for name in MODULES if name.startswith(f"{PACKAGE}.risk")}
    others = {"_checks", "errors", "training.group_budgets"}
    assert needed - risk == {f"{PACKAGE}.{name}" for name in others}


def test_what_is_needed_is_found_over_several_steps() -> None:
    modules = {"p.a": "import p.b", "p.b": "def f():\n    import p.c", "p.c": "", "p.d": ""}
    assert needed_by("p.a", modules) == {"p.b", "p.c"}


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
