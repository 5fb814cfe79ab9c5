"""What follows from counts, against exact fractions for every small count."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from scipy.stats import binomtest

from reliablenet.certificate.counts import Counts
from reliablenet.errors import InvalidDataError

SMALL = [
    (errors, accepted, n)
    for n, accepted, errors in product(range(1, 8), range(8), range(8))
    if errors <= accepted <= n
]


def counts(errors, accepted, n, commonest=None, rho=0.05) -> Counts:
    made = Counts()
    made.errors, made.accepted, made.n, made.commonest, made.rho = (
        errors,
        accepted,
        n,
        commonest,
        rho,
    )
    return made


def test_shares_are_those_of_the_counts():
    for errors, accepted, n in SMALL:
        made = counts(errors, accepted, n)
        made.check_counts()
        assert made.coverage == float(Fraction(accepted, n))
        assert made.jcw == float(Fraction(errors, n))
        assert made.throughput == float(Fraction(accepted - errors, n))
        if accepted:
            assert made.error_accepted == float(Fraction(errors, accepted))
        else:
            assert math.isnan(made.error_accepted)


@pytest.mark.parametrize("bad", [(2, 1, 5), (0, 6, 5), (6, 6, 5)])
def test_counts_that_no_rows_can_have_are_refused(bad):
    text = f"A certificate needs errors <= accepted <= n; got {', '.join(map(str, bad))}."
    with pytest.raises(InvalidDataError) as caught:
        counts(*bad).check_counts()
    assert str(caught.value) == text


@pytest.mark.parametrize("rho", [0.05, 0.2])
@pytest.mark.parametrize(("errors", "accepted"), [(0, 40), (3, 40), (40, 40)])
def test_the_interval_is_that_of_scipy_among_rows_accepted(errors, accepted, rho):
    found = counts(errors, accepted, 100, rho=rho).error_accepted_interval
    expected = binomtest(errors, accepted).proportion_ci(1 - rho, "exact")
    assert found == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_guessing_is_always_the_commonest_label():
    for errors, accepted, n in SMALL:
        for commonest in range(n + 1):
            made = counts(errors, accepted, n, commonest)
            guessed = Fraction(n - commonest, n)
            assert made.guessing_error == float(guessed)
            worthless = errors == accepted or Fraction(errors, accepted) >= guessed
            assert made.no_better_than_guessing == worthless


def test_without_labels_only_rows_that_are_all_wrong_are_worth_nothing():
    for errors, accepted, n in SMALL:
        made = counts(errors, accepted, n)
        assert math.isnan(made.guessing_error)
        assert made.no_better_than_guessing == (errors == accepted)
