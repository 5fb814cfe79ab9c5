"""Evaluation of a network such that a row's bits do not depend on the rows beside it.

Matrix products round differently for different batch sizes, so that a row near the threshold could
be accepted alone and deferred in a batch. Every pass here therefore has one shape: rows are copied
into a buffer of a fixed number of rows, the rest of which is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

TABLE_CHUNK = 512  # one row costs 0.3 ms, and 20,000 rows run within 10 % of the best batch size
IMAGE_CHUNK = (
    64  # what a convolution makes of more images leaves the cache: 512 take 1.7 x the time
)


def chunk_rows(axes: int) -> int:
    """Return how many rows are evaluated together, for inputs with so many axes."""
    return TABLE_CHUNK if axes <= 2 else IMAGE_CHUNK


def evaluate_logits(network: nn.Module, X: Tensor | Iterable[Tensor]) -> Tensor:
    """Return the network's outputs in evaluation mode, the same bits for a row in any company.

    Parameters
    ----------
    network : nn.Module
    X : Tensor of shape (n, ...), or an iterable of such
        Pieces of an iterable are read one by one and not kept.

    Returns
    -------
    Tensor of shape (n, K)
    """
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    weights = next(network.parameters(), None)
    buffer: Tensor | None = None
    outputs = []
    try:
        with torch.no_grad():
            for rows in X.split(chunk_rows(X.ndim)) if isinstance(X, Tensor) else _regroup(X):
                if buffer is None:
                    shape = (chunk_rows(rows.ndim), *rows.shape[1:])
                    place = rows.device if weights is None else weights.device
                    buffer = torch.zeros(shape, dtype=rows.dtype, device=place)
                buffer[: len(rows)] = rows
                buffer[len(rows) :] = 0
                outputs.append(network(buffer)[: len(rows)].clone())
    finally:
        for module, training in modes:  # one by one: some may be frozen in evaluation mode
            module.training = training
    return torch.cat(outputs)


def _regroup(pieces: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield the rows of pieces of any size in chunks, so that none is filled up but the last."""
    held: list[Tensor] = []
    for piece in pieces:
        held.append(piece)
        size = chunk_rows(piece.ndim)
        if sum(map(len, held)) >= size:
            together = torch.cat(held) if len(held) > 1 else piece
            *full, last = together.split(size)
            yield from full
            held = [last] if len(last) < size else []
            if not held:
                yield last
    if held:
        yield torch.cat(held)
