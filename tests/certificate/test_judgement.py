"""Scored rows judged: the counts at a threshold, the lowest threshold they allow, and labels that look swapped."""

from __future__ import annotations

import numpy as np

from reliablenet.certificate import Certificate
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.scored import ScoredRows


def test_rows_are_counted_at_the_threshold_asked_for_or_at_the_lowest_they_allow():
    score = np.array([0.6, 0.7, 0.8, 0.9])
    rows = ScoredRows(score, np.array([True, True, False, False]), 0.0)
    assert judge(rows, 0.1, 0.2, threshold=0.7) == Certificate(1, 3, 4, 0.1, 0.2, 0.7, "fixed")
    found = judge(rows, 0.35, 0.2)  # of 4 rows it affords 0 errors
    assert found == Certificate(0, 2, 4, 0.35, 0.2, 0.75, "monotone")
