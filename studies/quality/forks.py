"""Many mutants in one process that has imported and collected everything: each is tried in a fork of it."""

from __future__ import annotations

import gc
import itertools
import json
import math
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import pytest

from studies.quality.code_swap import Place, Swap, live_functions, place_of, swaps

JOBS = 2
SLOW = 5.0  # seconds of processor time, while it is watched


class FirstFailure:
    """A pytest plugin that ends as soon as the verdict is known."""

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            print(report.longreprtext)
            leave(1)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        leave(int(exitstatus))


class QuickestFirst(FirstFailure):
    """Runs quick tests first; slow ones are left out: what they alone would kill survives."""

    def __init__(self, times: dict[str, float]) -> None:
        self.times = times

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        times = {item: self.times.get(item.nodeid, 0.0) for item in items}
        items[:] = sorted((one for one in items if times[one] < SLOW), key=lambda one: times[one])


class InForks(FirstFailure):
    """Collects the tests once, sees which functions each reaches, and tries each mutant on those that reach it.

    Parameters
    ----------
    path
        The module.
    mutants
        The source of each mutant.
    own
        The module's own tests, which come first.
    result
        A file for what is found: the time of each test, and the verdict of each mutant by its place in the list. There is
        none for a mutant that differs outside of functions, nor for a survivor in a function that an import calls.
    """

    def __init__(self, path: Path, mutants: list[str], own: list[str], result: Path) -> None:
        self.path, self.mutants, self.own, self.result = str(path), mutants, tuple(own), result
        self.reached: set[Place] = set()  # at first while the tests are imported
        self.times: dict[str, float] = {}
        self.tests: dict[Place, list[Any]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self) -> None:
        sys.setprofile(self._profile)  # until everything is imported

    def _profile(self, frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename == self.path:
            self.reached.add(place_of(frame.f_code))

    def pytest_runtestloop(self, session: Any) -> bool:
        sys.setprofile(None)
        imported = self.reached
        live = live_functions(self.path)
        gc.freeze()
        self._see(session.items)
        original, verdicts, tasks = Path(self.path).read_text(), {}, {}
        for place, mutant in enumerate(self.mutants):
            changes = swaps(original, mutant, self.path)
            if changes is not None and all(where in live for where, _ in changes):
                tasks[place] = (changes, live)
        for place, ended in in_forks(tasks, self._try):
            outcome = verdict(ended)
            early = any(where in imported for where, _ in tasks[place][0])
            if outcome != "survived" or not early:
                verdicts[place] = outcome
        found = {"times": self.times, "verdicts": verdicts}
        self.result.write_text(json.dumps(found))
        return True

    def _see(self, items: list[Any]) -> None:
        """Run each test by itself, and note its time and the functions it reaches."""
        for place, ended in in_forks(dict(enumerate(items)), self._watch):
            outcome = verdict(ended)
            if outcome == "timed out":
                self.times[items[place].nodeid] = SLOW  # and so it is left out
                continue
            if outcome != "survived":
                raise RuntimeError(f"{items[place].nodeid} fails without a mutant.")
            seconds, reached = json.loads(self._note(items[place]).read_text())
            self.times[items[place].nodeid] = seconds
            for name, line in reached:
                self.tests.setdefault((name, line), []).append(items[place])

    def _note(self, item: Any) -> Path:
        return self.result.with_name(f"{hash(item.nodeid):x}.json")

    def _watch(self, item: Any) -> None:
        self.reached = set()
        limit(SLOW)
        before = time.process_time()
        threading.setprofile(self._profile)  # of threads that begin from now on
        sys.setprofile(self._profile)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        sys.setprofile(None)
        threading.setprofile(None)
        known = [time.process_time() - before, sorted(self.reached)]
        self._note(item).write_text(json.dumps(known))

    def _try(self, task: tuple[list[Swap], dict[Place, list[FunctionType]]]) -> None:
        changes, live = task
        tests = {test for where, _ in changes for test in self.tests.get(where, [])}
        order = sorted(
            (test for test in tests if self.times[test.nodeid] < SLOW),
            key=lambda test: (not test.nodeid.startswith(self.own), self.times[test.nodeid]),
        )
        for where, code in changes:
            for function in live[where]:
                function.__code__ = code
        for test, following in itertools.zip_longest(order, order[1:]):
            limit(time.process_time() + 3.0 + 5.0 * self.times[test.nodeid])
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)


def in_forks(tasks: dict[int, Any], run: Callable[[Any], None]) -> Iterator[tuple[int, int]]:
    """Run each task in a fork, several side by side; yield its key and how it ended."""
    waiting = list(tasks.items())[::-1]
    running: dict[int, int] = {}
    while waiting or running:
        while waiting and len(running) < JOBS:
            key, task = waiting.pop()
            child = os.fork()
            if child == 0:
                code = 3
                try:
                    run(task)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    leave(code)
            running[child] = key
        child, ended = os.wait()
        yield running.pop(child), ended


def limit(seconds: float) -> None:
    """End this process after so many seconds of processor time, for others may be busy; an alarm if it waits for ever."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), most))
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    signal.alarm(50 * math.ceil(seconds))


def verdict(ended: int) -> str:
    """Return what the end of a process says of its mutant."""
    status = os.waitstatus_to_exitcode(ended)
    if status in (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL):
        return "timed out"
    if status == 5:  # no test is quick enough
        return "survived"
    # 1: a test failed; 2 and 4: a test file, or conftest.py, could not import the mutant; below 0: it crashed
    if status > 2 and status != 4:
        raise RuntimeError(f"pytest ended with {status}:")
    return "killed" if status else "survived"


def leave(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
