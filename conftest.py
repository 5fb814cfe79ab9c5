"""Settings shared by all tests: hypothesis without deadlines, and doctests that find torch, numpy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, settings
from torch import nn

from reliablenet.methods import ledger

# The machine decides how long an example takes; a slow one is not a failing one.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture(scope="session", autouse=True)
def one_thread_a_worker() -> None:
    """Under xdist every worker would otherwise start as many threads as there are cores."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def empty_ledger() -> Iterator[None]:
    """Begin each test as a new process would: they certify the same rows again and again.

    What a fixture of a whole module fits comes before this one, and finds it empty all the same.
    """
    ledger.clear()
    yield
    ledger.clear()


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace: dict[str, object]) -> None:
    """Examples in docstrings use these names without importing them."""
    doctest_namespace.update(np=np, pd=pd, torch=torch, nn=nn)
