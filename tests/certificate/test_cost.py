"""Costs of acting: their bound, the largest sum that a budget affords, and what a certificate is worth."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from reliablenet import Promise, certified_rule
from reliablenet.certificate.bounds import clopper_pearson_upper
from reliablenet.certificate.cost import (
    CostCertificate,
    hoeffding_bentkus_p,
    hoeffding_bentkus_upper,
    largest_certifiable_cost,
)
from reliablenet.certificate.planning import largest_certifiable_errors
from reliablenet.certificate.wording import DRAWN
from reliablenet.errors import InvalidDataError, InvalidParameterError


def p_by_hand(total, n, alpha):
    """The p-value of Bates et al. 2021, as it is written there."""
    m = min(total / n, alpha)
    h = (m * math.log(m / alpha) if m else 0.0) + (1 - m) * math.log((1 - m) / (1 - alpha))
    return min(math.exp(-n * h), math.e * binom.cdf(math.ceil(total), n, alpha), 1.0)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.4, 0.9])
@pytest.mark.parametrize("n", [1, 7, 59, 1000])
def test_the_p_value_is_that_of_the_paper(n, alpha):
    for share in (0.0, 0.001, 0.3, 0.9, 1.0, 1.5):
        total = min(share * alpha, 1.0) * n
        found = hoeffding_bentkus_p(total, n, alpha)
        assert found == pytest.approx(p_by_hand(total, n, alpha), rel=1e-9)
    assert hoeffding_bentkus_p(n, n, alpha) == pytest.approx(1.0)
    assert hoeffding_bentkus_p(alpha * n, n, alpha) == pytest.approx(
        1.0
    )  # it is no evidence at all


def test_either_bound_may_be_the_smaller():
    """Hoeffding's without a cost; Bentkus's where the mean is near the limit."""
    assert hoeffding_bentkus_p(0.0, 59, 0.05) == pytest.approx(0.95**59)
    bentkus = math.e * binom.cdf(2, 200, 0.05)
    assert hoeffding_bentkus_p(2.0, 200, 0.05) == pytest.approx(bentkus)
    assert math.exp(-200 * (0.01 * math.log(0.2) + 0.99 * math.log(0.99 / 0.95))) > bentkus


def test_no_rule_at_its_limit_passes_too_often():
    """Exactly, over every outcome of n rows that cost 0, a half or all with the mean alpha."""
    n, alpha, rho = 60, 0.1, 0.1
    most = largest_certifiable_cost(n, alpha, rho)
    assert most > 0.0
    for half in (Fraction(0), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5)):
        whole = Fraction(1, 10) - half / 2
        passed = Fraction(0)
        for halves, wholes in product(range(n + 1), repeat=2):
            if halves + wholes <= n and halves / 2 + wholes <= most:
                ways = math.comb(n, halves) * math.comb(n - halves, wholes)
                passed += (
                    ways
                    * half**halves
                    * whole**wholes
                    * (1 - half - whole) ** (n - halves - wholes)
                )
        assert float(passed) <= rho


@pytest.mark.parametrize("rho", [0.001, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
def test_the_largest_sum_is_the_last_that_the_p_value_allows(alpha, rho):
    for n in (1, 2, 10, 58, 59, 150, 300, 2000):
        most = largest_certifiable_cost(n, alpha, rho)
        if most < 0.0:
            assert most == -1.0
            assert hoeffding_bentkus_p(0.0, n, alpha) > rho
            continue
        assert hoeffding_bentkus_p(most, n, alpha) <= rho
        assert hoeffding_bentkus_p(math.nextafter(most, n), n, alpha) > rho
        # whole costs that Bentkus allows are afforded to the last
        whole = largest_certifiable_errors(n, alpha, rho / math.e)
        assert most >= whole


def test_a_sum_is_not_lost_to_rounding():
    """Bentkus's tail is a step at whole numbers; Hoeffding's passes nine in ten times at half a row."""
    assert largest_certifiable_cost(696, 0.05, 0.05) == 22.0
    assert 0.5 < largest_certifiable_cost(10, 0.1, 0.9) < 1.0


@pytest.mark.parametrize("rho", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("n", [1, 59, 1000])
def test_the_bound_is_the_largest_expectation_that_is_not_refuted(n, rho):
    for mean in (0.0, 0.001, 0.02, 0.5, 0.99, 1.0):
        total = mean * n
        bound = hoeffding_bentkus_upper(total, n, rho)
        assert mean <= bound <= 1.0
        if bound < 1.0:
            assert hoeffding_bentkus_p(total, n, bound) <= rho
            assert hoeffding_bentkus_p(total, n, math.nextafter(bound, 0)) > rho
    assert hoeffding_bentkus_upper(n, n, rho) == 1.0
    assert hoeffding_bentkus_upper(0.0, n, rho) == pytest.approx(1 - rho ** (1 / n), rel=1e-9)


PLAIN = {"errors": 4, "accepted": 80, "n": 400, "alpha": 0.05, "rho": 0.05, "threshold": 0.9}
COSTS = {"cost": 9.0, "largest": 5.0, "name": "cost"}


def made(**changes) -> CostCertificate:
    return CostCertificate(**PLAIN | COSTS | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cost": -1.0}, "`cost` of CostCertificate must be a finite number of at least 0; got -1.0."),
        ({"cost": math.nan}, "`cost` of CostCertificate must be a finite number of at least 0; got nan."),
        ({"largest": 0.0}, "`largest` of CostCertificate must be a finite positive number; got 0.0."),
        ({"single": 1}, "`single` of CostCertificate must be True or False; got 1."),
        ({"guessing": -0.5}, "`guessing` of CostCertificate must be a finite number of at least 0; got -0.5."),
        ({"cost": 20.1}, "4 rows acted on at a cost of at most 5 each cannot have cost 20.1."),
        ({"cost": 19.0, "single": True}, "4 rows acted on at a cost of at most 5 each cannot have cost 19."),
        ({"errors": 0}, "0 rows acted on at a cost of at most 5 each cannot have cost 9."),
        ({"errors": 81}, "A certificate needs errors <= accepted <= n; got 81, 80, 400."),
    ],
)  # fmt: skip
def test_costs_that_no_rows_can_have_are_refused(changes, message):
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        made(**changes)
    assert str(caught.value) == message


def test_a_sum_may_miss_its_limit_by_its_last_bits_and_no_more():
    assert made(cost=math.nextafter(20.0, 21.0)).cost > 20.0
    assert made(cost=20.0 * (1 - 1e-10), single=True).single
    assert made(cost=0.0, errors=4).cost == 0.0
    assert made(cost=0.0, guessing=0.0).guessing == 0.0
    for cost, single in ((20.0 * (1 + 1e-11), False), (20.0 * (1 - 1e-8), True)):
        with pytest.raises(InvalidDataError, match="cannot have cost"):
            made(cost=cost, single=single)


def test_costs_are_told_in_the_unit_of_the_user():
    c = made()
    assert (c.budget, c.mean_cost) == (0.25, 9.0 / 400)
    assert (
        CostCertificate(**PLAIN | {"errors": 0}).largest,
        CostCertificate(**PLAIN | {"errors": 0}).cost,
    ) == (1.0, 0.0)
    assert not CostCertificate(**PLAIN | {"errors": 0}).single


@pytest.mark.parametrize("kind", ["fixed", "monotone"])
@pytest.mark.parametrize("n", [100, 400])
def test_granted_just_where_the_p_value_allows_the_sum(n, kind):
    most = largest_certifiable_cost(n, 0.05, 0.05)
    for share in (0.0, 0.5, 1.0, 1.0 + 1e-6, 2.0):
        cost = share * most * 5.0
        c = made(n=n, kind=kind, cost=cost, errors=math.ceil(cost / 5.0), accepted=90)
        assert c.certified == (share <= 1.0)
        assert (c.upper_bound <= 0.05) == c.certified
        exact = hoeffding_bentkus_upper(c.cost / 5.0, n, 0.05)
        chosen = hoeffding_bentkus_upper(most, n, 0.05)
        if c.certified:
            expected = exact if kind == "fixed" else max(exact, chosen)
            assert c.upper_bound == pytest.approx(min(expected, 0.05), rel=1e-9)
        else:
            assert c.upper_bound == pytest.approx(exact, rel=1e-9)


def test_where_every_row_or_none_is_accepted_nothing_was_chosen():
    """Then the bound is that of the sum itself, as for `Certificate`."""
    for accepted, cost in ((400, 9.0), (0, 0.0)):
        c = made(
            kind="monotone",
            accepted=accepted,
            errors=4 * (cost > 0),
            cost=cost,
            threshold=0.0 if accepted else math.inf,
        )
        assert c.upper_bound == pytest.approx(
            hoeffding_bentkus_upper(cost / 5.0, 400, 0.05), rel=1e-9
        )
    assert not made(accepted=0, errors=0, cost=0.0, threshold=math.inf).certified


def test_too_few_rows_prove_nothing_of_costs():
    c = made(n=58, accepted=50, errors=0, cost=0.0)
    assert not c.certified
    assert c.upper_bound == pytest.approx(1 - 0.05 ** (1 / 58), rel=1e-9)
    assert made(n=59, accepted=50, errors=0, cost=0.0).certified


def test_one_cost_is_a_count_with_its_exact_bound():
    c = made(cost=20.0, single=True)
    assert c.upper_bound == clopper_pearson_upper(4, 400, 0.05)
    assert made(cost=20.0).upper_bound > c.upper_bound


@pytest.mark.parametrize(
    ("changes", "empty"),
    [
        ({}, False),
        (
            {"guessing": 45.0},
            True,
        ),  # 9 / 80 a row acted on, and 45 / 400 for always the same answer
        ({"guessing": 45.001}, False),
        ({"guessing": 0.0}, True),
        ({"guessing": 45.0, "cost": 0.0, "errors": 0}, False),
        ({"guessing": 0.0, "cost": 0.0, "errors": 0}, False),
        ({"guessing": 45.0, "alpha": 0.001}, False),  # it was not granted
    ],
)
def test_what_costs_as_much_as_one_answer_for_all_is_worth_nothing(changes, empty):
    assert made(**changes).empty is empty


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "80 of 400 rows acted on cost 9 in all, 0.0225 a row: acting will cost at most 0.25 a row on average (95 % confidence)"),
        ({"n": 4000, "accepted": 1500}, "1,500 of 4,000 rows acted on cost 9 in all, 0.00225 a row: acting will cost at most 0.25 a row on average (95 % confidence)"),
        ({"alpha": 0.01}, "80 of 400 rows acted on cost 9 in all, 0.0225 a row: acting could cost at most 0.0909 a row on average (95 % confidence)"),
        ({"accepted": 0, "errors": 0, "cost": 0.0, "threshold": math.inf, "n": 4000}, "no threshold keeps acting within 0.25 a row on average in 4,000 rows (95 % confidence)"),
    ],
)  # fmt: skip
def test_reasons_are_told_in_costs(changes, words):
    assert made(**changes).reason == words


@pytest.mark.parametrize("unit", [1.0, 1000.0, 123_457.0])
def test_a_bound_above_the_budget_is_rounded_up(unit):
    """To the next ten-thousandth, however large costs are."""
    c = made(alpha=0.01, cost=9.0 * unit, largest=5.0 * unit)
    shown = float(c.reason.split("at most ")[1].split()[0])
    assert c.upper_bound * 5.0 * unit <= shown <= c.upper_bound * 5.0 * unit + 1.01e-4


def test_large_costs_are_told_to_the_last_digit():
    c = made(cost=9_876_543.0, largest=5_000_000.5, alpha=0.05)
    assert c.reason.startswith("80 of 400 rows acted on cost 9876543 in all, 2.469e+04 a row")
    assert "at most 250000.025 a row" in c.reason
    assert str(Promise.cost([[0, 5_000_000.5], [1, 0]], 1_234_567.25)) == (
        "acting costs at most 1234567.25 a row on average"
    )


@pytest.mark.parametrize("kind", ["fixed", "monotone"])
def test_a_sum_at_the_limit_keeps_its_budget(kind):
    """To the last bit that rounding may add; the bound that is told is then the budget and no more."""
    most = largest_certifiable_cost(400, 0.05, 0.05) * (1 + 1e-12)
    c = made(cost=most, largest=1.0, errors=20, kind=kind)
    assert c.certified
    assert c.upper_bound <= 0.05
    assert "will cost at most 0.05 a row" in c.reason
    over = made(cost=math.nextafter(most, 20.0), largest=1.0, errors=20, kind=kind)
    assert not over.certified
    assert over.upper_bound > 0.05
    assert "could cost at most 0.0501 a row" in over.reason


@pytest.mark.parametrize("accepted", [4, 1, 399])
def test_a_threshold_that_was_chosen_has_the_bound_of_the_largest_sum(accepted):
    c = made(kind="monotone", accepted=accepted, errors=min(4, accepted), cost=1.0)
    most = largest_certifiable_cost(400, 0.05, 0.05)
    assert c.upper_bound == min(hoeffding_bentkus_upper(most, 400, 0.05), 0.05)


def test_a_cost_certificate_tells_its_costs():
    c = made(alpha=0.01)
    assert repr(c) == f"<Certificate: {c}>"
    assert (
        c.to_dict() | {"cost": 9.0, "largest": 5.0, "single": False, "guessing": None}
        == c.to_dict()
    )


def test_a_cost_certificate_survives_its_text():
    c = made(guessing=45.5)
    assert CostCertificate.from_json(c.to_json()) == c
    told = json.loads(c.to_json())
    assert (told["cost"], told["largest"], told["single"], told["guessing"]) == (
        9.0,
        5.0,
        False,
        45.5,
    )
    assert told["reason"] == c.reason


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


def test_costs_are_told_of_groups() -> None:
    assert made(unit="group").reason == (
        "80 rows acted on, of 400 groups (one row of each), cost 9 in all, 0.0225 a group: acting on "
        f"{DRAWN} will cost at most 0.25 on average (95 % confidence)"
    )
    nothing = made(accepted=0, errors=0, cost=0.0, threshold=math.inf, unit="group")
    assert nothing.reason == (
        "no threshold keeps acting within 0.25 a group on average in 400 groups (one row of each) "
        "(95 % confidence)"
    )


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("row", "acts on 20 % of rows, and acting costs at most 0.25 a row on average"),
        (
            "group",
            f"acts on the row drawn from 20 % of groups, and acting on {DRAWN} costs at most 0.25 on average",
        ),
    ],
)
def test_the_verdict_of_a_cost_is_a_cost(unit, words) -> None:
    assert str(made(unit=unit)) == f"Certified: the rule {words} (95 % confidence)."
    assert str(made(unit=unit, errors=30, cost=150.0)).startswith("Not certified: ")
