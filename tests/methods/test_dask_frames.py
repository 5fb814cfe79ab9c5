"""Dask data frames on a cluster of two processes: decisions and certificates are those of one machine, to the bit."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reliablenet as rn
from dask_cluster import start_cluster
from people import people
from reliablenet.errors import (
    FoldWarning,
    InvalidDataError,
    LabelWarning,
    OddInputWarning,
)
from reliablenet.methods import ledger

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")


FEATURES = ["age", "debt", "job", "race"]
TRAIN, FRESH = (
    people(n, seed, 0.4).drop(columns="id").set_axis(range(10_000, 10_000 + n))
    for seed, n in enumerate((3000, 2000))
)
ENDS = [0, 700, 700, 701, 1400, 2000]  # an empty partition, and one of a single row


def in_parts(frame: pd.DataFrame, ends: list[int] = ENDS):
    pieces = [frame.iloc[a:b] for a, b in pairwise(ends)]
    return dd.from_map(lambda place: pieces[place], range(len(pieces)), meta=frame.iloc[:0])


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """Two processes on this machine, and a client that Dask finds by itself."""
    with (
        start_cluster(2) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def network():
    """A network on raw columns, with an encoder of categories."""
    model = rn.ERMClassifier(alpha=0.1, epochs=2, random_state=0)
    return model.fit(TRAIN[FEATURES], TRAIN["y"])


PROMISES = {
    "none": None,
    "overall": rn.Promise.overall(0.1),
    "among accepted": rn.Promise.among_accepted(0.1),
    "by group": rn.Promise.by_group(0.15, by="race"),
    "by class": rn.Promise.by_class(0.15),
    "by predicted": rn.Promise.by_predicted(0.1),
    "cost": rn.Promise.cost([[0, 1], [4, 0]], 0.4, classes=["no", "yes"]),
    "all of": rn.Promise.all_of(
        rn.Promise.overall(0.1), rn.Promise.by_group(0.15, by="race", common=True)
    ),
}


@pytest.fixture(scope="module", params=PROMISES)
def promised(request):
    """Any classifier, with every promise."""
    features = TRAIN[["age", "debt"]].assign(race=(TRAIN["race"] == "A").astype(int))
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    promise = PROMISES[request.param]
    return rn.CertifiedThreshold(inner, 0.1, promise=promise, random_state=0).fit(
        features, TRAIN["y"]
    )


def check_same(found, expected) -> None:
    assert found == expected
    assert found.provenance == expected.provenance
    assert found.to_json() == expected.to_json()


def test_decisions_are_those_of_pandas_to_the_bit(network, cluster) -> None:
    expected = network.decide(FRESH[FEATURES]).to_frame(FRESH.index)
    lazy = network.decide(in_parts(FRESH)[FEATURES])
    assert isinstance(lazy, dd.DataFrame)
    assert list(lazy.columns) == ["label", "confidence", "accepted"]
    assert_frame_equal(lazy.compute(), expected)
    assert lazy._meta.dtypes.equals(expected.dtypes)
    share = lazy["accepted"].mean().compute()
    assert share == expected["accepted"].mean()


def test_a_certificate_is_that_of_pandas_to_the_count(network, cluster) -> None:
    expected = network.certify(FRESH[FEATURES], FRESH["y"])
    ledger.clear()
    parts = in_parts(FRESH)
    check_same(network.certify(parts[FEATURES], parts["y"]), expected)


def test_files_that_dask_joins_as_it_sees_fit_are_counted_once(network, cluster, tmp_path) -> None:
    """How many small files Dask reads at a time depends on the columns that are asked for."""
    wide = FRESH.reset_index(drop=True).assign(**{f"more_{k}": "text" for k in range(20)})
    for number in range(8):
        wide.iloc[250 * number : 250 * (number + 1)].to_parquet(tmp_path / f"{number}.parquet")
    parts = dd.read_parquet(tmp_path)
    assert len(parts["y"].to_delayed()) < len(parts.to_delayed())  # else there is nothing to see
    expected = network.certify(FRESH[FEATURES], FRESH["y"])
    ledger.clear()
    check_same(network.certify(parts[FEATURES], parts["y"]), expected)
    ledger.clear()
    whose = parts["age"].astype(str)
    grouped = network.certify(parts[FEATURES], parts["y"], groups=whose)
    ledger.clear()
    assert grouped == network.certify(FRESH[FEATURES], FRESH["y"], groups=FRESH["age"].astype(str))


def test_every_promise_is_that_of_pandas(promised, cluster) -> None:
    fresh = FRESH.assign(race=(FRESH["race"] == "A").astype(int))
    features = ["age", "debt", "race"]
    parts = in_parts(fresh)
    expected = promised.decide(fresh[features]).to_frame(fresh.index)
    assert_frame_equal(promised.decide(parts[features]).compute(), expected)
    certificate = promised.certify(fresh[features], fresh["y"])
    ledger.clear()
    check_same(promised.certify(parts[features], parts["y"]), certificate)


def test_groups_that_are_no_feature_come_beside(cluster) -> None:
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    model = rn.CertifiedThreshold(inner, 0.1, promise=rn.Promise.by_group(0.15, by="race"))
    model.fit(TRAIN[["age", "debt"]], TRAIN["y"], by=TRAIN["race"])
    parts = in_parts(FRESH)
    expected = model.decide(FRESH[["age", "debt"]], FRESH["race"])
    lazy = model.decide(parts[["age", "debt"]], parts["race"])
    assert_frame_equal(lazy.compute(), expected.to_frame(FRESH.index))
    certificate = model.certify(FRESH[["age", "debt"]], FRESH["y"], by=FRESH["race"])
    ledger.clear()
    found = model.certify(parts[["age", "debt"]], parts["y"], by=parts["race"])
    check_same(found, certificate)
    with pytest.raises(InvalidDataError, match="`by` of a Dask data frame must be a column of it"):
        model.decide(parts[["age", "debt"]], FRESH["race"])


def test_one_row_of_each_group_counts(network, cluster) -> None:
    whose = np.arange(2000) // 3
    fresh = FRESH.assign(whose=np.random.default_rng(0).permutation(whose))
    expected = network.certify(FRESH[FEATURES], FRESH["y"], groups=fresh["whose"], random_state=4)
    ledger.clear()
    parts = in_parts(fresh)
    found = network.certify(parts[FEATURES], parts["y"], groups=parts["whose"], random_state=4)
    assert found == expected
    assert (found.unit, found.n) == ("group", 667)
    assert found.provenance.model == expected.provenance.model


def test_odd_rows_are_told_by_a_column(network, cluster) -> None:
    """Of a part of the rows nobody can say what is odd about all of them."""
    fresh = FRESH.assign(job=FRESH["job"].where(FRESH.index % 9 > 0, "pilot"))
    fresh.loc[fresh.index[:3], "age"] = np.nan
    with pytest.warns(OddInputWarning):
        decisions = network.decide(fresh[FEATURES], defer_odd=True)
    expected = decisions.to_frame(fresh.index).assign(odd=decisions.odd)
    lazy = network.decide(in_parts(fresh)[FEATURES], defer_odd=True)
    assert_frame_equal(lazy.compute(), expected)
    assert expected["odd"].sum() > 200


def test_types_may_differ_between_partitions(network, cluster) -> None:
    halves = [
        FRESH.iloc[:1000].astype({"age": "float32", "job": "category"}),
        FRESH.iloc[1000:].astype({"job": object, "debt": "Float64"}),
    ]
    parts = dd.from_map(lambda place: halves[place], range(2), meta=FRESH.iloc[:0])
    expected = pd.concat([network.decide(half[FEATURES]).to_frame(half.index) for half in halves])
    assert_frame_equal(network.decide(parts[FEATURES]).compute(), expected)


def test_a_missing_column_is_named(network, cluster) -> None:
    parts = in_parts(FRESH.drop(columns=["debt", "y"]))
    with pytest.raises((InvalidDataError, ValueError), match="debt"):
        network.decide(parts).compute()


def test_unknown_labels_are_told_once(network, cluster) -> None:
    fresh = FRESH.assign(y=FRESH["y"].where(FRESH.index != FRESH.index[700], "perhaps"))
    parts = in_parts(fresh)  # the row is a partition by itself
    with pytest.warns(LabelWarning, match="1 of 2000 rows") as told:
        found = network.certify(parts[FEATURES], parts["y"])
    assert len(told) == 1
    ledger.clear()
    with pytest.warns(LabelWarning):
        check_same(found, network.certify(fresh[FEATURES], fresh["y"]))


def test_rows_that_were_seen_are_refused(network, cluster) -> None:
    parts = in_parts(TRAIN.iloc[:2000])
    with pytest.raises(InvalidDataError, match="of 2,000 rows were given to `fit` already, row 0"):
        network.certify(parts[FEATURES], parts["y"])


def test_copies_are_told(network, cluster) -> None:
    fresh = pd.concat([FRESH.iloc[:1000]] * 2)
    parts = in_parts(fresh)
    with pytest.warns(FoldWarning, match="1000 of 2000 certification rows"):
        found = network.certify(parts[FEATURES], parts["y"])
    assert found.provenance.copies == 1000


def test_numbers_are_decided_too(cluster) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=3000), "b": rng.normal(size=3000)})
    y = table["a"] + 2 * table["b"] + rng.normal(0, 0.1, 3000)
    model = rn.ReliableRegressor(0.5, 0.1, network="mlp", epochs=20, random_state=0)
    model.fit(table.iloc[:2000], y.iloc[:2000])
    fresh, truth = table.iloc[2000:], y.iloc[2000:]
    parts = in_parts(fresh.assign(y=truth), [0, 400, 401, 1000])
    expected = model.decide(fresh).to_frame(fresh.index)
    assert_frame_equal(model.decide(parts[["a", "b"]]).compute(), expected)
    certificate = model.certify(fresh, truth)
    ledger.clear()
    check_same(model.certify(parts[["a", "b"]], parts["y"]), certificate)


def die_once(frame: pd.DataFrame, mark: str) -> pd.DataFrame:
    """Kill the process that is at the last rows, the first time."""
    if len(frame) and frame.index[-1] == FRESH.index[-1] and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.skipif(sys.platform != "linux", reason="kills a process")
def test_a_worker_that_is_killed_changes_nothing(network, cluster, tmp_path) -> None:
    expected = network.decide(FRESH[FEATURES]).to_frame(FRESH.index)
    meta = FRESH.iloc[:0]
    deadly = in_parts(FRESH).map_partitions(die_once, str(tmp_path / "first"), meta=meta)
    assert_frame_equal(network.decide(deadly[FEATURES]).compute(), expected)
    assert (tmp_path / "first").exists()
    certificate = network.certify(FRESH[FEATURES], FRESH["y"])
    ledger.clear()
    deadly = in_parts(FRESH).map_partitions(die_once, str(tmp_path / "second"), meta=meta)
    check_same(network.certify(deadly[FEATURES], deadly["y"]), certificate)
    assert (tmp_path / "second").exists()
