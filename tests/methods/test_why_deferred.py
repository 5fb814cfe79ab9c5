"""Why rows were deferred: what they lacked, and which columns lower their confidence, against a count by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from contract_helpers import Scores, fit_quietly, quick
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.methods import why_deferred
from reliablenet.methods.why_deferred import Explanations, find_gains
from reliablenet.tables import TabularEncoder
from reliablenet.tables.usual import usual_values


def table_of(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, whole numbers, flags, categories, gaps, dates and text."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(900, size=n), "D")
    table = pd.DataFrame(
        {
            "income": rng.normal(size=n),
            "age": rng.integers(18, 80, n),
            "flag": rng.uniform(size=n) > 0.5,
            "job": pd.Categorical(rng.choice(["clerk", "cook", "pilot"], n)),
            "town": rng.choice(["Rome", "Oslo"], n),
            "joined": days.strftime("%Y-%m-%d"),
            "paid": days,
        }
    )
    table.loc[rng.uniform(size=n) < 0.2, ["income", "town"]] = None
    noise = np.where(table["town"] == "Oslo", 1.5, 0.1) * rng.normal(size=n)
    y = table["income"].fillna(0) + 0.02 * (table["age"] - 48) + noise > 0
    return table, np.where(y, "repaid", "late")


@pytest.fixture(scope="module")
def network() -> rn.ReliableClassifier:
    return fit_quietly(quick(rn.ReliableClassifier, alpha=0.06, members="network"), *table_of(1500))


@pytest.fixture(scope="module")
def logistic() -> rn.CertifiedThreshold:
    inner = make_pipeline(TabularEncoder(), LogisticRegression())
    return rn.CertifiedThreshold(inner, alpha=0.06, random_state=0).fit(*table_of(1500))


@pytest.mark.parametrize("name", ["network", "logistic"])
def test_gains_are_what_usual_values_would_change(name, request) -> None:
    """By hand: column by column and value by value, through `acceptance_score` alone."""
    model = request.getfixturevalue(name)
    X, _ = table_of(120, seed=1)
    found = model.explain(X)
    assert set(found.gains.columns) == set(X.columns)
    asked = found.why == "confidence"
    assert 5 < asked.sum() < 115
    assert found.gains[~asked].isna().all(axis=None)
    for column in model.profile_.columns:
        values, weights = usual_values(column, X[column.name])
        mean = np.zeros(len(X))
        for value, weight in zip(values, weights, strict=True):
            one = pd.Series([value] * len(X), dtype=values.dtype, index=X.index)
            mean += weight * model.acceptance_score(X.assign(**{column.name: one}))
        gain = (mean - found.confidence)[asked]
        np.testing.assert_allclose(found.gains[column.name][asked], gain, atol=1e-6)


def test_a_row_is_explained_alike_alone_and_in_company(network) -> None:
    X, _ = table_of(60, seed=2)
    company = network.explain(X)
    row = int(np.flatnonzero(company.why == "confidence")[0])
    alone = network.explain(X[row : row + 1])
    np.testing.assert_array_equal(alone.gains, company.gains[row : row + 1])
    assert alone.to_frame().to_dict("records")[0] == company.to_frame().to_dict("records")[row]


def test_rows_are_scored_in_pieces_and_give_the_same(logistic, monkeypatch) -> None:
    X, _ = table_of(200, seed=3)
    whole = logistic.explain(X).gains
    monkeypatch.setattr(why_deferred, "TOGETHER", 17)
    pd.testing.assert_frame_equal(logistic.explain(X).gains, whole)


def test_the_threshold_that_a_row_lacked_is_said(logistic) -> None:
    X, _ = table_of(200, seed=4)
    found, decisions = logistic.explain(X), logistic.decide(X)
    np.testing.assert_array_equal(found.accepted, decisions.accepted)
    np.testing.assert_array_equal(found.why == "", decisions.accepted)
    assert (found.threshold == logistic.threshold_).all()
    short = found.lacking[~found.accepted]
    np.testing.assert_allclose(short, logistic.threshold_ - found.confidence[~found.accepted])
    assert (short > 0).all()
    assert (found.lacking[found.accepted] == 0).all()
    frame = found.to_frame(index=X.index)
    assert list(frame) == ["confidence", "accepted", "threshold", "lacking", "why", "lowered_by"]
    assert (frame.loc[frame["accepted"], "lowered_by"] == "").all()


def test_the_column_that_blurs_a_row_is_named() -> None:
    """A score that falls with one column alone: this column, and no other, lowers it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 1, size=(2000, 3))
    clf = rn.CertifiedThreshold(Scores(1), alpha=0.1, random_state=0)
    clf.fit(X, rng.uniform(size=2000) < X[:, 1])
    found = clf.explain([[0.9, 0.501, 0.9], [0.6, 0.999, 0.6]])
    assert found.why.tolist() == ["confidence", ""]
    assert list(found.lowered_by(0)) == [1]
    middle = np.mean(clf.profile_.columns[1].quartiles)
    assert found.lowered_by(0)[1] == pytest.approx(middle - 0.501)
    assert found.to_frame()["lowered_by"].tolist()[0].startswith("1 = 0.501 (+0.2")
    assert found.lowered_by(1) == {}


def test_groups_have_thresholds_of_their_own_and_strangers_have_none() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"score": rng.uniform(0.5, 1, 4000), "ward": rng.integers(2, size=4000)})
    y = rng.uniform(size=4000) < np.where(X["ward"] == 1, X["score"], 2 * X["score"] - 1)
    promise = rn.Promise.by_group(0.1, by="ward")
    clf = rn.CertifiedThreshold(Scores(0), promise=promise, random_state=0).fit(X, y)
    new = pd.DataFrame({"score": [0.51, 0.51, 0.99], "ward": [1, 0, 1]})
    found = clf.explain(new)
    limits = clf.rule_.thresholds
    assert found.threshold.tolist() == [limits[1], limits[0], limits[1]]
    assert found.why.tolist() == ["confidence", "confidence", ""]
    stranger = clf.explain(new, by=[1, 0, 7])
    assert stranger.why.tolist()[2] == "no certificate"
    assert np.isinf(stranger.lacking[2])
    assert stranger.to_frame()["lowered_by"][2] == ""


def test_without_a_certificate_no_column_is_to_blame() -> None:
    X, y = table_of(60)
    inner = make_pipeline(TabularEncoder(), LogisticRegression())
    clf = fit_quietly(rn.CertifiedThreshold(inner, alpha=0.001, random_state=0), X, y)
    found = clf.explain(X[:5])
    assert set(found.why) == {"no certificate"}
    assert found.gains.isna().all(axis=None)
    assert found.to_frame()["lowered_by"].tolist() == [""] * 5


def test_odd_rows_are_called_odd_where_they_are_deferred_for_it(logistic) -> None:
    rich = table_of(1, seed=5)[0].assign(income=1000.0)
    with pytest.warns(rn.errors.OddInputWarning, match="far outside"):
        deferred, acted_on = (logistic.explain(rich, defer_odd=odd) for odd in (True, False))
    assert (deferred.why.tolist(), acted_on.why.tolist()) == (["odd"], [""])
    assert deferred.to_frame()["lowered_by"].tolist() == [""]


def test_gaps_are_called_missing() -> None:
    values = pd.DataFrame({"a": [None, 1.5], "b": pd.array([pd.NA, 3], dtype="Int64")})
    gains = pd.DataFrame({"a": [0.2, 0.1], "b": [0.1, 0.3]})
    half = np.full(2, 0.5)
    found = Explanations(half > 1, half, half + 0.1, np.full(2, "confidence"), gains, values)
    assert found.to_frame()["lowered_by"].tolist() == [
        "a = missing (+0.2); b = missing (+0.1)",
        "b = 3 (+0.3); a = 1.5 (+0.1)",
    ]


def test_free_text_has_no_usual_value_and_is_left_out() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(size=1200)})
    X["letter"] = [" ".join(rng.choice(list("abcdefgh"), 12)) + f" {i}" for i in range(1200)]
    y = X["income"] + 0.3 * rng.normal(size=1200) > 0
    encoder = TabularEncoder(text=["letter"])
    clf = rn.CertifiedThreshold(make_pipeline(encoder, LogisticRegression()), random_state=0)
    found = fit_quietly(clf, X, y).explain(X[:40])
    assert list(found.gains) == ["income"]


def test_rows_without_columns_are_explained_by_their_threshold_alone() -> None:
    texts = np.array([f"row {i}" for i in range(3)])
    for profile in (None, rn.tables.describing.describe_rows(np.ones((9, 1, 4, 4)))):
        gains, values = find_gains(len, texts, np.ones(3), np.arange(3), profile)
        assert gains.shape == values.shape == (3, 0)


def test_what_contradicts_itself_is_refused(logistic) -> None:
    found = logistic.explain(table_of(10)[0])
    with pytest.raises(InvalidParameterError, match=r"`most` of Explanations\.to_frame must be"):
        found.to_frame(most=0)
    parts = vars(found) | {"why": found.why[:3]}
    with pytest.raises(InvalidDataError, match="one entry for each row"):
        Explanations(**parts)
    assert len(found.to_frame(most=1)["lowered_by"].iloc[0].split(";")) == 1
