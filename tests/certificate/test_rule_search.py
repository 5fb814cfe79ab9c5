"""Rules against a brute-force oracle: every threshold tried, with scipy's binomial tail for the test."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from parts import count_parts
from rule_examples import draw
from scipy.stats import binom

from reliablenet import Promise, certified_rule, certified_threshold
from reliablenet.certificate import Provenance
from reliablenet.certificate.bounds import clopper_pearson_upper
from reliablenet.certificate.cost import hoeffding_bentkus_p
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.path import learn_path
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_plan import RulePlan, plan_rule
from reliablenet.certificate.rule_search import (
    Search,
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


def check_counts(found, accepted, wrong):
    """The counts of a certificate are those of the rows that its rule accepts."""
    counts = (found.n, found.accepted, found.errors)
    assert counts == (len(wrong), accepted.sum(), (accepted & wrong).sum())


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
    check_counts(found, expected, wrong)
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
    check_counts(found, expected, wrong)


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
    check_counts(found, expected, predicted != y)


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
    check_counts(found, expected, predicted != y)


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
@given(SEEDS, st.sampled_from([None, 0.02, 0.1]), st.sampled_from([1, 2, 6]))
def test_ten_coverages_share_rho_where_no_order_was_learned(seed, overall, decimals):
    """Whatever else is promised on the path takes half of it."""
    proba, y, _ = draw(seed, decimals=decimals)
    score, wrong = proba.max(1), proba.argmax(1) != y
    among = Promise.among_accepted(0.2)
    promise = among if overall is None else Promise.all_of(among, Promise.overall(overall))
    found = certified_rule(proba, y, promise, RHO)
    share = RHO / 10 if overall is None else RHO / 20
    expected = np.zeros(len(y), bool)
    for tenth in range(10, 0, -1):
        cut = np.sort(score)[::-1][math.ceil(tenth / 10 * len(y)) :][:1]
        accepted = score > (cut[0] if len(cut) else -np.inf)
        n, errors = accepted.sum(), (accepted & wrong).sum()
        within = overall is None or binom.cdf(errors, len(y), overall) <= RHO / 2
        if n and binom.cdf(errors, n, 0.2) <= share and within:
            expected = accepted
            break
    np.testing.assert_array_equal(found.rule.accept(proba), expected)
    check_counts(found, expected, wrong)
    levels = {part.name: part.rho for part in found.parts}
    assert levels == (
        {"accepted": share} if overall is None else {"accepted": share, "all": RHO / 2}
    )


def test_a_mistake_too_many_in_the_last_row_of_a_coverage_fails_it():
    """Of 100 rows with a budget of 4 % none may be wrong; the worst one is, so 9 in 10 are acted on."""
    score = np.linspace(0.0, 1.0, 100)
    promise = Promise.all_of(Promise.among_accepted(0.9), Promise.overall(0.04))
    found = certified_rule(None, None, promise, RHO, score=score, correct=score > 0.0)
    assert (found.accepted, found.errors) == (90, 0)


@pytest.mark.parametrize(
    ("score", "wrong", "accepted"),
    [
        # at 90 % the cut lies among 15 ties, all wrong: the rule is "above them"
        (np.r_[np.linspace(1.0, 0.6, 85), np.full(15, 0.5)], np.arange(100) >= 85, 85),
        # 40 right rows show 7 % at a level of 0.05, and 11 % at a tenth of RHO
        (np.linspace(1.0, 0.5, 40), np.zeros(40, bool), 0),
        # 44 right rows show 10 %; of these the last is wrong
        (np.linspace(1.0, 0.5, 44), np.arange(44) == 43, 0),
        (np.linspace(1.0, 0.5, 44), np.zeros(44, bool), 44),
    ],
)
def test_a_coverage_passes_by_all_its_rows_at_its_share_of_rho(score, wrong, accepted):
    found = certified_rule(
        None, None, Promise.among_accepted(0.1), RHO, score=score, correct=~wrong
    )
    check_counts(found, score >= (sorted(score)[-accepted] if accepted else math.inf), wrong)


def test_without_a_learned_path_two_looks_are_enough():
    rows, reads = ScoredRows(np.linspace(0, 1, 100), np.arange(100) < 20, 0.0), []

    def read():
        reads.append(1)
        return [rows]

    certified_rule_batches(read, plan_rule(Promise.overall(ALPHA), 0.0, 100), RHO)
    assert len(reads) == 2


def test_where_its_mistakes_cannot_be_afforded_a_class_leaves_nothing_free():
    proba, y, _ = draw(0, n=60, classes=3)
    found = certified_rule(proba, y, Promise.by_class({1: 0.01}), RHO)
    assert (found.accepted, found.errors, found.rule.threshold) == (0, 0, math.inf)


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("others", [(), (Promise.overall(0.9),)])
def test_where_no_row_lies_above_its_mistakes_a_class_leaves_nothing_free(batches, others):
    score = np.repeat(0.9, 200)
    said = np.repeat([0, 1], 100)
    rows = ScoredRows(score, said == 0, lowest=0.0, truth=np.ones(200, int), predicted=said)
    promise = Promise.by_predicted({"cat": 0.1})
    if others:
        promise = Promise.all_of(promise, *others)
    plan = plan_rule(promise, 0.0, 200, classes=["cat", "dog"])
    parts = [rows.take(places) for places in np.array_split(np.arange(200), batches)]
    found = certified_rule_batches(lambda: parts, plan, RHO)
    check_counts(found, accept_rows(found.rule, rows), rows.wrong)
    assert (found.certified, found.accepted) == (False, 0)
    assert all(part.accepted == part.errors == 0 for part in found.parts)
    assert "too many mistakes" in found.reason


@pytest.mark.parametrize("learned", [False, True])
def test_a_bound_that_is_the_budget_keeps_it(learned):
    rows = ScoredRows(np.linspace(0.1, 1.0, 50), np.zeros(50, bool), -math.inf)
    promise = Promise.among_accepted(clopper_pearson_upper(0, 50, RHO if learned else RHO / 10))
    plan = plan_rule(promise, -math.inf, 50)
    plan = replace(plan, places=np.array([-math.inf])) if learned else plan
    found = certified_rule_batches(lambda: [rows], plan, RHO)
    assert (found.accepted, found.rule.threshold, found.certified) == (50, -math.inf, True)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([None, 0.02, 0.1]))
def test_an_order_learned_elsewhere_is_tested_up_to_the_first_failure(seed, overall):
    proba, y, _ = draw(seed, n=400)
    score, wrong = proba.max(1), proba.argmax(1) != y
    half = slice(0, 200)
    selection = ScoredRows(score[half], wrong[half], 0.0)
    rows = ScoredRows(score[200:], wrong[200:], 0.0)
    among = Promise.among_accepted(0.2)
    promise = among if overall is None else Promise.all_of(among, Promise.overall(overall))
    plan = plan_rule(promise, 0.0, rows.n, selection)
    batches = [rows.take(slice(0, 120)), rows.take(slice(120, 200))]
    found = certified_rule_batches(lambda: batches, plan, RHO)
    last = math.inf
    for place in plan.places:
        n, errors = (rows.score >= place).sum(), ((rows.score >= place) & rows.wrong).sum()
        if n == 0 or binom.cdf(errors, n, 0.2) > RHO:
            break
        if overall is not None and binom.cdf(errors, rows.n, overall) > RHO:
            break
        last = place
    assert found.rule.threshold == max(last, 0.0)
    check_counts(found, rows.score >= last, rows.wrong)


@pytest.mark.parametrize(
    ("places", "overall", "threshold"),
    [
        ([0.95, 0.5], None, math.inf),  # no row reaches the first place: nothing is known of it
        ([0.9, 0.5], None, 0.5),  # one row is enough, for one that is right shows 90 %
        ([0.9, 0.7, 0.5], 0.05, 0.7),  # at 0.5 stand mistakes, at 0.7 none
        ([0.9, 0.6, 0.5], 0.05, 0.9),  # a place at which a mistake too many stands accepts it
    ],
)
def test_places_are_passed_in_turn(places, overall, threshold):
    """Of 100 rows one stands at 0.9, others at 0.8, the four mistakes of which one is affordable at 0.6."""
    score = np.r_[0.9, np.full(40, 0.8), np.full(4, 0.6), np.full(55, 0.5)]
    rows = ScoredRows(score, score == 0.6, 0.0)
    among = Promise.among_accepted(0.95)
    promise = among if overall is None else Promise.all_of(among, Promise.overall(overall))
    plan = replace(plan_rule(promise, 0.0, 100), places=np.array(places))
    found = certified_rule_batches(lambda: [rows], plan, RHO)
    assert found.rule.threshold == threshold
    check_counts(found, score >= threshold, rows.wrong)


def test_one_row_that_is_wrong_is_no_row_of_two():
    """Bin(2, 0.96) has at most one success with probability 0.08, Bin(1, 0.96) always."""
    rows = ScoredRows(np.r_[0.9, np.full(99, 0.5)], np.arange(100) < 1, 0.0)
    plan = replace(plan_rule(Promise.among_accepted(0.96), 0.0, 100), places=np.array([0.9, 0.5]))
    assert certified_rule_batches(lambda: [rows], plan, RHO).rule.threshold == math.inf


def named_rows(seed: int, n: int = 600) -> tuple[ScoredRows, np.ndarray]:
    """Rows of three classes, and the name that each is predicted to have."""
    proba, y, by = draw(seed, n=n, classes=3)
    rows = ScoredRows(**vars(score_rows(proba, y, owner="test")) | {"by": {"group": by}})
    return rows, np.array(["cat", "dog", "cow"])[rows.predicted]


def learned_plan(rows: ScoredRows, predicted: np.ndarray) -> RulePlan:
    """A scale for each predicted class, whether it pays or not."""
    path = learn_path(rows.score, predicted, rows.wrong.astype(float), 0.0)
    return replace(
        plan_rule(Promise.overall(ALPHA), 0.0, 300, None, ["cat", "dog", "cow"]), path=path
    )


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_on_a_learned_path_rows_are_accepted_by_their_places(seed):
    rows, predicted = named_rows(seed)
    rest = rows.take(slice(300, 600))
    plan = learned_plan(rows.take(slice(0, 300)), predicted[:300])
    place = plan.path.places(rest.score, predicted[300:])
    reads = []

    def read():
        reads.append(1)
        return [rest.take(slice(0, 100)), rest.take(slice(100, 300))]

    found = certified_rule_batches(read, plan, RHO)
    expected = best_accept(place, rest.wrong, 300, RHO)
    np.testing.assert_array_equal(accept_rows(found.rule, rest), expected)
    check_counts(found, expected, rest.wrong)
    learned = bool(plan.path.scales)
    assert len(reads) == (3 if learned else 2)  # accepted rows are counted when the rule is known
    if learned:
        assert set(found.rule.thresholds) == set(predicted[:300])


def test_without_a_mistake_every_row_is_accepted_on_a_learned_path():
    rows, predicted = named_rows(1)
    plan = learned_plan(rows.take(slice(0, 300)), predicted[:300])
    right = replace(rows.take(slice(300, 600)), wrong=np.zeros(300, bool))
    found = certified_rule_batches(lambda: [right], plan, RHO)
    assert found.rule.thresholds == {"cat": 0.0, "dog": 0.0, "cow": 0.0}
    assert (found.accepted, found.errors) == (300, 0)


@settings(max_examples=20, deadline=None)
@given(
    SEEDS,
    st.sets(
        st.sampled_from(["overall", "by_group", "by_predicted", "by_class"]), min_size=2, max_size=3
    ),
)
def test_counts_of_several_promises_are_those_of_the_rule(seed, kinds):
    """Whose row it is may be missing in a batch: such a row belongs to no group, and is deferred."""
    rows, _ = named_rows(seed)
    by = rows.by["group"].astype(object)
    by[::50] = None
    rows = replace(rows, by={"group": by})
    makers = {
        "overall": Promise.overall(0.3),
        "by_group": Promise.by_group(0.4),
        "by_predicted": Promise.by_predicted({"cat": 0.2, "dog": 0.1}),
        "by_class": Promise.by_class({"cow": 0.5}),
    }
    promise = Promise.all_of(*(makers[kind] for kind in sorted(kinds)))
    plan = plan_rule(promise, 0.0, 600, classes=["cat", "dog", "cow"])
    found = certified_rule_batches(lambda: [rows], plan, RHO)
    accepted = accept_rows(found.rule, rows)
    check_counts(found, accepted, rows.wrong)
    assert not ("by_group" in kinds and accepted[::50].any())


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
    for mistakes, share, threshold in ((5, 1.0, -math.inf), (60, 0.0, math.inf)):
        correct = np.arange(300) >= mistakes
        for promise in (Promise.overall(0.1), Promise.among_accepted(0.1)):
            found = certified_rule(
                None, None, promise, RHO, score=np.full(300, value), correct=correct
            )
            assert (found.coverage, found.rule.threshold) == (share, threshold)
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
    plan = plan_rule(promise, 0.0, 900, classes=[0, 1])
    known = {"unit": "group", "provenance": Provenance(table="ab")}
    found = certify_rule_batches(batches, rule, plan, RHO, **known)
    assert found.provenance == Provenance(table="ab", model=judge(rows, 0.1, RHO).provenance.model)
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
    at = replace(one, threshold=rows.score.max(), accepted=1, errors=0)
    np.testing.assert_array_equal(accepted_by(at, rows), rows.score == rows.score.max())


@pytest.mark.parametrize(
    "promise", [Promise.by_predicted(0.2), Promise.cost([[0, 1, 2], [3, 0, 1], [1, 1, 0]], 1.0)]
)
def test_a_fixed_rule_for_predictions_has_their_names(promise):
    rows, predicted = named_rows(7)
    rows = replace(
        rows, unknown=np.arange(600) < 3, truth=np.where(np.arange(600) < 3, -1, rows.truth)
    )
    limits = {"cat": 0.6, "dog": 0.8, "cow": 0.9}
    rule = Rule((Thresholds(("predicted",), limits),), classes=("cat", "dog", "cow"))
    plan = plan_rule(promise, 0.0, 600, classes=["cat", "dog", "cow"])
    found = certify_rule_batches([rows.take(slice(0, 250)), rows.take(slice(250, 600))], rule, plan)
    accepted = rows.score >= np.array([limits[name] for name in predicted])
    np.testing.assert_array_equal(accept_rows(rule, rows), accepted)
    check_counts(found, accepted, rows.wrong)
    assert {part.n for part in found.parts} == {600}
    assert (found.unit, found.unknown, found.rho) == ("row", 3, 0.05)


def test_rows_of_classes_that_are_all_unknown_have_no_commonest_label():
    unknown = np.ones(40, bool)
    rows = ScoredRows(np.linspace(0.5, 1, 40), unknown, 0.0, truth=np.full(40, -1), predicted=np.zeros(40, int), unknown=unknown)  # fmt: skip
    plan = plan_rule(Promise.overall(ALPHA), 0.0, 40, classes=[0, 1])
    found = certified_rule_batches(lambda: [rows], plan, RHO)
    assert (found.commonest, found.unknown, found.unit) == (0, 40, "row")
    assert found.provenance.model == judge(rows, ALPHA, RHO).provenance.model


@pytest.mark.parametrize(
    ("excess", "nearest", "expected"),
    [
        (-math.inf, 0.5, 0.25),
        (math.inf, math.inf, math.inf),
        (0.5, math.inf, math.inf),
        (math.inf, 0.5, math.inf),
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


@pytest.mark.parametrize(
    "promise",
    [
        Promise.overall(0.1),
        Promise.among_accepted(0.2),
        Promise.by_group(0.2),
        Promise.by_group(0.2, common=True),
        Promise.by_predicted({0: 0.05, 1: 0.1}),
        Promise.by_class(0.2),
        Promise.cost([[0, 0.1], [0.7, 0.3]], 0.3),
        Promise.all_of(
            Promise.among_accepted(0.2), Promise.overall(0.1), Promise.by_group(0.2, common=True)
        ),
        Promise.all_of(Promise.overall(0.2), Promise.by_group(0.2)),
    ],
    ids=lambda promise: promise.kind,
)
@pytest.mark.parametrize("learned", [False, True])
def test_parts_that_are_counted_by_themselves_are_memory_to_the_bit(promise, learned):
    proba, y, by = draw(11, n=1200)
    rows = replace(score_rows(proba, y, owner="test"), by={"group": by})
    chosen, rest = rows.take(slice(0, 400)) if learned else None, rows.take(slice(400, 1200))
    plan = plan_rule(promise, 0.0, rest.n, chosen, classes=[0, 1])
    whole = certified_rule_batches(lambda: [rest], plan, RHO)
    parts = [rest.take(slice(a, b)) for a, b in pairwise([0, 0, 1, 100, 333, 333, 800])]
    found = count_parts(Search(plan, RHO), parts).certificate()
    assert found.to_json() == whole.to_json()
    assert found == whole
    fixed = certify_rule_batches([rest], whole.rule, plan, RHO)
    counted = count_parts(Search(plan, RHO, rule=whole.rule), parts)
    assert counted.certificate().to_json() == fixed.to_json()


def test_a_blank_search_has_nothing_of_the_one_it_is_taken_from():
    proba, y, by = draw(3)
    rows = replace(score_rows(proba, y, owner="test"), by={"group": by})
    plan = plan_rule(Promise.all_of(Promise.overall(0.1), Promise.by_group(0.2)), 0.0, rows.n)
    search = Search(plan, RHO, "group")
    search.add(rows)
    blank = search.blank()
    assert (blank.count.n, blank.count.unit, search.count.n) == (0, "group", rows.n)
    assert not any(counter.sizes.any() for counter in (*blank.own, *blank.joint))
    blank.add(rows)
    assert search.count.n == rows.n
    assert search.joint[0].sizes.tolist() == [rows.n]


@pytest.mark.parametrize("learned", [False, True])
def test_what_is_seen_at_each_place_adds_up_over_parts(learned):
    proba, y, _ = draw(5, n=900)
    rows = score_rows(proba, y, owner="test")
    chosen, rest = rows.take(slice(0, 300)) if learned else None, rows.take(slice(300, 900))
    search = Search(plan_rule(Promise.among_accepted(0.4), 0.0, rest.n, chosen), RHO)
    whole, first, second = (search.blank() for _ in range(3))
    whole.add(rest)
    first.add(rest.take(slice(0, 250)))
    second.add(rest.take(slice(250, 600)))
    first.merge(second)
    np.testing.assert_array_equal(first._above, whole._above)
    np.testing.assert_array_equal(first._wrong_above, whole._wrong_above)
    assert first._above.sum() == (600 if learned else 0)
    joined = [np.concatenate(one) for one in zip(*first._scores, strict=True)]
    for found, expected in zip(joined, whole._scores[0] if whole._scores else [], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_rows_say_where_scores_begin():
    """Scores that are no probabilities may lie below 0: everything is accepted from there on."""
    rows = ScoredRows(np.linspace(-5.0, -1.0, 100), np.zeros(100, bool), -math.inf)
    found = certified_rule_batches(lambda: [rows], plan_rule(Promise.overall(0.1), 0.0, 100), RHO)
    assert found.accepted == 100
    assert found.rule.threshold == -math.inf


def test_a_budget_for_a_label_that_no_row_has_is_refused():
    zeros = np.zeros(100, int)
    rows = ScoredRows(np.full(100, 0.9), zeros > 0, 0.0, truth=zeros, predicted=zeros)
    plan = plan_rule(Promise.by_class({0: 0.1, 7: 0.1}), 0.0, 100)
    with pytest.raises(
        InvalidDataError, match=r"names \[7\], but no row has that label.*have \[0\]"
    ):
        certified_rule_batches(lambda: [rows], plan, RHO)


def test_a_budget_for_a_label_that_is_never_predicted_is_none_of_another_table():
    truth = np.repeat([0, 5], [90, 10])
    rows = ScoredRows(np.full(100, 0.9), truth > 0, 0.0, truth=truth, predicted=np.zeros(100, int))
    plan = plan_rule(Promise.by_class({0: 0.1, 5: 0.1}), 0.0, 100)
    assert not certified_rule_batches(lambda: [rows], plan, RHO).certified
