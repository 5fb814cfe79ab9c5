"""What promises and certificates of rules say, in words."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rule_examples import (
    BOTH,
    BY,
    COSTS,
    EASY,
    PROBA,
    REFUSED,
    TRUTH,
    Y,
    fixed,
    fixed_part,
    make,
    rule_of,
)

from reliablenet import Certificate, Promise, RuleCertificate, certified_rule
from reliablenet.certificate import wording
from reliablenet.certificate.cost import CostCertificate
from reliablenet.certificate.promise_wording import (
    notes,
    others_text,
    promise_text,
    rule_notes,
    rule_reason,
    rule_verdict,
    unseen,
    verdict,
)
from reliablenet.certificate.remedies import remedy
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_certify import judge_fixed_rule, judge_rule
from reliablenet.certificate.rule_checks import Others
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.shift_wording import survival
from reliablenet.certificate.wording import DRAWN


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("groups", "in every group of race, at most 5 % of the rows are acted on wrongly (95 % confidence); deferred: race=C."),
        ("predicted", "at most 2 % of all rows are acted on wrongly as 0; at most 3 % of all rows are acted on wrongly as 1"),
        ("among", "of the rows acted on, at most 10 % are wrong"),
        ("cost", "acting costs at most 0.1 a row on average"),
    ],
)  # fmt: skip
def test_verdicts_are_sentences(name, verdict):
    assert verdict in str(make(name))


def test_reasons_name_the_rows():
    reasons = {part.name: part.reason for part in make("groups").parts}
    assert "rows of race=A: at most" in reasons["race=A"]
    assert "rows that are truly 1: at most" in make("classes").parts[1].reason
    assert " confident mistakes as 1 in 4,000 rows" in make("predicted").parts[1].reason
    assert "race=C (" in make("groups").reason


@pytest.mark.parametrize("name", ["overall", "among", "groups", "common"])
def test_of_numbers_a_certificate_speaks_of_the_tolerance(name):
    c = make(name)
    numbers = replace(c, parts=tuple(replace(part, tolerance="5 kg") for part in c.parts))
    for text in (str(numbers), numbers.reason, json.loads(numbers.to_json())["promise_text"]):
        assert "5 kg" in text
        assert "wrong" not in text


def test_classes_without_a_budget_are_told_of():
    c = certified_rule(PROBA, Y, Promise.by_class({0: 0.05}))
    assert c.to_dict()["notes"] == ["no budget limits mistakes on rows that are truly 1"]


@pytest.mark.parametrize(
    ("promise", "text"),
    [
        (Promise.overall(0.05), "at most 5 % of all rows are acted on wrongly"),
        (Promise.among_accepted(0.015), "of the rows acted on, at most 1.5 % are wrong"),
        (Promise.by_group(0.05), "in every group, at most 5 % of the rows are acted on wrongly"),
        (Promise.by_group(0.05, by=["race", "sex"]), "in every group of race and sex, at most 5 % of the rows are acted on wrongly"),
        (Promise.by_group({"A, f": 0.05, 3: 0.1}, by=["race", "sex"]), "of the rows of race, sex=A, f, at most 5 % are acted on wrongly; of the rows of race, sex=3, at most 10 % are acted on wrongly"),
        (Promise.by_class(0.05), "of the rows of every true class, at most 5 % are acted on wrongly"),
        (Promise.by_class({"ill": 0.01}), "of the rows that are truly ill, at most 1 % are acted on wrongly"),
        (Promise.by_predicted(0.05), "for every predicted class, at most 5 % of all rows are acted on wrongly as that class"),
        (Promise.by_predicted({"ill": 0.01}), "at most 1 % of all rows are acted on wrongly as ill"),
        (Promise.cost([[0, 1], [5, 0]], 2.5), "acting costs at most 2.5 a row on average"),
        (Promise.all_of(Promise.overall(0.05), Promise.cost([[0, 1], [5, 0]], 1)), "at most 5 % of all rows are acted on wrongly; acting costs at most 1 a row on average"),
        (Promise.by_class(dict.fromkeys("abcdefg", 0.1)), "of the rows that are truly e, at most 10 % are acted on wrongly; and 2 more"),
    ],
)  # fmt: skip
def test_a_promise_says_this(promise, text):
    many = isinstance(promise.alpha, dict) and len(promise.alpha) > 5
    found = promise_text(promise)
    assert found.endswith(text) if many else found == text


@pytest.mark.parametrize(
    ("promise", "text"),
    [
        (Promise.overall(0.05), "at most 5 % of all rows are acted on with an error above 5 kg"),
        (Promise.among_accepted(0.05), "of the rows acted on, at most 5 % are off by more than 5 kg"),
        (Promise.by_group({"A": 0.05}), "of the rows of group=A, at most 5 % are acted on with an error above 5 kg"),
        (Promise.all_of(Promise.overall(0.05), Promise.by_group(0.1)), "at most 5 % of all rows are acted on with an error above 5 kg; in every group, at most 10 % of the rows are acted on with an error above 5 kg"),
    ],
)  # fmt: skip
def test_of_numbers_it_says_how_far_one_may_be_off(promise, text):
    assert promise_text(promise, "5 kg") == text


def test_other_groups_are_told_with_their_rows():
    promise = Promise.by_group({"A": 0.05}, common=True)
    none = Others(promise, n=0, accepted=0, errors=0, of=4000)
    assert others_text(none) == (
        "other groups are acted on without a promise of their own (no such row was seen)"
    )
    many = Others(promise, n=4000, accepted=2500, errors=1300, of=40000)
    assert others_text(many, "5 kg") == (
        "other groups are acted on without a promise of their own "
        "(4,000 of 40,000 rows: acted on 2,500, 1,300 off by more than 5 kg)"
    )


def test_verdicts_of_what_was_refused_say_whether_the_rule_acts():
    assert rule_verdict(REFUSED) == "Not certified: the rule defers every row."
    assert rule_verdict(REFUSED, "the model", acts=True) == (
        "Not certified: the model acts on 0 % of rows without a certificate."
    )
    acting = fixed(90, "AB")
    assert rule_verdict(acting, "the model") == (
        "Not certified: the model is not shown to keep its promise "
        "(in every group of race, at most 10 % of the rows are acted on wrongly)."
    )
    assert rule_verdict(acting, acts=True) == (
        "Not certified: the rule acts on 100 % of rows without a certificate."
    )
    assert rule_verdict(acting, acts=False) == "Not certified: the rule defers every row."
    assert rule_verdict(fixed(0, "AB"), "the model").startswith(
        "Certified: the model acts on 100 % of rows, and in"
    )


def test_reasons_name_the_closest_part_or_what_was_refused():
    granted = make("groups")
    closest = max(granted.parts[:2], key=lambda part: part.upper_bound / part.alpha)
    assert rule_reason(granted) == (
        f"{closest.reason} (the closest of 2); deferred: race=C (too few rows: {(BY == 'C').sum()})"
    )
    assert "closest" not in rule_reason(make("overall"))
    a, b = fixed(90, "AB").parts
    assert rule_reason(fixed(90, "AB")) == f"{a.reason}; {b.reason}"
    unseen = fixed(0)
    assert rule_reason(unseen) == "no certification row of race=B"
    assert rule_reason(REFUSED).startswith("; ".join(part.reason for part in REFUSED.parts))
    deferring = replace(REFUSED, parts=(), deferred={"group=A": "no certification row"})
    assert (
        rule_reason(deferring)
        == "nothing could be certified; deferred: group=A (no certification row)"
    )


def test_the_closest_part_is_the_one_with_the_most_mistakes_for_its_rows():
    """One threshold for all: the hard group stops it, and the easy one has mistakes to spare."""
    by = np.tile(["easy", "hard"], 300)
    score = np.repeat(np.linspace(1, 0, 300), 2)
    wrong = (np.arange(600) % 20 == 1) | (score < 0.5)
    wrong &= (by == "hard") | (np.arange(600) % 100 == 0)
    rows = ScoredRows(score, wrong, 0.0, by={"group": by})
    found = judge_rule(rows, Promise.by_group(0.1, common=True), 0.05)
    easy, hard = found.parts
    assert easy.errors < hard.errors
    assert easy.upper_bound >= hard.upper_bound  # both of the most mistakes that could be
    assert rule_reason(found) == f"{hard.reason} (the closest of 2)"


def test_a_group_without_a_row_holds_back_a_rule_for_all_and_nobody_else_is_blamed():
    by = {"race": np.repeat(["A", "B"], 100)}
    budgets = {"A": 0.1, "Z": 0.1}
    common = certified_rule(EASY, TRUTH, Promise.by_group(budgets, by="race", common=True), by=by)
    assert not common.certified
    assert common.reason == "no certification row of race=Z"
    own = certified_rule(EASY, TRUTH, Promise.by_group(budgets, by="race"), by=by)
    assert own.certified
    assert own.reason.endswith("deferred: race=B (it has no budget), race=Z (no certification row)")


def test_of_what_was_refused_too_few_rows_are_named_first():
    """Three groups: one has too few rows, one too many mistakes; rows can be had."""
    by = np.repeat(["A", "B", "C"], [100, 90, 10])
    wrong = (by == "B") & (np.arange(200) % 2 == 0)
    rows = ScoredRows(np.full(200, 0.9), wrong, 0.0, by={"race": by})
    rule = Rule((Thresholds(("race",), dict.fromkeys("ABC", 0.5)),))
    found = judge_fixed_rule(rows, rule, BOTH, 0.05)
    few = next(part for part in found.parts if part.name == "race=C")
    assert rule_reason(found) == few.reason
    # a group that a fixed rule defers for good needs none
    without = Rule((Thresholds(("race",), {"A": 0.5, "B": 0.5, "C": math.inf}),))
    found = judge_fixed_rule(rows, without, BOTH, 0.05)
    worst = next(part for part in found.parts if part.name == "race=B")
    assert rule_reason(found) == f"{worst.reason}; deferred: race=C (the rule defers it)"


def test_either_kind_of_certificate_has_verdict_remedy_and_notes():
    one = Certificate(9, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    assert verdict(one, "the model", acts=True) == wording.verdict(one, "the model", True)
    assert remedy(one, 0.5) != ""
    assert notes(one) == wording.notes(one)
    assert verdict(REFUSED, "the model", acts=True) == rule_verdict(REFUSED, "the model", True)
    assert remedy(make("groups")) == ""
    assert notes(make("groups")) == wording.notes(make("groups")) + rule_notes(make("groups"))


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        (Promise.overall(0.1), []),
        (BOTH, ["holds for every mixture of the groups of race: it is about each of them by itself"]),
        (Promise.by_group(0.2, common=True), ["holds for every mixture of the groups of group: it is about each of them by itself", "new groups would be acted on without a promise"]),
        (Promise.by_class(0.2), ["holds for every mixture of the true classes: it is about each of them by itself"]),
        (Promise.by_class({0: 0.2}), ["no budget limits mistakes on rows that are truly 1"]),
        (Promise.by_class({0: 0.2, 1: 0.2}), ["holds for every mixture of the true classes: it is about each of them by itself"]),
        (Promise.by_predicted({1: 0.2}), ["no budget limits what is predicted as 0"]),
        (Promise.by_predicted({0: 0.2, 1: 0.2}), []),
        (Promise.all_of(Promise.overall(0.2), Promise.by_predicted({1: 0.2})), []),
    ],
    ids=str,
)  # fmt: skip
def test_notes_say_what_holds_besides_and_what_does_not(promise, said):
    by = {"race": np.repeat(["A", "B"], 100), "group": np.repeat(["A", "B"], 100)}
    found = certified_rule(EASY, TRUTH, promise, by=by)
    assert found.certified
    assert rule_notes(found) == said


def test_of_what_was_refused_nothing_is_said_to_hold():
    assert rule_notes(REFUSED) == []


def test_what_is_worth_nothing_is_said_to_be():
    y = np.resize([0, 0, 0, 0, 1], 1000)
    always = certified_rule(np.tile([0.9, 0.1], (1000, 1)), y, Promise.overall(0.5))
    assert rule_verdict(always).startswith(
        "Certified, but worth nothing: of 1,000 rows acted on 200 were wrong"
    )
    cost = certified_rule(np.tile([0.9, 0.1], (1000, 1)), y, Promise.cost([[0, 1], [5, 0]], 2.5))
    assert rule_verdict(cost) == (
        "Certified, but worth nothing: the 1,000 rows acted on cost 1 each; always answering the "
        "cheapest label would cost 0.8 a row."
    )
    unknown = replace(cost, parts=(replace(cost.parts[0], guessing=None),))
    assert not unknown.empty


@pytest.mark.parametrize(
    ("budgets", "said"),
    [
        ({0: 0.2}, ["no budget limits mistakes on rows that are truly something else"]),
        ({0: 0.2, 1: 0.2}, []),
    ],
)
def test_true_classes_without_a_budget_are_told_of_where_their_names_are_not_known(budgets, said):
    given = {"score": EASY.max(1), "predicted": EASY.argmax(1)}
    found = certified_rule(None, TRUTH, Promise.by_class(budgets), **given)
    assert found.certified
    assert [note for note in rule_notes(found) if "budget" in note] == said


def test_the_reason_is_that_of_the_part_nearest_its_budget():
    near, far = fixed_part(), fixed_part(1, 30, 50, alpha=0.2, name="A")
    for parts in ((near, far), (far, near)):
        assert rule_reason(rule_of(parts, certified=True)) == f"{near.reason} (the closest of 2)"
    assert rule_reason(rule_of((near,), certified=True)) == near.reason


def test_each_part_is_held_against_its_own_level():
    strict = fixed_part(15, 600, 1000, rho=1e-6)  # a bound of 4.5 %
    lax = fixed_part(30, 600, 1000, rho=0.2, name="A")  # of 3.6 %
    assert rule_reason(rule_of((strict, lax), certified=True)).startswith(strict.reason)


@pytest.mark.parametrize(
    ("part", "few"),
    [
        (fixed_part(0, 50, 60, rho=0.03), True),  # 0.95 ** 60 is 0.046
        (fixed_part(0, 50, 60, rho=0.05), False),
        (fixed_part(0, 20, 20, alpha=0.3, rho=0.03), False),
    ],
)
def test_too_few_rows_are_those_that_could_show_nothing(part, few):
    certificate = rule_of((part, fixed_part(errors=40, n=200)))
    assert (rule_reason(certificate) == part.reason) is few


def test_names_with_commas_are_set_apart_by_semicolons():
    reasons = {"a": "few", "b": "none"}
    said = rule_reason(rule_of((fixed_part(),), certified=True, deferred=reasons))
    assert said.endswith("; deferred: a (few), b (none)")
    crossed = {"race, sex=A, f": "few", "race, sex=B, m": "none"}
    said = rule_reason(rule_of((fixed_part(),), certified=True, deferred=crossed))
    assert said.endswith("; deferred: race, sex=A, f (few); race, sex=B, m (none)")


def test_predictions_without_a_budget_are_those_that_are_acted_on():
    table = Thresholds(("predicted",), {"x": 0.9, "y": 0.1, "z": math.inf})
    rule = Rule((table,))
    certificate = rule_of((), Promise.by_predicted({"x": 0.05}), rule=rule)
    assert rule_notes(certificate) == ["no budget limits what is predicted as y"]
    named = rule_of((), Promise.by_predicted({"x": 0.05}), rule=Rule((table,), ("x", "y", "z")))
    assert rule_notes(named) == ["no budget limits what is predicted as y, z"]


def test_a_single_row_that_costs_too_much_is_worth_nothing():
    cost = CostCertificate(
        1, 1, 100, 0.5, 0.05, 0.9, name="cost", cost=2.0, largest=2.0, guessing=30.0
    )
    promise = Promise.cost([[0, 1], [2, 0]], 1.0)
    certificate = rule_of((cost,), promise, certified=True, empty=True, accepted=1, n=100)
    assert rule_verdict(certificate) == (
        "Certified, but worth nothing: the 1 rows acted on cost 2 each; always answering the cheapest "
        "label would cost 0.3 a row."
    )


def test_sentences_speak_of_the_rule_unless_told_otherwise():
    common = rule_verdict(make("common"))
    assert common.startswith("Certified: the rule acts on ")
    assert "(95 % confidence); other groups of race are acted on without a promise" in common
    assert verdict(make("common")) == common
    assert verdict(make("common"), "this model").startswith("Certified: this model acts on ")
    one = fixed_part()
    assert verdict(one) == wording.verdict(one, "the rule")


PERSONS = np.repeat(np.arange(2000), 2)
OF_GROUPS = {
    "overall": Promise.overall(0.05),
    "among": Promise.among_accepted(0.1),
    "by_group": Promise.by_group(0.05, by="race"),
    "some groups": Promise.by_group({"A": 0.05}, by="race", common=True),
    "by_predicted": Promise.by_predicted({0: 0.02, 1: 0.03}),
    "by_class": Promise.by_class(0.05),
    "cost": Promise.cost(COSTS, 0.2),
    "all_of": Promise.all_of(Promise.overall(0.05), Promise.by_group(0.05, by="race")),
}


def sentences(c: Certificate | RuleCertificate) -> list[str]:
    """Return all that a certificate says that may speak of shares."""
    told = c.to_dict()
    found = [str(c), repr(c), c.reason, told["verdict"], wording.acted_on(c), survival(c)]
    found += [wording.emptiness(c), remedy(c), told.get("promise_text", "")]
    return found + [text for part in getattr(c, "parts", ()) for text in sentences(part)]


@pytest.mark.parametrize("name", OF_GROUPS)
@pytest.mark.parametrize("rho", [0.05, 1e-60])
def test_no_sentence_about_groups_speaks_of_a_share_of_rows(name, rho) -> None:
    found = certified_rule(
        PROBA, Y, OF_GROUPS[name], by={"race": BY}, groups=PERSONS, rho=rho, random_state=0
    )
    assert found.certified == (rho == 0.05)
    for text in sentences(found):
        assert "of rows" not in text
        assert "all rows" not in text
        assert "the rows" not in text
        assert "a row on average" not in text
        assert "2,000 rows" not in text
    assert DRAWN in found.to_dict()["promise_text"]
    if found.certified:
        assert DRAWN in str(found)
    assert RuleCertificate.from_json(found.to_json()) == found
    assert DRAWN in json.loads(found.to_json())["promise_text"]


@pytest.mark.parametrize(
    ("promise", "text"),
    [
        (Promise.overall(0.05), f"{DRAWN} is acted on wrongly with a chance of at most 5 %"),
        (Promise.among_accepted(0.1), f"if it is acted on, {DRAWN} is wrong with a chance of at most 10 %"),
        (Promise.by_group(0.05, by="ward"), f"whatever its value of ward, {DRAWN} is acted on wrongly with a chance of at most 5 %"),
        (Promise.by_group(0.05, by=["ward", "sex"]), f"whatever its value of ward and sex, {DRAWN} is acted on wrongly with a chance of at most 5 %"),
        (Promise.by_group({"A, f": 0.05, "B, m": 0.1}, by=["ward", "sex"]), f"if it is of ward, sex=A, f, {DRAWN} is acted on wrongly with a chance of at most 5 %; if it is of ward, sex=B, m, {DRAWN} is acted on wrongly with a chance of at most 10 %"),
        (Promise.by_group({"A": 0.05}, by="ward"), f"if it is of ward=A, {DRAWN} is acted on wrongly with a chance of at most 5 %"),
        (Promise.by_class(0.05), f"whatever its true class, {DRAWN} is acted on wrongly with a chance of at most 5 %"),
        (Promise.by_class({"ill": 0.01}), f"if it is truly ill, {DRAWN} is acted on wrongly with a chance of at most 1 %"),
        (Promise.by_predicted(0.05), f"for every predicted class, {DRAWN} is acted on wrongly as that class with a chance of at most 5 %"),
        (Promise.by_predicted({"ill": 0.01}), f"{DRAWN} is acted on wrongly as ill with a chance of at most 1 %"),
        (Promise.cost(COSTS, 0.2), f"acting on {DRAWN} costs at most 0.2 on average"),
    ],
)  # fmt: skip
def test_a_promise_about_groups_says_this(promise, text) -> None:
    assert promise_text(promise, unit="group") == text
    assert promise_text(promise, unit="row") == promise_text(promise)


def test_a_tolerance_stays_in_what_is_said_of_groups() -> None:
    assert promise_text(Promise.overall(0.05), "5 kg", "group") == (
        f"{DRAWN} is acted on with an error above 5 kg with a chance of at most 5 %"
    )
    assert promise_text(Promise.among_accepted(0.05), "5 kg", "group") == (
        f"if it is acted on, {DRAWN} is off by more than 5 kg with a chance of at most 5 %"
    )


def test_groups_without_a_promise_are_counted_in_groups() -> None:
    promise = Promise.by_group({"A": 0.05}, by="race", common=True)
    others = Others(promise, n=40, accepted=25, errors=3, of=4000)
    assert others_text(others, unit="group") == (
        "other groups of race are acted on without a promise of their own (40 of 4,000 groups, one row of each: "
        "acted on 25, 3 wrong)"
    )
    found = certified_rule(PROBA, Y, promise, by={"race": BY}, groups=np.arange(len(Y)))
    assert others_text(*found.others, unit="group") in rule_verdict(found)
    by_rows = certified_rule(PROBA, Y, promise, by={"race": BY})
    assert others_text(*by_rows.others) in rule_verdict(by_rows)


def test_a_wrong_question_about_mixtures_is_answered_with_the_unit() -> None:
    found = certified_rule(PROBA, Y, Promise.overall(0.05), groups=PERSONS)
    with pytest.raises(ValueError, match=f"this one is: {DRAWN}"):
        found.under({"A": 1.0})


def test_a_group_of_two_columns_with_a_threshold_of_its_own_holds_nobody_back() -> None:
    rule = SimpleNamespace(tables=(Thresholds(("race", "sex"), {"A, f": math.inf}),))
    reasons = dict.fromkeys(["race, sex=A, f", "race, sex=B, m"], "no certification row")
    assert unseen(rule_of((), rule=rule, deferred=reasons)) == ["race, sex=B, m"]
    assert unseen(rule_of((), rule=rule, deferred=reasons, certified=True)) == []
