"""What a selection fold teaches: a scale for each predicted class, and the order of tests."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise

import numpy as np
import pytest
from rule_examples import draw
from scipy.stats import beta

from reliablenet import Promise, certified_rule
from reliablenet.certificate.path import learn_path
from reliablenet.certificate.rule_plan import RulePlan, named, plan_rule
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import InvalidDataError

RHO = 0.1


def test_a_prediction_that_the_selection_fold_never_saw_is_deferred():
    proba, y, _ = draw(8, n=1200, classes=3)
    y = np.where(proba.argmax(1) == 0, 0, y)  # one class is always right: scales of their own pay
    seen = proba[:600].argmax(1) != 2
    selection = (proba[:600][seen], y[:600][seen])
    found = certified_rule(proba[600:], y[600:], Promise.overall(0.05), RHO, selection=selection)
    assert set(found.rule.thresholds) == {0, 1}
    assert not found.rule.accept(proba)[proba.argmax(1) == 2].any()


def test_groups_without_a_budget_teach_the_path_nothing():
    """A budget that is not there must not make every place of the path NaN."""
    proba, y, by = draw(9, n=3000)
    promise = Promise.by_group({"A": 0.1, "B": 0.1}, common=True)
    found = certified_rule(
        proba[1000:], y[1000:], promise, RHO, by=by[1000:],
        selection=(proba[:1000], y[:1000], by[:1000]),
    )  # fmt: skip
    assert found.certified
    assert not found.deferred  # of no group is it known at decision time that it has no budget


def make_rows(seed: int, n: int = 400, classes: int = 2) -> ScoredRows:
    proba, y, by = draw(seed, n, classes)
    return ScoredRows(**vars(score_rows(proba, y, owner="test")) | {"by": {"group": by}})


def test_without_a_selection_fold_the_score_is_the_path():
    none = make_rows(0).take(slice(0, 0))
    for selection, promise in ((None, Promise.overall(0.1)), (none, Promise.overall(0.1)), (none, Promise.among_accepted(0.1))):  # fmt: skip
        plan = plan_rule(promise, 0.25, 100, selection, np.array(["no", "yes"]))
        assert plan.path.scales == {}
        assert plan.path.lowest == 0.25
        assert len(plan.places) == 0
        assert plan.classes == ["no", "yes"]
    assert RulePlan(Promise.overall(0.1), plan.path).classes is None
    assert plan_rule(Promise.overall(0.1), 0.0, 100).classes is None
    one = plan_rule(Promise.among_accepted(0.1), 0.0, 100, make_rows(0).take(slice(0, 1)))
    assert one.places.tolist() == [-math.inf]


@pytest.mark.parametrize(
    ("promise", "classes", "own"),
    [
        (Promise.overall(0.1), None, []),
        (Promise.among_accepted(0.1), [0, 1], []),
        (Promise.cost([[0, 1], [2, 0]], 0.1), [0, 1], []),
        (Promise.by_group(0.1), None, ["by_group"]),
        (Promise.by_group(0.1, common=True), None, []),
        (Promise.by_predicted(0.1), None, ["by_predicted"]),
        (Promise.by_class(0.1), None, []),
        (Promise.by_class(0.1), [0, 1], ["by_class"]),
        (Promise.by_class(0.1), [0, 1, 2], []),
        (Promise.by_class({1: 0.1}), [0, 1, 2], ["by_class"]),
        (Promise.by_class({0: 0.1, 1: 0.1}), [0, 1, 2], []),
        (Promise.all_of(Promise.by_predicted(0.1), Promise.overall(0.1)), [0, 1], ["by_predicted"]),
        (Promise.all_of(Promise.by_predicted(0.1), Promise.among_accepted(0.1)), [0, 1], []),
    ],
    ids=str,
)
def test_whoever_is_known_at_decision_time_has_a_threshold_of_its_own(promise, classes, own):
    separate, joint = plan_rule(promise, 0.0, 100, None, classes).counters()
    assert [counter.promise.kind for counter in separate] == own
    assert len(separate) + len(joint) == len(promise.simple())
    assert all(counter.classes == classes for counter in (*separate, *joint))


def test_the_path_is_learned_from_what_each_row_spends_of_every_budget():
    """Of groups and classes alike: a mistake spends one over the rows and the budget of its population."""
    rows = make_rows(1, 600, classes=3)
    rows.by["group"][np.flatnonzero(rows.wrong)[0]] = "D"  # one row, and it is a mistake
    promise = Promise.all_of(
        Promise.overall(0.1),
        Promise.by_group({"A": 0.2, "B": 0.1, "D": 0.1}, common=True),
        Promise.by_class({0: 0.1, 2: 0.3}),
    )
    plan = plan_rule(promise, 0.0, 100, rows, [0, 1, 2])
    spending = np.zeros(rows.n)
    group, sizes = rows.by["group"], Counter(rows.by["group"])
    truth, counts = rows.truth, Counter(rows.truth.tolist())
    for i in np.flatnonzero(rows.wrong):
        spending[i] += 1 / (rows.n * 0.1)
        budget = {"A": 0.2, "B": 0.1, "D": 0.1}.get(group[i], math.inf)
        spending[i] += 1 / (sizes[group[i]] * budget)
        spending[i] += {0: 1 / (counts[0] * 0.1), 2: 1 / (counts[2] * 0.3)}.get(int(truth[i]), 0.0)
    expected = learn_path(rows.score, rows.predicted, spending, 0.0)
    assert set(plan.path.scales) == {0, 1, 2}
    for label, (knots, level) in expected.scales.items():
        assert plan.path.scales[label][0] == pytest.approx(knots)
        assert plan.path.scales[label][1] == pytest.approx(level)


def test_without_groups_in_the_selection_fold_the_other_promises_teach_the_path():
    rows = make_rows(2)
    right = rows.predicted == 0  # scales of their own pay
    truth = np.where(right, 0, rows.truth)
    rows = ScoredRows(**vars(rows) | {"truth": truth, "wrong": rows.wrong & ~right})
    blind = ScoredRows(**vars(rows) | {"by": None})
    groups, alone = Promise.by_group(0.1, common=True), Promise.overall(0.1)
    learned = plan_rule(alone, 0.0, 100, rows, [0, 1])
    for both in (Promise.all_of(alone, groups), Promise.all_of(groups, alone)):
        plan = plan_rule(both, 0.0, 100, blind, [0, 1])
        for label in (0, 1):
            np.testing.assert_array_equal(plan.path.scales[label], learned.path.scales[label])
    told = plan_rule(alone, 0.0, 100, rows, ["no", "yes"])
    assert set(told.path.scales) == {"no", "yes"}
    np.testing.assert_array_equal(told.path.scales["yes"], learned.path.scales[1])
    assert plan_rule(Promise.by_group(0.1), 0.0, 100, rows, [0, 1]).path.scales == {}
    verdicts = ScoredRows(rows.score, rows.wrong, 0.0)
    assert plan_rule(Promise.overall(0.1), 0.0, 100, verdicts).path.scales == {}


@pytest.mark.parametrize("n", [50, 800])
def test_the_order_of_tests_starts_where_the_selection_fold_is_surest(n):
    """Each cut between two scores, its chance by the beta distribution of scipy."""
    rng = np.random.default_rng(4)
    score = rng.random(150).round(2)
    wrong = rng.random(150) < 0.5 * (1 - score)
    plan = plan_rule(Promise.among_accepted(0.2), 0.0, n, ScoredRows(score, wrong, 0.0))
    cuts = np.unique(score)[::-1]
    chance = []
    for cut in cuts:
        rows, mistakes = (score >= cut).sum() * n / 150, (wrong & (score >= cut)).sum() * n / 150
        chance.append(beta.sf(0.2, mistakes + 1, max(rows - mistakes, 1e-9)))
    start = int(np.argmin(chance))
    middles = [(high + low) / 2 for high, low in pairwise(cuts)] + [-math.inf]
    assert plan.places == pytest.approx(middles[start:])
    assert plan.places[-1] == -math.inf


@pytest.mark.parametrize("n", [5, 40, 300])
@pytest.mark.parametrize("size", [6, 25, 80])
def test_no_place_is_surer_than_the_first(size, n):
    """Small folds of all kinds: the chance of the first place is the smallest there is."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        score = rng.random(size).round(2)
        wrong = rng.random(size) < rng.random() * (1.2 - score)
        plan = plan_rule(Promise.among_accepted(0.3), 0.0, n, ScoredRows(score, wrong, 0.0))
        chance = []
        for cut in np.unique(score)[::-1]:
            rows, mistakes = (score >= cut).sum() * n / size, (wrong & (score >= cut)).sum() * n / size  # fmt: skip
            chance.append(beta.sf(0.3, mistakes + 1, max(rows - mistakes, 1e-9)))
        assert chance[-len(plan.places)] == pytest.approx(min(chance), rel=1e-9)


def test_on_a_learned_path_the_order_is_that_of_places():
    rows = make_rows(3, 600, classes=3)
    promise = Promise.among_accepted(0.2)
    plan = plan_rule(promise, 0.0, 500, rows, ["x", "y", "z"])
    assert set(plan.path.scales) == {"x", "y", "z"}
    place = plan.path.places(rows.score, np.array(["x", "y", "z"])[rows.predicted])
    flat = plan_rule(promise, 0.0, 500, ScoredRows(place, rows.wrong, 0.0))
    np.testing.assert_array_equal(plan.places, flat.places)


def test_of_many_scores_two_hundred_places_are_tested():
    score = np.random.default_rng(0).permutation(5000) / 5000
    plan = plan_rule(Promise.among_accepted(0.2), 0.0, 100, ScoredRows(score, score < 0.98, 0.0))
    assert len(plan.places) == 196  # the first four hold fewer than the hundred right rows
    assert (np.diff(plan.places) < 0).all()


def test_a_plan_stays_as_it_was_made():
    plan = plan_rule(Promise.overall(0.1), 0.0, 100)
    with pytest.raises(FrozenInstanceError):
        plan.classes = [0, 1]
    assert len({plan, replace(plan)}) == 2  # arrays are not compared
    assert plan.classes is None
    assert plan.places.tolist() == []
    with pytest.raises(InvalidDataError, match=r"^`classes` must be an array"):
        plan_rule(Promise.overall(0.1), 0.0, 100, None, [[1], [2, 3]])


def test_where_no_row_is_right_the_order_still_starts_somewhere():
    """Without a right row the beta distribution has no second parameter: it is taken as nearly 0."""
    score = np.array([0.9, 0.8, 0.7])
    rows = ScoredRows(score, np.array([True, False, False]), 0.0)
    places = plan_rule(Promise.among_accepted(0.2), 0.0, 300, rows).places
    assert places[-1] == -math.inf
    none = ScoredRows(score, np.ones(3, bool), 0.0)
    assert plan_rule(Promise.among_accepted(0.2), 0.0, 300, none).places == pytest.approx(
        [0.85, 0.75, -math.inf]
    )


def test_places_become_labels():
    assert named(None, ["a"]) is None
    values = np.array([1, 0])
    assert named(values, None) is values
    assert named(values, ["a", 2]).tolist() == [2, "a"]


def test_an_overall_budget_alone_has_scales_only_where_they_pay():
    rng = np.random.default_rng(0)
    score, predicted = rng.uniform(0.5, 1.0, 2000), rng.integers(0, 2, 2000)
    alike = ScoredRows(score, rng.random(2000) < 0.8 * (1 - score), -1.0, predicted=predicted)
    chance = np.where(predicted == 0, 0.3, 1.4) * (1 - score)
    differ = replace(alike, wrong=rng.random(2000) < chance)
    overall, among = Promise.overall(0.05), Promise.among_accepted(0.1)
    assert plan_rule(overall, -1.0, 100, alike).path.scales == {}
    for promise, rows in ((overall, differ), (Promise.all_of(overall, among), alike)):
        path = plan_rule(promise, -1.0, 100, rows).path
        assert set(path.scales) == {0, 1}
        assert path.lowest == -1.0
