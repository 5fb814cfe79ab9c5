"""`Pieces`: the columns of a piecewise-linear encoding, made batch by batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from reliablenet.tables.piecewise import bin_columns


class Pieces(nn.Module):
    """Spread positions among bins over one column a bin, as `PiecewiseEncoder` does.

    Put in front of a network it keeps the rows of a table small: a number with 32 bins takes one
    column in memory instead of 32.

    Parameters
    ----------
    bins : sequence of int
        Bins of each column, 0 for one that stays as it is.

    Attributes
    ----------
    width : int
        Columns that come out.

    Examples
    --------
    >>> Pieces([0, 4])(torch.tensor([[7.0, 2.25]]))
    tensor([[7.0000, 1.0000, 1.0000, 0.2500, 0.0000]])
    """

    def __init__(self, bins: Sequence[int]) -> None:
        super().__init__()
        stay, source, first = bin_columns(bins)
        self.width = len(stay) + len(source)
        # Not part of a file: the encoder tells them.
        self.stay: Tensor
        self.source: Tensor
        self.first: Tensor
        self.register_buffer("stay", torch.tensor(stay, dtype=torch.int64), persistent=False)
        self.register_buffer("source", torch.tensor(source, dtype=torch.int64), persistent=False)
        self.register_buffer("first", torch.tensor(first, dtype=torch.float32), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the columns that stay, then those of the bins."""
        pieces = x.index_select(1, self.source).sub_(self.first).clamp_(0.0, 1.0)
        return torch.cat([x.index_select(1, self.stay), pieces], 1)
