"""`sample_weight` of `fit`: it shapes the model; threshold and certificate count every row once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.utils.data import TensorDataset

import reliablenet as rn
from reliablenet.errors import InvalidParameterError
from reliablenet.training import AdaptiveSchedule

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::reliablenet.errors.{name}")
    for name in ("ReuseWarning", "NotCertifiedWarning", "EmptyCertificateWarning")
]
SHORT = AdaptiveSchedule(warmup_epochs=6, epochs_per_stage=2, patience=2)
TEAM = ("network", "boosting", "forest")


def rows(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that one column tells apart by half."""
    draw = np.random.default_rng(0)
    y = np.arange(n) % 2
    return draw.normal(size=(n, 2)) + y[:, None], y


def ours(**settings) -> rn.ReliableClassifier:
    given = {"members": ("network",), "schedule": SHORT, "verbose": False} | settings
    return rn.ReliableClassifier(alpha=0.2, random_state=0, **given)


METHODS = {
    "network": ours,
    "team": lambda: ours(members=TEAM),
    "selectivenet": lambda: rn.methods.SelectiveNetClassifier(
        epochs=6, verbose=False, random_state=0
    ),
    "any classifier": lambda: rn.CertifiedThreshold(LogisticRegression(), random_state=0),
    "pipeline": lambda: rn.CertifiedThreshold(
        make_pipeline(StandardScaler(), LogisticRegression()), random_state=0
    ),
    "rule in a rule": lambda: rn.CertifiedThreshold(
        rn.TemperatureScaling(LogisticRegression()), random_state=0
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_rows_that_count_more_are_predicted_more_often(name) -> None:
    X, y = rows()
    weight = np.where(y == 1, 8.0, 1.0)
    plain = METHODS[name]().fit(X, y)
    heavy = METHODS[name]().fit(X, y, sample_weight=weight)
    assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1
    assert heavy.certificate_.n == plain.certificate_.n


@pytest.mark.parametrize("name", METHODS)
def test_the_certificate_counts_every_row_once(name) -> None:
    X, y = rows()
    clf = METHODS[name]().fit(X, y, sample_weight=np.where(y == 1, 8.0, 0.5))
    kept, certificate = clf.evidence_.scored(), clf.certificate_
    assert certificate.errors == np.count_nonzero(
        (kept.score >= certificate.threshold) & kept.wrong
    )
    assert kept.n == certificate.n


@pytest.mark.parametrize("members", [("network",), TEAM])
def test_only_ratios_of_weights_matter(members) -> None:
    X, y = rows(300)
    weight = 2.0 ** (np.arange(300) % 4)  # scaled without rounding
    one, other = (
        ours(members=members).fit(X, y, sample_weight=weight * scale).predict_proba(X)
        for scale in (1.0, 4.0)
    )
    np.testing.assert_array_equal(one, other)


def test_rows_without_weight_do_not_train() -> None:
    X, y = rows()
    lies = np.arange(len(y)) % 3 == 0
    wrong = np.where(lies, 1 - y, y)
    fits = [ours().fit(X, wrong, sample_weight=w) for w in (None, (~lies).astype(float))]
    scores = [clf.score(X, y) for clf in fits]
    confident = [clf.predict_proba(X).max(1).mean() for clf in fits]
    assert scores[1] >= scores[0] - 0.05
    assert confident[1] > confident[0] + 0.05


def test_weights_and_class_weights_multiply() -> None:
    X, y = rows(300)
    both = ours(class_weight={1: 4.0}).fit(X, y, sample_weight=np.where(y == 1, 2.0, 1.0))
    one = ours().fit(X, y, sample_weight=np.where(y == 1, 8.0, 1.0))
    np.testing.assert_array_equal(both.predict_proba(X), one.predict_proba(X))
    # balanced: whatever the weights, both classes count alike
    balanced = ours(class_weight="balanced").fit(X, y, sample_weight=np.where(y == 1, 8.0, 1.0))
    assert abs(balanced.predict_proba(X)[:, 1].mean() - 0.5) < 0.1


def test_a_selection_fold_of_ones_own_counts_each_row_once() -> None:
    X, y = rows()
    held = X[400:], y[400:]
    clf = ours().fit(X[:400], y[:400], selection=held, sample_weight=np.where(y[:400], 8.0, 1.0))
    assert clf.predict_proba(X)[:, 1].mean() > 0.55


@pytest.mark.parametrize("regressor", ["ours", "linear", "forest"])
def test_numbers_are_weighted_too(regressor) -> None:
    X, y = rows(400)
    models = {
        "ours": lambda: rn.ReliableRegressor(1.0, 0.3, epochs=15, random_state=0, verbose=False),
        "linear": lambda: rn.CertifiedThreshold(LinearRegression(), tolerance=1.0, random_state=0),
        "forest": lambda: rn.CertifiedThreshold(
            RandomForestRegressor(10, min_samples_leaf=20), tolerance=1.0, random_state=0
        ),
    }
    target = X[:, 0] + 4.0 * y + np.random.default_rng(1).normal(size=400)
    weight = np.where(y == 1, 9.0, 1.0)
    plain = models[regressor]().fit(X[:, 1:], target)
    heavy = models[regressor]().fit(X[:, 1:], target, sample_weight=weight)
    assert heavy.predict(X[:, 1:]).mean() > plain.predict(X[:, 1:]).mean() + 0.5


@pytest.mark.parametrize(
    "weight",
    [
        np.ones(599),
        np.ones((600, 1)),
        np.zeros(600),
        -np.ones(600),
        np.r_[np.ones(599), np.nan],
        np.r_[np.ones(599), np.inf],
        ["heavy"] * 600,
    ],
)
def test_other_weights_are_refused(weight) -> None:
    with pytest.raises(InvalidParameterError, match="`sample_weight` of fit must hold a number"):
        ours().fit(*rows(), sample_weight=weight)


def test_a_list_and_a_series_are_weights() -> None:
    X, y = rows(200)
    weight = (1.0 + y).tolist()
    expected = ours().fit(X, y, sample_weight=np.array(weight)).predict_proba(X)
    for given in (weight, pd.Series(weight, index=np.arange(200)[::-1])):
        np.testing.assert_array_equal(
            ours().fit(X, y, sample_weight=given).predict_proba(X), expected
        )


def test_what_takes_no_weights_says_so() -> None:
    X, y = rows(200)
    weight = np.ones(200)
    with pytest.raises(InvalidParameterError, match="KNeighborsClassifier takes no weights"):
        rn.CertifiedThreshold(KNeighborsClassifier()).fit(X, y, sample_weight=weight)
    fitted = LogisticRegression().fit(X, y)
    with pytest.raises(InvalidParameterError, match="be None: nothing is trained"):
        rn.CertifiedThreshold(fitted).fit(X, y, sample_weight=weight)
    data = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    with pytest.raises(InvalidParameterError, match="batch by batch"):
        ours(network="mlp").fit(data, selection=data, certification=data, sample_weight=weight)


def test_no_training_row_with_a_weight_is_refused() -> None:
    X, y = rows(200)
    clf = ours(fold_sizes=(0.1, 0.1, 0.8))
    weight = np.zeros(200)
    cut = ours(fold_sizes=(0.1, 0.1, 0.8)).fit(X, y)
    weight[cut.evidence_.row] = 1.0  # of the certification fold alone
    with pytest.raises(InvalidParameterError, match="leave rows with a weight to train on"):
        clf.fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("name", METHODS)
def test_weights_of_one_class_alone_are_refused(name) -> None:
    X, y = rows(200)
    with pytest.raises(InvalidParameterError, match="rows of two classes with a weight"):
        METHODS[name]().fit(X, y, sample_weight=y.astype(float))


def test_weights_go_through_metadata_routing() -> None:
    X, y = rows(200)
    with config_context(enable_metadata_routing=True):
        clf = rn.CertifiedThreshold(LogisticRegression(), alpha=0.3, random_state=0)
        clf.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        found = cross_validate(clf, X, y, params={"sample_weight": 1.0 + 7.0 * y}, cv=2)
    assert len(found["test_score"]) == 2
