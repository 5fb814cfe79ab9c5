"""Whether the certificate of a rule fits together: forged texts, each refused for what is forged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from rule_examples import forged, set_in

from reliablenet import Certificate, Promise, RuleCertificate
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_certify import judge_fixed_rule
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
