"""Dask, where rows are spread over machines: connecting to a cluster, and calling a function on every partition.

Dask is imported here alone, and only when something of it was given or asked for.
"""

from __future__ import annotations

import logging
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from reliablenet._warn import warn_user
from reliablenet.errors import ClusterError, ClusterWarning, InvalidDataError, MissingExtraError

CONNECT_SECONDS = 10  # a scheduler that is there answers within one
AHEAD = 3  # items for each worker that are handed out at once
INSTALL = "Dask is not installed: pip install 'reliablenet[dask]'"


def is_dask(value: Any) -> bool:
    """Tell whether a value is a Dask collection, or a mapping that holds one; nothing is imported."""
    if isinstance(value, Mapping):
        return any(map(is_dask, value.values()))
    return hasattr(value, "__dask_graph__")


def map_parts(function: Callable[..., Any], given: Mapping[str, Any]) -> list[Any]:
    """Call a function with the number and the values of each partition, and return what it returned, in order.

    Parameters
    ----------
    function : callable
        Takes ``number`` and, by name, a part of each value.
    given : mapping from str
        Dask data frames, series or arrays with the same partitions.

    Returns
    -------
    list
    """
    from dask.base import compute
    from dask.delayed import delayed

    for name, value in given.items():
        if not hasattr(value, "to_delayed"):
            raise InvalidDataError(
                f"`{name}` must be a Dask collection, as the others are; got a {type(value).__name__}. "
                "Give all of them as columns of one Dask data frame."
            )
    sizes = {
        name: math.prod(value.numblocks) if _is_array(value) else value.npartitions
        for name, value in given.items()
    }
    if len(set(sizes.values())) != 1:
        raise InvalidDataError(
            f"Dask collections must have the same partitions; got {sizes} of them. Give columns of one data "
            "frame, and arrays in chunks of whole rows."
        )
    # one task for the function, whatever it holds: each worker gets it once
    held = delayed(partial(_call, function, tuple(given)), pure=False, traverse=False)
    calls = [held(number, parts) for number, parts in enumerate(_bundles(list(given.values())))]
    return list(compute(*calls))


def _bundles(values: list[Any]) -> list[Any]:
    """Return the parts of all values, a bundle for each partition."""
    if any(map(_is_array, values)):
        parts = [
            value.to_delayed().ravel().tolist()
            if _is_array(value)
            else value.to_delayed(optimize_graph=False)
            for value in values
        ]
        return list(zip(*parts, strict=True))
    # Each by itself would be optimised by itself: Dask joins small files as it sees fit for the columns read.
    import pandas as pd

    first, *others = values
    empty = pd.DataFrame({"parts": pd.Series([], dtype=object)})
    bundled = first.map_partitions(_bundle, *others, meta=empty, align_dataframes=False)
    return list(bundled.to_delayed())


def _bundle(*parts: Any) -> Any:
    import pandas as pd

    return pd.DataFrame({"parts": pd.Series([parts], dtype=object)})


def _call(function: Callable[..., Any], names: tuple[str, ...], number: int, parts: Any) -> Any:
    values = parts["parts"].iloc[0] if hasattr(parts, "columns") else parts
    return function(number=number, **dict(zip(names, values, strict=True)))


def _is_array(value: Any) -> bool:
    return hasattr(value, "numblocks")


def map_frame(frame: Any, function: Callable[..., Any], held: Any, meta: Any, *more: Any) -> Any:
    """Return what a function makes of each partition of a data frame, as another one, not computed yet.

    Parameters
    ----------
    frame : dask DataFrame
    function : callable
        Takes a partition, what is held, and a partition of each of ``more``.
    held : object
        The same for all partitions; each worker gets it once.
    meta : DataFrame
        What the function returns, without rows.
    *more : dask Series or DataFrame

    Returns
    -------
    dask DataFrame
    """
    from dask.delayed import delayed

    once = delayed(held, pure=False, traverse=False)
    return frame.map_partitions(function, once, *more, meta=meta)


@contextmanager
def connected(address: str, workers: int | None = None) -> Iterator[Any]:
    """Yield a client of a Dask cluster, and close it in the end.

    Parameters
    ----------
    address : str
        Of a scheduler; "local" starts a cluster on this machine that ends with the context.
    workers : int, optional
        Processes of one thread each, for "local"; by default as many as the machine has processors.

    Yields
    ------
    distributed.Client
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingExtraError(INSTALL) from error
    if address == "local":
        # Whoever asks reports himself what a lost worker was at. One that is slow to exit is harmless, and so is
        # one that finds the scheduler gone while all of them are being ended.
        with (
            LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    client = Client.__new__(
        Client
    )  # at hand, to be closed: left to the garbage collector, it can lock up
    try:
        Client.__init__(client, address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        client.close()
        raise ClusterError(
            f"No Dask scheduler answers at {address!r}: {error}. Start one with `dask scheduler`, and give "
            "the address that it prints, such as tcp://10.0.0.1:8786."
        ) from None
    with client:
        if not client.nthreads():  # a cluster that grows with its work has none before it gets some
            warn_user(
                f"The Dask scheduler at {address} has no workers yet: the work waits until there are some. "
                f"Start them with `dask worker {address}`.",
                ClusterWarning,
            )
        yield client


def map_cluster(
    client: Any, function: Callable[..., Any], held: Any, items: Mapping[str, tuple[Any, ...]]
) -> Iterator[Any]:
    """Call ``function(held, *item)`` for every item on a cluster; yield what it returned, in their order.

    A lost worker's items are given to another, a few times. Only some items are ahead of what was yielded, so
    that answers do not pile up.

    Parameters
    ----------
    client : distributed.Client
    function : callable
    held : object
        The same for all items; each worker gets it once.
    items : mapping from str
        By names for messages.
    """
    from distributed import KilledWorker

    # not scattered: what a lost worker held could not be had again
    once = client.submit(_same, held, pure=False)
    left, ahead = deque(items.items()), deque[tuple[str, Any]]()
    while left or ahead:
        while left and len(ahead) < AHEAD * max(len(client.nthreads()), 1):
            name, item = left.popleft()
            ahead.append((name, client.submit(function, once, *item, pure=False)))
        name, future = ahead.popleft()
        try:
            yield future.result()
        except KilledWorker as error:
            raise ClusterError(
                f"Worker after worker was lost at {name}: {error}. Are they short of memory?"
            ) from None


def _same(value: Any) -> Any:
    return value
