"""Trainings that are killed after an epoch, and two trainings compared to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
import torch
from torch import nn

from reliablenet.training import History


class KilledError(Exception):
    pass


def killer(epoch: int) -> Callable[[History], bool]:
    """Return a callback that ends a training after this epoch, as a kill would."""

    def after_epoch(history: History) -> bool:
        if len(history.records) == epoch:
            raise KilledError
        return False

    return after_epoch


def assert_same_run(
    one: History, network: nn.Module, other: History, twin: nn.Module, but_for: Iterable[str] = ()
) -> None:
    """Compare to the bit, but for columns of the history that are added up in another order."""
    sums = list(but_for)
    pd.testing.assert_frame_equal(
        one.to_frame().drop(columns=sums), other.to_frame().drop(columns=sums), check_exact=True
    )
    for name in sums:
        np.testing.assert_allclose(one.to_frame()[name], other.to_frame()[name], rtol=1e-6)
    assert (one.threshold, one.chosen_epoch, one.stopped) == (
        other.threshold,
        other.chosen_epoch,
        other.stopped,
    )
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, twin.state_dict()[name]), name
