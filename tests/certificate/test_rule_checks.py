"""Whether the certificate of a rule fits together: forged texts, each refused for what is forged."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from rule_examples import forged, set_in

from reliablenet import Certificate, Promise, RuleCertificate
from reliablenet.certificate.cost import CostCertificate
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_certify import judge_fixed_rule
from reliablenet.certificate.rule_checks import (
    Others,
    deferred_name,
    has_own_thresholds,
    others,
    part_name,
)
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError, InvalidParameterError


def part_with(place, **changes):
    """Change a part, bound and all, as one would who knows the library."""

    def change(values):
        part = Certificate.from_json(json.dumps(values["parts"][place]))
        values["parts"][place] = json.loads(replace(part, **changes).to_json())

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("groups", part_with(0, rho=0.05), "tested at 0.075 in all, more than rho = 0.05"),
        ("predicted", part_with(1, rho=0.049), "tested at 0.074 in all"),
        ("classes", part_with(0, rho=0.05), "tested at 0.075 in all"),
        ("several", part_with(3, rho=0.05), "in all, more than rho"),
        ("overall", part_with(0, rho=0.06), "does not fit the whole"),
        ("overall", part_with(0, alpha=0.06), "has the budget 0.06 .* the promise has no such part"),
        ("groups", set_in("promise", "alpha", 0.04), "has the budget 0.05 .* the promise has no such part"),
        ("groups", set_in("promise", "by", ["sex"]), "the promise has no such part"),
        ("common", set_in("promise", "common", False), "The rule acts nowhere|in all, more than rho"),
        ("overall", set_in("promise", "kind", "among_accepted"), "the promise has no such part"),
        ("among", set_in("promise", "kind", "overall"), "the promise has no such part"),
        ("classes", set_in("promise", "kind", "by_predicted"), "the promise has no such part"),
        ("cost", set_in("promise", "alpha", 0.05), "the promise has no such part"),
        ("cost", set_in("promise", "costs", [[0, 1], [2, 0]]), "the promise has no such part"),
        ("overall", set_in("rule", "tables", 0, "values", 0, 1, 0.5), "The rule acts from 0.5 on"),
        ("groups", set_in("rule", "tables", 0, "values", 1, 1, 0.5), "The rule acts from 0.5 on"),
        ("groups", set_in("rule", "tables", 0, "values", 2, 1, 0.9), "The rule acts from 0.9 on"),
        ("predicted", set_in("rule", "tables", 0, "values", 0, 1, 0.5), "The rule acts from 0.5 on"),
        ("classes", set_in("rule", "tables", 0, "values", 0, 1, 0.5), "The rule acts from 0.5 on"),
        ("groups", set_in("rule", "tables", 0, "key", ["sex"]), "thresholds for sex, which the promise"),
        ("overall", set_in("parts", []), "No part proves what is promised of 'all'"),
        ("groups", lambda values: values["parts"].append(values["parts"][0]), "appears twice"),
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


def part(
    name="all",
    errors=0,
    accepted=60,
    n=100,
    alpha=0.05,
    rho=0.05,
    threshold=0.9,
    population="all",
    **more,
):
    given = {"kind": "monotone", "population": population, "name": name} | more
    return Certificate(errors, accepted, n, alpha, rho, threshold, **given)


def whole(
    promise, parts, tables=None, classes=None, n=100, accepted=60, errors=0, rho=0.05, **more
):
    tables = tables or (Thresholds(("all",), {"all": 0.9}),)
    return RuleCertificate(
        promise, Rule(tuple(tables), classes), tuple(parts), rho, n, accepted, errors, **more
    )


OVERALL = Promise.overall(0.05)
GROUPS = Promise.by_group({"A": 0.05, "B": 0.05}, by="race")
TABLE = Thresholds(("race",), {"A": 0.9, "B": 0.9})
A = {"name": "race=A", "population": "group", "n": 60, "accepted": 30, "rho": 0.03}
B = A | {"name": "race=B", "n": 40, "rho": 0.02}


def test_parts_that_fit_are_taken():
    assert whole(OVERALL, [part()]).parts[0].name == "all"
    assert (
        whole(GROUPS, [part(**A), part(**B)], [TABLE]).certified is False
    )  # B has too few rows at 0.02
    both = Promise.all_of(OVERALL, GROUPS)
    shares = [part(rho=0.025), part(**A | {"rho": 0.015}), part(**B | {"rho": 0.01})]
    whole(both, shares, [Thresholds(("all",), {"all": 0.9}), TABLE])


@pytest.mark.parametrize(
    ("promise", "parts", "more", "message"),
    [
        (OVERALL, [], {}, "No part proves what is promised of 'all'."),
        (OVERALL, [part(), part()], {}, "The part 'all' appears twice."),
        (OVERALL, [part(alpha=0.06)], {}, "The part 'all' has the budget 0.06 for the population 'all', but the promise has no such part."),
        (OVERALL, [part(name="most")], {}, "The part 'most' has the budget 0.05 for the population 'all', but the promise has no such part."),
        (OVERALL, [part(population="class")], {}, "The part 'all' has the budget 0.05 for the population 'class', but the promise has no such part."),
        (OVERALL, [part(n=99)], {}, "The part 'all' does not fit the whole: 0 mistakes in 60 of 99 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (OVERALL, [part(accepted=59)], {}, "The part 'all' does not fit the whole: 0 mistakes in 59 of 100 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (OVERALL, [part(errors=1)], {}, "The part 'all' does not fit the whole: 1 mistakes in 60 of 100 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (OVERALL, [part(rho=0.06)], {}, "The part 'all' does not fit the whole: 0 mistakes in 60 of 100 rows at rho 0.06, where the whole has 0 in 60 of 100 at rho 0.05."),
        (OVERALL, [part(unit="group")], {}, "The part 'all' does not fit the whole: 0 mistakes in 60 of 100 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (OVERALL, [part(threshold=0.95)], {}, "The rule acts from 0.9 on, but the part 'all' is proved from 0.95 on."),
        (OVERALL, [part(threshold=0.95)], {"tables": [Thresholds(("all",), {"all": -math.inf})]}, "The rule acts everywhere, but the part 'all' is proved from 0.95 on."),
        (OVERALL, [part()], {"tables": [Thresholds(("race", "sex"), {"A, f": 0.9})]}, "The rule has thresholds for race and sex, which the promise does not name."),
        (GROUPS, [part(**A)], {"tables": [TABLE]}, "No part proves what is promised of 'race=B'."),
        (GROUPS, [part(**A | {"n": 200, "rho": 0.04}), part(**B | {"n": 200, "rho": 0.03})], {"tables": [TABLE], "n": 400}, "The parts were tested at 0.07 in all, more than rho = 0.05."),
        (GROUPS, [part(**A | {"n": 70}), part(**B)], {"tables": [TABLE]}, "The parts of this promise count more rows than there are: of the rows of race=A, at most 5 % are acted on wrongly; of the rows of race=B, at most 5 % are acted on wrongly."),
        (GROUPS, [part(**A), part(**B | {"accepted": 31})], {"tables": [TABLE]}, "The parts of this promise count more rows than there are: of the rows of race=A, at most 5 % are acted on wrongly; of the rows of race=B, at most 5 % are acted on wrongly."),
        (GROUPS, [part(**A | {"errors": 1}), part(**B | {"errors": 1})], {"tables": [TABLE], "errors": 1}, "The parts of this promise count more rows than there are: of the rows of race=A, at most 5 % are acted on wrongly; of the rows of race=B, at most 5 % are acted on wrongly."),
        (GROUPS, [part(**A | {"threshold": 0.95}), part(**B)], {"tables": [TABLE]}, "The rule acts from 0.9 on, but the part 'race=A' is proved from 0.95 on."),
        (GROUPS, [part(**A | {"accepted": 0, "threshold": math.inf}), part(**B)], {"tables": [TABLE]}, "The rule acts from 0.9 on, but the part 'race=A' is proved nowhere."),
        (Promise.among_accepted(0.05), [part("accepted", population="accepted", n=60, kind="sequence")], {}, None),
        (Promise.among_accepted(0.05), [part("accepted", population="accepted", n=61, kind="sequence")], {}, "The part 'accepted' does not fit the whole: 0 mistakes in 60 of 61 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (Promise.by_predicted(0.05), [part("x", population="predicted", n=100)], {"tables": [Thresholds(("predicted",), {"x": 0.9})]}, None),
        (Promise.by_predicted(0.05), [part("x", population="predicted", n=99)], {"tables": [Thresholds(("predicted",), {"x": 0.9})]}, "The part 'x' does not fit the whole: 0 mistakes in 60 of 99 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (Promise.by_predicted({"x": 0.05}), [part("x", population="predicted")], {"tables": [Thresholds(("predicted",), {"x": 0.9, "y": 0.1})]}, None),
        (Promise.by_predicted({"x": 0.05}), [part("x", population="predicted")], {"tables": [Thresholds(("predicted",), {"x": 0.8, "y": 0.9})]}, "The rule acts from 0.8 on, but the part 'x' is proved from 0.9 on."),
        (Promise.by_class({"x": 0.05}), [part("x", population="class", n=90, accepted=20)], {"tables": [Thresholds(("predicted",), {"x": 0.1, "y": 0.9, "z": 0.9})], "classes": ("x", "y", "z")}, None),
        (Promise.by_class({"x": 0.05}), [part("x", population="class", n=90, accepted=20)], {"tables": [Thresholds(("predicted",), {"x": 0.1, "y": 0.9, "z": 0.8})], "classes": ("x", "y", "z")}, "The rule acts from 0.8 on, but the part 'x' is proved from 0.9 on."),
        (Promise.by_class(0.05), [part("y", population="class", n=90, accepted=20)], {"tables": [Thresholds(("predicted",), {"x": 0.8, "y": 0.9})], "classes": ("x", "y")}, "The rule acts from 0.8 on, but the part 'y' is proved from 0.9 on."),
        (Promise.by_class(0.05), [part("x", population="class", n=90, accepted=20)], {"tables": [Thresholds(("predicted",), {"x": 0.8, "y": 0.9})], "classes": ("x", "y")}, None),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused_in_these_words(promise, parts, more, message):
    if message is None:
        whole(promise, parts, **more)
        return
    with pytest.raises(InvalidDataError) as caught:
        whole(promise, parts, **more)
    assert str(caught.value) == message


def test_who_was_not_tested_or_accepts_all_spends_nothing_of_rho():
    """Too few rows to be certified at its level; or the lowest threshold, whose share was passed on."""
    lowest = Thresholds(("race",), {"A": 0.0, "B": 0.9})
    parts = [
        part(**A | {"n": 200, "rho": 0.05, "threshold": 0.0}),
        part(**B | {"n": 200, "rho": 0.05}),
    ]
    whole(GROUPS, parts, [lowest], n=400)
    for threshold in (-math.inf, -sys.float_info.max):
        some = A | {
            "n": 200,
            "accepted": 200 if threshold == -math.inf else 30,
            "rho": 0.05,
            "threshold": threshold,
        }
        table = Thresholds(("race",), {"A": threshold, "B": 0.9})
        whole(GROUPS, [part(**some), parts[1]], [table], n=400, accepted=some["accepted"] + 30)
    few = part(**A | {"n": 20, "accepted": 20, "rho": 0.05})
    whole(GROUPS, [few, parts[1]], [TABLE], n=400)
    fixed = [
        part(**A | {"n": 200, "rho": 0.05, "kind": "fixed"}),
        part(**B | {"n": 200, "rho": 0.05, "kind": "fixed"}),
    ]
    whole(GROUPS, fixed, [TABLE], n=400)


def test_what_is_promised_of_all_at_once_spends_the_largest_share_alone():
    common = Promise.by_group({"A": 0.05, "B": 0.05}, by="race", common=True)
    parts = [
        part(rho=0.05),
        part(**A | {"rho": 0.05, "n": 200}),
        part(**B | {"rho": 0.05, "n": 200}),
    ]
    whole(Promise.all_of(OVERALL, common), [replace(parts[0], n=400), *parts[1:]], n=400)
    rounded = [
        part(**A | {"n": 200, "rho": 0.02}),
        part(**B | {"n": 200, "rho": 0.03 * (1 + 1e-10)}),
    ]
    whole(GROUPS, rounded, [TABLE], n=400)


def test_names_of_parts_and_of_what_they_defer():
    names = {
        OVERALL: ("all", "all"),
        Promise.among_accepted(0.1): ("accepted", "accepted"),
        Promise.cost([[0, 1], [2, 0]], 0.1): ("cost", "cost"),
        Promise.by_group(0.1, by=["race", "sex"]): ("race, sex=k", "race, sex=k"),
        Promise.by_class(0.1): ("k", "predictions other than k"),
        Promise.by_predicted(0.1): ("k", "predictions of k"),
    }
    for promise, (name, deferred) in names.items():
        assert (part_name(promise, "k"), deferred_name(promise, "k")) == (name, deferred)


def test_a_group_that_is_deferred_needs_no_part():
    deferred = {"race=B": "no certification row"}
    found = whole(GROUPS, [part(**A)], [Thresholds(("race",), {"A": 0.9})], deferred=deferred)
    assert found.unproved == []
    acting = whole(GROUPS, [part(**A)], [TABLE], deferred=deferred)
    assert acting.unproved == ["race=B"]
    assert not acting.certified
    predictions = {"predictions of x": "too many mistakes"}
    whole(
        Promise.by_predicted({"x": 0.05}),
        [],
        [Thresholds(("predicted",), {"y": 0.9})],
        deferred=predictions,
    )


def test_two_tables_of_costs_may_have_the_same_share():
    """Their parts stand in the order of the promises."""
    promise = Promise.all_of(
        Promise.cost([[0, 1], [2, 0]], 0.1), Promise.cost([[0, 4], [1, 0]], 0.2)
    )
    one = CostCertificate(0, 60, 100, 0.05, 0.05, 0.9, "monotone", name="cost", largest=2.0)
    two = replace(one, largest=4.0)
    assert whole(promise, [one, two]).parts == (one, two)
    with pytest.raises(InvalidDataError, match="The part 'cost' appears twice"):
        whole(promise, [one, two, two])
    with pytest.raises(InvalidDataError, match="No part proves what is promised of 'cost'"):
        whole(promise, [one])


def test_rows_of_groups_without_a_budget_are_the_rest():
    common = Promise.by_group({"A": 0.05, "B": 0.05}, by="race", common=True)
    parts = [part(**A | {"rho": 0.05, "errors": 1}), part(**B | {"rho": 0.05, "accepted": 20})]
    promise = Promise.all_of(OVERALL, common)
    found = whole(promise, [part(errors=3, n=130, accepted=60), *parts], n=130, errors=3)
    assert others(found) == [Others(common, n=30, accepted=10, errors=2, of=130)]
    assert others(whole(OVERALL, [part()])) == []


@pytest.mark.parametrize(
    ("promise", "more", "classes", "own"),
    [
        (Promise.by_predicted(0.1), None, None, True),
        (Promise.by_predicted(0.1), Promise.among_accepted(0.1), None, False),
        (Promise.by_group(0.1), None, None, True),
        (Promise.by_group(0.1, common=True), None, None, False),
        (Promise.by_class(0.1), None, None, False),
        (Promise.by_class({"x": 0.1}), None, None, False),
        (Promise.by_class(0.1), None, ("x", "y"), True),
        (Promise.by_class(0.1), None, ("x", "y", "z"), False),
        (Promise.by_class({"x": 0.1}), None, ("x", "y", "z"), True),
        (OVERALL, None, ("x", "y"), False),
    ],
)
def test_who_has_a_threshold_of_its_own(promise, more, classes, own):
    both = promise if more is None else Promise.all_of(promise, more)
    assert has_own_thresholds(promise, both, classes) is own


LARGE = {"n": 200, "rho": 0.03}
X, Y = ({"name": name, "population": "predicted", "n": 400, "accepted": 30} for name in "xy")
SEX = {"name": "sex=f", "population": "group", "n": 200, "accepted": 30}
PREDICTED = Thresholds(("predicted",), {"x": 0.9, "y": 0.9})
ONE_FOR_ALL = Thresholds(("all",), {"all": 0.9})


@pytest.mark.parametrize(
    ("promise", "parts", "tables", "rho"),
    [
        (GROUPS, [part(**A | LARGE), part(**B | LARGE)], [TABLE], 0.06),
        # of two promises with thresholds of their own both count
        (
            Promise.all_of(GROUPS, Promise.by_predicted({"x": 0.05, "y": 0.05})),
            [part(**A | LARGE), part(**B | LARGE | {"rho": 0.01}), part(**X | {"rho": 0.01}), part(**Y | {"rho": 0.01})],
            [TABLE, PREDICTED],
            0.06,
        ),
        # and what holds for all besides
        (
            Promise.all_of(OVERALL, GROUPS),
            [part(n=400, rho=0.02), part(**A | LARGE | {"rho": 0.02}), part(**B | LARGE | {"rho": 0.02})],
            [ONE_FOR_ALL, TABLE],
            0.06,
        ),
        # 20 rows are enough for a budget of 30 %
        (
            Promise.by_group({"A": 0.3, "B": 0.3}, by="race"),
            [part(**A | {"n": 20, "accepted": 20, "alpha": 0.3, "rho": 0.03}), part(**B | {"n": 20, "accepted": 20, "alpha": 0.3, "rho": 0.03})],
            [TABLE],
            0.06,
        ),
        # 60 rows without a mistake are just enough at 5 %
        (GROUPS, [part(**A | {"rho": 0.05}), part(**B | LARGE | {"rho": 0.05})], [TABLE], 0.1),
    ],
)  # fmt: skip
def test_whoever_spends_more_than_rho_is_refused_with_the_sum(promise, parts, tables, rho):
    with pytest.raises(InvalidDataError) as caught:
        whole(promise, parts, tables, n=400)
    assert str(caught.value) == f"The parts were tested at {rho:g} in all, more than rho = 0.05."
    whole(promise, parts, tables, n=400, rho=rho)


def test_a_sum_may_miss_rho_by_its_last_bits():
    limit = 0.05 * (1 + 1e-9)
    one, two = 0.025, limit - 0.025
    assert one + two == limit
    parts = [part(**A | LARGE | {"rho": one}), part(**B | LARGE | {"rho": two})]
    whole(GROUPS, parts, [TABLE], n=400)
    parts[1] = replace(parts[1], rho=two + 1e-15)
    with pytest.raises(InvalidDataError, match="in all, more than rho"):
        whole(GROUPS, parts, [TABLE], n=400)


def test_who_has_too_few_rows_at_its_own_level_spends_nothing():
    """0.95 ** 60 is 0.046: enough at 0.05, too few at 0.03."""
    parts = [part(**A | {"n": 60, "rho": 0.03}), part(**B | LARGE)]
    whole(GROUPS, parts, [TABLE], n=400)


def test_groups_without_a_row_are_named_for_each_promise():
    both = Promise.all_of(OVERALL, GROUPS)
    shares = [part(rho=0.025), part(**A | {"rho": 0.015}), part(**B | {"rho": 0.01})]
    assert whole(both, shares, [ONE_FOR_ALL, TABLE]).unproved == []
    deferred = {"race=B": "no certification row"}
    table = Thresholds(("race",), {"A": 0.9, "B": math.inf})
    assert whole(GROUPS, [part(**A)], [table], deferred=deferred).unproved == []
    sexes = Promise.by_group({"f": 0.05, "m": 0.05}, by="sex")
    deferred |= {"sex=m": "no certification row"}
    tables = [TABLE, Thresholds(("sex",), {"f": 0.9, "m": 0.9})]
    parts = [part(**A | {"n": 200, "rho": 0.02}), part(**SEX | {"rho": 0.02})]
    found = whole(Promise.all_of(GROUPS, sexes), parts, tables, n=400, deferred=deferred)
    assert found.unproved == ["race=B", "sex=m"]


def test_only_a_common_threshold_with_named_groups_has_others():
    assert others(whole(GROUPS, [part(**A), part(**B)], [TABLE])) == []
    common = Promise.by_group(0.05, by="race", common=True)
    assert others(whole(common, [part(**A), part(**B)])) == []
    by_class = Promise.by_class({"x": 0.05})
    own = part("x", population="class", n=90, accepted=20)
    table = Thresholds(("predicted",), {"x": 0.9, "y": 0.9})
    assert others(whole(by_class, [own], [table], ("x", "y"))) == []
    with pytest.raises(FrozenInstanceError):
        Others(common, 1, 1, 1, 1).n = 2


def test_a_class_without_rows_needs_no_part():
    promise = Promise.by_class({"x": 0.05, "y": 0.05})
    own = part("x", population="class", n=90, accepted=20)
    table = Thresholds(("predicted",), {"x": 0.9, "y": 0.9})
    for name in ("y", "predictions other than y"):
        whole(promise, [own], [table], ("x", "y"), deferred={name: "no certification row"})
    with pytest.raises(InvalidDataError, match="No part proves what is promised of 'y'"):
        whole(promise, [own], [table], ("x", "y"), deferred={"x": "no certification row"})


COST = Promise.cost([[0, 1], [2, 0]], 0.1)
OWN = Thresholds(("predicted",), {"x": 0.85, "y": 0.6})


@pytest.mark.parametrize(
    ("promise", "parts", "tables", "classes", "message"),
    [
        (COST, [CostCertificate(0, 60, 99, 0.05, 0.05, 0.9, "monotone", name="cost", largest=2.0)], None, None, "The part 'cost' does not fit the whole: 0 mistakes in 60 of 99 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (COST, [CostCertificate(0, 59, 100, 0.05, 0.05, 0.9, "monotone", name="cost", largest=2.0)], None, None, "The part 'cost' does not fit the whole: 0 mistakes in 59 of 100 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (Promise.among_accepted(0.05), [part("accepted", population="accepted", n=60, accepted=59, kind="sequence")], None, None, "The part 'accepted' does not fit the whole: 0 mistakes in 59 of 60 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        (Promise.among_accepted(0.05), [part("accepted", population="accepted", n=60, errors=1, kind="sequence")], None, None, "The part 'accepted' does not fit the whole: 1 mistakes in 60 of 60 rows at rho 0.05, where the whole has 0 in 60 of 100 at rho 0.05."),
        # a fixed rule for predictions is proved from its lowest threshold on, one for groups from each
        (Promise.by_predicted(0.05), [part("x", population="predicted", kind="fixed", threshold=0.6)], [OWN], None, None),
        (Promise.by_predicted(0.05), [part("x", population="predicted", kind="fixed", threshold=0.7)], [OWN], None, "The rule acts from 0.6 on, but the part 'x' is proved from 0.7 on."),
        (GROUPS, [part(**A | {"kind": "fixed", "threshold": 0.5}), part(**B | {"kind": "fixed"})], [Thresholds(("race",), {"A": 0.5, "B": 0.9})], None, None),
        (GROUPS, [part(**A | {"kind": "fixed"}), part(**B | {"kind": "fixed"})], [Thresholds(("race",), {"A": 0.5, "B": 0.9})], None, "The rule acts from 0.5 on, but the part 'race=A' is proved from 0.9 on."),
        # the lowest number there is stands for the lowest score, where others defer some rows
        (OVERALL, [part(threshold=-sys.float_info.max)], [Thresholds(("all",), {"all": -math.inf})], None, None),
        # a class with a budget that is not the first is limited by every other prediction
        (Promise.by_class({"y": 0.05}), [part("y", population="class", n=90, accepted=20)], [Thresholds(("predicted",), {"x": 0.9, "y": 0.1, "z": 0.8})], ("x", "y", "z"), "The rule acts from 0.8 on, but the part 'y' is proved from 0.9 on."),
        (Promise.by_class({"y": 0.05}), [part("y", population="class", n=90, accepted=20)], [Thresholds(("predicted",), {"x": 0.9, "y": 0.1, "z": 0.9})], ("x", "y", "z"), None),
        (Promise.by_class({"None": 0.05}), [part("None", population="class", n=90, accepted=20)], [Thresholds(("predicted",), {"None": 0.1, "y": 0.9})], ("None", "y"), None),
    ],
)  # fmt: skip
def test_each_part_is_held_to_the_rows_and_thresholds_it_speaks_of(promise, parts, tables, classes, message):  # fmt: skip
    if message is None:
        whole(promise, parts, tables, classes)
        return
    with pytest.raises(InvalidDataError) as caught:
        whole(promise, parts, tables, classes)
    assert str(caught.value) == message
