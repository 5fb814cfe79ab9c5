from __future__ import annotations

import numpy as np
import torch

from reliablenet.tables import PiecewiseEncoder
from reliablenet.training.pieces import Pieces


def test_equal_to_the_encoder_to_the_bit():
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=600), random.integers(0, 4, 600), random.random(600)])
    X[random.random(600) < 0.1, 2] = np.nan
    y = (np.abs(X[:, 0]) + random.normal(size=600) > 1).astype(int)
    encoder = PiecewiseEncoder(bins=6).fit(X, y)
    assert 0 < sum(map(bool, encoder.bins_)) < len(encoder.bins_)  # some in pieces, some not
    pieces = Pieces(encoder.bins_)
    spread = pieces(torch.from_numpy(encoder.compact(X))).numpy()
    assert spread.shape == (600, pieces.width)
    assert spread.tobytes() == encoder.transform(X).tobytes()


def test_it_adds_nothing_to_a_file():
    assert not Pieces([0, 3]).state_dict()
    assert not list(Pieces([0, 3]).parameters())
