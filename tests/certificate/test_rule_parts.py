"""The parts of a rule's certificate: one a population, and why others are deferred."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from rule_examples import EASY, PROBA, RNG, TRUTH

from reliablenet import Promise, RuleCertificate, certified_rule
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_certify import judge_fixed_rule
from reliablenet.certificate.scored import ScoredRows, score_rows


def test_deferred_predictions_are_named_as_such():
    y = np.where(PROBA.argmax(1) == 0, RNG.integers(0, 2, 4000), 1)
    found = certified_rule(PROBA, y, Promise.by_predicted(0.001), 0.05)
    assert found.deferred == {"predictions of 0": "too many mistakes"}


def test_a_class_whose_mistakes_are_all_deferred_has_rows_acted_on_all_the_same():
    """They are predicted right; what is predicted otherwise is deferred."""
    zero = PROBA.argmax(1) == 0
    proba = np.where(zero[:, None], [0.9, 0.1], PROBA)  # of one score, and every other wrong
    y = np.where(zero, np.arange(4000) % 2, 1)
    found = certified_rule(proba, y, Promise.by_class({0: 0.05, 1: 0.01}), 0.05)
    assert found.certified
    assert found.deferred == {"predictions other than 1": "too many mistakes"}
    accepted = found.rule.accept(proba)
    assert not accepted[zero].any()
    assert found.accepted == accepted.sum() > 0
    assert found.under({0: 0.5, 1: 0.5}) == pytest.approx(0.025)
    assert RuleCertificate.from_json(found.to_json()) == found


def test_a_group_with_a_budget_and_no_row_is_named():
    by = np.full(200, "A")
    found = certified_rule(EASY, TRUTH, Promise.by_group({"A": 0.1, "B": 0.1}), by=by)
    assert found.deferred == {"group=B": "no certification row"}
    common = certified_rule(EASY, TRUTH, Promise.by_group({"A": 0.1, "B": 0.1}, common=True), by=by)
    assert not common.certified  # B's rows would be acted on, and nothing is known of them


def fixed(rule: Rule, promise: Promise, **columns) -> RuleCertificate:
    rows = score_rows(EASY, TRUTH, owner="test")
    rows = ScoredRows(
        **vars(rows) | {"by": {name: np.array(values) for name, values in columns.items()} or None}
    )
    return judge_fixed_rule(rows, rule, promise, 0.05)


def test_a_fixed_rule_is_tested_at_rho_in_every_part():
    rule = Rule((Thresholds(("race",), {"A": 0.5, "B": math.inf}),))
    found = fixed(rule, Promise.by_group(0.1, by="race"), race=["A", "B"] * 100)
    assert [(part.name, part.rho, part.kind, part.threshold) for part in found.parts] == [
        ("race=A", 0.05, "fixed", 0.5),
        ("race=B", 0.05, "fixed", math.inf),
    ]
    assert [(part.n, part.accepted, part.errors) for part in found.parts] == [
        (100, 100, 0),
        (100, 0, 0),
    ]
    assert found.deferred == {"race=B": "the rule defers it"}
    assert found.certified


def test_a_group_that_a_fixed_rule_does_not_know_is_deferred_by_it():
    rule = Rule((Thresholds(("all",), {"all": 0.3}), Thresholds(("race",), {"A": 0.5})))
    promise = Promise.all_of(Promise.overall(0.1), Promise.by_group(0.1, by="race"))
    found = fixed(rule, promise, race=["A", "C"] * 100)
    assert found.deferred == {"race=C": "the rule defers it"}
    assert {part.name: part.threshold for part in found.parts} == {
        "race=A": 0.5, "race=C": math.inf, "all": 0.5,
    }  # fmt: skip


def test_parts_of_other_promises_have_the_lowest_threshold_of_a_fixed_rule():
    rule = Rule((Thresholds(("predicted",), {0: 0.85, 1: 0.6}),), classes=(0, 1))
    found = fixed(rule, Promise.by_predicted(0.1))
    assert {part.name: part.threshold for part in found.parts} == {"0": 0.6, "1": 0.6}
    nothing = fixed(Rule((Thresholds(("all",), {"all": math.inf}),)), Promise.overall(0.1))
    assert nothing.deferred == {"all": "the rule defers it"}
    assert [part.accepted for part in nothing.parts] == [0]
    assert not nothing.certified


def test_parts_stand_in_the_order_of_their_labels():
    by = np.array([10, 9, "b", "a"], object)[np.arange(200) % 4]
    found = certified_rule(EASY, TRUTH, Promise.by_group(0.2), by=by)
    assert [part.name for part in found.parts] == ["group=9", "group=10", "group=a", "group=b"]


def test_parts_say_what_they_are_about():
    several = Promise.all_of(
        Promise.overall(0.1), Promise.by_predicted({1: 0.1}), Promise.cost([[0, 1], [5, 0]], 1.0)
    )
    found = certified_rule(EASY, TRUTH, several, groups=np.arange(200))
    assert {part.name: (part.population, part.unit, part.alpha, part.kind) for part in found.parts} == {
        "all": ("all", "group", 0.1, "monotone"),
        "1": ("predicted", "group", 0.1, "monotone"),
        "cost": ("all", "group", 0.2, "monotone"),
    }  # fmt: skip
    cost = next(part for part in found.parts if part.name == "cost")
    assert (cost.cost, cost.largest, cost.single, cost.guessing) == (0.0, 5.0, False, 100.0)


def test_of_rows_acted_on_the_accepted_are_all():
    y = np.where(np.arange(200) < 100, TRUTH, 1 - TRUTH)  # the second hundred is wrong
    score = np.linspace(1, 0, 200)
    found = certified_rule(None, y, Promise.among_accepted(0.2), score=score, predicted=TRUTH)
    (part,) = found.parts
    assert part.kind == "sequence"
    assert part.n == part.accepted == found.accepted > 0
    assert part.rho == pytest.approx(0.005)
    none = certified_rule(
        None, 1 - TRUTH[:20], Promise.among_accepted(0.2), score=score[:20], predicted=TRUTH[:20]
    )
    assert [(part.n, part.accepted) for part in none.parts] == [(20, 0)]


def test_too_few_rows_are_told_from_too_many_mistakes():
    by = np.r_[np.full(180, "A"), np.full(20, "B")]
    wrong = certified_rule(
        EASY,
        np.where((by == "A") & (np.arange(200) % 3 == 0), 1 - TRUTH, TRUTH),
        Promise.by_group(0.1),
        by=by,
    )
    assert wrong.deferred == {"group=A": "too many mistakes", "group=B": "too few rows: 20"}
    assert [part.rho for part in wrong.parts] == [0.05, 0.025]


def test_where_another_promise_defers_rows_the_lowest_score_is_no_threshold():
    """A part that may accept every row, while others defer some, cannot claim to accept all."""
    score = np.r_[np.linspace(-5, 5, 200), np.linspace(-5, 5, 200)]
    correct = np.r_[np.ones(200, bool), np.arange(200) >= 60]
    by = np.repeat(["A", "B"], 200)
    promise = Promise.all_of(Promise.overall(0.5), Promise.by_group(0.1))
    found = certified_rule(None, None, promise, by=by, score=score, correct=correct)
    part = next(part for part in found.parts if part.name == "all")
    assert part.threshold == -sys.float_info.max
    assert part.accepted < part.n
    assert RuleCertificate.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("promise", "sizes", "mistakes", "parts", "deferred"),
    [
        # A comes first, and has no budget or no row: B has its part all the same
        (Promise.by_group({"B": 0.1}), {"A": 100, "B": 100}, 0, ["group=B"], {"group=A": "it has no budget"}),
        (Promise.by_group({"A": 0.1, "B": 0.1}), {"B": 200}, 0, ["group=B"], {"group=A": "no certification row"}),
        # 20 rows are enough for a budget of a half, 60 too few for 5 % at half of rho
        (Promise.by_group(0.5), {"A": 180, "B": 20}, 20, ["group=A", "group=B"], {"group=B": "too many mistakes"}),
        (Promise.by_group(0.05), {"A": 180, "B": 60}, 0, ["group=A", "group=B"], {"group=B": "too few rows: 60"}),
    ],
)  # fmt: skip
def test_whoever_is_deferred_is_named_with_the_reason(promise, sizes, mistakes, parts, deferred):
    by = np.repeat(list(sizes), list(sizes.values()))
    n = len(by)
    given = {"score": np.ones(n), "correct": np.arange(n) < n - mistakes}
    found = certified_rule(None, None, promise, by=by, **given)
    assert [part.name for part in found.parts] == parts
    assert found.deferred == deferred


def test_each_part_has_the_level_at_which_it_was_tested():
    promise = Promise.all_of(Promise.among_accepted(0.2), Promise.overall(0.2))
    found = certified_rule(None, None, promise, score=np.ones(200), correct=np.ones(200, bool))
    levels = {part.name: part.rho for part in found.parts}
    assert levels == {"accepted": pytest.approx(0.0025), "all": pytest.approx(0.025)}
    assert {part.threshold for part in found.parts} == {-math.inf}  # every row is accepted
