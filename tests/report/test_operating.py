"""Operating points: the counts of `certify` at each threshold, and the region of the certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from reliablenet.certificate import certified_threshold, certify, clopper_pearson_upper
from reliablenet.certificate.scored import ScoredRows
from reliablenet.report.curves import explorer_chart, written_points
from reliablenet.report.operating import operating_points


def rows_of(score: np.ndarray, wrong: np.ndarray, lowest: float = 0.0) -> ScoredRows:
    return ScoredRows(np.asarray(score, float), np.asarray(wrong, bool), lowest)


def calibrated(n: int, seed: int = 0, digits: int = 17) -> ScoredRows:
    random = np.random.default_rng(seed)
    score = random.uniform(0.5, 1.0, n).round(digits)
    return rows_of(score, random.random(n) > score)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 300),
    digits=st.sampled_from([1, 2, 17]),
    limit=st.integers(2, 400),
)
def test_every_point_is_what_certify_counts_there(seed, n, digits, limit) -> None:
    rows = calibrated(n, seed, digits)
    points = operating_points(rows, 0.1, 0.05, own=[0.75, math.nan], limit=limit)
    assert points.threshold[0] == 0.0
    assert points.threshold[-1] == math.inf
    assert 0.75 in points.threshold
    assert np.all(np.diff(points.threshold) > 0)
    assert len(points) <= limit + 4
    arguments = {"score": rows.score, "predicted": rows.wrong.astype(int)}
    for i in {0, len(points) // 2, len(points) - 1, points.place(0.75)}:
        one = certify(None, np.zeros(n, int), points.threshold[i], 0.1, 0.05, **arguments)
        assert (one.errors, one.accepted) == (points.errors[i], points.accepted[i])
        shared = points.certified_bound if points.certified[i] else one.upper_bound
        assert shared == points.upper_bound[i]
        assert one.upper_bound <= shared
        assert (one.coverage, one.jcw) == (points.coverage[i], points.jcw[i])
        assert one.throughput == points.throughput[i]


@given(seed=st.integers(0, 10_000), n=st.integers(60, 500), alpha=st.sampled_from([0.05, 0.2, 0.6]))
def test_the_certified_region_is_that_of_certified_threshold(seed, n, alpha) -> None:
    rows = calibrated(n, seed)
    points = operating_points(rows, alpha, 0.05)
    arguments = {"score": rows.score, "predicted": rows.wrong.astype(int)}
    found = certified_threshold(None, np.zeros(n, int), alpha, 0.05, **arguments)
    start = 0.0 if found.threshold == -math.inf else found.threshold
    assert points.certified_from == start
    np.testing.assert_array_equal(
        points.certified, (points.threshold >= start) & (points.threshold < math.inf)
    )
    # Without ties, a point is certified exactly where its bound keeps the budget.
    acting = points.threshold < math.inf
    np.testing.assert_array_equal(points.certified[acting], points.upper_bound[acting] <= alpha)


def test_the_bound_of_the_region_holds_for_all_its_thresholds_at_once() -> None:
    """AUDIT A7: bounds of each threshold alone failed somewhere in the region in 11 to 25 % of draws.

    Calibrated scores, uniform between 0.5 and 1: JCW at the threshold t is (1 - t)^2 exactly.
    """
    draws, alone, together = 500, 0, 0
    for seed in range(draws):
        points = operating_points(calibrated(600, seed), 0.05, 0.05)
        true = (1 - points.threshold[points.certified].clip(0.5)) ** 2
        own = clopper_pearson_upper(points.errors[points.certified], points.n, 0.05)
        alone += bool((true > own).any())
        together += bool((true > points.upper_bound[points.certified]).any())
    assert together <= binom.ppf(1 - 1e-6, draws, 0.05)
    assert alone > together


def test_thresholds_are_short_and_at_most_two_thousand() -> None:
    points = operating_points(calibrated(20_000), 0.05, 0.05)
    assert 1990 <= len(points) <= 2003
    assert np.abs(np.diff(points.accepted)).max() <= 11  # even steps
    lengths = [len(repr(float(value))) for value in points.threshold[1:-1]]
    assert np.median(lengths) <= 7


def test_neighbouring_floats_and_constant_scores() -> None:
    low = 0.7
    high = float(np.nextafter(low, 1))
    points = operating_points(rows_of([low, high], [True, False]), 0.9, 0.05)
    assert points.accepted.tolist()[-2:] == [1, 0]
    assert points.threshold[-2] == high
    same = operating_points(rows_of([0.8] * 100, [False] * 100), 0.05, 0.05)
    assert same.accepted.tolist() == [100, 0]
    assert same.certified.tolist() == [True, False]


def test_any_score_and_nothing_accepted() -> None:
    rows = rows_of([-3.5, 0.0, 12.25], [False, True, False], -math.inf)
    points = operating_points(rows, 0.9, 0.05)
    assert points.threshold[0] == -math.inf
    assert math.isnan(points.accuracy_accepted[-1])
    assert points.upper_bound[-1] == pytest.approx(clopper_pearson_upper(0, 3))
    assert points.accuracy_accepted[0] == pytest.approx(2 / 3)


def test_the_explorer_of_groups_speaks_of_groups_and_writes_no_threshold_as_1():
    near = 0.99999999999
    rows = rows_of([near] * 100 + [0.9] * 100, [False] * 200)
    for unit, said in (("row", "100 % of rows"), ("group", "the row drawn from 100 % of groups")):
        points = operating_points(rows, 0.05, 0.05, own=[near], unit=unit)
        chart = explorer_chart(points, written_points(points), 0)
        assert said in chart.description.replace("\u202f", " ")
        assert chart.y.title == f"share of all {unit}s"
        ticks = [label.splitlines()[1] for _, label in chart.x.ticks]
        assert "0.999999…" in ticks
        assert "1" not in ticks
