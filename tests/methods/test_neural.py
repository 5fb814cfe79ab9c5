"""Rows of any number are encoded piece by piece: nothing of it shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import reliablenet as rn
from reliablenet.methods import neural

N = 5000


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 3))
    return X, (X[:, 0] + random.normal(size=N) > 0).astype(int)


@pytest.fixture(scope="module", params=["mlp", "tabular"])
def model(request, rows):
    clf = rn.ERMClassifier(epochs=2, network=request.param, random_state=0, verbose=False)
    return clf.fit(*rows)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, np.asfortranarray])
def test_a_row_in_any_piece_has_the_bits_it_has_alone(model, rows, form, monkeypatch) -> None:
    monkeypatch.setattr(neural, "FRAME_ROWS", 700)
    whole = model.predict_proba(form(rows[0]))
    some = [0, 699, 700, 2047, 2048, N - 1]
    assert np.array_equal(whole[some], model.predict_proba(rows[0][some]))


@pytest.mark.parametrize("model", ["mlp"], indirect=True)  # the other takes the nearest it knows
@pytest.mark.parametrize(
    "form", [np.asarray, pd.DataFrame, lambda X: pd.DataFrame(X, index=np.arange(N)[::-1])]
)
def test_an_error_names_the_row_counted_from_the_first(model, rows, form, monkeypatch) -> None:
    monkeypatch.setattr(neural, "FRAME_ROWS", 700)
    X = rows[0].copy()
    X[3210, 1] = 1e300
    with pytest.raises(rn.errors.InvalidDataError, match="Row 3210 holds a number too large"):
        model.predict_proba(form(X))
