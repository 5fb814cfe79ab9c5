from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.stats import binomtest

from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError, LabelWarning
from reliablenet.metrics import Evaluation, Interval, evaluate, expected_calibration_error
from studies.guarantees.intervals import keeps

PROBA = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.45, 0.55]])
LABELS = np.array([0, 1, 1, 0])  # right, wrong, right, wrong


def random_case(seed: int, n: int = 200, n_classes: int = 4):
    random = np.random.default_rng(seed)
    proba = random.dirichlet(np.ones(n_classes), n)
    y = random.integers(n_classes, size=n)
    return proba, y, random.uniform(size=n) < 0.6


def test_every_metric_equals_the_computation_by_hand():
    result = evaluate(PROBA, LABELS, accepted=[True, True, True, False], alpha=0.1)
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
    # At best: right, right, wrong, wrong.
    least = (0 / 1 + 0 / 2 + 1 / 3 + 2 / 4) / 4
    assert result.excess_aurc == pytest.approx(result.aurc - least)
    assert (result.alpha, result.budget_spent) == (0.1, pytest.approx(2.5))


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
    assert scored.excess_aurc == 0.0
    same = replace(scored, aurc=plain.aurc, excess_aurc=plain.excess_aurc).to_dict()
    assert same == pytest.approx(plain.to_dict(), rel=1e-12, nan_ok=True)


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
            "`accepted` of evaluate .* each of the 4 rows; got shape \\(3,\\)",
        ),
        ({"score": [1.0, 2.0]}, r"`score` of evaluate .* each of the 4 rows; got shape \(2,\)"),
        (
            {"proba": PROBA[:2]},
            r"`proba` of evaluate .* each of the 4 rows; got shape \(2,\)",
        ),
        ({"proba": PROBA * 2}, "`proba` of evaluate must lie in .0, 1.*softmax"),
        ({"proba": PROBA / 2}, "`proba` of evaluate must sum to 1; row 0 sums to 0.5"),
        ({"proba": PROBA * np.nan}, "`proba` of evaluate must be finite; got nan in row 0"),
        ({"proba": PROBA[:, 0]}, r"`proba` of evaluate must have shape \(n, K\).*column_stack"),
        ({"y": [0, 1, 2, 0]}, r"not among the 2 known classes: 2"),
        ({"y": ["a", "b", "B", "a"], "classes": ["a", "b"]}, "holds 'B' where .* say 'b'"),
    ],
)
def test_bad_input_is_named_with_what_was_expected(change, message):
    call = {"proba": PROBA, "y": LABELS, "accepted": [True] * 4} | change
    with pytest.raises(InvalidDataError, match=message):
        evaluate(call.pop("proba"), call.pop("y"), **call)


def test_a_label_that_the_model_does_not_know_is_an_error():
    with pytest.warns(LabelWarning, match="1 of 4 rows"):
        result = evaluate(PROBA, ["a", "a", "c", "b"], accepted=[True] * 4, classes=["a", "b"])
    assert result.errors == 1


def test_rows_scored_before_are_as_good_as_probabilities_and_labels():
    proba, y, accepted = random_case(0)
    settings = {"accepted": accepted, "alpha": 0.1, "resamples": 20, "random_state": 0}
    for score in (None, np.random.default_rng(0).normal(size=len(y))):
        rows = score_rows(proba, y, score=score, owner="test")
        assert evaluate(rows, **settings) == evaluate(proba, y, score=score, **settings)
    with pytest.raises(InvalidParameterError, match="evaluate takes scored rows alone"):
        evaluate(rows, y, accepted=accepted)


def test_without_probabilities_calibration_alone_is_undefined():
    proba, y, accepted = random_case(0)
    rows = score_rows(proba, y, owner="test")
    bare = ScoredRows(rows.score, rows.wrong, rows.lowest)
    known, found = (
        evaluate(some, accepted=accepted, alpha=0.1, resamples=20, random_state=0)
        for some in (rows, bare)
    )
    unknown = {"ece", "wce_accepted"}
    assert {name for name, value in found.to_dict().items() if math.isnan(value)} == unknown
    for name in METRICS:
        if name not in unknown:
            assert found.intervals[name] == known.intervals[name]
            assert getattr(found, name) == getattr(known, name)
        else:
            assert all(math.isnan(end) for end in found.intervals[name])


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


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"alpha": 5}, r"`alpha` of evaluate must lie in \(0, 1\); got 5. Did you mean 0.05"),
        ({"alpha": 0.0}, "`alpha` of evaluate"),
        ({"level": 95}, r"`level` of evaluate must lie in \(0, 1\); got 95. Did you mean 0.95"),
        ({"resamples": -1}, "`resamples` of evaluate must be a whole number of at least 0; got -1"),
        ({"resamples": 10.0}, "`resamples` of evaluate must be a whole number"),
    ],
)
def test_settings_outside_their_domain_are_named(setting, message):
    with pytest.raises(InvalidParameterError, match=message):
        evaluate(PROBA, LABELS, accepted=[True] * 4, **setting)


METRICS = (
    "accuracy",
    "coverage",
    "accuracy_accepted",
    "jcw",
    "throughput",
    "ece",
    "wce_accepted",
    "aurc",
    "excess_aurc",
    "budget_spent",
)
SHARES = {"accuracy", "coverage", "accuracy_accepted", "jcw", "throughput", "budget_spent"}
SURE = np.array([[0.9, 0.1]] * 5)


@pytest.mark.parametrize(
    ("proba", "y", "accepted"),
    [
        pytest.param(SURE, [0, 1, 0, 0, 1], [True] * 5, id="constant scores"),
        pytest.param(SURE[:1], [0], [True], id="one right row"),
        pytest.param(SURE[:1], [1], [True], id="one wrong row"),
        pytest.param(PROBA, [0, 0, 1, 1], [True] * 4, id="no errors"),
        pytest.param(PROBA, [1, 1, 0, 0], [True] * 4, id="errors only"),
        pytest.param(PROBA, LABELS, [False] * 4, id="nothing accepted"),
    ],
)
def test_only_the_accuracy_of_no_accepted_row_is_undefined(proba, y, accepted):
    result = evaluate(proba, y, accepted=accepted, alpha=0.05, resamples=20, random_state=0)
    undefined = set() if result.accepted else {"accuracy_accepted"}
    assert {name for name, value in result.to_dict().items() if math.isnan(value)} == undefined
    assert {name for name, ends in result.intervals.items() if math.isnan(sum(ends))} == undefined
    assert set(result.intervals) == set(METRICS)
    assert 0.0 <= result.excess_aurc <= result.aurc <= 1.0


def test_rows_that_are_all_alike_have_bootstrap_intervals_of_no_width():
    result = evaluate(SURE, [0] * 5, accepted=[True] * 5, resamples=20)
    for name in set(result.intervals) - SHARES:
        low, high = result.intervals[name]
        assert low == pytest.approx(getattr(result, name)) == high
    assert result.intervals["jcw"].low == 0.0 < result.intervals["jcw"].high


def test_without_alpha_there_is_no_budget_to_spend():
    result = evaluate(PROBA, LABELS, accepted=[True] * 4, resamples=9)
    assert math.isnan(result.alpha)
    assert math.isnan(result.budget_spent)
    assert set(result.intervals) == set(METRICS) - {"budget_spent"}


def test_intervals_of_what_is_no_share_are_the_percentiles_of_evaluating_the_drawn_rows():
    proba, y, accepted = random_case(3, n=150, n_classes=2)
    top = np.sort(np.round(proba.max(axis=1), 1))[::-1]  # in order, with ties
    proba = np.column_stack([top, 1 - top])
    found = evaluate(
        proba, y % 2, accepted=accepted, alpha=0.2, resamples=200, level=0.8, random_state=7
    )
    random = np.random.RandomState(7)
    drawn = []
    for _ in range(200):
        rows = random.randint(150, size=150)
        one = evaluate(proba[rows], y[rows] % 2, accepted=accepted[rows], alpha=0.2)
        drawn.append(one.to_dict())
    assert set(found.intervals) == set(METRICS)
    for name in set(METRICS) - SHARES:
        expected = np.quantile([values[name] for values in drawn], [0.1, 0.9])
        assert found.intervals[name] == pytest.approx(tuple(expected), rel=1e-9), name


@pytest.mark.parametrize("resamples", [0, 3])
def test_intervals_of_shares_are_exact_with_or_without_resamples(resamples):
    proba, y, accepted = random_case(4, n=300)
    found = evaluate(proba, y, accepted=accepted, alpha=0.2, level=0.9, resamples=resamples)
    wrong = proba.argmax(axis=1) != y
    taken = int(accepted.sum())
    counts = {
        "accuracy": (int((~wrong).sum()), 300),
        "coverage": (taken, 300),
        "accuracy_accepted": (int((accepted & ~wrong).sum()), taken),
        "jcw": (int((accepted & wrong).sum()), 300),
        "throughput": (int((accepted & ~wrong).sum()), 300),
    }
    for name, (count, n) in counts.items():
        assert getattr(found, name) == pytest.approx(count / n)
        expected = binomtest(count, n).proportion_ci(0.9, "exact")
        assert found.intervals[name] == pytest.approx((expected.low, expected.high), abs=1e-12)
    spent = found.intervals["jcw"].low / 0.2, found.intervals["jcw"].high / 0.2
    assert found.intervals["budget_spent"] == pytest.approx(spent)
    assert (set(found.intervals) == SHARES) == (resamples == 0)


def percentile_interval(marks: np.ndarray, random: np.random.Generator) -> Interval:
    """Return what stood here before: percentiles of the share in resamples of the rows."""
    shares = random.choice(marks, (400, len(marks))).mean(axis=1)
    return Interval(*np.quantile(shares, [0.025, 0.975]).tolist())


@pytest.mark.parametrize("truth", [0.02, 0.005])
def test_the_interval_of_a_small_share_holds_where_a_bootstrap_does_not(truth):
    random, draws, n = np.random.default_rng(0), 600, 153
    missed = {"exact": 0, "percentile": 0}
    for _ in range(draws):
        rows = ScoredRows(random.random(n), random.random(n) < truth, 0.0)
        found = evaluate(rows, accepted=np.ones(n, bool)).intervals["jcw"]
        for name, (low, high) in {
            "exact": found,
            "percentile": percentile_interval(rows.wrong, random),
        }.items():
            missed[name] += not low <= truth <= high
    assert keeps(missed["exact"], draws, 0.05)
    assert not keeps(missed["percentile"], draws, 0.05)  # so that this test can fail


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    error_rate, coverage, draws = 0.3, 0.6, 200
    truth = {
        "accuracy": 1 - error_rate,
        "coverage": coverage,
        "accuracy_accepted": 1 - error_rate,
        "jcw": error_rate * coverage,
        "throughput": (1 - error_rate) * coverage,
        "aurc": error_rate,  # the score says nothing about errors, so each prefix has their rate
    }
    random = np.random.default_rng(0)
    hits = dict.fromkeys(truth, 0)
    for seed in range(draws):
        top = random.uniform(0.5, 1.0, 200)
        proba = np.column_stack([top, 1 - top])
        result = evaluate(
            proba,
            (random.uniform(size=200) < error_rate).astype(int),
            accepted=random.uniform(size=200) < coverage,
            resamples=200,
            level=0.9,
            random_state=seed,
        )
        for name in truth:
            low, high = result.intervals[name]
            hits[name] += low <= truth[name] <= high
    for name, count in hits.items():
        # Five standard errors of 200 draws, and a few percent that small samples cost.
        assert count / draws >= (0.9 if name in SHARES else 0.87) - 5 * 0.021, name


def test_shares_of_the_same_rows_have_the_same_intervals():
    proba, y, _ = random_case(0)
    result = evaluate(proba, y, accepted=[True] * 200, alpha=0.1)
    ends = result.intervals
    assert ends["coverage"].high == 1.0
    assert ends["throughput"] == pytest.approx(ends["accuracy"])
    assert (1 - ends["jcw"].high, 1 - ends["jcw"].low) == pytest.approx(ends["accuracy"])
    assert ends["budget_spent"] == pytest.approx((ends["jcw"].low / 0.1, ends["jcw"].high / 0.1))


def test_a_higher_level_gives_wider_intervals_around_the_same_values():
    proba, y, accepted = random_case(0)
    narrow, wide = (
        evaluate(proba, y, accepted=accepted, resamples=400, level=level, random_state=0)
        for level in (0.5, 0.99)
    )
    assert narrow.to_dict() == pytest.approx(wide.to_dict(), nan_ok=True)
    for name, (low, high) in narrow.intervals.items():
        assert wide.intervals[name].low < low < high < wide.intervals[name].high


def test_the_random_state_decides_the_intervals():
    proba, y, accepted = random_case(0)

    def run(random_state):
        return evaluate(proba, y, accepted=accepted, resamples=30, random_state=random_state)

    assert run(1) == run(1) == run(np.random.RandomState(1))
    assert run(1) != run(2)
    assert run(1).to_dict() == pytest.approx(run(2).to_dict(), nan_ok=True)


def test_fresh_resamples_leave_the_global_state_alone():
    proba, y, accepted = random_case(0)
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    first, second = (evaluate(proba, y, accepted=accepted, resamples=30) for _ in range(2))
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002
    assert first != second


def test_a_frame_has_one_row_a_metric_with_its_interval():
    result = evaluate(PROBA, LABELS, accepted=[True] * 4, alpha=0.1, resamples=50, random_state=0)
    table = result.to_frame()
    assert table.index.name == "metric"
    assert list(table.columns) == ["value", "low", "high"]
    assert table["value"].to_dict() == result.to_dict()
    assert tuple(table.loc["aurc", ["low", "high"]]) == result.intervals["aurc"]
    assert table.index[table["low"].isna()].tolist() == ["n", "accepted", "errors", "alpha"]
    plain = evaluate(PROBA, LABELS, accepted=[True] * 4, alpha=0.1).to_frame()
    assert set(plain.index[plain["low"].notna()]) == SHARES


def test_the_dictionary_holds_plain_numbers_and_no_intervals():
    proba, y, accepted = random_case(0)
    result = evaluate(proba, y, accepted=accepted, alpha=0.1, resamples=5)
    values = result.to_dict()
    assert set(values) == {"n", "accepted", "errors", "alpha", *METRICS}
    assert {type(value) for value in values.values()} == {int, float}
    assert {type(end) for interval in result.intervals.values() for end in interval} == {float}


def test_evaluations_are_equal_if_their_numbers_are_even_the_undefined_ones():
    def run(**setting):
        return evaluate(PROBA, LABELS, accepted=[False] * 4, **setting)

    assert run() == pickle.loads(pickle.dumps(run()))  # noqa: S301
    assert run() != run(alpha=0.1)
    assert run() != run(resamples=2)
    assert run() != replace(run(), jcw=0.1)
    assert run() != "run"
    assert replace(run(), intervals={"jcw": Interval(0.0, 0.1)}) != run()


def test_acceptances_that_are_no_booleans_are_refused_in_these_words():
    with pytest.raises(InvalidDataError) as caught:
        evaluate(PROBA, LABELS, accepted=[0.9, 0.8, 0.7, 0.6])
    assert str(caught.value) == (
        "`accepted` of evaluate must hold booleans; got float64. Compare the score with the "
        "threshold first."
    )
    masked = np.ma.masked_array([True] * 4, [1, 0, 0, 0])
    with pytest.raises(InvalidDataError, match="`accepted` must not hold masked values; got 1 of"):
        evaluate(PROBA, LABELS, accepted=masked)


def test_an_evaluation_cannot_be_changed_and_needs_no_intervals():
    result = evaluate(PROBA, LABELS, accepted=[True] * 4)
    with pytest.raises(FrozenInstanceError):
        result.jcw = 0.0
    assert Evaluation(**result.to_dict(), intervals=result.intervals) == result
    assert Evaluation(**result.to_dict()).intervals == {}


def test_without_a_level_intervals_aim_at_95_percent():
    proba, y, accepted = random_case(0)
    setting = {"accepted": accepted, "resamples": 200, "random_state": 0}
    assert evaluate(proba, y, **setting) == evaluate(proba, y, level=0.95, **setting)


def test_probabilities_of_any_type_give_the_confidence_in_double_precision():
    single = PROBA.astype(np.float32)
    found = evaluate(single, LABELS, accepted=[True] * 4)
    assert found.ece == evaluate(single.astype(float), LABELS, accepted=[True] * 4).ece


def test_answers_that_are_right_or_wrong_are_enough():
    score, right = PROBA.max(axis=1), PROBA.argmax(axis=1) == LABELS
    accepted = np.array([True, True, False, False])
    found = evaluate(score=score, correct=right, accepted=accepted)
    assert (found.n, found.accepted, found.errors, found.accuracy) == (4, 2, 1, 0.5)
    assert found.aurc == evaluate(PROBA, LABELS, accepted=accepted).aurc


def test_the_old_name_of_the_table_still_works():
    found = evaluate(PROBA, LABELS, accepted=[True] * 4)
    with pytest.warns(DeprecationWarning, match="^`frame` is now called `to_frame`; the old name"):
        assert found.frame().equals(found.to_frame())
