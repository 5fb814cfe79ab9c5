"""The encoder in a graph gives the same bits as the encoder."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from graphs import mixed, open_part, run_part
from onnx import TensorProto

from reliablenet.errors import InvalidParameterError
from reliablenet.export.onnx.encoder import add_encoder
from reliablenet.export.onnx.graph import Graph
from reliablenet.export.onnx.trial import feeds
from reliablenet.tables import PiecewiseEncoder, TabularEncoder

X, Y = mixed()


def strange(encoder) -> pd.DataFrame:
    """Rows of another draw, with the edges of bins, their neighbours and texts that nobody saw."""
    rows, _ = mixed(400, seed=1)
    edges = np.array([edge for own in getattr(encoder, "edges_", [[]]) for edge in own] or [40.0])
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    rows.loc[: len(near) - 1, "age"] = near[: len(rows)]
    rows.loc[: len(near) - 1, "gain"] = near[: len(rows)]
    rows.loc[5:15, "job"] = "nobody saw this"
    rows.loc[16:20, "town"] = None
    rows.loc[20:25, "debt"] = [-1e9, 1e9, 0.0, -0.0, np.nan, 1e-300]
    return rows


@pytest.mark.parametrize(
    "encoder",
    [
        pytest.param(TabularEncoder().fit(X, Y), id="standardised"),
        pytest.param(PiecewiseEncoder().fit(X, Y), id="bent ones in pieces"),
        pytest.param(PiecewiseEncoder().fit(X), id="all in pieces"),
        pytest.param(PiecewiseEncoder().fit(X[["job", "town"]]), id="texts alone"),
        pytest.param(PiecewiseEncoder(bins=1).fit(X[["age"]]), id="one number in one bin"),
    ],
)
def test_the_matrix_has_the_same_bits(encoder) -> None:
    rows = strange(encoder)[encoder.columns_]
    graph = Graph()
    matrix, _ = add_encoder(graph, encoder)
    found = run_part(graph, matrix, TensorProto.FLOAT, rows)
    assert found.dtype == np.float32
    assert np.array_equal(found, encoder.compact(rows))


@pytest.mark.parametrize("kind", [TabularEncoder, PiecewiseEncoder])
def test_rows_that_the_encoder_would_refuse_are_not_sound(kind) -> None:
    encoder = kind().fit(X, Y)
    graph = Graph()
    _, sound = add_encoder(graph, encoder)
    session = open_part(graph, sound, TensorProto.BOOL)
    given = feeds(session, X.head(4))
    given["debt"][[1, 2], 0] = np.inf, -np.inf
    given["age"][3, 0] = np.nan
    assert session.run(None, given)[0].tolist() == [True, False, False, True]


def test_an_empty_text_among_the_levels_is_refused() -> None:
    rows = X.assign(job=X["job"].fillna(""))
    with pytest.raises(InvalidParameterError, match="'job' has the empty text among its values"):
        add_encoder(Graph(), PiecewiseEncoder().fit(rows, Y))


def test_an_encoder_that_learns_more_is_refused() -> None:
    class Other(TabularEncoder):
        pass

    with pytest.raises(InvalidParameterError, match="got Other"):
        add_encoder(Graph(), Other().fit(X))
