"""The verdict, and what would grant a certificate that was refused."""

from __future__ import annotations

import math

import numpy as np
from reliablenet.report.verdict import remedy, verdict

from reliablenet.certificate import Certificate
from reliablenet.certificate.scored import ScoredRows
from reliablenet.report import text
from reliablenet.report.operating import operating_points


def points_of(score, wrong, alpha=0.05):
    return operating_points(ScoredRows(np.asarray(score), np.asarray(wrong), 0.0), alpha, 0.05)


def plain(written: str) -> str:
    return written.replace(text.NARROW, " ")


def test_a_granted_certificate_needs_no_remedy() -> None:
    granted = Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    points = points_of(np.linspace(0.5, 1, 153), np.zeros(153, bool))
    assert remedy(granted, points) == ""


def test_too_few_rows() -> None:
    refused = Certificate(0, 0, 40, 0.05, 0.05, threshold=math.inf, kind="monotone")
    assert verdict(refused, acts=False) == (
        "No certificate: defer every row, because 0 errors in 40 rows bound JCW by 0.0722; alpha "
        "0.05 needs 59 rows."
    )
    advice = plain(remedy(refused, points_of(np.linspace(0.5, 1, 40), np.zeros(40, bool))))
    assert advice.startswith("At least 59 certification rows, none of them acted on wrongly")
    assert advice.endswith("40 rows can confirm no less than 7.22 %.")


def test_errors_at_the_top() -> None:
    refused = Certificate(0, 0, 200, 0.05, 0.05, threshold=math.inf, kind="monotone")
    advice = remedy(refused, points_of(np.full(200, 0.9), np.ones(200, bool)))
    assert advice.startswith("A model that is right where it is surest")


def test_a_rule_that_failed_where_a_threshold_would_not() -> None:
    score, wrong = np.linspace(0.5, 1, 1000), np.arange(1000) < 300
    refused = Certificate(100, 800, 1000, alpha=0.05, rho=0.05, threshold=0.6)
    assert "acts on 80.0 % of rows by a rule of its own" in plain(verdict(refused, acts=True))
    points = points_of(score, wrong)
    advice = plain(remedy(refused, points))
    share = f"{100 * points.coverage[points.place(points.certified_from)]:.1f} %"
    assert advice.startswith("This fold certifies every threshold from 0.6")
    assert f"acts on {share} of rows" in advice
