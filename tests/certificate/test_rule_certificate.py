"""Certificates of rules: their text, and what they say of mixtures."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from rule_examples import BY, EASY, PROBA, PROMISES, TRUTH, Y, forged, make, set_in

from refusal import refused
from reliablenet import Certificate, Promise, RuleCertificate, certified_rule
from reliablenet.certificate import Provenance
from reliablenet.certificate.cost import CostCertificate
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.sealing import digest
from reliablenet.certificate.wording import DRAWN
from reliablenet.errors import InvalidDataError, InvalidParameterError


@pytest.mark.parametrize("name", PROMISES)
def test_a_certificate_survives_its_text(name):
    certificate = make(name)
    again = RuleCertificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.to_json() == certificate.to_json()
    assert certificate.certified
    assert RuleCertificate.from_json(forged(name, lambda values: None)) == certificate


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
        ("overall", {"A": 1.0}, "RuleCertificate.under needs a promise by group or by true class; this one is: at most 5 % of all rows are acted on wrongly."),
        ("groups", {"A": 0.5}, "`shares` of RuleCertificate.under must have the sum 1; got 0.5."),
        ("groups", {"A": -1.0, "B": 2.0}, "`shares['A']` of RuleCertificate.under must be a finite number of at least 0; got -1.0."),
        ("common", {"A": 0.5, "Z": 0.5}, "`shares` of RuleCertificate.under must name what was certified: ['race=A', 'race=B']; got ['A', 'Z']."),
        ("classes", {0: 0.5, 2: 0.5}, "`shares` of RuleCertificate.under must name what was certified: ['0', '1']; got [0, 2]."),
    ],
)  # fmt: skip
def test_under_refuses_what_was_not_certified(name, shares, message):
    with pytest.raises(InvalidParameterError) as caught:
        make(name).under(shares)
    assert str(caught.value) == message


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


ONE = Rule((Thresholds(("all",), {"all": 0.9}),))
PART = Certificate(0, 60, 100, 0.05, 0.05, 0.9, "monotone", name="all")
GIVEN = {"promise": Promise.overall(0.05), "rule": ONE, "parts": (PART,), "rho": 0.05, "n": 100, "accepted": 60, "errors": 0}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"promise": 0.05}, "`promise` of RuleCertificate must be a Promise; got 0.05."),
        ({"rule": 0.9}, "`rule` of RuleCertificate must be a Rule; got 0.9."),
        ({"rho": 1.0}, "`rho` of RuleCertificate must lie in (0, 1); got 1.0. Did you mean 0.01?"),
        ({"n": 0}, "`n` of RuleCertificate must be a whole number of at least 1; got 0."),
        ({"accepted": -1}, "`accepted` of RuleCertificate must be a whole number of at least 0; got -1."),
        ({"errors": -1}, "`errors` of RuleCertificate must be a whole number of at least 0; got -1."),
        ({"unknown": -1}, "`unknown` of RuleCertificate must be a whole number of at least 0; got -1."),
        ({"errors": 61}, "A certificate needs errors <= accepted <= n; got 61, 60, 100."),
        ({"rule": Rule((Thresholds(("all",), {"all": math.inf}),))}, "A rule without a threshold accepts no row; got accepted=60."),
        ({"parts": ("all",)}, "`parts` of RuleCertificate must be certificates; got 'all'."),
    ],
)  # fmt: skip
def test_values_outside_their_domain_are_refused(changes, message):
    RuleCertificate(**GIVEN)
    with refused(message):
        RuleCertificate(**GIVEN | changes)


def test_what_is_derived_follows_from_the_parts():
    c = RuleCertificate(**GIVEN)
    assert c.certified
    assert not c.empty
    assert (c.alpha, c.threshold, c.tolerance, c.coverage) == (0.05, 0.9, "", 0.6)
    assert c.upper_bound == PART.upper_bound
    assert (c.population, c.name) == ("all", "")
    with pytest.raises(FrozenInstanceError):
        c.errors = 1
    other = replace(c, provenance=Provenance(uses=2))
    assert other == c != replace(c, rho=0.06)
    assert (c.unit, c.deferred, c.commonest, c.unknown, c.provenance) == ("row", {}, None, 0, None)
    numbers = replace(c, parts=(replace(PART, tolerance="5 kg"),))
    assert numbers.tolerance == "5 kg"
    assert numbers.to_dict()["promise_text"] == (
        "at most 5 % of all rows are acted on with an error above 5 kg"
    )
    assert c.to_dict()["format"] == "reliablenet-rule-certificate/1"
    nobody = Rule((Thresholds(("all",), {"all": math.inf}),))
    waiting = replace(c, rule=nobody, accepted=0, parts=(replace(PART, accepted=0),))
    assert not waiting.certified  # the part is proved, and the rule acts on no row
    assert repr(c) == f"<RuleCertificate: {c}>"
    failing = replace(PART, errors=20)
    refused = RuleCertificate(**GIVEN | {"parts": (failing,), "errors": 20})
    assert not refused.certified
    assert not refused.empty
    assert refused.upper_bound == failing.upper_bound


def test_the_part_closest_to_its_budget_bounds_the_whole():
    found = make("several")
    shares = {
        part.upper_bound / part.alpha: part.upper_bound
        for part in found.parts
        if part.threshold < math.inf
    }
    assert found.upper_bound == shares[max(shares)]
    nothing = certified_rule(EASY[:20], TRUTH[:20], Promise.overall(0.05))
    assert nothing.upper_bound == nothing.parts[0].upper_bound
    without = RuleCertificate(
        **GIVEN | {
            "promise": Promise.by_group({"A": 0.05}), "parts": (), "accepted": 0,
            "rule": Rule((Thresholds(("group",), {}),)), "deferred": {"group=A": "no certification row"},
        }
    )  # fmt: skip
    assert without.upper_bound == 1.0
    assert not without.certified


def test_the_bound_is_of_the_part_that_has_spent_most_of_its_budget():
    one = replace(PART, errors=1, kind="fixed")
    two = Certificate(1, 30, 50, 0.2, 0.05, 0.9, "fixed", population="group", name="group=A")
    promise = Promise.all_of(Promise.overall(0.05), Promise.by_group({"A": 0.2}, common=True))
    found = RuleCertificate(**GIVEN | {"promise": promise, "parts": (one, two), "errors": 1})
    assert found.upper_bound == one.upper_bound < two.upper_bound


def test_under_counts_whom_the_rule_defers_as_nothing():
    """A group with a part and no threshold, and a class whose mistakes are all deferred."""
    groups = {"A": 0.05, "B": 0.05}
    part = {"rho": 0.025, "kind": "monotone", "population": "group"}
    parts = (
        Certificate(0, 60, 80, 0.05, threshold=0.9, name="group=A", **part),
        Certificate(0, 0, 20, 0.05, threshold=math.inf, name="group=B", **part),
    )
    rule = Rule((Thresholds(("group",), {"A": 0.9, "B": math.inf}),))
    found = RuleCertificate(
        **GIVEN | {"promise": Promise.by_group(groups), "parts": parts, "rule": rule}
    )
    assert found.certified
    assert found.under({"A": 0.5, "B": 0.5}) == 0.025
    rule = Rule((Thresholds(("predicted",), {0: math.inf, 1: 0.9}),), (0, 1))
    part = Certificate(0, 30, 60, 0.05, 0.05, 0.9, "monotone", population="class", name="0")
    deferred = {"predictions other than 1": "too many mistakes"}
    found = RuleCertificate(
        **GIVEN | {"promise": Promise.by_class({0: 0.05, 1: 0.05}), "parts": (part,), "rule": rule},
        deferred=deferred,
    )
    assert found.under({0: 0.5, 1: 0.5}) == 0.025


def test_a_mixture_is_never_wrong_more_often_than_always():
    found = certified_rule(EASY, TRUTH, Promise.by_group(1 - 1e-12), by=np.full(200, "A"))
    assert found.under({"A": 1 + 9e-10}) == 1.0


def test_a_certificate_is_worth_nothing_where_guessing_is_as_good():
    c = RuleCertificate(**GIVEN | {"errors": 2, "parts": (replace(PART, errors=2, alpha=0.1),), "promise": Promise.overall(0.1)})  # fmt: skip
    assert c.certified
    assert not replace(c, commonest=90).empty
    assert replace(c, commonest=97).empty
    cost = CostCertificate(
        2, 60, 100, 0.2, 0.05, 0.9, "monotone", name="cost", cost=2.0, largest=5.0, guessing=9.0
    )
    costs = replace(c, promise=Promise.cost([[0, 1], [5, 0]], 1.0), parts=(cost,), commonest=97)
    assert costs.certified
    assert not costs.empty  # where all that is promised is a cost, costs decide
    assert replace(costs, parts=(replace(cost, guessing=3.0),)).empty


@pytest.mark.parametrize(
    ("promise", "classes", "mixtures"),
    [
        (Promise.overall(0.2), None, ""),
        (Promise.by_group(0.2, by=["a", "b"]), None, "the groups of a and b"),
        (
            Promise.by_group({"x, x": 0.2}, by=["a", "b"], common=True),
            None,
            "the groups of a and b that it names",
        ),
        (Promise.by_class(0.2), [0, 1], "the true classes"),
        (Promise.by_class({0: 0.2, 1: 0.2}), [0, 1], "the true classes"),
        (Promise.by_class({0: 0.2}), [0, 1], ""),
        (Promise.all_of(Promise.overall(0.2), Promise.by_class(0.2)), [0, 1], "the true classes"),
    ],
    ids=str,
)
def test_in_which_mixtures_a_promise_holds(promise, classes, mixtures):
    by = {"a": np.full(200, "x"), "b": np.full(200, "x")}
    assert certified_rule(EASY, TRUTH, promise, by=by, classes=classes).mixtures == mixtures


def test_under_needs_a_certificate_and_never_exceeds_one():
    refused = certified_rule(EASY[:20], TRUTH[:20], Promise.by_class(0.05))
    with pytest.raises(InvalidParameterError) as caught:
        refused.under({0: 1.0})
    assert (
        str(caught.value)
        == "RuleCertificate.under needs a certified rule; this one defers every row."
    )
    both = certified_rule(
        PROBA, Y, Promise.all_of(Promise.by_group(0.9), Promise.by_class(0.8)), by=BY
    )
    assert both.under({"A": 0.5, "B": 0.5 + 1e-10}) == pytest.approx(0.9)
    assert both.under({0: 1.0}) == pytest.approx(0.8)  # a class, and no group that was never seen
    assert both.under({"never seen": 1.0}) == 0.0
    with pytest.raises(InvalidParameterError) as caught:
        make("common").under({"A": 0.5, "Z": 0.5})
    assert str(caught.value) == (
        "`shares` of RuleCertificate.under must name what was certified: ['race=A', 'race=B']; got ['A', 'Z']."
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_in("parts", {}), "The certificate's `parts` must be a list."),
        (
            set_in("parts", [3]),
            "This is not a certificate of the format 'reliablenet-certificate/2'.",
        ),
        (set_in("rho", None), "The certificate's `rho` or `deferred` is damaged."),
        (set_in("deferred", []), "The certificate's `rho` or `deferred` is damaged."),
        (
            set_in("empty", True),
            "The certificate's 'empty' (True) does not follow from its counts (False): the text was altered.",
        ),
        (set_in("promise", 3), "This does not describe a promise: TypeError("),
        (set_in("rule", 3), "This does not describe a rule: TypeError("),
        (lambda values: values.pop("n"), "The certificate lacks ['n']."),
    ],
)
def test_damaged_texts_are_refused_in_these_words(change, message):
    values = json.loads(make("overall").to_json())
    change(values)
    values.pop("sha256")
    with refused(message):
        RuleCertificate.from_json(json.dumps(values | {"sha256": digest(values)}))


def test_the_text_holds_what_a_reader_needs():
    c = make("several")
    told = c.to_dict()
    for name in ("certified", "empty", "reason", "rho", "n", "accepted", "errors", "coverage", "unit", "deferred", "commonest", "unknown"):  # fmt: skip
        assert told[name] == getattr(c, name)
    assert (told["verdict"], told["promise_text"]) == (str(c), str(c.promise))
    assert told["promise"] == c.promise.to_dict()
    assert told["rule"] == c.rule.to_dict()
    assert told["provenance"] == c.provenance.to_dict()
    assert [part["name"] for part in told["parts"]] == [part.name for part in c.parts]
    bare = RuleCertificate(**GIVEN)
    assert bare.to_dict()["provenance"] is None
    assert RuleCertificate.from_json(bare.to_json()) == bare


def test_of_groups_the_promise_is_told_of_a_row_drawn():
    found = certified_rule(PROBA, Y, Promise.overall(0.3), groups=np.arange(len(Y)))
    assert found.unit == "group"
    assert DRAWN in found.to_dict()["promise_text"]
