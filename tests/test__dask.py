"""Clusters as they are: without workers, with workers that are lost, and where nobody listens."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dask_cluster import start_cluster
from reliablenet._dask import connected, is_dask, map_cluster
from reliablenet.cli.cluster import check_visible
from reliablenet.errors import ClusterError, ClusterWarning, MissingExtraError

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    # an item that loses its worker once is given up
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), start_cluster(1) as local:
        yield local


def answer(held: int, item: int) -> int:
    time.sleep(0.02 * (item % 3))  # answers do not come in their order
    return held + item


def die(held: int, item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_cluster_without_workers_is_told_and_waited_for() -> None:
    with start_cluster(0) as local, ExitStack() as stack:
        with pytest.warns(ClusterWarning, match="has no workers yet: the work waits until there"):
            client = stack.enter_context(connected(local.scheduler_address))
        answers = map_cluster(client, answer, 100, {str(k): (k,) for k in range(30)})
        local.scale(2)
        assert list(answers) == [100 + k for k in range(30)]


@pytest.mark.skipif(sys.platform != "linux", reason="kills a process")
def test_an_item_that_loses_every_worker_is_named(cluster) -> None:
    with connected(cluster.scheduler_address) as client:
        answers = map_cluster(client, die, 0, {"part 2": (2,)})
        with pytest.raises(ClusterError, match=r"Worker after worker was lost at part 2: .*memory"):
            next(answers)
        client.wait_for_workers(1, timeout=120)  # it is started again


def test_an_error_of_ours_comes_back_as_it_is(cluster) -> None:
    with connected(cluster.scheduler_address) as client:
        answers = map_cluster(client, _look_for, None, {"one": ("/no/such/file",)})
        with pytest.raises(
            ClusterError, match=r"The worker on .* does not see /no/such/file\. Files must"
        ):
            next(answers)


def _look_for(held: None, path: str) -> None:
    check_visible(Path(path))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "http://a b"])
def test_where_nobody_listens(address, monkeypatch) -> None:
    monkeypatch.setattr("reliablenet._dask.CONNECT_SECONDS", 1)
    with pytest.raises(ClusterError, match=f"No Dask scheduler answers at '{address}'"):
        connected(address).__enter__()


def test_dask_that_is_not_installed(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'reliablenet\[dask\]'"):
        connected("local").__enter__()


def test_what_is_dask_is_told_without_importing_it() -> None:
    assert not is_dask(None)
    assert not is_dask({"a": [1]})
    assert is_dask(dask.delayed(1))
    assert is_dask({"a": dask.delayed(1)})
