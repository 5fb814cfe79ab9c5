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
BLOCK_CHUNKS = 64  # whose outputs are held as one piece


def chunk_rows(axes: int) -> int:
    """Return how many rows are evaluated together, for inputs with so many axes."""
    return TABLE_CHUNK if axes <= 2 else IMAGE_CHUNK


def evaluate_logits(network: nn.Module, X: Tensor | Iterable[Tensor]) -> Tensor:
    """Return the network's outputs in evaluation mode, the same bits for a row whatever rows are beside it.

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
    train = any(training for _, training in modes)
    if train:  # to look is cheaper than to set
        network.eval()
    chunks = X.split(chunk_rows(X.ndim)) if isinstance(X, Tensor) else _regroup(X)
    try:
        with torch.no_grad():
            return _stack(_evaluate_each(network, chunks))
    finally:
        for module, training in modes if train else ():  # some may be frozen in evaluation mode
            module.training = training


def _evaluate_each(network: nn.Module, chunks: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield the outputs for chunks of rows, all of which but the last are full."""
    weights = next(network.parameters(), None)
    buffer: Tensor | None = None
    for rows in chunks:
        if buffer is None:
            shape = (chunk_rows(rows.ndim), *rows.shape[1:])
            place = rows.device if weights is None else weights.device
            buffer = torch.zeros(shape, dtype=rows.dtype, device=place)
        buffer[: len(rows)] = rows
        buffer[len(rows) :] = 0
        yield network(buffer)[: len(rows)]


def _stack(outputs: Iterator[Tensor]) -> Tensor:
    """Return all rows of outputs in one tensor, held in few large pieces while they come.

    Small pieces that are kept between the large ones a network needs for a moment leave holes in
    memory that nothing fits into: 500,000 rows of two outputs then took up to 450 MiB.
    """
    blocks: list[Tensor] = []
    filled = 0
    for output in outputs:
        if not blocks or filled == len(blocks[-1]):  # every output but the last has one length
            blocks.append(output.new_empty((BLOCK_CHUNKS * len(output), *output.shape[1:])))
            filled = 0
        blocks[-1][filled : filled + len(output)] = output
        filled += len(output)
    return torch.cat([*blocks[:-1], blocks[-1][:filled]])


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
