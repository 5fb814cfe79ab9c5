"""Rows that come back as a whole are told from fresh ones, and fresh ones are hardly ever taken for them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reliablenet.tables.closeness import (
    NEGLIGIBLE,
    WINDOW,
    log_chance_of_closeness,
    same_as_whole,
)


def distance(new: np.ndarray, known: np.ndarray) -> float:
    both, p = new + known, new.sum() / (new + known).sum()
    return float(((new - p * both) ** 2 / (p * (1 - p) * both)).sum())


def every_split(both: list[int], n: int):
    """Yield all ways to take n rows of these kinds."""
    if not both:
        if n == 0:
            yield []
        return
    for taken in range(min(both[0], n) + 1):
        for rest in every_split(both[1:], n - taken):
            yield [taken, *rest]


@pytest.mark.parametrize(
    ("both", "n"), [([6, 8, 10], 12), ([5, 1, 1, 9], 6), ([2] * 6, 6), ([3, 4, 5, 6], 6)]
)
def test_the_bound_is_never_below_the_exact_chance(both, n) -> None:
    """The chance of every distance, by all splits of a table that is small enough."""
    total = np.array(both)
    splits = np.array(list(every_split(both, n)))
    chance = stats.multivariate_hypergeom(total, n).pmf(splits)
    assert chance.sum() == pytest.approx(1.0)
    apart = np.array([distance(split, total - split) for split in splits])
    for split, own in zip(splits, apart, strict=True):
        exact = chance[apart <= own + 1e-9].sum()
        assert log_chance_of_closeness(split, total - split) >= math.log(exact) - 1e-9


@pytest.mark.parametrize("counts", [[1], [3, 4, 5], [40] * 27, [1] * 300, [70_000, 3, 20_000]])
def test_of_equal_samples_it_is_the_exact_chance(counts) -> None:
    def log_ways(n: float, k: float) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    exact = sum(log_ways(2 * c, c) for c in counts) - log_ways(2 * sum(counts), sum(counts))
    found = log_chance_of_closeness(np.array(counts), np.array(counts))
    assert found == pytest.approx(exact, rel=1e-6, abs=1e-6)


def test_counts_outside_the_window_are_allowed_for(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    new, known = rng.multinomial(3000, np.full(9, 1 / 9), 2)
    close = new + np.array([1, -1, 0, 1, -1, 0, 0, 0, 0])
    whole = log_chance_of_closeness(close, new)
    monkeypatch.setattr("reliablenet.tables.closeness.WINDOW", 10 * WINDOW)
    assert log_chance_of_closeness(close, new) == pytest.approx(whole, abs=1e-9)
    monkeypatch.setattr("reliablenet.tables.closeness.WINDOW", WINDOW / 4)
    assert log_chance_of_closeness(close, new) >= whole
    assert log_chance_of_closeness(known, new) == 0.0


@pytest.mark.parametrize("level", [0.05, 0.005])
@pytest.mark.parametrize("kinds", [3, 8, 30, 200])
def test_fresh_samples_are_that_close_no_more_often_than_the_bound_says(kinds, level) -> None:
    """A simulation with a known truth, at levels that it can count: 2,000 pairs of fresh samples."""
    rng = np.random.default_rng(kinds)
    close = 0
    for _ in range(2000):
        shares = rng.dirichlet(np.full(kinds, 2.0))
        new, known = rng.multinomial(rng.integers(30, 200), shares), rng.multinomial(100, shares)
        there = new + known > 0
        close += log_chance_of_closeness(new[there], known[there]) <= math.log(level)
    assert stats.binomtest(close, 2000, level, alternative="greater").pvalue > 1e-4


def test_the_same_simulation_catches_a_bound_that_is_too_small() -> None:
    """Without the chance of the sum, which the product of the kinds has to be divided by."""
    rng = np.random.default_rng(3)
    close = 0
    for _ in range(2000):
        shares = rng.dirichlet(np.full(3, 2.0))
        new, known = rng.multinomial(100, shares), rng.multinomial(100, shares)
        there = new + known > 0
        bound = log_chance_of_closeness(new[there], known[there])
        close += bound - 0.5 * math.log(2 * math.pi * 50) <= math.log(0.05)
    assert stats.binomtest(close, 2000, 0.05, alternative="greater").pvalue < 1e-4


def rows(n: int, kinds: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, kinds, n).astype(np.uint64)


@pytest.mark.parametrize("kinds", [12, 27, 300])
def test_a_table_and_each_of_its_parts_is_recognised_in_any_order(kinds) -> None:
    past = rows(1000, kinds, 0)
    parts = [past[:650], past[650:800], past[800:]]
    for again in (past, past[:800], past[650:], *parts):
        shuffled = np.random.default_rng(1).permutation(again)
        assert same_as_whole(shuffled, parts)


def test_so_is_a_table_that_lost_or_gained_a_few_rows() -> None:
    past = rows(1000, 27, 0)
    assert same_as_whole(past[50:], [past])
    assert same_as_whole(np.concatenate([past, rows(30, 27, 1)]), [past])


def test_fresh_rows_are_not() -> None:
    """None of 1,500; fresh rows of a table of two kinds may be the same by chance, and are let pass."""
    for kinds in (1, 2, 5, 27, 300):
        for seed in range(300):
            past, fresh = rows(200, kinds, seed), rows(200, kinds, 1_000_000 + seed)
            assert not same_as_whole(fresh, [past[:140], past[140:]])
    assert not same_as_whole(rows(200, 2, 0), [rows(200, 2, 0)])


def test_nothing_is_like_nothing() -> None:
    none = np.empty(0, np.uint64)
    assert not same_as_whole(none, [rows(20, 3, 0)])
    assert not same_as_whole(rows(20, 3, 0), [])
    assert not same_as_whole(rows(20, 3, 0), [none])
    assert NEGLIGIBLE == 1e-6
