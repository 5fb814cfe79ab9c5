"""Certificates of rules: their text, and what they say of mixtures."""

from __future__ import annotations

import json

import pytest
from rule_examples import BY, PROBA, PROMISES, Y, forged, make

from reliablenet import Promise, RuleCertificate, certified_rule
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
