"""Certificates of rules: their text, forged texts, and what they say of mixtures."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from reliablenet import Certificate, Promise, RuleCertificate, certified_rule
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_certify import judge_fixed_rule
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.sealing import digest
from reliablenet.errors import InvalidDataError, InvalidParameterError

RNG = np.random.default_rng(0)
P = RNG.uniform(0.5, 1.0, 4000)
FLIP = RNG.random(4000) < 0.4
Y = np.where(FLIP, RNG.random(4000) < P, RNG.random(4000) > P).astype(int)
PROBA = np.where(FLIP[:, None], np.column_stack([1 - P, P]), np.column_stack([P, 1 - P]))
BY = RNG.choice(["A", "B", "C"], 4000, p=[0.6, 0.39, 0.01])
COSTS = [[0, 1], [5, 0]]
PROMISES = {
    "overall": Promise.overall(0.05),
    "among": Promise.among_accepted(0.1),
    "groups": Promise.by_group(0.05, by="race"),
    "common": Promise.by_group({"A": 0.05, "B": 0.05}, by="race", common=True),
    "predicted": Promise.by_predicted({0: 0.02, 1: 0.03}),
    "classes": Promise.by_class(0.05),
    "cost": Promise.cost(COSTS, 0.1),
    "several": Promise.all_of(Promise.overall(0.05), Promise.by_group(0.05, by="race")),
}


def make(name: str) -> RuleCertificate:
    return certified_rule(PROBA, Y, PROMISES[name], by={"race": BY})


SEVERAL = {
    "overall": Promise.overall(0.06),
    "among": Promise.among_accepted(0.1),
    "groups": Promise.by_group({"A": 0.08, "B": 0.1, "Z": 0.1}, by="race"),
    "common": Promise.by_group({"A": 0.1, "B": 0.1}, by="race", common=True),
    "sides": Promise.by_group(0.1, by="side"),
    "all predicted": Promise.by_predicted(0.04),
    "predicted": Promise.by_predicted({1: 0.03}),
    "all classes": Promise.by_class(0.1),
    "class": Promise.by_class({1: 0.08}),
    "cost": Promise.cost(COSTS, 0.2),
    "delay": Promise.cost([[0, 50], [50, 0]], 2.0),  # the same share of its largest cost
}


def possible(names: tuple[str, ...]) -> bool:
    kinds = [(SEVERAL[name].kind, SEVERAL[name].by) for name in names]
    once = len(set(kinds)) == len(kinds) or names == ("cost", "delay")
    return once and not ("among" in names and {"groups", "sides"} & set(names))


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(
    "names",
    [
        *filter(possible, itertools.combinations(SEVERAL, 2)),
        ("overall", "common", "all predicted", "all classes"),
        ("overall", "groups", "predicted", "class", "cost"),
        ("among", "common", "class", "cost"),
    ],
    ids=" and ".join,
)
def test_several_promises_are_certified_and_read_again(names, learned):
    promise = Promise.all_of(*(SEVERAL[name] for name in names))
    by = {"race": BY, "side": np.where(FLIP, "left", "right")}
    half = {name: values[2000:] for name, values in by.items()}
    rest = {name: values[:2000] for name, values in by.items()}
    selection = (PROBA[:2000], Y[:2000], rest) if learned else None
    c = certified_rule(PROBA[2000:], Y[2000:], promise, by=half, selection=selection)
    assert c.certified
    assert RuleCertificate.from_json(c.to_json()) == c
    assert c.rule.accept(PROBA[2000:], by=half).sum() == c.accepted > 0


def forged(name: str, change) -> str:
    """Return the text of a certificate, changed by one who also mends every hash."""
    values = json.loads(make(name).to_json())
    change(values)
    for part in values["parts"]:
        part.pop("sha256", None)
        part["sha256"] = digest(part)
    values.pop("sha256")
    return json.dumps(values | {"sha256": digest(values)})


def set_in(*path):
    *way, last, value = path

    def change(values):
        for step in way:
            values = values[step]
        values[last] = value

    return change


def part_with(place, **changes):
    """Change a part, bound and all, as one would who knows the library."""

    def change(values):
        part = Certificate.from_json(json.dumps(values["parts"][place]))
        values["parts"][place] = json.loads(replace(part, **changes).to_json())

    return change


@pytest.mark.parametrize("name", PROMISES)
def test_a_certificate_survives_its_text(name):
    certificate = make(name)
    again = RuleCertificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.to_json() == certificate.to_json()
    assert certificate.certified
    assert RuleCertificate.from_json(forged(name, lambda values: None)) == certificate


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("groups", part_with(0, rho=0.05), "tested at 0.075 in all, more than rho = 0.05"),
        ("predicted", part_with(1, rho=0.049), "tested at 0.074 in all"),
        ("classes", part_with(0, rho=0.05), "tested at 0.075 in all"),
        ("several", part_with(3, rho=0.05), "in all, more than rho"),
        ("overall", part_with(0, rho=0.06), "does not fit the whole"),
        ("overall", part_with(0, alpha=0.06), "has the budget 0.06 .* none of the promise"),
        ("groups", set_in("promise", "alpha", 0.04), "has the budget 0.05 .* none of the promise"),
        ("groups", set_in("promise", "by", ["sex"]), "none of the promise"),
        ("common", set_in("promise", "common", False), "The rule acts from inf|in all, more than rho"),
        ("overall", set_in("promise", "kind", "among_accepted"), "none of the promise"),
        ("among", set_in("promise", "kind", "overall"), "none of the promise"),
        ("classes", set_in("promise", "kind", "by_predicted"), "none of the promise"),
        ("cost", set_in("promise", "alpha", 0.05), "none of the promise"),
        ("cost", set_in("promise", "costs", [[0, 1], [2, 0]]), "none of the promise"),
        ("overall", set_in("rule", "tables", 0, "values", 0, 1, 0.5), "The rule acts from 0.5 on"),
        ("groups", set_in("rule", "tables", 0, "values", 1, 1, 0.5), "The rule acts from 0.5 on"),
        ("groups", set_in("rule", "tables", 0, "values", 2, 1, 0.9), "The rule acts from 0.9 on"),
        ("predicted", set_in("rule", "tables", 0, "values", 0, 1, 0.5), "The rule acts from 0.5 on"),
        ("classes", set_in("rule", "tables", 0, "values", 0, 1, 0.5), "The rule acts from 0.5 on"),
        ("groups", set_in("rule", "tables", 0, "key", ["sex"]), "thresholds for sex, of which"),
        ("overall", set_in("parts", []), "No part proves what is promised of 'all'"),
        ("groups", lambda values: values["parts"].append(values["parts"][0]), "is there twice"),
        ("overall", set_in("errors", 1), "does not fit the whole"),
        ("overall", set_in("certified", False), "'certified' .* does not follow from its counts"),
        ("overall", set_in("coverage", 1.0), "'coverage' .* does not follow"),
        ("overall", set_in("rho", "much"), "`rho`"),
        ("overall", set_in("parts", {}), "`parts` must be a list"),
    ],
)  # fmt: skip
def test_a_forged_text_is_refused(name, change, message):
    with pytest.raises((InvalidDataError, InvalidParameterError), match=message):
        RuleCertificate.from_json(forged(name, change))


def test_a_text_with_another_hash_is_refused():
    text = make("overall").to_json().replace('"rho": 0.05', '"rho": 0.04', 1)
    with pytest.raises(InvalidDataError, match="its values do not match its hash"):
        RuleCertificate.from_json(text)
    with pytest.raises(InvalidDataError, match="This is not the JSON of a certificate"):
        RuleCertificate.from_json("{")
    with pytest.raises(InvalidDataError, match="not a certificate of the format"):
        RuleCertificate.from_json("{}")


def test_under_gives_the_bound_of_a_mixture():
    found = certified_rule(PROBA, Y, Promise.by_group({"A": 0.05, "B": 0.02}), by=BY)
    assert found.under({"A": 0.5, "B": 0.5}) == pytest.approx(0.035)
    assert found.under({"A": 0.5, "never seen": 0.5}) == pytest.approx(0.025)  # it is deferred
    assert found.mixtures == "the groups of group"
    by_class = certified_rule(PROBA, Y, Promise.by_class({0: 0.05, 1: 0.1}))
    assert by_class.under({0: 0.2, 1: 0.8}) == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("name", "shares", "message"),
    [
        (
            "overall",
            {"A": 1.0},
            "needs a promise by group or by true class; this one is: at most 5 %",
        ),
        ("groups", {"A": 0.5}, "`shares` of RuleCertificate.under must have the sum 1; got 0.5"),
        ("groups", {"A": -1.0, "B": 2.0}, r"`shares\['A'\]` of RuleCertificate.under must"),
        ("common", {"A": 0.5, "Z": 0.5}, "must name what was certified"),
        ("classes", {0: 0.5, 2: 0.5}, "must name what was certified"),
    ],
)
def test_under_refuses_what_was_not_certified(name, shares, message):
    with pytest.raises(InvalidParameterError, match=message):
        make(name).under(shares)


def test_a_fixed_rule_is_not_certified_for_a_group_without_rows():
    """It acts on the group, and fresh rows say nothing about that."""
    rule = Rule((Thresholds(("race",), {"A": 0.5, "B": 0.5}),))
    rows = ScoredRows(np.full(300, 0.9), np.zeros(300, bool), 0.0, by={"race": np.full(300, "A")})
    found = judge_fixed_rule(rows, rule, Promise.by_group(0.05, by="race"), 0.05)
    assert not found.certified
    assert found.unproved == ["race=B"]
    assert found.reason.startswith("no certification row of race=B")
    both = rows.take(np.arange(300))
    both.by["race"][:150] = "B"
    assert judge_fixed_rule(both, rule, Promise.by_group(0.05, by="race"), 0.05).certified


def test_costs_decide_what_a_cost_certificate_is_worth():
    """Many cheap mistakes are worth it; what costs as much as a constant answer is not."""
    n = 4000
    rng = np.random.default_rng(1)
    sick = rng.random(n) < 0.2
    flagged = np.where(sick, rng.random(n) < 0.95, rng.random(n) < 0.3)  # most flags are false
    proba = np.where(flagged[:, None], [0.1, 0.9], [0.6, 0.4])
    promise = Promise.cost([[0, 1], [50, 0]], 0.9)
    found = certified_rule(proba, sick.astype(int), promise)
    assert found.errors / found.accepted > 0.2
    assert found.certified
    assert not found.empty
    common = (rng.random(n) < 0.55).astype(int)
    useless = certified_rule(np.tile([0.1, 0.9], (n, 1)), common, promise)
    assert useless.empty
    assert "always answering the cheapest label would cost" in str(useless)


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


def test_groups_that_a_common_threshold_does_not_name_are_counted_and_told_of():
    c, race = make("common"), BY == "C"
    acted = c.rule.accept(PROBA)
    wrong = acted & (PROBA.argmax(axis=1) != Y)
    (others,) = c.others
    assert (others.n, others.accepted) == (race.sum(), (acted & race).sum())
    assert others.errors == (wrong & race).sum()
    told = f"({others.n} of 4,000 rows: acted on {others.accepted}, {others.errors} wrong)."
    assert str(c).endswith(f"groups of race are acted on without a promise of their own {told}")
    (in_json,) = json.loads(c.to_json())["without_promise"]
    assert in_json == {"by": ["race"], "n": others.n, "accepted": others.accepted, "errors": others.errors}  # fmt: skip
    assert c.mixtures == "the groups of race that it names"


def test_only_a_common_threshold_acts_on_groups_without_a_promise():
    assert all(make(name).others == [] for name in PROMISES if name != "common")
    named = Promise.by_group({"A": 0.05, "B": 0.05}, by="race")
    c = certified_rule(PROBA, Y, named, by={"race": BY})
    assert c.deferred["race=C"] == "it has no budget"
    for_all = Promise.by_group(0.2, by="race", common=True)
    c = certified_rule(PROBA, Y, for_all, by={"race": BY})
    assert "new groups of race would be acted on without a promise" in c.to_dict()["notes"]


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
