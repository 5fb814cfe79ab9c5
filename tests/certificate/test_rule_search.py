"""Rules against a brute-force oracle: every threshold tried, with scipy's binomial tail for the test."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rule_examples import draw
from scipy.stats import binom

from reliablenet import Promise, certified_rule, certified_threshold
from reliablenet.certificate import Provenance
from reliablenet.certificate.cost import hoeffding_bentkus_p
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_plan import plan_rule
from reliablenet.certificate.rule_search import (
    _midway,
    accept_rows,
    accepted_by,
    certified_rule_batches,
    certify_rule_batches,
)
from reliablenet.certificate.scored import ScoredRows, score_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError

ALPHA, RHO = 0.1, 0.1
SEEDS = st.integers(0, 2**32 - 1)


def best_accept(score, counted, n, level, alpha=ALPHA):
    """Return which rows the most permissive threshold accepts whose count the binomial tail allows."""
    found = np.zeros(len(score), bool)
    for threshold in np.unique(score)[::-1]:
        accepted = score >= threshold
        if binom.cdf(np.count_nonzero(accepted & counted), n, alpha) > level:
            return found
        found = accepted
    return found


def share_by_hand(populations, rho=RHO, alpha=ALPHA):
    """Return the level of each: testable ones share, those that accept all pass their share on."""
    sizes = sorted((n for _, _, n in populations.values()), reverse=True)
    tested = max(
        (m for m in range(1, len(sizes) + 1) if (1 - alpha) ** sizes[m - 1] <= rho / m), default=0
    )
    most = sizes[tested - 1] if tested else math.inf
    names = [name for name, (_, _, n) in populations.items() if n >= most][:tested]
    done = 0
    while True:
        level = rho / max(tested - done, 1)
        finished = sum(best_accept(*populations[name], level).all() for name in names)
        if finished <= done:
            return names, level
        done = finished


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_overall_is_the_certified_threshold(seed):
    proba, y, _ = draw(seed)
    found = certified_rule(proba, y, Promise.overall(ALPHA), RHO)
    one = certified_threshold(proba, y, ALPHA, RHO)
    assert found.rule.thresholds == {"all": one.threshold}
    assert (found.errors, found.accepted, found.certified) == (
        one.errors,
        one.accepted,
        one.certified,
    )


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_groups_get_the_thresholds_that_the_binomial_tail_allows(seed):
    proba, y, by = draw(seed)
    score, wrong = proba.max(1), proba.argmax(1) != y
    found = certified_rule(proba, y, Promise.by_group(ALPHA), RHO, by=by)
    populations = {
        g: (score[by == g], wrong[by == g], int((by == g).sum())) for g in np.unique(by).tolist()
    }
    tested, level = share_by_hand(populations)
    expected = np.zeros(len(y), bool)
    for name in tested:
        expected[by == name] = best_accept(*populations[name], level)
    np.testing.assert_array_equal(found.rule.accept(proba, by=by), expected)
    parts = {part.name.removeprefix("group="): part for part in found.parts}
    for name, (*_, n) in populations.items():
        own = expected & (by == name)
        assert (parts[name].n, parts[name].accepted) == (n, own.sum())
        assert parts[name].errors == (own & wrong).sum()
        if name in tested:
            assert parts[name].rho == pytest.approx(level)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(["group", "class"]))
def test_one_threshold_for_all_is_the_strictest_of_each(seed, kind):
    proba, y, by = draw(seed, classes=3)
    score, wrong = proba.max(1), proba.argmax(1) != y
    promise = Promise.by_group(ALPHA, common=True) if kind == "group" else Promise.by_class(ALPHA)
    found = certified_rule(proba, y, promise, RHO, by=by)
    of = by if kind == "group" else y
    expected = np.ones(len(y), bool)
    for label in np.unique(by) if kind == "group" else range(3):
        mine = of == label
        n = int(mine.sum())
        if (1 - ALPHA) ** n > RHO:
            expected[:] = False
        else:
            expected &= best_accept(score, wrong & mine, n, RHO)
    np.testing.assert_array_equal(found.rule.accept(proba), expected)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(["by_predicted", "by_class"]))
def test_predictions_get_the_thresholds_that_the_binomial_tail_allows(seed, kind):
    proba, y, _ = draw(seed)
    score, predicted = proba.max(1), proba.argmax(1)
    found = certified_rule(proba, y, getattr(Promise, kind)(ALPHA), RHO)
    populations = {}
    for label in (0, 1):
        # a mistake in a true class of two is a prediction of the other
        mine = predicted == (label if kind == "by_predicted" else 1 - label)
        n = len(y) if kind == "by_predicted" else int((y == label).sum())
        populations[label] = (np.where(mine, score, 2.0), mine & (predicted != y), n)
    tested, level = share_by_hand(populations)
    expected = np.zeros(len(y), bool)
    for label in tested:
        mine = predicted == (label if kind == "by_predicted" else 1 - label)
        expected |= best_accept(*populations[label], level) & mine
    np.testing.assert_array_equal(found.rule.accept(proba), expected)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_one_class_with_a_budget_leaves_its_own_predictions_free(seed):
    proba, y, _ = draw(seed, classes=3)
    score, predicted = proba.max(1), proba.argmax(1)
    found = certified_rule(proba, y, Promise.by_class({1: ALPHA}), RHO)
    others, n = predicted != 1, int((y == 1).sum())
    limited = best_accept(np.where(others, score, 2.0), others & (y == 1), n, RHO)
    expected = limited | (predicted == 1) if (limited & others).any() else np.zeros(len(y), bool)
    np.testing.assert_array_equal(found.rule.accept(proba), expected)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_costs_are_held_to_the_bound_of_their_sum(seed):
    proba, y, _ = draw(seed)
    costs, budget = np.array([[0.0, 1.0], [4.0, 0.0]]), 0.4
    score, spent = proba.max(1), costs[y, proba.argmax(1)] / 4.0
    found = certified_rule(proba, y, Promise.cost(costs, budget), RHO)
    expected = np.zeros(len(y), bool)
    for threshold in np.unique(score)[::-1]:
        accepted = score >= threshold
        if hoeffding_bentkus_p(spent[accepted].sum(), len(y), budget / 4.0) > RHO:
            break
        expected = accepted
    np.testing.assert_array_equal(found.rule.accept(proba), expected)
    (part,) = found.parts
    assert part.cost == pytest.approx(4.0 * spent[expected].sum())


def test_one_cost_is_a_count_of_mistakes():
    proba, y, _ = draw(3, n=800)
    cost = certified_rule(proba, y, Promise.cost([[0, 7], [7, 0]], 0.7), RHO)
    plain = certified_rule(proba, y, Promise.overall(0.1), RHO)
    assert cost.rule == plain.rule
    assert cost.certified


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_ten_coverages_share_rho_where_no_order_was_learned(seed):
    proba, y, _ = draw(seed, decimals=6)
    score, wrong = proba.max(1), proba.argmax(1) != y
    found = certified_rule(proba, y, Promise.among_accepted(0.2), RHO)
    expected = np.zeros(len(y), bool)
    for tenth in range(10, 0, -1):
        cut = np.sort(score)[::-1][math.ceil(tenth / 10 * len(y)) :][:1]
        accepted = score > (cut[0] if len(cut) else -np.inf)
        n, errors = accepted.sum(), (accepted & wrong).sum()
        if n and binom.cdf(errors, n, 0.2) <= RHO / 10:
            expected = accepted
            break
    np.testing.assert_array_equal(found.rule.accept(proba), expected)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_an_order_learned_elsewhere_is_tested_up_to_the_first_failure(seed):
    proba, y, _ = draw(seed, n=400)
    score, wrong = proba.max(1), proba.argmax(1) != y
    half = slice(0, 200)
    selection = ScoredRows(score[half], wrong[half], 0.0)
    rows = ScoredRows(score[200:], wrong[200:], 0.0)
    plan = plan_rule(Promise.among_accepted(0.2), 0.0, rows.n, selection)
    found = certified_rule_batches(lambda: [rows], plan, RHO)
    last = math.inf
    for place in plan.places:
        n, errors = (rows.score >= place).sum(), ((rows.score >= place) & rows.wrong).sum()
        if n == 0 or binom.cdf(errors, n, 0.2) > RHO:
            break
        last = place
    assert found.rule.threshold == max(last, 0.0)


def test_several_promises_share_rho_by_promise_and_each_among_its_groups():
    proba, y, by = draw(5, n=3000)
    promise = Promise.all_of(Promise.overall(0.1), Promise.by_group(0.1))
    found = certified_rule(proba, y, promise, RHO, by=by)
    levels = {part.name: part.rho for part in found.parts}
    assert levels["all"] == pytest.approx(RHO / 2)
    assert levels["group=A"] == pytest.approx(RHO / 6)
    accepted = found.rule.accept(proba, by=by)
    alone = certified_rule(proba, y, Promise.overall(0.1), RHO / 2)
    grouped = certified_rule(proba, y, Promise.by_group(0.1), RHO / 2, by=by)
    both = alone.rule.accept(proba) & grouped.rule.accept(proba, by=by)
    np.testing.assert_array_equal(accepted, both)


def test_what_holds_for_all_is_tested_at_its_own_level_beside_ten_coverages():
    """The other promise must be shown at the level at which it was tested, and no lower one."""
    rng = np.random.default_rng(0)
    n = 2000
    score = rng.random(n)
    rows = {"score": score, "correct": rng.random(n) > 0.06}
    promise = Promise.all_of(Promise.among_accepted(0.5), Promise.overall(0.05))
    found = certified_rule(None, None, promise, RHO, **rows)
    levels = {part.name: part.rho for part in found.parts}
    assert levels == {"accepted": pytest.approx(RHO / 20), "all": pytest.approx(RHO / 2)}
    assert found.certified


@pytest.mark.parametrize(
    "promise",
    [
        Promise.overall(0.1),
        Promise.among_accepted(0.2),
        Promise.by_group(0.1),
        Promise.by_group(0.1, common=True),
        Promise.by_predicted({0: 0.05, 1: 0.1}),
        Promise.by_class(0.2),
        Promise.cost([[0, 0.1], [0.7, 0.3]], 0.3),
        Promise.all_of(Promise.overall(0.1), Promise.by_group(0.1), Promise.cost([[0, 1], [3, 0]], 0.3)),
    ],
    ids=lambda promise: promise.kind,
)  # fmt: skip
@pytest.mark.parametrize("learned", [False, True])
def test_batches_are_memory_to_the_bit(promise, learned):
    proba, y, by = draw(11, n=1200)
    rows = ScoredRows(**vars(score_rows(proba, y, owner="test")) | {"by": {"group": by}})
    chosen = rows.take(slice(0, 400)) if learned else None
    rest = rows.take(slice(400, 1200))
    plan = plan_rule(promise, 0.0, rest.n, chosen, classes=[0, 1])
    whole = certified_rule_batches(lambda: [rest], plan, RHO)
    cuts = [0, 1, 100, 333, 800]
    batches = [rest.take(slice(a, b)) for a, b in pairwise(cuts)]
    parts = certified_rule_batches(lambda: batches, plan, RHO)
    assert parts.to_json() == whole.to_json()


def test_rows_that_change_between_two_looks_are_refused():
    rows = ScoredRows(np.linspace(0, 1, 200), np.arange(200) < 60, 0.0)
    looks = iter([[rows], [rows.take(slice(0, 100))]])
    plan = plan_rule(Promise.overall(0.1), 0.0, 200)
    with pytest.raises(
        InvalidDataError, match="The rows changed while they were certified: 200 at first"
    ):
        certified_rule_batches(lambda: next(looks), plan)


@pytest.mark.parametrize("value", [0.0, 0.7])
def test_constant_scores_are_all_accepted_or_all_deferred(value):
    for mistakes, share in ((5, 1.0), (60, 0.0)):
        correct = np.arange(300) >= mistakes
        for promise in (Promise.overall(0.1), Promise.among_accepted(0.1)):
            found = certified_rule(
                None, None, promise, RHO, score=np.full(300, value), correct=correct
            )
            assert found.coverage == share
            assert found.certified == (share == 1.0)


def test_rows_of_whom_there_are_several_count_once_in_batches():
    proba, y, by = draw(12, n=900)
    rows = score_rows(proba, y, owner="test")
    rows = ScoredRows(**vars(rows) | {"by": {"group": by}, "group": np.arange(900) // 3})
    plan = plan_rule(Promise.by_group(0.2), 0.0, 900, classes=[0, 1])
    batches = [rows.take(slice(a, a + 200)) for a in range(0, 900, 200)]
    found = certified_rule_batches(lambda: batches, plan, RHO, provenance=Provenance(table="ab"))
    assert (found.n, found.unit, found.rho, found.provenance.table) == (300, "group", RHO, "ab")
    memory = certified_rule(proba, y, Promise.by_group(0.2), RHO, by=by, groups=rows.group)
    assert found.provenance.model == memory.provenance.model
    assert found == memory


@pytest.mark.parametrize("certify", [certified_rule_batches, certify_rule_batches])
def test_no_rows_and_impossible_levels_are_refused(certify):
    plan = plan_rule(Promise.overall(0.1), 0.0, 10)
    rule = Rule((Thresholds(("all",), {"all": 0.5}),))
    given = (list, plan) if certify is certified_rule_batches else ([], rule, plan)
    with pytest.raises(InvalidDataError) as caught:
        certify(*given)
    assert str(caught.value) == f"{certify.__name__} needs rows; got 0."
    with pytest.raises(
        InvalidParameterError, match=rf"`rho` of {certify.__name__} must lie in \(0, 1\)"
    ):
        certify(*given, rho=2)


def test_rows_that_change_are_refused_in_these_words():
    rows = ScoredRows(np.linspace(0, 1, 200), np.arange(200) < 60, 0.0)
    looks = iter([[rows], [rows, rows]])
    plan = plan_rule(Promise.overall(0.1), 0.0, 200)
    with pytest.raises(InvalidDataError) as caught:
        certified_rule_batches(lambda: next(looks), plan)
    assert str(caught.value) == (
        "The rows changed while they were certified: 200 at first, 400 on the second look. "
        "Certify a file that nobody writes to."
    )


def test_a_fixed_rule_is_certified_in_batches_as_in_memory():
    proba, y, by = draw(13, n=900)
    rows = ScoredRows(**vars(score_rows(proba, y, owner="test")) | {"by": {"group": by}})
    rule = Rule((Thresholds(("group",), {"A": 0.6, "B": 0.9}),), classes=(0, 1))
    promise = Promise.by_group(0.2)
    batches = [rows.take(slice(a, a + 200)) for a in range(0, 900, 200)]
    found = certify_rule_batches(
        batches, rule, plan_rule(promise, 0.0, 900, classes=[0, 1]), RHO, unit="group"
    )
    accepted = ((by == "A") & (rows.score >= 0.6)) | ((by == "B") & (rows.score >= 0.9))
    assert (found.n, found.accepted, found.errors) == (
        900,
        accepted.sum(),
        (accepted & rows.wrong).sum(),
    )
    for part in found.parts:
        own = by == part.name.removeprefix("group=")
        assert (part.n, part.accepted) == (own.sum(), (own & accepted).sum())
        assert part.errors == (own & accepted & rows.wrong).sum()
        assert part.rho == RHO
    assert found.commonest == max(np.bincount(y))
    assert found.unit == "group"
    np.testing.assert_array_equal(accept_rows(rule, rows), accepted)
    np.testing.assert_array_equal(accepted_by(found, rows), accepted)
    one = certified_threshold(proba, y, 0.3, RHO)
    np.testing.assert_array_equal(accepted_by(one, rows), rows.score >= one.threshold)


@pytest.mark.parametrize(
    ("excess", "nearest", "expected"),
    [
        (-math.inf, 0.5, 0.25),
        (math.inf, math.inf, math.inf),
        (0.5, math.inf, math.inf),
        (0.5, 0.7, 0.6),
        (0.5, math.nextafter(0.5, 1), math.nextafter(0.5, 1)),
        (1.6e308, 1.7e308, 1.65e308),
    ],
)
def test_thresholds_lie_midway_above_the_last_mistake_too_many(excess, nearest, expected):
    assert _midway(excess, nearest, 0.25) == pytest.approx(expected)
    assert _midway(excess, nearest, 0.25) > excess or excess == math.inf


def test_what_cannot_be_certified_defers_every_row_though_others_could():
    """Of two promises on one path the one without enough rows decides."""
    proba, y, by = draw(14, n=600)
    promise = Promise.all_of(
        Promise.overall(0.9), Promise.by_group({"A": 0.9, "Z": 0.1}, common=True)
    )
    found = certified_rule(proba, y, promise, RHO, by=by)
    assert (found.accepted, found.rule.threshold) == (0, math.inf)
    among = Promise.all_of(
        Promise.among_accepted(0.9), Promise.by_group({"A": 0.9, "Z": 0.1}, common=True)
    )
    found = certified_rule(proba, y, among, RHO, by=by)
    assert (found.accepted, found.rule.threshold) == (0, math.inf)
