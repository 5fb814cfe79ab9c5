"""Frames of polars and Arrow are taken as those of pandas are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import reliablenet as rn
from reliablenet.errors import InvalidDataError
from reliablenet.tables.digest import fingerprint
from reliablenet.tables.frames import pandas_of

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

TABLE = pd.DataFrame(
    {"x": [1.5, None, 3.0], "job": ["a", None, "b"], "on": pd.array([True, None, False], "boolean")}
)


def kinds(table: pd.DataFrame) -> dict[str, object]:
    return {"polars": pl.from_pandas(table), "arrow": pa.Table.from_pandas(table)}


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_a_frame_is_the_same_in_any_library(kind) -> None:
    found = pandas_of(kinds(TABLE)[kind])
    pd.testing.assert_frame_equal(found, TABLE, check_dtype=False)
    assert found["on"].dtype == "boolean"
    assert fingerprint(kinds(TABLE)[kind]) == fingerprint(found)


@pytest.mark.parametrize("rows", [[[1, 2]], np.ones((2, 2)), TABLE, "text", None, {"x": [1]}])
def test_anything_else_stays_as_it_is(rows) -> None:
    assert pandas_of(rows) is rows


def test_a_table_that_is_not_computed_yet_is_refused() -> None:
    with pytest.raises(InvalidDataError, match=r"got a polars LazyFrame.*Call its collect\(\)"):
        pandas_of(pl.from_pandas(TABLE).lazy())


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=900), "job": rng.choice(["a", "b", "c"], 900)})
    y = np.where(table["x"] + (table["job"] == "a") + rng.normal(size=900) / 5 > 0, "yes", "no")
    return table, y


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_a_model_of_a_foreign_frame_is_that_of_pandas(rows, kind) -> None:
    table, y = rows
    promise = rn.Promise.by_group(0.3, by="job")
    made = rn.ReliableClassifier(promise=promise, network="mlp", random_state=0).fit(table, y)
    other = rn.ReliableClassifier(promise=promise, network="mlp", random_state=0).fit(
        kinds(table)[kind], y
    )
    assert other.feature_names_in_.tolist() == ["x", "job"]
    assert other.certificate_ == made.certificate_
    expected = made.decide(table)
    for given in (table, *kinds(table).values()):
        found = other.decide(given)
        np.testing.assert_array_equal(found.confidence, expected.confidence)
        np.testing.assert_array_equal(found.accepted, expected.accepted)
