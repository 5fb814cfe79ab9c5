"""A fitted method knows how its training rows looked: decide warns, refuses, defers; files keep it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.errors import InvalidDataError, OddInputWarning
from reliablenet.tables import TabularEncoder


def table(n, seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": random.integers(18, 80, n), "job": random.choice(["clerk", "cook", "nurse"], n)}
    )
    y = np.where(frame["age"] + random.normal(0, 15, n) > 45, "yes", "no")
    return frame, y


@pytest.fixture(scope="module", params=["network", "rule"])
def model(request):
    X, y = table(1200, 0)
    if request.param == "network":
        return rn.ERMClassifier(alpha=0.3, epochs=2, random_state=0).fit(X, y)
    inner = make_pipeline(TabularEncoder(), LogisticRegression())
    return rn.CertifiedThreshold(inner, alpha=0.3, random_state=0).fit(X, y)


def test_fresh_rows_are_decided_in_silence(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.decide(table(300, 1)[0])
    assert not found.odd.any()
    assert found.oddities.profiled


def test_odd_rows_are_told_of_and_deferred_on_request(model):
    X, _ = table(100, 2)
    X.loc[:9, "job"] = "pilot"
    with pytest.warns(OddInputWarning, match=r"10 of 100 rows are odd(.|\n)*job: 10 values"):
        usual = model.decide(X)
    with pytest.warns(OddInputWarning):
        careful = model.decide(X, defer_odd=True)
    assert careful.odd.sum() == 10
    assert not careful.accepted[careful.odd].any()
    assert (careful.accepted == (usual.accepted & ~usual.odd)).all()
    with pytest.warns(OddInputWarning):
        model.predict(X)
    with pytest.warns(OddInputWarning):
        alone = [model.decide(X.iloc[i : i + 1], defer_odd=True).accepted[0] for i in range(100)]
    assert alone == careful.accepted.tolist()


def test_a_column_that_became_empty_is_an_error_unless_allowed(model):
    X, _ = table(50, 3)
    X["age"] = np.nan
    with pytest.raises(InvalidDataError, match="Column 'age' is missing in all 50 rows"):
        model.decide(X)
    with pytest.warns(OddInputWarning):
        model.decide(X, allow_missing=["age"])


def test_files_keep_the_profile(model, tmp_path):
    loaded = rn.load(model.save(tmp_path / "model.rnet"))
    assert loaded.source_ == model.source_
    assert loaded.profile_.rows == model.profile_.rows


def test_long_frames_of_texts_are_decided_alike(model):
    X, _ = table(1500, 4)
    texts = X.astype({"job": object})
    first, second = model.decide(texts), model.decide(texts.iloc[:50])
    assert (first.confidence[:50] == second.confidence).all()
    assert texts["job"].dtype == object


def test_around_a_foreign_model_other_rows_stand_for_those_that_trained_it():
    X, y = table(900, 5)
    numbers = X[["age"]].to_numpy(float)
    foreign = HistGradientBoostingClassifier(max_iter=5).fit(numbers[:300], y[:300])
    rule = rn.CertifiedThreshold(foreign, alpha=0.4, random_state=0).fit(numbers[300:], y[300:])
    assert rule.profile_.rows + rule.source_.reference.rows == 600
    with pytest.warns(OddInputWarning, match="about 1000 times as large"):
        rule.decide(numbers[:200] * 1000)


def test_around_a_model_of_ours_its_own_profile_stays():
    X, y = table(1200, 6)
    inner = rn.ERMClassifier(alpha=0.3, epochs=2, random_state=0).fit(X[:800], y[:800])
    rule = rn.CertifiedThreshold(inner, alpha=0.4, random_state=0).fit(X[800:], y[800:])
    assert rule.profile_ == inner.profile_
    assert rule.source_.reference.rows == len(rule.evidence_)


def test_inputs_without_columns_have_no_profile():
    X, y = table(600, 7)
    matrix = sparse.csr_matrix(X[["age"]].to_numpy(float))
    rule = rn.CertifiedThreshold(LogisticRegression(), alpha=0.4, random_state=0).fit(matrix, y)
    assert rule.profile_ is None
    assert not rule.decide(matrix).oddities.profiled
