"""`Rows`: a fold in memory, and the order in which its rows are visited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from reliablenet.errors import InvalidDataError
from reliablenet.risk.event import check_real
from reliablenet.training import ranks


class Rows(NamedTuple):
    """Inputs of shape (n, ...) and class indices of shape (n,), in memory.

    Its methods are all that the training loop asks of rows; `Stream` has the same.
    """

    X: Tensor
    y: Tensor

    @property
    def total(self) -> int:
        """Number of rows, over all ranks."""
        return len(self.y)

    @property
    def device(self) -> torch.device:
        """Where batches arrive."""
        return self.X.device

    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield this rank's batches of an epoch (from 1), in a new order from the generator."""
        for index in index_batches(self.total, size, generator):
            place = index.to(self.device)
            yield self.X.index_select(0, place), self.y.index_select(0, place)

    def parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield this rank's rows in any pieces, each row of the fold on one rank."""
        mine = slice(ranks.rank(), None, ranks.world())
        yield self.X[mine], self.y[mine]

    def largest(self) -> float:
        """Return the largest size of an input."""
        return float(self.X.abs().max())

    def generators(self) -> list[torch.Generator]:
        """Return the random generators of one's own that decide the order of the batches."""
        return []


def check_rows(name: str, rows: Rows, network: nn.Module) -> None:
    """Raise unless a network can be trained on the rows; looks at shapes and types, not at values."""
    X, y = check_real("X", rows.X), check_real("y", rows.y)
    if y.dtype != torch.int64 or y.ndim != 1 or len(y) == 0 or X.shape[:1] != y.shape:
        raise InvalidDataError(
            f"`y` of the {name} given to train must hold one class index of type int64 for each row "
            f"of `X`, and at least one; got {y.dtype}, shapes {tuple(X.shape)} and {tuple(y.shape)}."
        )
    kinds = {weight.dtype for weight in network.parameters() if weight.is_floating_point()}
    if X.is_floating_point() and kinds and X.dtype not in kinds:
        raise InvalidDataError(
            f"`X` of the {name} given to train must be of the network's type, "
            f"{' or '.join(sorted(map(str, kinds)))}; got {X.dtype}."
        )


def index_batches(n: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield the row numbers of this rank's batches; all ranks draw one order and share each batch.

    ``size`` is for one rank: together the ranks take ``size`` times as many as they are. Of the last
    batch each takes its share; were that nothing for some, the batch before it takes these rows too.
    """
    world, rank = ranks.world(), ranks.rank()
    if n < world:
        raise InvalidDataError(
            f"Training on {world} processes needs at least as many rows; got {n}. Start fewer."
        )
    order = torch.randperm(n, generator=generator)
    start = 0
    while start < n:
        stop = start + size * world
        if n - stop < world:
            stop = n
        yield order[start:stop].tensor_split(world)[rank]
        start = stop
