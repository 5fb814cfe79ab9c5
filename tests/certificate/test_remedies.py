"""What would grant a refused certificate: nothing that would void the promise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rule_examples import BOTH, EASY, REFUSED, TRUTH, fixed_part, rule_of

from reliablenet import Certificate, Promise, certified_rule
from reliablenet.certificate.planning import (
    largest_certifiable_errors,
    rows_for_errors,
    rows_needed,
)
from reliablenet.certificate.remedies import remedy
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.certificate.rule_certify import judge_fixed_rule
from reliablenet.certificate.scored import ScoredRows


def certificate(errors=1, accepted=120, n=153, **changes) -> Certificate:
    settings = {"alpha": 0.05, "rho": 0.05, "threshold": 0.9} | changes
    return Certificate(errors, accepted, n, **settings)


@given(st.integers(1, 400), st.data(), st.sampled_from([0.001, 0.05, 0.3]))
def test_no_remedy_suggests_a_larger_alpha_or_contradicts_the_reason(n, data, alpha) -> None:
    accepted = data.draw(st.integers(0, n))
    errors = data.draw(st.integers(0, accepted))
    kind = data.draw(st.sampled_from(["fixed", "monotone"]))
    threshold = math.inf if accepted == 0 else 0.9
    made = certificate(errors, accepted, n, alpha=alpha, kind=kind, threshold=threshold)
    words = remedy(made, share=0.4)
    assert (words == "") == made.certified
    assert "alpha" not in words
    assert "budget" not in words
    if not made.certified and largest_certifiable_errors(n, alpha, 0.05) < 0:
        rows = rows_for_errors(errors, alpha)
        assert f"at least {rows:,} fresh row" in words
        assert f"needs at least {rows:,} fresh row" in made.reason


def test_where_the_rows_allow_a_threshold_the_remedy_names_it() -> None:
    refused = certificate(20, 140)
    allowed = certificate(3, 80, threshold=0.95, kind="monotone")
    words = remedy(refused, allowed=allowed)
    assert words == (
        "a certified threshold: these rows certify every one from 0.95 on, which acts on 52.3 % of "
        "rows"
    )


@pytest.mark.parametrize(
    ("made", "share", "words"),
    [
        (certificate(0, 40, 40), 1.0, "at least 59 fresh rows to certify on"),
        (certificate(0, 40, 40), 0.999, "at least 59 fresh rows to certify on, about 60 fresh rows in all"),
        (certificate(0, 40, 60, rho=0.03), 1.0, "at least 69 fresh rows to certify on"),  # enough at 0.05 alone
        (certificate(0, 0, 60, threshold=math.inf), 1.0, "a model that is rarely wrong where it is sure (more training rows, or another method), certified on fresh rows"),
        (certificate(5, 80, 100), 1.0, "a higher threshold or a better model, certified on fresh rows"),
        (certificate(40, 900, 1000, alpha=0.1, rho=0.2, threshold=0.9), 1.0, ""),
        (certificate(4, 90, 100, rho=0.2), 1.0, f"about {rows_needed(0.05, 0.2, expected_jcw=0.04):,} fresh rows to certify on, if the rule goes on acting wrongly on 4 % of them"),
        (certificate(4, 90, 100, rho=0.2, tolerance="5 kg", population="group", name="A", unit="group"), 1.0, f"about {rows_needed(0.05, 0.2, expected_jcw=0.04):,} fresh groups whose row is of A to certify on, if the rule goes on acting with an error above 5 kg on the row drawn from 4 % of them"),
        (certificate(0, 10, 100, alpha=1e-17), 0.5, "more fresh rows than can be counted to certify on"),
    ],
)  # fmt: skip
def test_what_would_help_is_said_in_these_words(made, share, words) -> None:
    assert remedy(made, share) == words
    if share == 1.0:
        assert remedy(made) == words


def test_rows_that_were_looked_at_are_never_to_be_added_to() -> None:
    """To fill up 40 rows to 93 and look again fails in 7.07 % of draws at rho 5 %: fresh rows alone do."""
    few = certificate(1, 40, 40)
    assert remedy(few) == "at least 93 fresh rows to certify on"
    assert few.reason.endswith("alpha = 5 % needs at least 93 fresh rows")
    assert (
        "at least 93 rows" in certificate(1, 40, 40, kind="anytime").reason
    )  # planned to be added to


def test_what_would_help_is_told_for_each_part_that_failed() -> None:
    one, two = fixed_part(errors=9), fixed_part(errors=8, name="B")
    assert remedy(rule_of((one, two))) == f"{remedy(one)}; {remedy(two)}"
    granted = fixed_part(errors=0)
    assert granted.certified
    assert remedy(rule_of((granted, one))) == remedy(one)
    few = fixed_part(0, 40, 40)
    assert remedy(few) == "at least 59 fresh rows to certify on"
    assert remedy(few, 0.5) != remedy(few)


def test_a_part_that_is_deferred_anyway_needs_nothing_while_another_failed() -> None:
    failed, closed = fixed_part(errors=9), replace(fixed_part(0, 0, 50), threshold=math.inf)
    assert remedy(rule_of((failed, closed))) == remedy(failed)
    assert remedy(rule_of((closed,))) == remedy(closed) != ""


def test_groups_without_a_row_are_named() -> None:
    by = {"race": np.repeat(["A", "B"], 100)}
    budgets = {"A": 0.1, "Z": 0.1}
    common = certified_rule(EASY, TRUTH, Promise.by_group(budgets, by="race", common=True), by=by)
    assert remedy(common) == "fresh rows to certify on, with rows of race=Z among them"
    deferring = replace(REFUSED, parts=(), deferred={"group=A": "no certification row"})
    assert remedy(deferring) == "fresh rows to certify on, with rows of group=A among them"


def test_too_few_rows_are_mended_first() -> None:
    """Three groups: one has too few rows, one too many mistakes."""
    by = np.repeat(["A", "B", "C"], [100, 90, 10])
    wrong = (by == "B") & (np.arange(200) % 2 == 0)
    rows = ScoredRows(np.full(200, 0.9), wrong, 0.0, by={"race": by})
    for thresholds, needy in (
        (dict.fromkeys("ABC", 0.5), "race=C"),
        ({"A": 0.5, "B": 0.5, "C": math.inf}, "race=B"),  # a group deferred for good needs none
    ):
        found = judge_fixed_rule(rows, Rule((Thresholds(("race",), thresholds),)), BOTH, 0.05)
        part = next(part for part in found.parts if part.name == needy)
        assert remedy(found) == remedy(part) != ""
