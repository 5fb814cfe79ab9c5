"""Numbers too small for float32's full precision, which make a processor crawl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

DENORMAL = 1e-40


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Count numbers below 1e-38 as zero while this lasts, where the processor can.

    The gradients of a network that has learned its rows by heart fade into such numbers, and a
    matrix product with them takes several times as long.
    """
    before = are_flushed()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def are_flushed() -> bool:
    """Tell whether this thread counts denormal numbers as zero."""
    return float(torch.tensor(DENORMAL) * 1.0) == 0.0
