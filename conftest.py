"""Settings shared by all tests: hypothesis without deadlines, and examples that need no names."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

from reliablenet.methods import ledger

# The machine decides how long an example takes; a slow one is not a failing one.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def one_thread_a_worker() -> None:
    """Under xdist every worker would otherwise start as many threads as there are cores.

    To try the tests with more, set OMP_NUM_THREADS.
    """
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


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
