"""Evidence that may be looked at after every row, against products written out and sums over all outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reliablenet.certificate import anytime_upper, clopper_pearson_upper
from reliablenet.certificate.anytime import (
    LOG_WEIGHTS,
    STAKES,
    log_evidence_below,
    log_mixture,
    log_sum,
    solve_upper,
)
from reliablenet.certificate.planning import binomial_cdf
from reliablenet.errors import InvalidDataError, InvalidParameterError


@pytest.mark.parametrize(("errors", "n", "mean"), [(0, 10, 0.1), (3, 40, 0.2), (7, 9, 0.6)])
def test_the_evidence_is_a_mean_of_products_written_out(errors, n, mean):
    weights = np.exp(LOG_WEIGHTS)
    products = np.ones(len(STAKES))
    for x in [1] * errors + [0] * (n - errors):
        products *= (1 - STAKES * x) / (1 - STAKES * mean)
    assert weights.sum() == pytest.approx(1.0)
    found = math.exp(log_evidence_below(errors, n, mean))
    assert found == pytest.approx((weights * products).sum(), rel=1e-9)


def test_the_mean_of_the_evidence_is_one_at_the_mean_in_question():
    n, mean = 60, 0.07
    k = np.arange(n + 1)
    chance = [math.comb(n, i) * mean**i * (1 - mean) ** (n - i) for i in k]
    assert np.dot(chance, np.exp(log_evidence_below(k, n, mean))) == pytest.approx(1.0, rel=1e-9)


def test_a_mean_that_moves_gives_no_more_evidence_than_its_average():
    """Exactly, over all 2^10 outcomes: rows with JCW 0.02 to 0.2 against their mean."""
    chances = np.linspace(0.02, 0.2, 10)
    total = 0.0
    for outcome in range(2**10):
        x = np.array([outcome >> i & 1 for i in range(10)])
        chance = np.where(x, chances, 1 - chances).prod()
        total += chance * math.exp(log_evidence_below(int(x.sum()), 10, float(chances.mean())))
    assert total <= 1.0


def test_the_bound_is_where_the_evidence_reaches_one_in_rho():
    for errors, n, rho in ((0, 100, 0.05), (12, 700, 0.01), (300, 20_000, 0.2)):
        bound = anytime_upper(errors, n, rho)
        assert bound > clopper_pearson_upper(errors, n, rho)
        assert log_evidence_below(errors, n, bound) == pytest.approx(-math.log(rho), abs=1e-6)
    assert anytime_upper(5, 5) == 1.0
    assert anytime_upper(50_000, 10**7) < 0.0055
    with pytest.raises(InvalidParameterError, match="at most n"):
        anytime_upper(6, 5)


def test_what_is_certified_at_any_time_would_be_certified_by_a_fixed_plan():
    for n in (60, 200, 1000, 5000):
        k = np.arange(n // 10)
        enough = log_evidence_below(k, n, 0.05) >= math.log(20)
        assert (np.diff(enough.astype(int)) <= 0).all()
        assert (binomial_cdf(k, np.full(len(k), n), 0.05)[enough] <= 0.05).all()


def test_the_stakes_are_fixed_once_for_all():
    """Certificates of earlier versions rest on them."""
    assert len(STAKES) == len(LOG_WEIGHTS) == 32
    assert STAKES[:16] == pytest.approx(np.geomspace(1e-4, 0.03, 16))
    assert STAKES[16:] == pytest.approx(np.arange(1, 32, 2) / 32)
    assert np.exp(LOG_WEIGHTS) == pytest.approx([0.25 / 16] * 16 + [0.75 / 16] * 16)


@pytest.mark.parametrize(
    ("errors", "n"), [(-1, 5), (6, 5), (1.0, 5), (1, 5.0), ([0, 9], 5), ([[1], [2]], [1, 2])]
)
def test_evidence_needs_whole_numbers_up_to_n(errors, n):
    with pytest.raises(InvalidParameterError) as caught:
        log_evidence_below(errors, n, 0.1)
    assert str(caught.value) == (
        f"`errors` of log_evidence_below must hold whole numbers from 0 to n; got {errors!r}."
    )


@pytest.mark.parametrize("counts", [np.uint8([0, 3]), np.int16([0, 3]), [0, 3]])
def test_whole_numbers_of_any_type_are_counts(counts):
    found = log_evidence_below(counts, np.uint8(40), 0.2)
    assert found.tolist() == [log_evidence_below(k, 40, 0.2) for k in (0, 3)]
    assert log_evidence_below(40, 40, 0.2) < 0.0  # all rows were wrong


@pytest.mark.parametrize("name", ["errors", "n"])
def test_what_is_no_array_is_named(name):
    given = {"errors": 1, "n": 5} | {name: [[1], [2, 3]]}
    with pytest.raises(InvalidDataError, match=f"^`{name}` must be an array"):
        log_evidence_below(**given, mean=0.1)


def test_evidence_broadcasts_and_a_scalar_is_a_float():
    table = log_evidence_below([[0], [3]], [5, 50, 500], 0.05)
    assert table.shape == (2, 3)
    for i, errors in enumerate((0, 3)):
        for j, n in enumerate((5, 50, 500)):
            one = log_evidence_below(errors, n, 0.05)
            assert type(one) is float
            assert table[i, j] == one
    assert log_evidence_below(0, 0, 0.05) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(
        InvalidParameterError, match=r"^`mean` of log_evidence_below must lie in \(0, 1\); got 1.0"
    ):
        log_evidence_below(0, 5, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 5), "`errors` of anytime_upper must be a whole number of at least 0; got -1."),
        ((1, -5), "`n` of anytime_upper must be a whole number of at least 0; got -5."),
        ((6, 5), "`errors` of anytime_upper must be at most n = 5; got 6."),
        ((1, 5, 0.0), "`rho` of anytime_upper must lie in (0, 1); got 0.0."),
    ],
)
def test_bad_counts_are_named(arguments, message):
    with pytest.raises(InvalidParameterError) as caught:
        anytime_upper(*arguments)
    assert str(caught.value) == message


def test_scaled_stakes_are_smaller_stakes():
    """With every stake halved, on losses of at most 2: the same product, written out."""
    losses, mean = np.array([0.0, 2.0, 0.5, 0.0]), 0.3
    kept = np.log1p(-0.5 * STAKES * losses[:, None]).sum(axis=0)
    products = np.prod((1 - 0.5 * STAKES * losses[:, None]) / (1 - 0.5 * STAKES * mean), axis=0)
    found = log_mixture(kept, 4, mean, 0.5)
    assert np.exp(found) == pytest.approx((np.exp(LOG_WEIGHTS) * products).sum(), rel=1e-12)
    bound = solve_upper(100 * np.log1p(-0.5 * STAKES) * 0.01, 100, 0.05, 0.5)
    assert log_mixture(100 * np.log1p(-0.5 * STAKES) * 0.01, 100, bound, 0.5) == pytest.approx(
        math.log(20)
    )


def test_the_bound_is_never_below_the_root():
    for errors, n in ((0, 100), (3, 200), (40, 1000)):
        bound = anytime_upper(errors, n)
        kept = errors * np.log1p(-STAKES)
        assert log_mixture(kept, n, bound) >= math.log(20)
        assert log_mixture(kept, n, bound - 1e-12) < math.log(20)


def test_sums_of_logarithms_hold_at_either_end():
    assert log_sum(np.array([-1e4, -1e4 + math.log(3)])) == pytest.approx(-1e4 + math.log(4))
    assert log_sum(np.array([1e4, 1e4])) == pytest.approx(1e4 + math.log(2))
    assert log_sum(np.array([-np.inf, 0.0])) == 0.0
    assert log_sum(np.array([[-np.inf, -np.inf], [0.0, 0.0]])).tolist() == [-math.inf, math.log(2)]
