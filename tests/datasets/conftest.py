"""What tests of the data share: a plain skip where a file is not at hand, and a hash of folds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from reliablenet.datasets.dataset import Dataset
from reliablenet.tables import Fold


@pytest.fixture(scope="session")
def needs_files() -> Callable[..., None]:
    """A function that skips the test unless RELIABLENET_DATA holds these relative paths."""

    def check(*paths: str) -> None:
        folder = os.environ.get("RELIABLENET_DATA", "")
        missing = [path for path in paths if not folder or not (Path(folder) / path).is_file()]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}; set RELIABLENET_DATA to a folder with it")

    return check


@pytest.fixture(scope="session")
def check_seeds() -> Callable[..., None]:
    """A function that loads with two seeds, one of them twice, and compares folds and one more of each."""

    def check(load: Callable[..., Dataset], another: Callable[[Dataset], Fold]) -> None:
        first, again, other = (
            [*vars(dataset.folds).values(), another(dataset)] for dataset in map(load, (5, 5, 6))
        )
        for one, two, three in zip(first, again, other, strict=True):
            assert np.array_equal(one.X, two.X)
            assert np.array_equal(one.y, two.y)
            assert not np.array_equal(one.X, three.X)

    return check


@pytest.fixture(scope="session")
def rows_hash() -> Callable[[Dataset], str]:
    """A function from a dataset of frames to a hash of its row numbers and labels, in order."""

    def hash_rows(dataset: Dataset) -> str:
        digest = hashlib.sha256()
        for fold in (*vars(dataset.folds).values(), *dataset.shifts.values()):
            digest.update(fold.X.index.to_numpy().astype("<i8").tobytes())
            digest.update(fold.y.astype("u1").tobytes())
        return digest.hexdigest()

    return hash_rows
