"""Theorem holdout_certificates: both bounds fail with probability at most rho, by exact enumeration.

The number of errors in n rows is binomial, so the probability that a bound falls below the truth is
a finite sum over the counts: no simulation, no tolerance beyond rounding.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binom

from reliablenet.certificate import clopper_pearson_upper, hoeffding_upper

SIZES = st.integers(1, 300)
RHO = st.floats(0.001, 0.5)
TRUTH = st.floats(1e-9, 1.0)


@given(n=SIZES, rho=RHO, height=st.floats(1.0, 2.0), q=TRUTH)
def test_i_hoeffding_fails_with_probability_at_most_rho(n, rho, height, q):
    """The two-point distribution on {0, height} has the largest variance, so it is the hardest."""
    counts = np.arange(n + 1)
    bound = hoeffding_upper(height * (counts / n), n, rho, height)
    assert binom.pmf(counts, n, q)[bound < height * q].sum() <= rho


@given(n=SIZES, rho=RHO, q=TRUTH)
def test_ii_clopper_pearson_fails_with_probability_at_most_rho(n, rho, q):
    counts = np.arange(n + 1)
    bound = clopper_pearson_upper(counts, n, rho)
    assert binom.pmf(counts, n, q)[bound < q].sum() <= rho * (1 + 1e-9)


@pytest.mark.parametrize("rho", [0.01, 0.05, 0.2])
def test_ii_clopper_pearson_is_exact(rho):
    """Just above each bound the failure probability equals rho: no smaller bound would be valid."""
    n = 60
    counts = np.arange(n + 1)
    bound = clopper_pearson_upper(counts, n, rho)
    for truth in np.nextafter(bound[:-1], 1):
        failure = binom.pmf(counts, n, truth)[bound < truth].sum()
        assert failure == pytest.approx(rho, rel=1e-9)
