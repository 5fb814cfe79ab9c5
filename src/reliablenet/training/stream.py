"""`Stream`: labelled rows that are read batch by batch and never held at once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from reliablenet._warn import warn_user
from reliablenet.errors import FoldWarning, InvalidDataError
from reliablenet.training import ranks
from reliablenet.training.batches import index_batches
from reliablenet.training.devices import find_device

Source = Dataset[Any] | DataLoader[Any]
READ_ROWS = 64  # of a Dataset at a time; few enough for large images


def is_source(X: Any) -> TypeGuard[Source]:
    """Tell whether rows are to be read from X batch by batch."""
    return isinstance(X, Dataset | DataLoader)


@dataclass(frozen=True)
class Inputs:
    """The rows of a source without their labels, read anew by every pass.

    Parameters
    ----------
    source : Dataset or DataLoader
        Yields rows, or pairs (rows, labels). It must not shuffle, or answers would be in an order
        that nobody knows.
    shape_of_row : tuple of int
    name : str
        What messages call the source.
    labels : integer array of shape (n,), optional
        Those of an earlier pass, to check that the order is still the same.
    """

    source: Source
    shape_of_row: tuple[int, ...]
    name: str = "X"
    labels: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        check_order(self.source, self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows, where an earlier pass has counted them, and shape of a row."""
        return (-1 if self.labels is None else len(self.labels), *self.shape_of_row)

    def __iter__(self) -> Iterator[Tensor]:
        start = 0
        loader = open_source(self.source, self.name)
        for X, y in read_quietly(loader, self.name, self.shape_of_row, self.labels is not None):
            stop = start + len(X)
            if self.labels is not None and not np.array_equal(self.labels[start:stop], y.cpu()):
                raise InvalidDataError(
                    f"`{self.name}` must give its rows in the same order in every pass; its labels "
                    f"from row {start} on are not those of the first pass. Do not shuffle it."
                )
            start = stop
            yield X
        if start == 0 or (self.labels is not None and start < len(self.labels)):
            wanted = "at least 1" if self.labels is None else len(self.labels)
            raise InvalidDataError(f"`{self.name}` must give {wanted} rows; got {start}.")


class Stream:
    """Labelled rows of a Dataset or a DataLoader; has the methods of `Rows`.

    Building one reads everything once, so that bad rows are found before training starts: it counts
    rows and classes and keeps none of the rows. Under `torch.distributed` the ranks share the rows of a
    Dataset; a DataLoader gives each rank its own part (`DistributedSampler`).

    Parameters
    ----------
    source : Dataset or DataLoader
        Yields pairs: rows as float32 of shape (n, ...), labels as class indices of shape (n,).
    name : str
        What messages call the source.
    device : str or torch.device
        Where batches of training arrive; "auto" as for an estimator.
    ordered : bool
        Whether this is a fold to evaluate: read whole by every rank, always in one order, and its
        labels are kept.

    Attributes
    ----------
    total : int
        Number of rows, over all ranks.
    shape : tuple of int
        Of one row.
    counts : dict of int
        Rows of each class index.
    fingerprint : str
        SHA-256 that does not depend on the order of the rows.
    X : Inputs
    y : Tensor of shape (n,)
        Only if ordered.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data.dataloader import DataLoader
    >>> from reliablenet.training import Stream
    >>> from torch.utils.data import TensorDataset
    >>> rows = TensorDataset(torch.eye(4), torch.tensor([0, 1, 0, 1]))
    >>> stream = Stream(DataLoader(rows, batch_size=3))
    >>> stream.total, stream.shape, stream.counts
    (4, (4,), {0: 2, 1: 2})
    """

    X: Inputs
    y: Tensor

    weight = None  # all rows count alike
    group = None  # and nobody knows whose they are

    def __init__(
        self,
        source: Source,
        name: str = "X",
        *,
        device: str | torch.device = "cpu",
        ordered: bool = False,
    ) -> None:
        self.source = source
        self.name = name
        self.device = find_device(device, "Stream") if isinstance(device, str) else device
        labels: list[NDArray[np.int64]] | None = None
        if ordered:
            check_order(source, name)
            labels = []
        seen = _look_through(open_source(source, name, shared=not ordered), name, labels)
        parts = [seen] if ordered else ranks.gather(seen)
        if isinstance(source, DataLoader):
            _check_shares(parts, name)
        parts = [part for part in parts if part.rows]
        if not parts:
            raise InvalidDataError(f"`{name}` must hold at least one row; got none.")
        self.shape = parts[0].shape
        self.total = sum(part.rows for part in parts)
        self.counts = dict(sorted(sum((part.counts for part in parts), Counter()).items()))
        self._largest = max(part.largest for part in parts)
        digest = sum(part.digest for part in parts) % 2**256
        told = f"{self.total} rows {self.shape} {digest:x}"
        self.fingerprint = hashlib.sha256(told.encode()).hexdigest()
        if labels is not None:
            self.X = Inputs(source, self.shape, name, np.concatenate(labels))
            self.y = torch.from_numpy(self.X.labels).to(self.device)

    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterator[tuple[Tensor, ...]]:
        """Yield this rank's batches of an epoch (from 1).

        A Dataset's are those that `Rows` would make; a DataLoader makes its own, of its own size.
        """
        if isinstance(self.source, DataLoader):
            loader = self.source
            for part in (loader.sampler, loader.batch_sampler, loader.dataset):
                getattr(part, "set_epoch", lambda epoch: None)(epoch)
        else:
            places = (index.tolist() for index in index_batches(self.total, size, generator))
            loader = DataLoader(self.source, batch_sampler=places, generator=torch.Generator())
        met = False
        for X, y in read(loader, self.name, self.shape, labelled=True):
            met = True
            yield X.to(self.device), y.to(self.device)
        if not met:
            raise InvalidDataError(f"`{self.name}` gave no rows in epoch {epoch}.")

    def parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield this rank's rows in any pieces, each row of the fold on one rank."""
        loader = open_source(self.source, self.name, shared=True)
        for X, y in read_quietly(loader, self.name, self.shape, labelled=True):
            yield X.to(self.device), y.to(self.device)

    def count_classes(self) -> int:
        """Return K, if the labels are class indices 0 to K-1 and each of them occurs."""
        found = list(self.counts)
        if len(found) < 2:
            raise InvalidDataError(
                f"`{self.name}` must hold at least two classes; got 1 class: {found}."
            )
        if found != list(range(len(found))):
            raise InvalidDataError(
                f"Labels of `{self.name}` must be class indices 0 to K-1, each of which occurs; got "
                f"{len(found)} different ones from {found[0]} to {found[-1]}. Renumber them."
            )
        return len(found)

    def check_like(self, shape: tuple[int, ...], n_classes: int) -> None:
        """Raise unless rows and labels are like those that a network was built for."""
        if self.shape != shape:
            raise InvalidDataError(
                f"Rows of `{self.name}` must have the shape of the training rows, {shape}; got "
                f"{self.shape}."
            )
        if max(self.counts) >= n_classes:
            raise InvalidDataError(
                f"Labels of `{self.name}` must be class indices from 0 to {n_classes - 1}, as in "
                f"training; got {max(self.counts)}."
            )

    def largest(self) -> float:
        """Return the largest size of an input."""
        return self._largest

    def generators(self) -> list[torch.Generator]:
        """Return the random generators of one's own that decide the order of the batches."""
        return generators_of(self.source)


class _Seen(NamedTuple):
    """What one pass over a source showed."""

    rows: int
    batches: int
    shape: tuple[int, ...]
    counts: Counter[int]
    largest: float
    digest: int


def _look_through(
    loader: DataLoader[Any], name: str, labels: list[NDArray[np.int64]] | None
) -> _Seen:
    """Read a source once, check all of it, and add its labels to the list if there is one."""
    rows = batches = digest = 0
    shape: tuple[int, ...] = ()
    counts: Counter[int] = Counter()
    largest = 0.0
    for X, y in read_quietly(loader, name, None, labelled=True):
        if not bool(torch.isfinite(X).all()):
            raise InvalidDataError(
                f"`{name}` must hold finite rows; got NaN or an infinity in batch {batches}. "
                "Drop or repair those rows first."
            )
        if int(y.min()) < 0:
            raise InvalidDataError(
                f"Labels of `{name}` must be class indices from 0 on; got {int(y.min())} in batch "
                f"{batches}. Leave out rows to be ignored."
            )
        shape = tuple(X.shape[1:])
        numbers = y.cpu().numpy()
        counts.update(numbers.tolist())
        largest = max(largest, float(X.abs().max()))
        digest += _digest(X, numbers)
        rows, batches = rows + len(y), batches + 1
        if labels is not None:
            labels.append(numbers)
    return _Seen(rows, batches, shape, counts, largest, digest)


def _digest(X: Tensor, labels: NDArray[np.int64]) -> int:
    """Return a sum of hashes of rows, so that their order does not matter."""
    table = np.ascontiguousarray(X.detach().cpu().numpy()).reshape(len(labels), -1)
    pairs = zip(table, labels, strict=True)
    hashes = (hashlib.sha256(row.tobytes() + label.tobytes()).digest() for row, label in pairs)
    return sum(int.from_bytes(one, "big") for one in hashes)


def _check_shares(parts: list[_Seen], name: str) -> None:
    """Raise unless the parts that loaders give to the ranks can be trained on together."""
    batches = [part.batches for part in parts]
    if len(set(batches)) > 1:
        raise InvalidDataError(
            f"`{name}` must give as many batches on every rank, because ranks wait for each other; "
            f"got {batches}. Use a DistributedSampler, which evens them out."
        )
    if len(parts) > 1 and len({part.digest for part in parts}) == 1 and parts[0].rows:
        warn_user(
            f"`{name}` gives the same rows to every rank, so several processes gain nothing. "
            "Give its DataLoader a DistributedSampler, or pass the Dataset itself.",
            FoldWarning,
        )


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
