"""The groups of the study on re-mixing are the colours that the dataset painted."""

from __future__ import annotations

import numpy as np

from reliablenet.datasets.coloured_mnist import _colour
from reliablenet.datasets.colouring import COLOURS, Weakening
from studies.guarantees.remixing import OWN, colour_groups


def test_groups_are_the_colours_that_the_dataset_painted() -> None:
    white, digits = np.full((300, 28, 28), 255, np.uint8), np.arange(300) % 10
    plain = Weakening(downsampling=1, noise=0.0, occlusion=0.0, window=0)
    fold = _colour(white, digits, 0.5, plain, random_state=7, stream=2)
    painted_own = (fold.X[:, :, 0, 0] == COLOURS[digits]).all(axis=1)
    assert 100 < painted_own.sum() < 200
    found = colour_groups(fold, correlation=0.5, seed=7, stream=2) == OWN
    assert found.tolist() == painted_own.tolist()
