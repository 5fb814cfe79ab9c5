"""The mutants of a module, tried one by one: python -m studies.quality.mutants MODULE RESULT.

mutmut's own runner leaves out decorated functions and what stands outside of functions; here these are `certified`,
`reason`, every record and constant. cosmic-ray starts Python anew for each mutant, and torch alone takes seconds to import.
So the mutants are mutmut's (another operator, number, string, argument, branch), and the runs are forks of one process that
has imported everything but us.
"""

from __future__ import annotations

import difflib
import gc
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import libcst as cst
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

ROOT = Path(__file__).resolve().parents[2]  # not from studies.runner, which imports us
PACKAGE = Path("src/reliablenet")
JOBS = 2
SLOW = 3.0  # seconds
# Tried on what survives the module's own test file and its doctests.
FURTHER = {
    "risk": ["tests/theory"],
    "certificate": ["tests/theory", "tests/oracles/test_conformal_risk_control.py"],
    "metrics": ["tests/oracles/test_torchmetrics.py"],
}
OPTIONS = [
    "-x",
    "-q",
    "-p",
    "_hypothesis_pytestplugin",  # not all: loading the others takes longer than most tests
    "-p",
    "pytest_timeout",
    "--timeout=0",  # an alarm of ours is in its place
    "-p",
    "no:cacheprovider",
    "--hypothesis-profile=mutation",
]
OPTIONS += [
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]  # hypothesis was imported before pytest began
_times = itertools.count(1_000_000_000)
_folder, _seconds = Path(), 0.0  # of a process of the pool


class Mutant(NamedTuple):
    """One change of one module: the lines it alters, what they become, and the whole new source."""

    module: str
    line: str
    becomes: str
    source: str


class _Visitor(MutationVisitor):
    """Finds mutations in decorated functions and in decorators too."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Decorator):
            return False
        if isinstance(node, cst.FunctionDef):
            node = node.with_changes(decorators=())
        return bool(super()._skip_node_and_children(node))


def modules() -> list[str]:
    """Return the modules to mutate, as risk/event; __init__ files only re-export."""
    paths = itertools.chain(*((ROOT / PACKAGE / name).glob("*.py") for name in FURTHER))
    return [f"{p.parent.name}/{p.stem}" for p in sorted(paths) if p.stem != "__init__"]


def mutants(module: str, folder: Path) -> Iterator[Mutant]:
    """Yield every mutant of a module in a copy of the project."""
    text = (folder / PACKAGE / f"{module}.py").read_text()
    wrapper = cst.MetadataWrapper(cst.parse_module(text))
    visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()))
    wrapper.visit(visitor)
    for mutation in visitor.mutations:
        changed = wrapper.module.deep_replace(mutation.original_node, mutation.mutated_node)
        source = cst.ensure_type(changed, cst.Module).code
        before, after = changed_lines(text, source)
        yield Mutant(module, before, after, source)


def changed_lines(old: str, new: str) -> tuple[str, str]:
    """Return the lines that differ, without their indentation, before and after."""
    difference = list(difflib.ndiff(old.splitlines(), new.splitlines()))
    return tuple(  # type: ignore[return-value]
        "\n".join(line[2:].strip() for line in difference if line.startswith(sign)) for sign in "-+"
    )


def own_tests(module: str) -> list[str]:
    package, name = module.split("/")
    return [f"tests/{package}/test_{name}.py", str(PACKAGE / f"{module}.py")]


def preload() -> None:
    """Import what the tests import, but nothing of ours: a fork then starts in no time."""
    import mapie.risk_control  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import pandas as pd  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.metrics
    import sklearn.utils.estimator_checks  # noqa: F401
    import statsmodels.api  # noqa: F401
    import torch
    import torchmetrics  # noqa: F401
    from hypothesis import HealthCheck, Phase, settings

    gc.freeze()  # what the forks share need not be looked at in each
    torch.set_num_threads(1)
    settings.register_profile(
        "mutation",
        deadline=None,
        derandomize=True,  # the same verdict in every run
        database=None,
        phases=(Phase.explicit, Phase.generate),  # a failure is enough, it need not be the smallest
        suppress_health_check=[HealthCheck.too_slow],
    )


def run_tests(folder: Path, tests: list[str], seconds: float) -> str:
    """Run tests in a fork, in a copy of the project: killed, survived or timed out."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            # Of processor time, for others may be busy; the alarm ends one that waits for ever.
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
            resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
            signal.alarm(50 * int(seconds))
            log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1), os.dup2(log, 2)
            os.chdir(folder)
            sys.path.insert(0, str(folder / "src"))
            os.environ["PYTHONPATH"] = str(folder / "src")
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder / "bytecode")
            import pytest

            code = int(pytest.main([*OPTIONS, *tests], plugins=[QuickestFirst(folder)]))
        except BaseException:
            traceback.print_exc()
        finally:
            leave(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status in (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL):
        return "timed out"
    if status == 5:  # no test is quick enough
        return "survived"
    # 1: a test failed; 2 and 4: a test file, or conftest.py, could not import the mutant; below 0: it crashed
    if status > 2 and status != 4:
        raise RuntimeError(f"pytest ended with {status}:\n{(folder / 'log').read_text()[-3000:]}")
    return "killed" if status else "survived"


class QuickestFirst:
    """A pytest plugin that runs quick tests first, and ends as soon as the verdict is known."""

    def __init__(self, folder: Path) -> None:
        self.times = folder.parent / "times.json"  # written once, where nothing is mutated
        self.known = json.loads(self.times.read_text()) if self.times.exists() else None
        self.found: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.known is not None:  # slow ones are left out: what they alone would kill survives
            times = {item: self.known.get(item.nodeid, 0.0) for item in items}
            items[:] = sorted(
                (item for item in items if times[item] < SLOW), key=lambda item: times[item]
            )

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            print(report.longreprtext)
            leave(1)
        spent = getattr(report, "duration", 0.0)
        self.found[report.nodeid] = self.found.get(report.nodeid, 0.0) + spent

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if self.known is None:
            self.times.write_text(json.dumps(self.found))
        leave(int(exitstatus))


def leave(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def copy_project(folder: Path) -> None:
    for name in ("src", "tests", "studies"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)


def try_mutant(mutant: Mutant) -> tuple[Mutant, str]:
    """Write a mutant into this process's copy of the project and run the tests, its own ones first."""
    path = _folder / PACKAGE / f"{mutant.module}.py"
    original = path.read_text()
    write_source(path, mutant.source)
    try:
        for tests in (own_tests(mutant.module), FURTHER[mutant.module.split("/")[0]]):
            outcome = run_tests(_folder, tests, _seconds)
            if outcome != "survived":
                break
        return mutant, outcome
    finally:
        write_source(path, original)


def write_source(path: Path, text: str) -> None:
    """Write a source file with a time of its own, so that no bytecode of another version passes for its."""
    path.write_text(text)
    os.utime(path, (next(_times),) * 2)


def seconds_of(module: str, folder: Path) -> float:
    """Return the processor time to allow a mutant: several times what the tests of the original take."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if run_tests(folder, own_tests(module) + FURTHER[module.split("/")[0]], 600.0) != "survived":
        log = (folder / "log").read_text()
        raise RuntimeError(f"The tests of {module} fail without a mutant:\n{log[-3000:]}")
    return 30.0 + 4.0 * (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


def try_module(module: str) -> dict[str, Any]:
    """Try every mutant of a module and return the counts and the survivors."""
    outcomes: Counter[str] = Counter()
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(folder / "original")
        setting = (folder, seconds_of(module, folder / "original"))
        with get_context("fork").Pool(JOBS, _start, setting) as pool:
            for mutant, outcome in pool.imap_unordered(
                try_mutant, mutants(module, folder / "original")
            ):
                outcomes[outcome] += 1
                if outcomes.total() % 50 == 0:
                    print(f"{module}: {dict(outcomes)}", flush=True)
                if outcome == "survived":
                    survivors.append(mutant)
                    print(f"{module}: {mutant.line}\n  survived as {mutant.becomes}", flush=True)
    return {
        "mutants": outcomes.total(),
        "killed": outcomes["killed"],
        "timed_out": outcomes["timed out"],
        "survived": outcomes["survived"],
        "survivors": [{"line": m.line, "becomes": m.becomes} for m in sorted(survivors)],
    }


def _start(folder: Path, seconds: float) -> None:
    global _folder, _seconds
    _folder, _seconds = folder / str(os.getpid()), seconds
    copy_project(_folder)


def main(module: str, result: str) -> None:
    """Try the mutants of a module and write what was found."""
    if any(name.split(".")[0] == "reliablenet" for name in sys.modules):
        raise RuntimeError("reliablenet is imported already: its mutants would never be seen.")
    preload()
    Path(result).write_text(json.dumps(try_module(module)))


if __name__ == "__main__":
    main(*sys.argv[1:])
