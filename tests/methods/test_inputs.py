from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from reliablenet.errors import InvalidDataError
from reliablenet.methods.inputs import check_labels, check_rows

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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_their_precision_and_a_frame_its_columns(dtype):
    model = BaseEstimator()
    assert check_rows(model, np.ones((3, 2), dtype), "no_validation", reset=True).dtype == dtype
    assert model.n_features_in_ == 2
    frame = pd.DataFrame({"a": [1.0, None], "b": ["x", "y"]})
    assert check_rows(model, frame, "no_validation", reset=True) is frame
    assert model.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.array([["a", "b"]]), "must hold numbers if it is an array.*data frame"),
        (pd.DataFrame({"a": []}), "0 sample"),
        (pd.DataFrame(index=[0, 1]), "feature"),
    ],
)
def test_rows_that_nothing_can_be_learned_from_are_refused(rows, message):
    with pytest.raises(InvalidDataError, match=message):
        check_rows(BaseEstimator(), rows, "no_validation", reset=True)
