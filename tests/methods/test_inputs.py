from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import InvalidDataError
from reliablenet.methods.inputs import check_labels

X = np.zeros((4, 1))


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b", np.nan, "a"],
        ("a", "b", float("nan"), "a"),
        ["a", "b", None, "a"],
        np.array(["a", "b", np.nan, "a"], object),
        pd.Series(["a", "b", None, "a"]),
        pd.Categorical(["a", "b", None, "a"]),
        [0, 1, np.nan, 1],
        [0.0, 1.0, np.inf, 1.0],
    ],
)
def test_a_missing_label_is_named_by_its_row(y) -> None:
    with pytest.raises(InvalidDataError, match=r"missing value in row 2 \(1 in all\)"):
        check_labels(X, y, "y")


@pytest.mark.parametrize("y", [["a", "b", "nan", "a"], [0, 1, 0, 1], [True, False, True, True]])
def test_labels_stay_as_they_are(y) -> None:
    assert check_labels(X, y, "y").tolist() == y
