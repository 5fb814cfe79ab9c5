"""The study of mutants can run the tests at all: it is run by hand, and settings of pytest change meanwhile."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from studies.quality.code_swap import live_functions, swaps
from studies.quality.mutants import OPTIONS, own_tests

ROOT = Path(__file__).parents[2]
SOURCE = """
from functools import cached_property, lru_cache
LIMIT = 3
def plain(x, y=2):
    return [x + y + k for k in range(LIMIT)]
@lru_cache(maxsize=8)
def kept(x):
    return x + 1
class Thing:
    size = 4
    @cached_property
    def half(self):
        return self.size / 2
    @property
    def twice(self):
        return self.size * 2
    @twice.setter
    def twice(self, value):
        self.size = value / 2
"""


def test_the_settings_of_the_project_are_known_to_the_plugins_that_it_loads() -> None:
    options = [option for option in OPTIONS if "profile" not in option]  # made in its own process
    command = [sys.executable, "-m", "pytest", *options, "--collect-only", *own_tests("risk/event")]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("x + y + k", "x - y + k", {"plain": [-1, 0, 1], "kept": 2, "half": 2.0, "twice": 8}),
        ("x + 1", "x + 2", {"plain": [3, 4, 5], "kept": 3, "half": 2.0, "twice": 8}),
        ("size / 2", "size / 4", {"plain": [3, 4, 5], "kept": 2, "half": 1.0, "twice": 8}),
        ("self.size * 2", "self.size", {"plain": [3, 4, 5], "kept": 2, "half": 2.0, "twice": 4}),
        ("value / 2", "value", {"plain": [3, 4, 5], "kept": 2, "half": 2.0, "twice": 8}),
    ],
)
def test_functions_that_are_imported_get_the_code_of_a_mutant(tmp_path, before, after, expected):
    path = tmp_path / "thing.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("thing", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ((place, code),) = swaps(SOURCE, SOURCE.replace(before, after), str(path))
    (function,) = live_functions(str(path))[place]
    function.__code__ = code
    thing = module.Thing()
    found = {"plain": module.plain(1), "kept": module.kept(1)}
    assert found | {"half": thing.half, "twice": thing.twice} == expected
    thing.twice = 6
    assert thing.size == (6 if before == "value / 2" else 3)


@pytest.mark.parametrize(
    ("before", "after"),
    [("LIMIT = 3", "LIMIT = 4"), ("y=2", "y=3"), ("maxsize=8", "maxsize=9"), ("size = 4", "size = 5")],
)  # fmt: skip
def test_what_an_import_makes_is_no_function(before, after):
    assert swaps(SOURCE, SOURCE.replace(before, after), "thing.py") is None


def test_spaces_and_comments_change_no_function():
    assert swaps(SOURCE, SOURCE.replace("x + 1", "x  +  1  # one more"), "thing.py") == []


MODULE = """
def plain(): return 1
def threaded(): return 2
def slow(): return 3
def untested(): return 4
"""
TESTS = """
import threading, time, thing
def test_plain():
    assert thing.plain() == 1
def test_thread():
    found = []
    worker = threading.Thread(target=lambda: found.append(thing.threaded()))
    worker.start(); worker.join()
    assert found == [2]
def test_slow():
    assert thing.slow() == 3
    while time.process_time() < 60: pass
"""
RUN = """
import pathlib, sys, pytest
from studies.quality import forks
forks.SLOW = 1.0
folder = pathlib.Path(sys.argv[1])
source = (folder / "thing.py").read_text()
mutants = [source.replace(f"return {k}", "return 9") for k in (1, 2, 3, 4)]
plugin = forks.InForks(folder / "thing.py", mutants, ["test_thing.py"], folder / "found.json")
options = ["-q", "-c", "/dev/null", "--rootdir", str(folder), "-p", "no:cacheprovider"]
pytest.main([*options, str(folder / "test_thing.py")], plugins=[plugin])
"""


def test_mutants_are_tried_on_quick_tests_that_reach_them_in_any_thread(tmp_path):
    (tmp_path / "thing.py").write_text(MODULE)
    (tmp_path / "test_thing.py").write_text(TESTS)
    paths = os.pathsep.join([str(ROOT), str(tmp_path)])
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (tmp_path / "found.json").exists(), done.stdout + done.stderr
    verdicts = json.loads((tmp_path / "found.json").read_text())["verdicts"]
    # a slow test is ended and left out: what it alone would kill survives
    assert verdicts == {"0": "killed", "1": "killed", "2": "survived", "3": "survived"}
