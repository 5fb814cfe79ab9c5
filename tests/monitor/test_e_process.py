import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import beta

from reliablenet.monitor.e_process import (
    CHUNK,
    LOG_RESTARTS,
    LOG_WHOLE,
    NODES,
    Capital,
    add_late,
    advance,
    log_beta_mixture,
    log_beta_tail,
    log_value,
    make_bets,
    merge,
    prior,
)


def by_hand(x, alpha, audit):
    """Every start as a product of its own, row by row; the values after each row."""
    bets = make_bets(alpha, audit)
    whole, starts, cash, values = np.ones(NODES), [], 1.0, []
    for row, value in enumerate(x):
        if row and row % bets.block == 0:
            share = cash / (len(starts) + 2)
            starts.append(share * np.ones(NODES))
            cash -= share
        factor = 1 + bets.stakes * (value - alpha)
        whole = whole * factor
        starts = [start * factor for start in starts]
        restarts = sum(start.mean() for start in starts) + cash
        if audit == 1.0:
            k, n = int(sum(x[: row + 1])), row + 1
            mixed = math.exp(log_beta_mixture(k, n, alpha))
        else:
            mixed = whole.mean()
        values.append(0.9 * mixed + 0.1 * restarts)
    return np.array(values)


def run(x, probability, alpha, audit, cuts=()):
    bets, state, found = make_bets(alpha, audit), Capital.none(), []
    edges = [0, *cuts, len(x)]
    for low, high in pairwise(edges):
        wrong = np.flatnonzero(x[low:high])
        state, row, values = advance(state, bets, high - low, wrong, probability[low:high][wrong])
        found.append(np.column_stack([row, values]))
    return state, bets, np.vstack(found)


@pytest.mark.parametrize(
    ("alpha", "k", "n"), [(0.05, 3, 40), (0.05, 20, 100), (0.3, 5, 9), (0.7, 9, 10)]
)
def test_the_closed_form_is_the_integral_over_likelihood_ratios(alpha, k, n):
    a, b = prior(alpha)

    def ratio(q):
        return beta.pdf(q, a, b) * (q / alpha) ** k * ((1 - q) / (1 - alpha)) ** (n - k)

    expected = quad(ratio, alpha, 1.0, epsabs=0, limit=200)[0] / beta.sf(alpha, a, b)
    assert math.exp(log_beta_mixture(k, n, alpha)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("a", "b", "x"), [(3.0, 60.0, 0.9), (40.0, 9000.0, 0.2), (5000.0, 2e6, 0.03)]
)
def test_small_tails_are_those_of_an_integral_in_logarithms(a, b, x):
    from scipy.special import betaln

    def log_density(t):
        return (a - 1) * math.log(t) + (b - 1) * math.log1p(-t) - betaln(a, b)

    top, scale = log_density(x), 1.0 / ((b - 1) / (1 - x) - (a - 1) / x)
    end = min(1 - 1e-12, x + 60 * scale)
    area = quad(lambda t: math.exp(log_density(t) - top), x, end, epsabs=0, limit=200)[0]
    assert top < -690 or log_beta_tail(a, b, x) == pytest.approx(beta.logsf(x, a, b), rel=1e-9)
    assert log_beta_tail(a, b, x) == pytest.approx(top + math.log(area), rel=1e-9)


@pytest.mark.parametrize(
    ("alpha", "audit", "p"), [(0.05, 1.0, 0.15), (0.05, 0.3, 0.1), (0.2, 0.5, 0.1), (0.6, 1.0, 0.7)]
)
def test_values_are_those_of_products_written_out(alpha, audit, p):
    random = np.random.default_rng(0)
    x = (random.random(700) < p * audit) / audit
    expected = by_hand(x, alpha, audit)
    state, bets, found = run(x > 0, np.full(700, audit), alpha, audit)
    rows = found[:, 0].astype(int)
    assert np.array_equal(rows, np.flatnonzero(x) + 1)
    assert found[:, 1] == pytest.approx(np.log(expected[rows - 1]), rel=1e-9)
    assert log_value(state, bets) == pytest.approx(math.log(expected[-1]), rel=1e-9)
    assert state.peak == pytest.approx(max(0.0, np.log(expected.max())), rel=1e-9)


def test_probabilities_may_differ_from_row_to_row():
    random = np.random.default_rng(1)
    probability = random.choice([0.2, 0.5, 1.0], 400)
    x = (random.random(400) < 0.1 * probability) / probability
    state, bets, _ = run(x > 0, probability, 0.05, 0.2)
    assert math.exp(log_value(state, bets)) == pytest.approx(by_hand(x, 0.05, 0.2)[-1], rel=1e-9)


@pytest.mark.parametrize("audit", [1.0, 0.4])
def test_the_order_of_looks_does_not_matter(audit):
    random = np.random.default_rng(2)
    x = random.random(5000) < 0.08 * audit
    once = run(x, np.full(5000, audit), 0.05, audit)
    cuts = np.sort(random.choice(np.arange(1, 5000), 300, replace=False)).tolist()
    often = run(x, np.full(5000, audit), 0.05, audit, [*cuts, 5000])
    assert often[2] == pytest.approx(once[2], rel=1e-9)
    assert log_value(often[0], often[1]) == pytest.approx(log_value(once[0], once[1]), rel=1e-9)
    assert often[0].peak == pytest.approx(once[0].peak, rel=1e-9)
    assert (often[0].starts, once[0].starts) == (49, 49)


def test_the_mean_of_the_whole_is_at_most_one_over_all_outcomes():
    """Exactly: a tree of all 2^9 outcomes, with starts in it, at the edge of the promise."""
    alpha = 0.9  # a start every six rows
    total = 0.0
    for outcome in range(2**9):
        x = np.array([outcome >> i & 1 for i in range(9)], bool)
        state, bets, _ = run(x, np.ones(9), alpha, 1.0)
        total += alpha ** x.sum() * (1 - alpha) ** (9 - x.sum()) * math.exp(log_value(state, bets))
    assert bets.block == 6
    assert total == pytest.approx(1.0, rel=1e-9)


def test_ten_million_rows_stay_finite():
    bets = make_bets(0.05, 1.0)
    for every in (100, 10**7):
        wrong = np.arange(every - 1, 10**7, every)
        state, _, values = advance(Capital.none(), bets, 10**7, wrong, np.ones(len(wrong)))
        assert np.isfinite(values).all()
        assert np.isfinite(log_value(state, bets))
        assert state.rows == 10**7
    many = log_beta_mixture([10**7, 0], [10**7, 10**7], 0.05)
    assert np.isfinite(many).all()
    assert many[0] > 1e7


def test_late_rows_are_as_if_in_time_for_the_whole_stream_and_never_more_for_restarts():
    random = np.random.default_rng(3)
    for audit in (1.0, 0.5):
        x = random.random(900) < 0.1
        late = x & (random.random(900) < 0.5)
        prompt, bets, _ = run(x, np.full(900, audit), 0.05, audit)
        early, _, _ = run(x & ~late, np.full(900, audit), 0.05, audit)
        found = add_late(early, bets, np.full(late.sum(), audit))
        assert found.errors == prompt.errors
        assert found.log_surplus == pytest.approx(prompt.log_surplus)
        assert (found.log_restarts <= prompt.log_restarts).all()
        assert log_value(early, bets) < log_value(found, bets) <= log_value(prompt, bets)
        assert found.peak >= log_value(found, bets)


def test_merged_streams_hold_the_whole_of_all_rows_and_the_mean_of_restarts():
    random = np.random.default_rng(4)
    x = random.random(1000) < 0.1
    one, bets, _ = run(x[:600], np.ones(600), 0.05, 1.0)
    other, _, _ = run(x[600:], np.ones(400), 0.05, 1.0)
    both = merge(one, other, bets)
    assert (both.rows, both.errors) == (1000, x.sum())
    whole = log_beta_mixture(int(x.sum()), 1000, 0.05)
    restarts = [np.exp(np.append(part.log_restarts, part.log_cash)).sum() for part in (one, other)]
    expected = np.logaddexp(LOG_WHOLE + whole, LOG_RESTARTS + math.log(np.mean(restarts)))
    assert log_value(both, bets) == pytest.approx(expected)
    again = merge(other, one, bets)
    assert log_value(again, bets) == pytest.approx(log_value(both, bets))


def test_rows_are_taken_in_chunks():
    wrong = np.array([0, CHUNK - 1, CHUNK, 2 * CHUNK + 5])
    state, row, _ = advance(Capital.none(), make_bets(0.05, 1.0), 2 * CHUNK + 6, wrong, np.ones(4))
    assert row.tolist() == (wrong + 1).tolist()
    assert state.rows == 2 * CHUNK + 6
    assert logsumexp(state.log_restarts) < 0
