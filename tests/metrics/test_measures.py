from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.metrics import (
    area_under_risk_coverage,
    excess_area_under_risk_coverage,
    expected_calibration_error,
)
from reliablenet.metrics.measures import falling_order


def mean_risk(order, wrong) -> float:
    return float(
        np.mean([np.mean([wrong[row] for row in order[:k]]) for k in range(1, len(order) + 1)])
    )


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
def test_aurc_is_the_average_over_all_orders_that_respect_the_scores(rows):
    score, wrong = (np.array(column) for column in zip(*rows, strict=True))
    allowed = [
        order
        for order in permutations(range(len(rows)))
        if (np.diff(score[list(order)]) <= 0).all()
    ]
    expected = np.mean([mean_risk(order, wrong) for order in allowed])
    assert area_under_risk_coverage(score.astype(float), wrong) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=5))
def test_excess_aurc_is_the_distance_to_the_best_of_all_orders(rows):
    score, wrong = (np.array(column) for column in zip(*rows, strict=True))
    least = min(mean_risk(order, wrong) for order in permutations(range(len(rows))))
    expected = area_under_risk_coverage(score, wrong) - least
    assert excess_area_under_risk_coverage(score, wrong) == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=40))
def test_excess_aurc_is_never_negative_and_zero_for_perfect_rankings_alone(rows):
    score, wrong = (np.array(column) for column in zip(*rows, strict=True))
    excess = excess_area_under_risk_coverage(score, wrong)
    lowest_right = score[~wrong].min(initial=99)
    highest_wrong = score[wrong].max(initial=-99)
    assert excess >= 0.0
    assert (excess == 0.0) == (highest_wrong < lowest_right)


def test_excess_aurc_of_a_score_without_information_falls_short_of_the_error_rate_by_the_best():
    wrong = np.arange(10) == 3
    excess = excess_area_under_risk_coverage(np.ones(10), wrong)
    assert excess == pytest.approx(0.1 - 0.1 / 10)


@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_change_aurc_even_with_ties(random):
    score = np.array([random.randrange(4) for _ in range(40)], float)
    wrong = np.array([random.random() < 0.3 for _ in range(40)])
    shuffled = random.sample(range(40), 40)
    area = area_under_risk_coverage(score[shuffled], wrong[shuffled])
    assert area == pytest.approx(area_under_risk_coverage(score, wrong), rel=1e-12)


def test_aurc_of_a_score_without_information_is_the_error_rate():
    wrong = np.arange(50) % 5 == 0
    assert area_under_risk_coverage(np.ones(50), wrong) == pytest.approx(0.2)


def ece_by_loop(confidence, right, bins: int) -> float:
    total = 0.0
    for place in range(bins):
        low, high = place / bins, (place + 1) / bins
        inside = [i for i, c in enumerate(confidence) if low < c <= high or c == low == 0.0]
        if inside:
            gap = sum(confidence[i] for i in inside) - sum(bool(right[i]) for i in inside)
            total += abs(gap) / len(confidence)
    return total


def ece_by_groups(confidence, right, bins: int) -> float:
    table = pd.DataFrame({"confidence": confidence, "right": np.asarray(right, float)})
    bin_of = pd.cut(table["confidence"], np.arange(bins + 1) / bins, include_lowest=True)
    groups = table.groupby(bin_of, observed=True)
    means, weights = groups.mean(), groups.size() / len(table)
    return float((weights * (means["confidence"] - means["right"]).abs()).sum())


@pytest.mark.parametrize("by_other_means", [ece_by_loop, ece_by_groups])
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_calibration_error_equals_two_other_computations(by_other_means, rows):
    confidence, right = (np.array(column) for column in zip(*rows, strict=True))
    # A confidence an ulp beside an edge may round onto it; such a row belongs to either bin.
    confidence = np.round(confidence, 6)
    expected = by_other_means(confidence, right, 15)
    assert expected_calibration_error(confidence, right) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("bins", [10, 15, 25])
def test_a_confidence_on_the_edge_of_two_bins_belongs_to_the_lower_one(bins):
    for place in range(1, bins):
        edge = place / bins
        confidence = np.array([edge - 0.5 / bins, edge])
        # One wrong, one right: their gaps cancel in one bin and add up in two.
        found = expected_calibration_error(confidence, np.array([False, True]), bins)
        assert found == pytest.approx(abs(confidence.sum() - 1) / 2), f"edge {place}/{bins}"


@pytest.mark.parametrize(
    "measure",
    [area_under_risk_coverage, excess_area_under_risk_coverage, expected_calibration_error],
)
@pytest.mark.parametrize(
    ("values", "marks", "message"),
    [
        ([], [], "must be a non-empty vector of numbers; got shape \\(0,\\)"),
        ([[0.5]], [[True]], "non-empty vector of numbers; got shape \\(1, 1\\)"),
        (["a"], [True], "non-empty vector of numbers; got .* dtype <U1"),
        ([0.5, np.nan], [True, False], "must be finite; got nan in row 1"),
        ([0.5, 0.6], [1, 0], "must hold booleans; got int"),
        ([0.5, 0.6], [True], "each of the 2 rows; got shape \\(1,\\)"),
    ],
)
def test_bad_input_is_named_with_its_owner(measure, values, marks, message):
    names = "`(confidence|score|right|wrong)`"
    with pytest.raises(InvalidDataError, match=f"{names} of {measure.__name__} .*{message}"):
        measure(values, marks)


def test_a_calibration_error_needs_probabilities_and_a_bin():
    with pytest.raises(InvalidDataError, match=r"must lie in \[0, 1\]; got values from 2 to 3"):
        expected_calibration_error([2.0, 3.0], [True, False])
    with pytest.raises(InvalidParameterError, match="`bins` of expected_calibration_error"):
        expected_calibration_error([0.5], [True], bins=0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: expected_calibration_error([2.0, 3.0], [True, False]),
            "`confidence` of expected_calibration_error must lie in [0, 1]; "
            "got values from 2 to 3.",
        ),
        (
            lambda: expected_calibration_error([0.5, 1.5], [True, False]),
            "`confidence` of expected_calibration_error must lie in [0, 1]; "
            "got values from 0.5 to 1.5.",
        ),
        (
            lambda: expected_calibration_error([-0.5, 0.5], [True, False]),
            "`confidence` of expected_calibration_error must lie in [0, 1]; "
            "got values from -0.5 to 0.5.",
        ),
        (
            lambda: expected_calibration_error([0.5], [True], bins=0),
            "`bins` of expected_calibration_error must be a whole number of at least 1; got 0.",
        ),
        (
            lambda: expected_calibration_error([], []),
            "`confidence` of expected_calibration_error must be a non-empty vector of numbers; "
            "got shape (0,) and dtype float64.",
        ),
        (
            lambda: expected_calibration_error([0.5], [1.0]),
            "`right` of expected_calibration_error must hold booleans; got float64.",
        ),
        (
            lambda: area_under_risk_coverage([0.5, 0.6], [True]),
            "`wrong` of area_under_risk_coverage must have one entry for each of the 2 rows; "
            "got shape (1,).",
        ),
        (
            lambda: excess_area_under_risk_coverage(["a"], [True]),
            "`score` of excess_area_under_risk_coverage must be a non-empty vector of numbers; "
            "got shape (1,) and dtype <U1.",
        ),
        (
            lambda: area_under_risk_coverage(np.ma.masked_array([1, 2], [1, 0]), [True, True]),
            "`score` must not hold masked values; got 1 of them. Drop those rows first.",
        ),
        (
            lambda: area_under_risk_coverage([1, 2], np.ma.masked_array([True, True], [1, 0])),
            "`wrong` must not hold masked values; got 1 of them. Drop those rows first.",
        ),
    ],
)
def test_bad_input_is_refused_in_these_words(call, text):
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        call()
    assert str(caught.value) == text


def test_a_confidence_may_lie_at_either_end():
    assert expected_calibration_error([0.0, 1.0], [False, True]) == 0.0
    assert expected_calibration_error([0.0, 1.0], [True, False]) == 1.0
    assert expected_calibration_error([1, 0], [True, True], bins=1) == 0.5


def test_rows_of_equal_score_keep_their_order():
    """So that sums over the rows come out the same to the last bit."""
    score = np.arange(1000.0) % 3
    order = falling_order(score)
    assert score[order].tolist() == sorted(score, reverse=True)
    assert order.tolist() == sorted(range(1000), key=lambda row: (-score[row], row))
