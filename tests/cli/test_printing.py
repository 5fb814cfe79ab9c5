"""Results in words: both kinds of certificate say alike when the rule acts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import reliablenet as rn
from reliablenet.certificate.rule import Thresholds
from reliablenet.certificate.rule_certify import judge_fixed_rule
from reliablenet.certificate.scored import ScoredRows
from reliablenet.cli.printing import certificate_lines

PROBA = np.column_stack([np.linspace(0.5, 1.0, 400), 1.0 - np.linspace(0.5, 1.0, 400)])
TRUTH = np.zeros(400, int)
WARDS = np.where(np.arange(400) % 2, "a", "b")
ROWS = ScoredRows(PROBA[:, 0], np.zeros(400, bool), 0.0, by={"ward": WARDS})


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        (0.75, "at confidence 0.75 or more"),
        (0.0, "at confidence 0 or more"),
    ],
)
def test_both_kinds_of_certificate_say_alike_when_the_rule_acts(threshold, said) -> None:
    one = rn.certify(PROBA, TRUTH, threshold=threshold)
    rule = rn.Rule((Thresholds(("all",), {"all": threshold}),))
    other = judge_fixed_rule(ROWS, rule, rn.Promise.overall(0.05), 0.05)
    assert certificate_lines(one)["acts"] == certificate_lines(other)["acts"] == said


def test_a_rule_without_a_limit_always_acts_and_one_without_a_threshold_never() -> None:
    rule = rn.Rule((Thresholds(("ward",), {"a": -math.inf, "b": math.inf}),))
    found = judge_fixed_rule(ROWS, rule, rn.Promise.by_group(0.05, by="ward"), 0.05)
    lines = certificate_lines(found)
    assert (lines["acts, a"], lines["acts, b"]) == ("always", "never")
    score = PROBA[:, 0]
    fixed = rn.certify(score=score, correct=TRUTH == 0, threshold=-math.inf)
    assert certificate_lines(fixed)["acts"] == "always"


def test_where_the_score_is_no_confidence_of_ours_its_name_is_given() -> None:
    found = rn.certify(PROBA, TRUTH, threshold=0.75)
    assert certificate_lines(found, acts_at="entropy 3 or less")["acts"] == "at entropy 3 or less"
