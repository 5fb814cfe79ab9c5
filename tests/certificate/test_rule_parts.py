"""The parts of a rule's certificate: one a population, and why others are deferred."""

from __future__ import annotations

import numpy as np
import pytest
from rule_examples import EASY, PROBA, RNG, TRUTH

from reliablenet import Promise, RuleCertificate, certified_rule


def test_deferred_predictions_are_named_as_such():
    y = np.where(PROBA.argmax(1) == 0, RNG.integers(0, 2, 4000), 1)
    found = certified_rule(PROBA, y, Promise.by_predicted(0.001), 0.05)
    assert found.deferred == {"predictions of 0": "too many mistakes"}


def test_a_class_whose_mistakes_are_all_deferred_has_rows_acted_on_all_the_same():
    """They are predicted right; what is predicted otherwise is deferred."""
    zero = PROBA.argmax(1) == 0
    proba = np.where(zero[:, None], [0.9, 0.1], PROBA)  # of one score, and every other wrong
    y = np.where(zero, np.arange(4000) % 2, 1)
    found = certified_rule(proba, y, Promise.by_class({0: 0.05, 1: 0.01}), 0.05)
    assert found.certified
    assert found.deferred == {"predictions other than 1": "too many mistakes"}
    accepted = found.rule.accept(proba)
    assert not accepted[zero].any()
    assert found.accepted == accepted.sum() > 0
    assert found.under({0: 0.5, 1: 0.5}) == pytest.approx(0.025)
    assert RuleCertificate.from_json(found.to_json()) == found


def test_a_group_with_a_budget_and_no_row_is_named():
    by = np.full(200, "A")
    found = certified_rule(EASY, TRUTH, Promise.by_group({"A": 0.1, "B": 0.1}), by=by)
    assert found.deferred == {"group=B": "no certification row"}
    common = certified_rule(EASY, TRUTH, Promise.by_group({"A": 0.1, "B": 0.1}, common=True), by=by)
    assert not common.certified  # B's rows would be acted on, and nothing is known of them
