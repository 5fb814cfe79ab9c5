"""Evidence that may be looked at after every row, against products written out and sums over all outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reliablenet.certificate import anytime_upper, clopper_pearson_upper
from reliablenet.certificate.anytime import LOG_WEIGHTS, STAKES, log_evidence_below
from reliablenet.certificate.planning import binomial_cdf
from reliablenet.errors import InvalidParameterError


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
