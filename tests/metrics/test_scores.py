from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reliablenet.errors import InvalidDataError
from reliablenet.metrics import (
    area_under_risk_coverage,
    evaluate,
    expected_calibration_error,
)

PROBA = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.45, 0.55]])
LABELS = np.array([0, 1, 1, 0])  # right, wrong, right, wrong


def random_case(seed: int, n: int = 200, n_classes: int = 4):
    random = np.random.default_rng(seed)
    proba = random.dirichlet(np.ones(n_classes), n)
    y = random.integers(n_classes, size=n)
    return proba, y, random.uniform(size=n) < 0.6


def test_every_metric_equals_the_computation_by_hand():
    result = evaluate(PROBA, LABELS, accepted=[True, True, True, False])
    assert (result.n, result.accepted, result.errors) == (4, 3, 1)
    assert result.accuracy == pytest.approx(2 / 4)
    assert result.coverage == pytest.approx(3 / 4)
    assert result.accuracy_accepted == pytest.approx(2 / 3)
    assert result.jcw == pytest.approx(1 / 4)
    assert result.throughput == pytest.approx(2 / 4)
    # Each row has a bin of its own: 1 - 0.9, 0.8, 1 - 0.7, 0.55.
    assert result.ece == pytest.approx((0.1 + 0.8 + 0.3 + 0.55) / 4)
    # Accepted: mean confidence 0.8, accuracy 2/3, coverage 3/4.
    assert result.wce_accepted == pytest.approx(0.75 * (0.8 - 2 / 3))
    # In order of confidence: right, wrong, right, wrong.
    assert result.aurc == pytest.approx((0 / 1 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
    assert result.to_dict()["jcw"] == result.jcw


@pytest.mark.parametrize("seed", range(5))
def test_metrics_equal_a_loop_over_rows(seed):
    proba, y, accepted = random_case(seed)
    result = evaluate(proba, y, accepted=accepted)
    right = [
        max(range(4), key=lambda k: row[k]) == label for row, label in zip(proba, y, strict=True)
    ]
    taken = [row for row in range(len(y)) if accepted[row]]
    good = [row for row in taken if right[row]]
    mean_confidence = sum(max(proba[row]) for row in taken) / len(taken)
    assert result.errors == len(taken) - len(good)
    assert result.accuracy == pytest.approx(sum(right) / len(y))
    assert result.accuracy_accepted == pytest.approx(len(good) / len(taken))
    assert result.wce_accepted == pytest.approx(
        len(taken) / len(y) * abs(mean_confidence - len(good) / len(taken))
    )


@given(st.integers(0, 10_000))
def test_coverage_splits_into_throughput_and_jcw(seed):
    proba, y, accepted = random_case(seed, n=30)
    result = evaluate(proba, y, accepted=accepted)
    assert result.coverage == pytest.approx(result.throughput + result.jcw)
    if result.accepted:
        assert result.jcw == pytest.approx(result.coverage * (1 - result.accuracy_accepted))


@given(st.integers(0, 10_000))
def test_wce_accepted_is_coverage_times_the_accepted_rows_calibration_error_in_one_bin(seed):
    proba, y, accepted = random_case(seed, n=30)
    right = proba.argmax(axis=1) == y
    if accepted.any():
        one_bin = expected_calibration_error(proba.max(axis=1)[accepted], right[accepted], bins=1)
        result = evaluate(proba, y, accepted=accepted)
        assert result.wce_accepted == pytest.approx(accepted.mean() * one_bin)


def test_a_rule_that_accepts_nothing_has_no_accuracy_and_makes_no_error():
    result = evaluate(PROBA, LABELS, accepted=np.zeros(4, bool))
    assert math.isnan(result.accuracy_accepted)
    assert (result.coverage, result.jcw, result.throughput, result.wce_accepted) == (0, 0, 0, 0)


def test_a_score_of_its_own_changes_the_risk_coverage_area_and_nothing_else():
    plain = evaluate(PROBA, LABELS, accepted=[True] * 4)
    scored = evaluate(PROBA, LABELS, accepted=[True] * 4, score=[4, 1, 3, 2])
    assert scored.aurc == pytest.approx((0 + 0 + 1 / 3 + 2 / 4) / 4)
    assert replace(scored, aurc=plain.aurc) == plain


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


def test_labels_may_be_strings_in_any_column_order():
    classes = ["wolf", "dog"]
    named = evaluate(PROBA, np.take(classes, LABELS), accepted=[True] * 4, classes=classes)
    assert named == evaluate(PROBA, LABELS, accepted=[True] * 4)


def test_tensors_and_lists_are_as_good_as_arrays():
    expected = evaluate(PROBA, LABELS, accepted=[True] * 4)
    as_lists = evaluate(PROBA.tolist(), LABELS.tolist(), accepted=[True] * 4)
    as_tensors = evaluate(
        torch.tensor(PROBA), torch.tensor(LABELS), accepted=torch.ones(4, dtype=torch.bool)
    )
    assert expected == as_lists == as_tensors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"accepted": [1, 1, 0, 0]},
            "`accepted` of evaluate must hold booleans; got int",
        ),
        (
            {"accepted": [True] * 3},
            "`accepted` of evaluate .* each of the 4 labels; got shape \\(3,\\)",
        ),
        ({"score": [1.0, 2.0]}, r"`score` of evaluate .* each of the 4 labels; got shape \(2,\)"),
        (
            {"proba": PROBA[:2]},
            r"`proba` of evaluate .* each of the 4 labels; got shape \(2,\)",
        ),
        ({"proba": PROBA * 2}, "`proba` of evaluate must lie in .0, 1.*softmax"),
        ({"proba": PROBA / 2}, "`proba` of evaluate must sum to 1; row 0 sums to 0.5"),
        ({"proba": PROBA * np.nan}, "`proba` of evaluate must be finite; got nan in row 0"),
        ({"proba": PROBA[:, 0]}, r"`proba` of evaluate must have shape \(n, K\).*column_stack"),
        ({"y": [0, 1, 2, 0]}, r"not among the 2 known classes: \[2\]"),
        ({"y": ["a", "b", "c", "a"], "classes": ["a", "b"]}, r"not among the 2 .*\['c'\]"),
    ],
)
def test_bad_input_is_named_with_what_was_expected(change, message):
    call = {"proba": PROBA, "y": LABELS, "accepted": [True] * 4} | change
    with pytest.raises(InvalidDataError, match=message):
        evaluate(call.pop("proba"), call.pop("y"), **call)


def test_no_rows_are_refused():
    with pytest.raises(InvalidDataError, match="non-empty"):
        evaluate(np.zeros((0, 2)), np.zeros(0, int), accepted=np.zeros(0, bool))


@pytest.mark.parametrize("classes", [["a"], ["a", "b", "c"]])
def test_classes_must_name_every_column_once(classes):
    with pytest.raises(InvalidDataError, match="`classes` of evaluate"):
        evaluate(PROBA, ["a"] * 4, accepted=[True] * 4, classes=classes)


def test_a_score_that_is_not_a_number_is_refused():
    with pytest.raises(InvalidDataError, match="`score` of evaluate must be finite"):
        evaluate(PROBA, LABELS, accepted=[True] * 4, score=[np.nan, 1, 2, 3])


def test_acceptances_must_be_a_vector():
    with pytest.raises(InvalidDataError, match="`accepted` of evaluate"):
        evaluate(PROBA, LABELS, accepted=np.ones((4, 1), bool))
