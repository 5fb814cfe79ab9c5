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
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

from studies.quality.forks import JOBS, InForks, QuickestFirst, leave, limit, verdict

ROOT = Path(__file__).resolve().parents[2]  # not from studies.runner, which imports us
PACKAGE = Path("src/reliablenet")
# Tried on what survives the module's own test file and its doctests.
FURTHER = {
    "risk": ["tests/theory"],
    "certificate": ["tests/theory", "tests/oracles/test_conformal_risk_control.py"],
    "metrics": ["tests/oracles/test_torchmetrics.py"],
}
OPTIONS = [
    "-x",
    "-q",
    "--tb=native",  # the quickest
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
_stamps = itertools.count(1_000_000_000)
# of a process of the pool
_folder, _seconds = Path(), 0.0
_times: dict[str, float] = {}


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
    spans = wrapper.resolve(ByteSpanPositionProvider)
    for mutation in visitor.mutations:
        old, new = mutation.original_node, mutation.mutated_node
        source = replace_text(wrapper.module, text, old, new, spans.get(old))
        before, after = changed_lines(text, source)
        yield Mutant(module, before, after, source)


def replace_text(
    module: cst.Module, text: str, old: cst.CSTNode, new: cst.CSTNode, span: CodeSpan | None
) -> str:
    """Return the source with another node: its text alone where it stands there as it is, for a new tree takes long."""
    if span is not None:
        data, end = text.encode(), span.start + span.length
        if data[span.start : end].decode() == module.code_for_node(old):
            return (data[: span.start] + module.code_for_node(new).encode() + data[end:]).decode()
    return cst.ensure_type(module.deep_replace(old, new), cst.Module).code


def changed_lines(old: str, new: str) -> tuple[str, str]:
    """Return the lines that differ, without their indentation, before and after."""
    before, after = old.splitlines(), new.splitlines()
    for step in (0, -1):  # what is the same at both ends
        while before and after and before[step] == after[step]:
            del before[step], after[step]
    difference = list(difflib.ndiff(before, after))
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


def run_tests(folder: Path, tests: list[str], seconds: float, plugin: Any) -> str:
    """Run tests in a fork, in a copy of the project: killed, survived or timed out."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            limit(seconds)
            log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1), os.dup2(log, 2)
            os.chdir(folder)
            sys.path.insert(0, str(folder / "src"))
            os.environ["PYTHONPATH"] = str(folder / "src")
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
            sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder / "bytecode")
            import pytest

            code = int(pytest.main([*OPTIONS, *tests], plugins=[plugin]))
        except BaseException:
            traceback.print_exc()
        finally:
            leave(code)
    try:
        return verdict(os.waitpid(child, 0)[1])
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n{(folder / 'log').read_text()[-3000:]}") from None


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
            outcome = run_tests(_folder, tests, _seconds, QuickestFirst(_times))
            if outcome != "survived":
                break
        return mutant, outcome
    finally:
        write_source(path, original)


def write_source(path: Path, text: str) -> None:
    """Write a source file with a time of its own, so that no bytecode of another version passes for its."""
    path.write_text(text)
    os.utime(path, (next(_stamps),) * 2)


def try_module(module: str) -> dict[str, Any]:
    """Try every mutant of a module and return the counts and the survivors."""
    outcomes: Counter[str] = Counter()
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "original"
        copy_project(folder)
        tests = own_tests(module) + FURTHER[module.split("/")[0]]
        every, path = list(mutants(module, folder)), folder / PACKAGE / f"{module}.py"
        result = Path(name) / "found.json"
        plugin = InForks(path, [one.source for one in every], own_tests(module), result)
        run_tests(folder, tests, 36_000.0, plugin)
        if not result.exists():
            log = (folder / "log").read_text()
            raise RuntimeError(f"The tests of {module} fail without a mutant:\n{log[-3000:]}")
        found = json.loads(result.read_text())
        known = [(every[int(place)], outcome) for place, outcome in found["verdicts"].items()]
        rest = [one for place, one in enumerate(every) if str(place) not in found["verdicts"]]
        seconds = 30.0 + 4.0 * sum(found["times"].values())
        setting = (Path(name), seconds, found["times"])
        print(f"{module}: {len(known)} of {len(every)} without an import", flush=True)
        with get_context("fork").Pool(JOBS, _start, setting) as pool:
            for mutant, outcome in itertools.chain(known, pool.imap_unordered(try_mutant, rest)):
                outcomes[outcome] += 1
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


def _start(folder: Path, seconds: float, times: dict[str, float]) -> None:
    global _folder, _seconds, _times
    _folder, _seconds, _times = folder / str(os.getpid()), seconds, times
    copy_project(_folder)


def main(module: str, result: str) -> None:
    """Try the mutants of a module and write what was found."""
    if any(name.split(".")[0] == "reliablenet" for name in sys.modules):
        raise RuntimeError("reliablenet is imported already: its mutants would never be seen.")
    preload()
    Path(result).write_text(json.dumps(try_module(module)))


if __name__ == "__main__":
    main(*sys.argv[1:])
