"""The classifiers that people bring can be kept in a model file and come back as they were."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest, chi2, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import reliablenet as rn

TWO = [("line", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=3))]


@pytest.mark.parametrize(
    "estimator",
    [
        CalibratedClassifierCV(LinearSVC()),
        CalibratedClassifierCV(DecisionTreeClassifier(), method="isotonic"),
        CalibratedClassifierCV(LogisticRegression(), method="temperature"),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}),
        MLPClassifier(max_iter=5),
        MLPClassifier(max_iter=5, solver="sgd"),
        StackingClassifier(TWO),
        VotingClassifier(TWO, voting="soft"),
        make_pipeline(SelectKBest(k=2), LogisticRegression()),
        make_pipeline(SelectKBest(mutual_info_classif, k=2), LogisticRegression()),
        make_pipeline(MinMaxScaler(), SelectKBest(chi2, k=2), LogisticRegression()),
        SVC(probability=True),
    ],
    ids=[
        *("calibrated", "isotonic", "temperature", "search", "adam", "sgd", "stacked", "voting"),
        *("selected", "by information", "by chi2", "support vectors"),
    ],
)
def test_what_teams_have_can_be_certified_and_kept(estimator, tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=400) > 0, "yes", "no")
    with warnings.catch_warnings(action="ignore"):  # networks that have not converged
        rule = rn.CertifiedThreshold(clone(estimator).fit(X[:200], y[:200]), alpha=0.2)
        rule.fit(X[200:], y[200:])  # or have learned nothing
    loaded = rn.load(rule.save(tmp_path / "m.rnet"))
    assert np.array_equal(loaded.predict_proba(X), rule.predict_proba(X))
    assert loaded.certificate_ == rule.certificate_
