"""How rho is shared: fixed on the selection fold, families counted once, never more than rho in all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reliablenet.certificate import largest_certifiable_errors
from reliablenet.certificate.scored import ScoredRows
from reliablenet.errors import InvalidDataError
from reliablenet.methods import choice as module
from reliablenet.methods.choice import Choice, share_rho

N = 200
RANDOM = np.random.default_rng(0)
TRUTH = RANDOM.integers(3, size=N)
PREDICTED = np.where(RANDOM.random(N) < 0.2, (TRUTH + 1) % 3, TRUTH)
NOISE = RANDOM.random(N)


def rows(score: np.ndarray, predicted: np.ndarray = PREDICTED) -> ScoredRows:
    return ScoredRows(score, predicted != TRUTH, 0.0, truth=TRUTH, predicted=predicted)


GOOD = rows(NOISE + 0.5 * (PREDICTED == TRUTH))
POOR = rows(NOISE)


def share(methods: dict[str, ScoredRows | None], n: int = 5000) -> Choice:
    return share_rho(methods, 0.05, 0.05, n)


def total(choice: Choice) -> Fraction:
    return sum(Fraction(1, divisor) for divisor in choice.divisors.values())


def test_half_of_rho_goes_to_what_did_best_on_the_selection_fold() -> None:
    found = share({"poor": POOR, "good": GOOD, "other": rows(NOISE**2 + PREDICTED)})
    assert found.favourite == "good"
    assert found.divisors == {"poor": 4, "good": 2, "other": 4}
    assert found.level("poor", 0.08) == 0.02
    assert total(found) == 1


def test_one_method_has_all_of_rho_and_two_have_half_each() -> None:
    assert share({"alone": POOR}).divisors == {"alone": 1}
    assert share({"poor": POOR, "good": GOOD}).divisors == {
        "poor": 2,
        "good": 2,
    }


@pytest.mark.parametrize("n", [20, 59, 100, 153, 300, 500, 3000])
@pytest.mark.parametrize("others", [1, 2, 9])
def test_what_the_favourite_cannot_use_of_its_half_goes_to_the_others(n, others) -> None:
    random = np.random.default_rng(1)
    methods = {"good": GOOD} | {f"poor {k}": rows(random.random(N)) for k in range(others)}
    found = share(methods, n)
    assert total(found) <= 1

    def afforded(divisor: int) -> int:
        return largest_certifiable_errors(n, 0.05, 0.05 / divisor)

    part = found.divisors["good"]
    assert afforded(part) == afforded(2)
    assert afforded(part) < 0 or afforded(part + 1) < afforded(2)  # no smaller part would do
    rest = found.divisors["poor 0"]
    assert set(found.divisors.values()) <= {part, rest}
    assert rest <= 2 * others
    assert total(found) + Fraction(others, rest - 1) - Fraction(others, rest) > 1  # nor a larger


def test_parts_are_found_at_once_for_any_budget() -> None:
    assert module._spare(2, 0.999999, 0.05, 2) == module.LARGEST_DIVISOR
    assert 2 <= module._spare(2, 1 - 1e-9, 0.05, 2000) <= module.LARGEST_DIVISOR


def test_equals_are_judged_by_the_order_they_came_in() -> None:
    mirrored = ScoredRows(
        GOOD.score[::-1].copy(), GOOD.wrong[::-1].copy(), 0.0, predicted=PREDICTED
    )
    assert share({"one": GOOD, "two": mirrored}).favourite == "one"
    assert share({"two": mirrored, "one": GOOD}).favourite == "two"


def test_methods_that_rank_and_predict_alike_are_one() -> None:
    methods = {"erm": GOOD, "temperature": rows(GOOD.score**3), "poor": POOR, "crc": GOOD}
    found = share(methods)
    assert found.family == {"erm": "erm", "temperature": "erm", "poor": "poor", "crc": "erm"}
    assert found.divisors == {"erm": 2, "poor": 2}


def test_other_predictions_or_another_order_make_another_method() -> None:
    other = PREDICTED.copy()
    other[0] = (other[0] + 1) % 3
    turned = GOOD.score.copy()
    turned[:2] = turned[1::-1]
    for another in (rows(GOOD.score, other), rows(turned)):
        assert len(share({"one": GOOD, "other": another}).divisors) == 2


def test_a_score_that_only_ties_what_another_ranks_adds_nothing() -> None:
    tied, few = rows(np.round(GOOD.score, 1)), rows(np.round(GOOD.score))
    for names in (["fine", "tied", "few"], ["few", "tied", "fine"]):
        methods = {"fine": GOOD, "tied": tied, "few": few}
        found = share({name: methods[name] for name in names})
        assert found.divisors == {"fine": 1}
        assert set(found.family.values()) == {"fine"}


def test_a_coarse_score_below_two_finer_ones_belongs_to_the_first() -> None:
    constant = rows(np.ones(N))
    found = share({"constant": constant, "poor": POOR, "good": GOOD})
    assert found.family["constant"] == "poor"
    assert set(found.divisors) == {"poor", "good"}


def test_few_rows_do_not_tell_whether_two_methods_are_one(monkeypatch) -> None:
    few = {name: GOOD.take(slice(19)) for name in ("one", "same")}
    assert len(share(few).divisors) == 2
    monkeypatch.setattr(module, "LEAST_ROWS", 19)
    assert len(share(few).divisors) == 1


def test_without_selection_rows_all_count_alike() -> None:
    found = share({"one": None, "two": None, "three": None})
    assert found.divisors == {"one": 3, "two": 3, "three": 3}
    assert found.favourite == ""
    assert total(found) == 1


def test_what_might_have_been_the_favourite_holds_the_half() -> None:
    found = share({"good": GOOD, "failed": None, "poor": POOR, "too": None})
    assert found.favourite == "failed"
    assert found.divisors == {"good": 6, "failed": 2, "poor": 6, "too": 6}


def test_a_budget_that_no_row_keeps_still_finds_a_favourite() -> None:
    wrong = ScoredRows(NOISE, np.ones(N, bool), 0.0, predicted=PREDICTED)
    other = ScoredRows(NOISE[::-1].copy(), np.ones(N, bool), 0.0, predicted=PREDICTED)
    assert share({"wrong": wrong, "other": other}).favourite == "wrong"


few_scores = st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=6)


@given(few_scores)
def test_families_hold_together_whatever_the_scores(scores) -> None:
    methods = {
        f"method {number}": rows(np.repeat(levels, 70)[:N].astype(float))
        for number, levels in enumerate(scores)
    }
    found = share(methods)
    assert total(found) <= 1
    assert set(found.family) == set(methods)
    for name, first in found.family.items():
        assert found.family[first] == first
        fine, coarse = methods[first].score, methods[name].score
        for threshold in coarse:  # every rule of a method is one of the method that stands for it
            accepted = coarse >= threshold
            assert np.array_equal(accepted, fine >= fine[accepted].min())
    for one in found.divisors:  # and those that may be handed out differ
        for other in set(found.divisors) - {one}:
            assert not module._covers(methods[one], methods[other])


@pytest.mark.parametrize(
    ("divisors", "message"),
    [
        ({"a": 1, "b": 2}, "sum to rho at most; got the divisors {'a': 1, 'b': 2}"),
        ({"a": 2, "b": 3, "c": 4}, "sum to rho at most"),
        ({"a": 0}, "divided by whole numbers"),
        ({"a": -1}, "divided by whole numbers"),
        ({"a": 2.0}, "divided by whole numbers"),
        ({"a": True}, "divided by whole numbers"),
    ],
)
def test_parts_that_are_more_than_rho_are_refused(divisors, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        Choice(divisors, {})


def test_whoever_stands_for_others_needs_a_part() -> None:
    with pytest.raises(InvalidDataError, match=r"no part of rho: \['b'\]"):
        Choice({"a": 1}, {"a": "a", "c": "b"})
    with pytest.raises(InvalidDataError, match=r"no part of rho: \['b'\]"):
        Choice({"a": 1}, {"a": "a"}, "b")
