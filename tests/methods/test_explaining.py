"""Which columns the decisions of a fitted method rest on: tables whose truth is known, of every kind of method."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from contract_helpers import Scores, fit_quietly, frame_of, quick
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.tables import TabularEncoder


def table_of(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows whose label rests on `deciding` alone; the others are noise of every kind."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(900, size=n), "D")
    table = pd.DataFrame(
        {
            "noise": rng.normal(size=n),
            "job": rng.choice(["clerk", "cook", "pilot"], n),
            "deciding": rng.normal(size=n),
            "joined": days.strftime("%Y-%m-%d"),
        }
    )
    return table, np.where(table["deciding"] + 0.3 * rng.normal(size=n) > 0, "yes", "no")


@pytest.fixture(scope="module")
def logistic() -> rn.CertifiedThreshold:
    inner = make_pipeline(TabularEncoder(), LogisticRegression())
    return rn.CertifiedThreshold(inner, random_state=0).fit(*table_of(2000))


@pytest.fixture(scope="module")
def network() -> rn.ReliableClassifier:
    return fit_quietly(quick(rn.ReliableClassifier, alpha=0.1, members="network"), *frame_of(1500))


def test_the_column_that_decides_ranks_first_and_noise_last(logistic) -> None:
    X, y = table_of(600, seed=1)
    found = logistic.permutation_importance(X, y)
    frame = found.to_frame().set_index("column")
    assert found.columns == tuple(X.columns)
    assert frame.index[0] == "deciding"
    others = frame.drop(index="deciding")
    # half of the answers turn with the deciding column; noise moves what lies at the threshold
    assert frame.loc["deciding", "answers"] > 0.35
    assert (others["decisions"] < 0.15).all()
    assert frame.loc["deciding", "wrong_change"] > 0.2 > others["wrong_change"].abs().max()
    assert frame.loc["deciding", "right_change"] < -0.2
    assert found.summary().startswith("decisions rest most on deciding (")


def test_what_is_measured_is_what_decide_says(logistic) -> None:
    """By hand: the same shuffle through the public methods alone."""
    X, y = table_of(300, seed=2)
    found = logistic.permutation_importance(X, y, repeats=1, random_state=4)
    place = list(X.columns).index("deciding")
    order = np.random.default_rng([4, place]).permutation(np.arange(300))
    shuffled = X.assign(deciding=X["deciding"].to_numpy()[order])
    before, after = logistic.decide(X), logistic.decide(shuffled)
    other = before.label != after.label
    expected = {
        "answers": other.mean(),
        "acceptance": (before.accepted != after.accepted).mean(),
        "decisions": (
            (before.accepted != after.accepted) | (before.accepted & after.accepted & other)
        ).mean(),
        "confidence": np.abs(after.confidence - before.confidence).mean(),
        "confidence_change": (after.confidence - before.confidence).mean(),
        "coverage_change": after.accepted.mean() - before.accepted.mean(),
        "wrong_change": logistic.evaluate(shuffled, y).jcw - logistic.evaluate(X, y).jcw,
    }
    for name, value in expected.items():
        assert found.mean[name][place] == pytest.approx(value, abs=1e-12), name


def test_a_column_that_was_left_out_changes_nothing(network) -> None:
    X, y = frame_of(400, seed=3)
    found = network.permutation_importance(X, y)
    at = found.columns.index("constant")
    assert all((values[at] == 0.0).all() for values in found.changes.values())
    assert found.to_frame()["column"].iloc[0] in ("number", "job")
    wrapped = rn.CertifiedThreshold(network, alpha=0.1, random_state=0).fit(*frame_of(900, seed=4))
    outer = wrapped.permutation_importance(X)
    np.testing.assert_allclose(outer.mean["answers"], found.mean["answers"])
    assert "wrong_change" not in outer.changes


def test_files_frames_and_arrays_give_the_same(network, tmp_path) -> None:
    X, y = frame_of(300, seed=5)
    loaded = rn.load(network.save(tmp_path / "model.rnet"))
    first, again = (m.permutation_importance(X, y, repeats=2) for m in (network, loaded))
    for name in first.changes:
        np.testing.assert_array_equal(first.changes[name], again.changes[name])
    rows = np.random.default_rng(0).uniform(size=(400, 2))
    clf = rn.CertifiedThreshold(Scores(1), alpha=0.4).fit(rows, rows[:, 1] > 0.5)
    for given in (rows.tolist(), rows):
        found = clf.permutation_importance(given)
        assert found.to_frame()["column"].tolist() == [1, 0]
        assert found.mean["confidence"][0] == 0.0


def test_a_group_is_shuffled_with_its_column_whatever_gives_it() -> None:
    """The score does not look at the ward; the threshold does."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"score": rng.uniform(0.5, 1, 4000), "ward": rng.integers(2, size=4000)})
    y = rng.uniform(size=4000) < np.where(X["ward"] == 1, X["score"], 2 * X["score"] - 1)
    promise = rn.Promise.by_group(0.1, by="ward")
    clf = rn.CertifiedThreshold(Scores(0), promise=promise, random_state=0).fit(X, y)
    assert np.diff(clf.rule_.limits(2, by=[1, 0])) > 0
    inside = clf.permutation_importance(X)
    wards = {"ward": X["ward"].to_numpy()}
    given = clf.permutation_importance(X, by=wards)
    assert inside.mean["acceptance"][1] > 0.02
    assert inside.mean["confidence"][1] == 0.0
    np.testing.assert_array_equal(inside.changes["decisions"], given.changes["decisions"])


def test_numbers_rest_on_columns_too() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"noise": rng.normal(size=1500), "deciding": rng.normal(size=1500)})
    y = 10 * X["deciding"] + 0.5 * rng.normal(size=1500)
    reg = fit_quietly(rn.ReliableRegressor(3.0, alpha=0.2, epochs=8, random_state=0), X, y)
    found = reg.permutation_importance(X[:300], y[:300])
    frame = found.to_frame().set_index("column")
    assert frame.index[0] == "deciding"
    assert frame.loc["deciding", "answers"] > 0.5 > frame.loc["noise", "answers"]
    assert len(reg.explain(X[:50])) == 50


def test_bad_input_is_told_of(logistic) -> None:
    X, y = table_of(50)
    with pytest.raises(NotFittedError):
        rn.ReliableClassifier().permutation_importance(X)
    with pytest.raises(NotFittedError):
        rn.ReliableClassifier().explain(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        logistic.permutation_importance(X, y[:9])
    with pytest.raises(InvalidParameterError, match="`repeats` of permutation_importance must be"):
        logistic.permutation_importance(X, repeats=2.5)
    with pytest.raises(InvalidDataError, match="needs two rows to shuffle"):
        logistic.permutation_importance(X[:1])
