"""The words of a certificate: true in every number, and the same wherever it is shown."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import example, given, strategies as st

from reliablenet.certificate import Certificate, Provenance, clopper_pearson_upper, wording
from reliablenet.certificate.wording import DRAWN


def certificate(errors=1, accepted=120, n=153, **changes) -> Certificate:
    settings = {"alpha": 0.05, "rho": 0.05, "threshold": 0.9} | changes
    return Certificate(errors, accepted, n, **settings)


def number(text: str) -> Decimal:
    return Decimal(text.removesuffix(" %").lstrip("<> "))


@given(st.floats(0, 1), st.floats(1e-30, 0.999))
@example(9e-21, 1e-20)
def test_a_bound_is_never_written_below_itself_nor_above_a_limit_that_it_keeps(
    bound, limit
) -> None:
    """Where the bound is the limit, the limit is written as the user gave it."""
    written = number(wording.percent_up(bound, limit)) / 100
    assert written >= Decimal(bound) or (bound == limit == float(written))
    if bound <= limit:
        assert float(written) <= limit


@given(st.floats(0, 1))
def test_a_lower_bound_is_never_written_above_itself(bound) -> None:
    assert number(wording.percent_down(bound)) / 100 <= Decimal(bound)


@given(st.floats(1e-6, 0.999999))
def test_a_level_is_never_written_above_itself(rho) -> None:
    assert number(wording.confidence(rho)) / 100 <= 1 - Decimal(repr(rho))


@given(st.floats(0, 1))
def test_only_0_and_1_are_written_as_0_and_100_percent(share) -> None:
    for trim in (False, True):
        written = wording.percent(share, trim=trim)
        assert (written == "0 %") == (share == 0.0)
        assert (written == "100 %") == (share == 1.0)


@given(st.floats(0, 1, exclude_max=True))
def test_a_threshold_below_1_is_never_written_as_1(value) -> None:
    assert wording.threshold_text(value) != "1"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_threshold_is_written_in_its_own_size(value) -> None:
    """A score may be an entropy of 1e-12 or a distance of 1e8: no digit that matters is lost."""
    written = wording.threshold_text(value)
    if "…" not in written:
        assert float(written) == value
        return
    shown = Decimal(written.replace("…", ""))
    assert abs(shown) <= abs(Decimal(repr(value)))
    last = Decimal(1).scaleb(shown.as_tuple().exponent)
    assert abs(Decimal(repr(value))) - abs(shown) < last


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            certificate(1, 153, 153, threshold=0.0, kind="monotone"),
            "1 confident mistake in 153 rows: at most 3.07 % of all rows will be acted on wrongly "
            "(95 % confidence)",
        ),
        (
            certificate(2, 100, 153, kind="monotone"),
            # three mistakes could have been afforded: their bound holds, that of two would not
            "2 confident mistakes in 153 rows: at most 4.99 % of all rows will be acted on wrongly "
            "(95 % confidence)",
        ),
        (
            certificate(0, 40, 40),
            "0 confident mistakes in 40 rows: up to 7.22 % of all rows could be acted on wrongly "
            "(95 % confidence); alpha = 5 % needs at least 59 fresh rows",
        ),
        (
            certificate(2, 40, 40),
            "2 confident mistakes in 40 rows: up to 14.92 % of all rows could be acted on wrongly "
            "(95 % confidence); alpha = 5 % needs at least 124 fresh rows",
        ),
        (
            certificate(3, 100, 100),
            "3 confident mistakes in 100 rows: up to 7.58 % of all rows could be acted on wrongly "
            "(95 % confidence); alpha = 5 % allows 1 confident mistake in 100 rows",
        ),
        (
            certificate(0, 0, 100, threshold=math.inf, kind="monotone"),
            "the rows with the best scores already hold too many mistakes: alpha = 5 % "
            "allows 1 confident mistake in 100 rows",
        ),
        (
            certificate(0, 0, 100, threshold=math.inf),
            "the rule acts on no row, so there is nothing to certify",
        ),
        (
            certificate(1, 80, 100, unit="group"),
            "1 confident mistake in 100 groups (one row of each): a row drawn at random from a new "
            "group will be acted on wrongly with a chance of at most 4.66 % (95 % confidence)",
        ),
        (
            certificate(0, 40, 40, unit="group"),
            "0 confident mistakes in 40 groups (one row of each): a row drawn at random from a new "
            "group could be acted on wrongly with a chance of up to 7.22 % (95 % confidence); "
            "alpha = 5 % needs at least 59 fresh groups",
        ),
        (
            certificate(0, 10, 100, alpha=1e-17),
            "0 confident mistakes in 100 rows: up to 2.96 % of all rows could be acted on wrongly "
            "(95 % confidence); alpha = 0.000000000000001 % needs more fresh rows than can be "
            "counted",
        ),
        (
            certificate(50, 80, 100, alpha=1e-14),
            "50 confident mistakes in 100 rows: up to 58.64 % of all rows could be acted on wrongly "
            "(95 % confidence); alpha = 0.000000000001 % needs more fresh rows than can be counted",
        ),
        (
            certificate(3, 80, 100, rho=0.2),
            "3 confident mistakes in 100 rows: up to 5.45 % of all rows could be acted on wrongly "
            "(80 % confidence); alpha = 5 % allows 2 confident mistakes in 100 rows",
        ),
        (
            certificate(6, 80, 100, alpha=0.1, rho=0.01),
            "6 confident mistakes in 100 rows: up to 13.96 % of all rows could be acted on wrongly "
            "(99 % confidence); alpha = 10 % allows 3 confident mistakes in 100 rows",
        ),
        (
            certificate(1, 1, 1),
            "1 confident mistake in 1 row: up to 100 % of all rows could be acted on wrongly (95 % "
            "confidence); alpha = 5 % needs at least 93 fresh rows",
        ),
        (
            certificate(1, 50, 60),
            "1 confident mistake in 60 rows: up to 7.67 % of all rows could be acted on wrongly "
            "(95 % confidence); alpha = 5 % allows 0 confident mistakes in 60 rows",
        ),
        (
            # 4.951 % is within 4.952 %; rounded up to two digits it would seem not to be
            certificate(0, 50, 59, alpha=0.04952),
            "0 confident mistakes in 59 rows: at most 4.951 % of all rows will be acted on wrongly "
            "(95 % confidence)",
        ),
    ],
)
def test_the_reason_says_in_numbers_what_was_found_and_what_is_missing(made, words) -> None:
    assert made.reason == wording.reason(made) == words


@pytest.mark.parametrize(("errors", "n"), [(1, 100), (0, 28), (1, 39)])
def test_a_bound_equal_to_alpha_is_not_printed_above_it(errors, n) -> None:
    """Between 0.1 and 0.125 seventeen digits, rounded up, may be the next float already."""
    alpha = clopper_pearson_upper(errors, n, 0.05)
    made = certificate(errors, errors, n, alpha=alpha)
    assert made.certified
    printed = re.search(r"at most ([0-9.]+) %", made.reason)[1]
    assert float(Decimal(printed) / 100) == alpha


@pytest.mark.parametrize("errors", [0, 1])
def test_the_smallest_alpha_whose_rows_can_be_counted_has_them_counted(errors) -> None:
    """At 2^-50 both sides of the comparison are exact, and equal."""
    assert re.search(
        r"at least [\d,]+ fresh rows", certificate(errors, 10, 1000, alpha=2.0**-50).reason
    )
    smaller = certificate(errors, 10, 1000, alpha=2.0**-51)
    assert smaller.reason.endswith("needs more fresh rows than can be counted")


def test_the_verdict_of_groups_never_speaks_of_all_rows() -> None:
    """AUDIT A4: a headline said that at most 6 % of all rows; 14.6 % were acted on wrongly."""
    made = certificate(unit="group")
    for words in (str(made), made.reason, repr(made), *made.to_dict()["notes"]):
        assert "of all rows" not in words
        assert "group" in words
    assert made.to_dict()["unit"] == "group"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            certificate(14, 15, 1000, commonest=500),
            "Certified, but worth nothing: of 15 rows acted on 14 were wrong; always answering the "
            "commonest label would be wrong on 50 % of rows.",
        ),
        (
            certificate(15, 15, 1000),
            "Certified, but worth nothing: of 15 rows acted on 15 were wrong.",
        ),
        (
            certificate(0, 0, 1000),
            "Certified, but worth nothing: the rule acted on none of 1,000 rows.",
        ),
        (
            # three in 100 wrong where nobody would be wrong more often by always saying the same
            certificate(3, 300, 300, commonest=297),
            "Certified, but worth nothing: of 300 rows acted on 3 were wrong; always answering the "
            "commonest label would be wrong on 1 % of rows.",
        ),
    ],
)
def test_an_empty_certificate_is_called_empty(made, words) -> None:
    assert made.certified  # the promise is proved, and worth nothing
    assert made.empty
    assert str(made) == words
    assert made.to_dict()["empty"] is True


@pytest.mark.parametrize(
    "made",
    [
        certificate(2, 300, 300, commonest=297),
        certificate(13, 15, 1000),
        certificate(1, 2, 1000, commonest=400),
        certificate(40, 45, 100, commonest=50),  # refused: it is called so instead
    ],
)
def test_what_is_worth_something_or_refused_is_not_called_empty(made) -> None:
    assert not made.empty
    assert "worth nothing" not in str(made)
    assert wording.emptiness(made) == ""


@given(st.integers(1, 2000), st.data(), st.sampled_from([0.01, 0.05, 0.2]))
def test_a_certificate_is_empty_just_where_acting_is_no_better_than_guessing(
    n, data, alpha
) -> None:
    accepted = data.draw(st.integers(0, n))
    errors = data.draw(st.integers(0, accepted))
    commonest = data.draw(st.integers(0, n))
    made = certificate(errors, accepted, n, alpha=alpha, commonest=commonest)
    if made.certified and accepted:
        no_better = errors / accepted >= 1 - commonest / n - 1e-12
        assert made.empty == (no_better or errors == accepted)
    else:
        assert made.empty == made.certified


def test_every_verdict_says_the_error_among_rows_acted_on_and_what_guessing_would_do() -> None:
    words = wording.acted_on(certificate(commonest=96))
    assert words == (
        "of 120 rows acted on 1 was wrong: 0.83 % (95 % interval 0.02 % to 4.56 %); always "
        "answering the commonest label would be wrong on 37.3 % of rows"
    )
    assert "commonest" not in wording.acted_on(certificate())
    assert wording.acted_on(certificate(0, 0)) == "no row of 153 was acted on"


def test_notes_tell_of_reuse_choice_copies_and_classes_not_known() -> None:
    assert wording.notes(certificate()) == []
    made = certificate(unknown=4, provenance=Provenance(chosen_among=10, uses=3, copies=7))
    words = " | ".join(wording.notes(made))
    for part in ("4 rows of a class", "chosen among 10 methods", "3 certificates", "7 rows repeat"):
        assert part in words


def test_without_a_certificate_the_verdict_says_whether_the_subject_acts() -> None:
    refused = certificate(20, 140)
    assert wording.verdict(refused, "the model", acts=True) == (
        "Not certified: the model acts on 91.5 % of rows without a certificate."
    )
    assert wording.verdict(refused, "the model", acts=False) == (
        "Not certified: the model defers every row."
    )
    assert "its budget of 5 %" in wording.verdict(refused)


def test_a_share_of_nothing_is_a_dash() -> None:
    assert wording.percent(math.nan) == "\u2013"


@pytest.mark.parametrize(
    ("changes", "reason", "verdict"),
    [
        ({"population": "accepted", "n": 120},
         "1 mistake in 120 rows acted on: at most 3.9 % of the rows acted on will be wrong (95 % confidence)",
         "at most 5 % of the rows acted on will be wrong (95 % confidence)"),
        ({"population": "accepted", "n": 120, "tolerance": "5 kg"},
         "1 mistake in 120 rows acted on: at most 3.9 % of the rows acted on will be off by more than 5 kg (95 % confidence)",
         "at most 5 % of the rows acted on will be off by more than 5 kg (95 % confidence)"),
        ({"population": "group", "name": "race=A"},
         "1 confident mistake in 153 rows of race=A: at most 3.07 % of rows of race=A will be acted on wrongly (95 % confidence)",
         "at most 5 % of rows of race=A will be acted on wrongly (95 % confidence)"),
        ({"population": "class", "name": "sick", "tolerance": "5 kg"},
         "1 confident mistake in 153 rows that are truly sick: at most 3.07 % of rows that are truly sick will be acted on with an error above 5 kg (95 % confidence)",
         "at most 5 % of rows that are truly sick will be acted on with an error above 5 kg (95 % confidence)"),
        ({"population": "predicted", "name": "well"},
         "1 confident mistake as well in 153 rows: at most 3.07 % of all rows will be acted on wrongly as well (95 % confidence)",
         "at most 5 % of all rows will be acted on wrongly as well (95 % confidence)"),
        ({"population": "group", "name": "race=A", "unit": "group", "tolerance": "5 kg"},
         "1 confident mistake in 153 groups (one row of each) whose row is of race=A: if it is of race=A, a row drawn at random from a new group will be acted on with an error above 5 kg with a chance of at most 3.07 % (95 % confidence)",
         "if it is of race=A, a row drawn at random from a new group will be acted on with an error above 5 kg with a chance of at most 5 % (95 % confidence)"),
        ({"tolerance": "5 kg"},
         "1 confident mistake in 153 rows: at most 3.07 % of all rows will be acted on with an error above 5 kg (95 % confidence)",
         "with an error above 5 kg on at most 5 % of all rows from this source (95 % confidence)"),
        ({"unit": "group", "tolerance": "5 kg"},
         "1 confident mistake in 153 groups (one row of each): a row drawn at random from a new group will be acted on with an error above 5 kg with a chance of at most 3.07 % (95 % confidence)",
         "a row drawn at random from a new group is acted on with an error above 5 kg with a chance of at most 5 % (95 % confidence)"),
    ],
    ids=str,
)  # fmt: skip
def test_each_population_is_told_of_its_own_rows(changes, reason, verdict) -> None:
    made = certificate(**changes)
    assert wording.reason(made) == reason
    assert wording.verdict(made).endswith(f", and {verdict}.")
    assert wording.verdict(made).startswith("Certified: the rule acts on ")


def test_notes_say_what_a_reader_must_know() -> None:
    def noted(**provenance):
        return wording.notes(certificate(provenance=Provenance(**provenance)))

    assert wording.notes(certificate()) == noted() == []
    assert noted(chosen_among=2) == ["chosen among 2 methods; the confidence allows for that"]
    assert noted(uses=2) == [
        "these rows have been used for 2 certificates: keeping the one that passed voids it"
    ]
    assert noted(copies=1) == ["1 row repeat another row of the fold, and count again"]
    assert wording.notes(certificate(unit="group", unknown=2)) == [
        "counted: one row of each group, drawn at random; it speaks of a random row of a new group, "
        "and groups with many rows weigh no more than others",
        "2 rows of a class that the model does not know count as wrong",
    ]


def test_how_rows_fared_is_told_with_their_tolerance() -> None:
    made = certificate(tolerance="5 kg", commonest=96)
    assert wording.acted_on(made) == (
        "of 120 rows acted on 1 was off by more than 5 kg: 0.83 % (95 % interval 0.02 % to 4.56 %); "
        "always answering the commonest label would be wrong on 37.3 % of rows"
    )
    assert wording.acted_on(certificate(2, 2, 153)).endswith("(95 % interval 15.81 % to 100 %)")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345678, "0.12345678"),
        (0.123456789, "0.123456…"),
        (-0.123456789, "-0.123456…"),
        (-0.12345678, "-0.12345678"),
        (12345678.5, "12345678.5"),
        (0.0, "0"),
        (123456789012.0, "123456789012"),
        (123456789012.3, "123456789012.3"),
        (123456789012.34, "123456789012.3…"),
        (math.inf, "none"),
        (-math.inf, "any"),
    ],
)
def test_thresholds_are_short(value, text) -> None:
    assert wording.threshold_text(value) == text


def test_a_mistake_is_wrong_unless_there_is_a_tolerance() -> None:
    assert (wording.wrong(), wording.wrongly()) == ("wrong", "wrongly")
    assert wording.wrong("5 kg") == "off by more than 5 kg"
    assert wording.wrongly("5 kg") == "with an error above 5 kg"


def test_figures_in_a_column_keep_their_zeros() -> None:
    assert wording.percent(0.5, trim=False) == "50.0 %"
    assert wording.percent(0.5) == "50 %"
    assert wording.percent(0.99999, 2) == "> 99.99 %"
    assert wording.percent(0.00001, 2, trim=False) == "< 0.01 %"
    assert wording.percent_up(0.05, 0.2, trim=False) == "5.01 %"
    assert wording.percent_up(0.125, 0.2, trim=False) == "12.50 %"
    assert wording.percent_up(0.125, 0.2) == "12.5 %"
    assert wording.percent(0.1, 0) == "10 %"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"population": "class", "name": "0"}, f"1 confident mistake in 153 groups (one row of each) whose row is truly 0: if it is truly 0, {DRAWN} will be acted on wrongly with a chance of at most 3.07 % (95 % confidence)"),
        ({"population": "group", "name": "ward=A"}, f"1 confident mistake in 153 groups (one row of each) whose row is of ward=A: if it is of ward=A, {DRAWN} will be acted on wrongly with a chance of at most 3.07 % (95 % confidence)"),
        ({"population": "accepted", "n": 120}, f"1 mistake in 120 groups (one row of each) whose row was acted on: if it is acted on, {DRAWN} will be wrong with a chance of at most 3.9 % (95 % confidence)"),
        ({"population": "predicted", "name": "0"}, f"1 confident mistake as 0 in 153 groups (one row of each): {DRAWN} will be acted on wrongly as 0 with a chance of at most 3.07 % (95 % confidence)"),
    ],
)  # fmt: skip
def test_reasons_of_groups_are_sentences(changes, reason) -> None:
    assert certificate(unit="group", **changes).reason == reason


def test_coverage_of_groups_is_no_share_of_rows() -> None:
    """One person with 5,000 rows that are all deferred counts once: the share of rows is far smaller."""
    assert str(certificate(0, 200, 201, unit="group")) == (
        "Certified: the rule acts on the row drawn from 99.5 % of groups, and a row drawn at random from a new "
        "group is acted on wrongly with a chance of at most 5 % (95 % confidence)."
    )
    acting = wording.verdict(certificate(20, 140, unit="group"), "the model", acts=True)
    assert acting == (
        "Not certified: the model acts on the row drawn from 91.5 % of groups without a certificate."
    )


def test_what_was_acted_on_and_guessing_are_told_of_the_rows_drawn() -> None:
    assert wording.acted_on(certificate(commonest=96, unit="group")) == (
        "of 120 rows acted on, one of each group, 1 was wrong: 0.83 % (95 % interval 0.02 % to 4.56 %); "
        "always answering the commonest label would be wrong on the row drawn from 37.3 % of groups"
    )
    assert wording.acted_on(certificate(0, 0, unit="group")) == (
        "of 153 groups (one row of each) no row was acted on"
    )


def test_what_a_cost_promises_is_told_of_rows_or_of_groups() -> None:
    assert wording.cost_limit(0.25, "row") == "acting costs at most 0.25 a row on average"
    drawn = f"acting on {wording.DRAWN} costs at most 0.25 on average"
    assert wording.cost_limit(0.25, "group") == drawn


def test_of_numbers_and_groups_acted_on_a_mistake_is_too_far_off() -> None:
    made = certificate(9, 120, 153, unit="group", population="accepted", tolerance="5 kg")
    assert "off by more than 5 kg with a chance of" in made.reason
    assert "wrong" not in made.reason


def test_rows_that_are_missing_are_fresh_unless_a_look_at_any_time_was_planned() -> None:
    strict = certificate(0, 50, 50, rho=0.001)
    assert wording.needed(strict) == 135  # 0.95 ** 135 is 0.00098
    assert wording.rows_missing(strict) == "at least 135 fresh rows"
    assert wording.rows_missing(replace(strict, kind="anytime")) == "at least 135 rows"


def test_rows_that_could_not_be_compared_are_noted() -> None:
    made = certificate(provenance=Provenance(compared=False))
    assert wording.notes(made)[-1] == (
        "these rows could not be compared with those that made the model: that they had no part in it "
        "rests on the word of whoever gave them"
    )
