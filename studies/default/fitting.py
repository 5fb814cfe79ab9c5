"""What the studies of the default share: the datasets it is judged by, and how a fit is judged."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from reliablenet.certificate import Certificate

SEEDS = (0, 37, 42, 123, 2026)
ALPHAS = {"synthetic_band": 0.05, "german_credit": 0.05, "adult": 0.05, "unsw_nb15": 0.01}


def certified_throughput(certificate: Certificate) -> float:
    """Return the share of rows acted on rightly at a certified threshold; 0 without a certificate."""
    return certificate.throughput if certificate.certified else 0.0


@contextmanager
def quietly() -> Iterator[None]:
    """Work on one thread and ignore warnings, as of refusals, which are counted."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        torch.set_num_threads(threads)
