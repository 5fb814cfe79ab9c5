"""Paired resamples against `certified_threshold` on the very rows that were drawn."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from reliablenet.certificate import certified_threshold
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.scored import ScoredRows
from reliablenet.metrics import paired
from reliablenet.metrics.paired import (
    CLEAR,
    LIKELY,
    RESAMPLES,
    Contest,
    hold_contest,
    resample_certified_throughput,
)


def rules_of(n: int, seed: int, digits: int) -> list[ScoredRows]:
    """Return three rules about the same rows; few digits make many ties."""
    random = np.random.default_rng(seed)
    wrong = random.random(n) < 0.15
    scores = [
        random.random(n) - 0.4 * wrong,
        random.random(n),
        np.where(wrong, 0.2, 0.8) + 0.1 * random.random(n),
    ]
    return [ScoredRows(np.round(score, digits), wrong, -np.inf) for score in scores]


def one_by_one(rules, alpha, rho, resamples, seed) -> np.ndarray:
    random = np.random.RandomState(seed)
    n = rules[0].n
    result = np.zeros((len(rules), resamples))
    for column in range(resamples):
        drawn = random.randint(n, size=n)
        for row, rule in enumerate(rules):
            wrong = rule.wrong[drawn].astype(int)
            found = certified_threshold(
                None, np.zeros(n, int), alpha, rho, score=rule.score[drawn], predicted=wrong
            )
            result[row, column] = found.throughput if found.certified else 0.0
    return result


@pytest.mark.parametrize("digits", [1, 2, 15])
@pytest.mark.parametrize(("n", "alpha"), [(60, 0.1), (400, 0.05), (59, 0.05), (300, 0.3)])
def test_it_equals_certifying_every_resample_by_itself(n, alpha, digits) -> None:
    rules = rules_of(n, seed=n + digits, digits=digits)
    draws = resample_certified_throughput(rules, alpha, 0.05, 40, np.random.RandomState(1))
    np.testing.assert_allclose(draws, one_by_one(rules, alpha, 0.05, 40, seed=1), atol=1e-12)
    assert len(np.unique(draws)) > 3


@pytest.mark.parametrize("rho", [0.01, 0.3])
def test_another_level_is_certified_as_it_would_be_by_itself(rho) -> None:
    rules = rules_of(200, seed=0, digits=2)
    draws = resample_certified_throughput(rules, 0.1, rho, 20, np.random.RandomState(1))
    np.testing.assert_allclose(draws, one_by_one(rules, 0.1, rho, 20, seed=1), atol=1e-12)
    assert draws.any()


def test_a_rule_alone_is_resampled_as_in_company() -> None:
    rules = rules_of(200, seed=0, digits=2)
    together, alone = (
        resample_certified_throughput(some, 0.1, 0.05, 20, np.random.RandomState(1))
        for some in (rules, rules[:1])
    )
    np.testing.assert_array_equal(alone, together[:1])


def test_too_few_rows_for_any_certificate_give_zero() -> None:
    draws = resample_certified_throughput(
        rules_of(58, 0, 15), 0.05, 0.05, 10, np.random.RandomState(0)
    )
    assert draws.shape == (3, 10)
    assert not draws.any()


def test_the_size_of_a_chunk_changes_nothing(monkeypatch) -> None:
    rules = rules_of(200, 0, 2)
    whole = resample_certified_throughput(rules, 0.1, 0.05, 50, np.random.RandomState(0))
    monkeypatch.setattr(paired, "CHUNK_ENTRIES", 7 * 200)
    parts = resample_certified_throughput(rules, 0.1, 0.05, 50, np.random.RandomState(0))
    np.testing.assert_array_equal(whole, parts)
    monkeypatch.setattr(paired, "CHUNK_ENTRIES", 1)  # fewer than the rows of one resample
    single = resample_certified_throughput(rules, 0.1, 0.05, 50, np.random.RandomState(0))
    np.testing.assert_array_equal(whole, single)


def contest_of(**draws: list[float]) -> Contest:
    """Return a contest that "a" has won, with these throughputs in the resamples."""
    return Contest(
        "a",
        {name: float(np.mean(values)) for name, values in draws.items()},
        {name: np.array(values, float) for name, values in draws.items()},
    )


def test_sureness_is_the_share_of_resamples_won_and_half_of_the_ties() -> None:
    contest = contest_of(a=[3, 3, 3, 3], b=[2, 2, 3, 4], c=[3, 3, 3, 3])
    assert contest.sureness("b") == (2 + 0.5) / 4
    assert contest.sureness("c") == contest.sureness("a") == 0.5
    assert contest.resamples == 4


def test_words_begin_where_they_are_calibrated() -> None:
    for share, word in ((CLEAR, "clearly"), (LIKELY, "probably"), (0.5, "")):
        won = round(share * 1000)
        exact, less = (
            contest_of(a=[1] * 1000, b=[0] * count + [2] * (1000 - count))
            for count in (won, won - 1)
        )
        assert exact.word("b") == word
        assert less.word("b") != word or not word
    assert 0.5 < LIKELY < CLEAR < 1


def test_the_runner_up_is_the_best_that_differs() -> None:
    contest = contest_of(a=[3, 3], twin=[3, 3], b=[1, 2], c=[2, 2], d=[2, 2])
    assert contest.runner_up() == "c"
    assert contest_of(a=[3, 3], twin=[3, 3]).runner_up() is None
    assert contest_of(a=[3, 3], ahead=[4, 4]).runner_up() == "ahead"


@pytest.mark.parametrize(("alpha", "rho"), [(0.1, 0.05), (0.05, 0.0125), (0.02, 0.05)])
def test_a_contest_is_held_at_one_level_for_all(alpha, rho) -> None:
    rules = dict(zip("abc", rules_of(300, seed=1, digits=2), strict=True))
    contest = hold_contest("b", rules, alpha, rho)
    for name, rule in rules.items():
        found = judge(rule, alpha, rho)
        assert contest.throughput[name] == pytest.approx(found.throughput * found.certified)
    again = hold_contest("b", rules, alpha, rho)
    assert contest.resamples == RESAMPLES
    for name, draws in contest.draws.items():
        np.testing.assert_array_equal(draws, again.draws[name])
    first = resample_certified_throughput(
        list(rules.values()), alpha, rho, RESAMPLES, np.random.RandomState(0)
    )
    np.testing.assert_array_equal(np.array(list(contest.draws.values())), first)


def test_a_contest_is_a_record_that_stays_and_equals_itself_alone() -> None:
    first, second = contest_of(a=[1, 2]), contest_of(a=[1, 2])
    with pytest.raises(FrozenInstanceError):
        first.winner = "b"
    assert len({first, second, first}) == 2


def test_one_rule_alone_wins_without_a_rival() -> None:
    (rule,) = rules_of(300, seed=1, digits=2)[:1]
    contest = hold_contest("a", {"a": rule}, 0.1, 0.05)
    assert contest.throughput == {"a": judge(rule, 0.1, 0.05).throughput}
    assert contest.runner_up() is None
