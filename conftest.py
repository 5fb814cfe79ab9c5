"""Settings shared by all tests: hypothesis without deadlines, examples that need no names, a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

# Every worker, and every process that a test starts, would otherwise have as many threads as there are cores, and they
# would wait for each other. To try the tests with more, set it. Workers are started later, and inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

from reliablenet.methods import ledger

# The machine decides how long an example takes; a slow one is not a failing one.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def threads_of_a_worker() -> None:
    """Say it to torch as well, which may have been imported before this file was read."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(autouse=True)
def empty_ledger() -> Iterator[None]:
    """Begin each test as a new process would: they certify the same rows again and again.

    What a fixture of a whole module fits comes before this one, and finds it empty all the same.
    """
    ledger.clear()
    yield
    ledger.clear()


@pytest.fixture(autouse=True)
def fresh_interpreter(request: pytest.FixtureRequest) -> None:
    """Run each example of a docstring as if it were pasted into a new interpreter: with no names at all."""
    example = getattr(request.node, "dtest", None)
    if example is not None:
        example.globs.clear()
        example.globs["__name__"] = "__main__"


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Debian's Chromium; none is ever downloaded."""
    found = os.environ.get("PLAYWRIGHT_CHROMIUM") or shutil.which("chromium")
    if not found:
        pytest.skip(
            "Pages are tested in a real browser, and there is none: run `make browser` as root on "
            "Debian, or name a Chromium by PLAYWRIGHT_CHROMIUM."
        )
    from playwright.sync_api import Error, sync_playwright

    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as playwright:
        # Chromium refuses to run as root inside its sandbox.
        try:
            opened = playwright.chromium.launch(
                executable_path=found, args=["--no-sandbox"] if root else []
            )
        except Error as error:
            pytest.skip(f"{found} does not start here: {str(error).splitlines()[0]}")
        yield opened
        opened.close()
