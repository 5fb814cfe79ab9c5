"""A Dask cluster of processes on this machine, for tests that have it installed."""

from __future__ import annotations

import logging
from typing import Any


def start_cluster(workers: int) -> Any:
    """Return a cluster of processes with one thread each, which ends with its context."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )
