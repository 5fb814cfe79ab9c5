"""What promises and certificates of rules say, in words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rule_examples import PROBA, Y, make

from reliablenet import Promise, certified_rule


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
