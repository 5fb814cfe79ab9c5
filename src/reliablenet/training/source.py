"""Where rows are read from batch by batch: a Dataset or a DataLoader, and what its batches must be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import torch
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from reliablenet.errors import InvalidDataError
from reliablenet.training import ranks

Source = Dataset[Any] | DataLoader[Any]
READ_ROWS = 64  # of a Dataset at a time; few enough for large images


def is_source(X: Any) -> TypeGuard[Source]:
    """Tell whether rows are to be read from X batch by batch."""
    return isinstance(X, Dataset | DataLoader)


def open_source(source: Source, name: str, *, shared: bool = False) -> DataLoader[Any]:
    """Return a loader of all rows of a source, or of this rank's share."""
    if isinstance(source, DataLoader):
        return source
    if isinstance(source, IterableDataset) or not hasattr(source, "__len__"):
        raise InvalidDataError(
            f"`{name}` must be a Dataset with a length and row numbers, or a DataLoader; got "
            f"{type(source).__name__}. Put it into a DataLoader(dataset, batch_size=...)."
        )
    first, step = (ranks.rank(), ranks.world()) if shared else (0, 1)
    places = range(first, len(source), step)
    # A generator of its own: without one a DataLoader draws from torch's.
    return DataLoader(source, READ_ROWS, sampler=places, generator=torch.Generator())


def check_order(source: Source, name: str) -> None:
    """Raise if a source shuffles its rows."""
    loader = open_source(source, name)
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    random = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
    if isinstance(sampler, random) or getattr(sampler, "shuffle", False):
        raise InvalidDataError(
            f"`{name}` must give its rows in one order; got a DataLoader that shuffles "
            f"({type(sampler).__name__}). Build it with shuffle=False."
        )


def generators_of(source: Source) -> list[torch.Generator]:
    """Return the generators that a user gave to a loader or its sampler."""
    if not isinstance(source, DataLoader):
        return []
    owners = (source, source.sampler, getattr(source.batch_sampler, "sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    return list({id(one): one for one in found if isinstance(one, torch.Generator)}.values())


def read_quietly(
    loader: DataLoader[Any], name: str, shape: tuple[int, ...] | None, labelled: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Read a source without a trace in any random state: training goes on as if nobody had looked."""
    with _untouched(generators_of(loader)):
        yield from read(loader, name, shape, labelled)


@contextmanager
def _untouched(generators: list[torch.Generator]) -> Iterator[None]:
    states = [generator.get_state() for generator in generators]
    try:
        with torch.random.fork_rng([]):
            # Rows that are augmented at random have one fingerprint. Not torch.manual_seed, which
            # would also reset devices.
            torch.default_generator.manual_seed(0)
            yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def read(
    loader: DataLoader[Any], name: str, shape: tuple[int, ...] | None, labelled: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield checked batches; without labels in them, where none are needed, an empty tensor."""
    for batch in loader:
        X, y = _check_batch(batch, name, labelled)
        shape = tuple(X.shape[1:]) if shape is None else shape
        if tuple(X.shape[1:]) != shape:
            raise InvalidDataError(
                f"Rows of `{name}` must all have the shape {shape}; got {tuple(X.shape[1:])}."
            )
        yield X, y


def _check_batch(batch: Any, name: str, labelled: bool) -> tuple[Tensor, Tensor]:
    """Return rows and labels of a batch, or say what it should have been."""
    pair = isinstance(batch, tuple | list)
    if isinstance(batch, Tensor) and not labelled:
        X, y = batch, torch.empty(0, dtype=torch.int64)
    elif pair and len(batch) == 2 and all(isinstance(part, Tensor) for part in batch):
        X, y = batch
    else:
        got = [type(part).__name__ for part in batch] if pair else type(batch).__name__
        raise InvalidDataError(
            f"`{name}` must yield {'pairs (rows, labels)' if labelled else 'rows'} of tensors; got "
            f"{got}. Give the DataLoader a collate_fn that makes them."
        )
    if X.dtype != torch.float32 or X.ndim < 2 or len(X) == 0:
        raise InvalidDataError(
            f"Rows of `{name}` must be float32 of shape (n, ...) with n >= 1 and a feature axis; got "
            f"{X.dtype} of shape {tuple(X.shape)}. Convert them in the Dataset: there is no encoder "
            "for what is read batch by batch."
        )
    if labelled and (
        y.shape != X.shape[:1] or y.is_floating_point() or y.is_complex() or y.dtype == torch.bool
    ):
        raise InvalidDataError(
            f"Labels of `{name}` must be class indices of an integer type, one a row, of shape "
            f"({len(X)},); got {y.dtype} of shape {tuple(y.shape)}."
        )
    return X, y.long()
