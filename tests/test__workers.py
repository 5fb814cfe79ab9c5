from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from launcher import Process, launcher

from reliablenet._workers import end_with, one_thread, replaced_quietly

PROGRAM = """
import multiprocessing, time
from reliablenet._workers import end_with
multiprocessing.current_process().name = {name!r}
end_with({runner})
time.sleep({seconds})
"""


def run(name: str, runner: int, seconds: float, tmp_path) -> int:
    program = PROGRAM.format(name=name, runner=runner, seconds=seconds)
    process = Process(launcher(), ["-c", program], tmp_path, os.environ)
    process.communicate(timeout=300)
    return process.returncode


@pytest.fixture(scope="module")
def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def test_a_worker_ends_whose_runner_was_gone_before_it_began(gone, tmp_path) -> None:
    """It was not watched, and waited for ever to hand its answer over."""
    assert run("LokyProcess-2", gone, 200, tmp_path) == 1


def test_a_process_of_others_goes_on(gone, tmp_path) -> None:
    assert run("Dask Worker process (from Nanny)", gone, 1.5, tmp_path) == 0


def test_the_runner_itself_goes_on() -> None:
    end_with(os.getpid())
    time.sleep(1.2)


def test_one_thread_inside_and_as_many_as_before_after_an_error() -> None:
    def fail() -> None:
        with one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyError):
            fail()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def grow(task: int) -> int:
    """Keep what a worker would keep that loads torch and a dataset: more than joblib takes for growth by chance."""
    if task > 1:
        kept.append(np.ones(50_000_000))
    time.sleep(1.1)  # joblib looks once a second
    return task


kept: list[np.ndarray] = []


def test_a_worker_that_grew_is_replaced_and_nothing_is_lost() -> None:
    """Its warning ended the thread of joblib that hands out the work, and `bench` waited for ever."""
    get_reusable_executor(reuse=True).shutdown(wait=True)
    with replaced_quietly():
        work = Parallel(2, return_as="generator_unordered")(delayed(grow)(i) for i in range(4))
        assert sorted(work) == list(range(4))
    get_reusable_executor(reuse=True).shutdown(wait=True)
