"""Oracles: the definition in rational arithmetic, MAPIE's CRC, and an exact law, for `conformal_threshold`.

* Definition: the smallest e with n/(n+1) R(e) + 1/(n+1) <= alpha, tried for every e that could be it,
  in fractions. A budget is the decimal that was written: 0.3 means 3/10, though the float 0.3 is less.
* MAPIE asks for "< alpha" where the definition has "<=", and returns its largest threshold where none
  is valid. Budgets that no (K + 1)/(n + 1) equals, and a last threshold of infinity, take both away.
* Law: leave one of N = n + 1 rows out, in turn. The rows accepted and wrong at the thresholds of the
  others are at most m = floor(alpha N), whatever the rows are; without ties they are min(m, wrong).
  So for exchangeable rows E[JCW] <= alpha, and E[JCW] = E[min(m, wrong rows among N)] / N for
  continuous scores: the simulation must meet a number, not merely stay below one.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from mapie.risk_control.methods import find_best_predict_param, get_r_hat_plus
from scipy.stats import betabinom

from reliablenet.certificate import conformal_threshold

BUDGET = st.integers(1, 99).map(lambda percent: percent / 100)
# Nine values for up to 80 rows: nearly all rows tie with others.
TIED_ROWS = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 3)), min_size=1, max_size=80).map(
    lambda rows: (
        np.array([score / 4 for score, _ in rows]),
        np.array([luck == 0 for _, luck in rows]),
    )
)


def threshold_of(score, wrong, alpha: float) -> float:
    labels = np.zeros(len(score), int)
    return conformal_threshold(None, labels, alpha, score=score, predicted=wrong.astype(int))


def by_definition(score, wrong, alpha: float, lowest: float) -> float:
    """Try the lowest threshold, every score and every middle of two, in ascending order."""
    n, budget = len(score), Fraction(repr(alpha))
    scores = np.unique(score)
    for e in [lowest, *np.sort(np.r_[scores, (scores[1:] + scores[:-1]) / 2])]:
        risk = Fraction(int(np.count_nonzero(wrong & (score > e))), n)
        if Fraction(n, n + 1) * risk + Fraction(1, n + 1) <= budget:
            return float(e) if e == lowest else next_above(e, lowest)
    return math.inf


def next_above(e: float, lowest: float) -> float:
    """Return the threshold that means the same with "at or above"; no probability is above 1."""
    return math.inf if lowest == 0.0 and e >= 1.0 else math.nextafter(e, math.inf)


@given(rows=TIED_ROWS, alpha=BUDGET)
def test_is_the_smallest_threshold_of_the_definition(rows, alpha):
    score, wrong = rows
    assert threshold_of(score, wrong, alpha) == by_definition(score, wrong, alpha, -math.inf)


@given(
    rows=st.lists(st.tuples(st.integers(51, 100), st.booleans()), min_size=1, max_size=60),
    alpha=BUDGET,
)
def test_is_the_smallest_threshold_of_the_definition_for_probabilities(rows, alpha):
    """The top probability is the score, so that 0 accepts every row; a ``score`` replaces it."""
    top, wrong = np.array([p for p, _ in rows]) / 100, np.array([w for _, w in rows])
    proba = np.column_stack([top, 1 - top])
    found = conformal_threshold(proba, wrong.astype(int), alpha)
    assert found == by_definition(top, wrong, alpha, 0.0)
    scored = conformal_threshold(proba, wrong.astype(int), alpha, score=-top)
    assert scored == by_definition(-top, wrong, alpha, -math.inf)


@pytest.mark.parametrize("percent", [1, 2, 3, 5, 7, 10, 29, 30, 57, 99])
def test_exists_exactly_from_1_over_alpha_less_1_rows_on(percent):
    """All rows wrong: the threshold then accepts m - 1 of them, m = floor(alpha (n + 1))."""
    for n in range(1, 120):
        score, wrong = np.arange(n, dtype=float), np.ones(n, bool)
        threshold = threshold_of(score, wrong, percent / 100)
        assert (threshold == math.inf) == (n < Fraction(100, percent) - 1)
        if threshold < math.inf:
            assert np.count_nonzero(score >= threshold) == percent * (n + 1) // 100 - 1


@given(rows=TIED_ROWS, alpha=BUDGET)
def test_without_errors_every_row_is_accepted_as_soon_as_a_threshold_exists(rows, alpha):
    score, _ = rows
    threshold = threshold_of(score, np.zeros(len(score), bool), alpha)
    exists = len(score) >= 1 / Fraction(repr(alpha)) - 1
    assert threshold == (-math.inf if exists else math.inf)


@settings(deadline=None)
@given(rows=TIED_ROWS, alpha=st.sampled_from([0.0503, 0.1009, 0.2003, 0.4007]))
def test_equals_mapies_conformal_risk_control(rows, alpha):
    score, wrong = rows
    candidates = np.r_[-math.inf, np.unique(score), math.inf]
    losses = (wrong[:, None] & (score[:, None] > candidates)).astype(float)
    _, bound = get_r_hat_plus(losses, candidates, "crc", None, None, None)
    threshold = threshold_of(score, wrong, alpha)
    if len(score) < 1 / alpha - 1:
        assert bound.min() > alpha
        assert threshold == math.inf
    else:
        theirs = find_best_predict_param(candidates, bound, np.array([alpha]))[0]
        assert threshold == (theirs if math.isinf(theirs) else math.nextafter(theirs, math.inf))


def accepted_and_wrong_when_left_out(score, wrong, alpha) -> int:
    others = ~np.eye(len(score), dtype=bool)
    return sum(
        wrong[i] and score[i] >= threshold_of(score[rest], wrong[rest], alpha)
        for i, rest in enumerate(others)
    )


@settings(deadline=None)
@given(rows=TIED_ROWS.filter(lambda rows: len(rows[0]) > 1), alpha=BUDGET)
def test_leaving_each_row_out_never_exceeds_the_budget(rows, alpha):
    score, wrong = rows
    assert accepted_and_wrong_when_left_out(score, wrong, alpha) <= Fraction(repr(alpha)) * len(
        score
    )


@settings(deadline=None)
@given(
    wrong=st.lists(st.booleans(), min_size=2, max_size=60),
    alpha=BUDGET,
    seed=st.integers(0, 10_000),
)
def test_without_ties_leaving_each_row_out_spends_the_budget_to_the_last_row(wrong, alpha, seed):
    wrong = np.array(wrong)
    score = np.random.default_rng(seed).permutation(len(wrong)).astype(float)
    affordable = math.floor(Fraction(repr(alpha)) * len(wrong))
    found = accepted_and_wrong_when_left_out(score, wrong, alpha)
    assert found == min(affordable, np.count_nonzero(wrong))


DRAWS, ROWS = 4000, 119


def simulate(alpha: float, spread: float, seed: int) -> tuple[np.ndarray, float]:
    """Return the true JCW at the threshold of each draw, and its exact expectation.

    Each draw has an error rate p of its own, from Beta(spread, 4 spread): its rows are exchangeable
    and, unless the spread is large, far from independent. Scores are uniform and rows wrong with
    probability p whatever their score, so that JCW above e is p (1 - e).
    """
    rng = np.random.default_rng(seed)
    rate = rng.beta(spread, 4 * spread, DRAWS)
    score = rng.random((DRAWS, ROWS))
    wrong = rng.random((DRAWS, ROWS)) < rate[:, None]
    thresholds = [threshold_of(s, w, alpha) for s, w in zip(score, wrong, strict=True)]
    affordable = math.floor(Fraction(repr(alpha)) * (ROWS + 1))
    count = np.arange(ROWS + 2)
    law = betabinom.pmf(count, ROWS + 1, spread, 4 * spread)
    exact = float(law @ np.minimum(count, affordable)) / (ROWS + 1)
    return rate * (1 - np.clip(thresholds, 0, 1)), exact


@pytest.mark.parametrize("alpha", [0.05, 0.1])
@pytest.mark.parametrize("spread", [0.5, 2.0, 1e6], ids=["mixed", "mild", "independent"])
def test_mean_jcw_keeps_the_budget_and_meets_its_exact_value(alpha, spread):
    jcw, exact = simulate(alpha, spread, seed=1)
    error = jcw.std(ddof=1) / math.sqrt(DRAWS)
    assert exact <= alpha
    assert jcw.mean() <= alpha + 3 * error
    assert jcw.mean() == pytest.approx(exact, abs=4 * error)
    assert 4 * error < alpha / 8


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_the_budget_is_spent_where_errors_abound(alpha):
    """A fifth of all rows is wrong: the mean is alpha itself, since alpha (n + 1) is whole."""
    jcw, exact = simulate(alpha, 1e6, seed=2)
    assert exact == pytest.approx(alpha, rel=0.01)
    assert jcw.mean() >= 0.97 * alpha
    assert 0.3 < np.mean(jcw > alpha) < 0.7
