from __future__ import annotations

import pytest
import torch
from torch import nn

from reliablenet.training import Rows, Schedule, train
from reliablenet.training.denormal import are_flushed, flushed_denormals

supported = pytest.mark.skipif(
    not torch.set_flush_denormal(False), reason="this processor cannot flush denormal numbers"
)


@supported
def test_denormals_are_zero_inside_and_as_before_outside():
    tiny = torch.tensor(1e-40)
    assert float(tiny * 1.0) > 0
    with flushed_denormals():
        assert float(tiny * 1.0) == 0
        with flushed_denormals():
            pass
        assert are_flushed()  # an inner one leaves the outer one's setting
    assert not are_flushed()


@supported
def test_training_flushes_them_and_leaves_the_setting_alone_even_if_it_fails():
    seen = []
    rows = Rows(torch.randn(8, 2), torch.arange(8) % 2)

    def look(history):
        seen.append(are_flushed())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(nn.Linear(2, 2), rows, rows, alpha=0.05, schedule=Schedule.erm(2), after_epoch=look)
    assert seen == [True]
    assert not are_flushed()
