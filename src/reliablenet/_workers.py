"""Work in processes beside this one: one thread each, and none outlives the process that wants its answer."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: sums depend on their number, and processes would wait for each other."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def replaced_quietly() -> Iterator[None]:
    """Let joblib replace a worker without a warning: no task is lost with it.

    It replaces one that was idle for long, and one that grew: torch and a dataset, which the second task of a worker may
    be the first to need, look like a leak. Where warnings are errors, this one would end the thread that hands out the
    work, and the rest would be waited for without end.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "A worker stopped while some jobs were given", UserWarning
        )
        yield


def end_with(runner: int) -> None:
    """End this process when the one that gave it work is gone: the answer would reach nobody.

    A worker of joblib would wait for ever to hand its answer over. It is told by its name, because its runner may be
    gone before this is called. Threads of the runner itself and workers of Dask, whose runner is another, go on.

    Parameters
    ----------
    runner : int
        Number of the process that gave the work.
    """
    of_joblib = multiprocessing.current_process().name.startswith("LokyProcess")
    if of_joblib or os.getppid() == runner:
        _watch(runner)


@cache
def _watch(runner: int) -> None:
    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
