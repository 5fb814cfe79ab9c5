"""A model is walked through from the outside in, as far as it is fitted."""

from __future__ import annotations

import numpy as np
import pandas as pd
from contract_helpers import Scores, fit_quietly
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.methods.layers import find_encoder, layers
from reliablenet.tables import TabularEncoder

random = np.random.default_rng(0)
X = pd.DataFrame(random.normal(size=(400, 3)), columns=["a", "b", "c"])
y = np.where(X["a"] + 0.3 * random.normal(size=400) > 0, "yes", "no")
PIPELINE = make_pipeline(TabularEncoder(), LogisticRegression())


def names(model: object) -> list[str]:
    return [type(layer).__name__ for layer in layers(model)]


def test_rules_pipelines_and_the_encoder_are_found() -> None:
    rule = rn.CertifiedThreshold(rn.TemperatureScaling(PIPELINE, random_state=0), random_state=0)
    assert names(rule) == ["CertifiedThreshold"]
    fitted = fit_quietly(rule, X, y)
    assert names(fitted) == ["CertifiedThreshold", "TemperatureScaling", "Pipeline"]
    assert find_encoder(fitted) is fitted.estimator_.estimator_.steps[0][1]


def test_a_classifier_around_the_pipeline_is_walked_through() -> None:
    fitted = fit_quietly(rn.CertifiedThreshold(TunedThresholdClassifierCV(PIPELINE)), X, y)
    assert names(fitted) == ["CertifiedThreshold", "TunedThresholdClassifierCV", "Pipeline"]
    assert find_encoder(fitted).numbers_ == ["a", "b", "c"]


def test_a_pattern_that_is_copied_before_it_is_fitted_is_no_layer() -> None:
    rule = rn.CertifiedThreshold(BaggingClassifier(PIPELINE, 2), alpha=0.2, random_state=0)
    fitted = fit_quietly(rule, X, y)
    assert names(fitted) == ["CertifiedThreshold", "BaggingClassifier"]
    assert find_encoder(fitted) is None
    assert len(fitted.decide(X[:5])) == 5


def test_a_classifier_of_any_kind_is_the_core() -> None:
    fitted = fit_quietly(
        rn.CertifiedThreshold(Scores(0)), random.uniform(size=(400, 1)), np.arange(400) % 2
    )
    assert names(fitted) == ["CertifiedThreshold", "Scores"]
    assert find_encoder(fitted) is None
