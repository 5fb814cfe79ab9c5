from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import beta, binom, norm

from reliablenet.certificate import (
    certification_power,
    clopper_pearson_upper,
    largest_certifiable_errors,
    rows_for_errors,
    rows_needed,
)
from reliablenet.certificate.planning import binomial_cdf, certifiable_jcw, certification_rows
from reliablenet.errors import InvalidDataError, InvalidParameterError

ALPHA = st.floats(0.03, 0.6)
RHO = st.sampled_from([0.01, 0.05, 0.1, 0.3])


def affordable_errors(n: int, alpha: float, rho: float) -> int:
    """Scan the counts for the largest one whose beta quantile is within alpha; -1 if none is."""
    counts = np.arange(n)
    return int(np.sum(beta.ppf(1 - rho, counts + 1, n - counts) <= alpha)) - 1


@given(n=st.integers(1, 400), alpha=ALPHA, rho=RHO)
def test_largest_certifiable_errors_equals_a_scan_of_every_count(n, alpha, rho):
    assert largest_certifiable_errors(n, alpha, rho) == affordable_errors(n, alpha, rho)


def test_largest_certifiable_errors_counts_the_papers_german_credit_fold():
    """In 95 rows one error is affordable at alpha = 0.05, not the two to four of the paper."""
    assert largest_certifiable_errors(95, 0.05) == 1


@given(errors=st.integers(0, 60), alpha=ALPHA, rho=RHO)
def test_rows_for_errors_is_the_first_size_whose_bound_is_within_alpha(errors, alpha, rho):
    n = rows_for_errors(errors, alpha, rho)
    assert type(n) is int
    assert clopper_pearson_upper(errors, n, rho) <= alpha
    if n > errors + 1:
        assert clopper_pearson_upper(errors, n - 1, rho) > alpha


def test_rows_for_errors_of_an_array_are_those_of_its_entries():
    errors = np.array([[0, 1, 2], [7, 50, 400]])
    rows = rows_for_errors(errors, 0.02)
    assert rows.shape == errors.shape
    assert rows.tolist() == [[rows_for_errors(int(k), 0.02) for k in row] for row in errors]


def test_rows_for_errors_takes_counts_of_a_small_integer_type():
    """In a process of its own, because an overflow inside shows as a loop without end."""
    code = (
        "import numpy as np; from reliablenet.certificate import rows_for_errors;"
        "print(rows_for_errors(np.array([200], np.uint8), 0.05).tolist())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert answer.stdout.strip() == "[4485]"


@pytest.mark.parametrize(("alpha", "rows"), [(0.05, 59), (0.03, 99), (0.01, 299)])
def test_rows_needed_without_errors(alpha, rows):
    assert rows_needed(alpha, 0.05) == rows
    assert rows_for_errors(0, alpha, 0.05) == rows


@settings(max_examples=30)
@given(
    alpha=st.floats(0.05, 0.6),
    rho=RHO,
    part=st.floats(0.0, 0.5),
    power=st.sampled_from([0.5, 0.8, 0.9, 0.99]),
)
def test_rows_needed_is_the_first_size_with_the_wanted_power(alpha, rho, part, power):
    truth, n = part * alpha, 1
    while binom.cdf(affordable_errors(n, alpha, rho), n, truth) < power:
        n += 1
    assert rows_needed(alpha, rho, truth, power) == n


@given(n=st.integers(1, 300), alpha=ALPHA, rho=RHO, truth=st.floats(1e-6, 1.0))
def test_power_is_the_probability_of_an_affordable_count(n, alpha, rho, truth):
    expected = binom.cdf(affordable_errors(n, alpha, rho), n, truth)
    power = certification_power(n, alpha, rho, truth)
    assert type(power) is float
    assert power == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_power_equals_the_share_of_certified_simulated_folds():
    n, truth, draws = 200, 0.02, 20_000
    errors = np.random.default_rng(0).binomial(n, truth, size=draws)
    share = np.mean(clopper_pearson_upper(errors, n, 0.05) <= 0.05)
    power = certification_power(n, 0.05, expected_jcw=truth)
    assert 0.2 < power < 0.8
    assert share == pytest.approx(power, abs=3 * np.sqrt(power * (1 - power) / draws))


def test_power_broadcasts_and_has_its_limits():
    power = certification_power([[58], [59], [500]], 0.05, expected_jcw=[0.0, 0.01, 1.0])
    assert power.shape == (3, 3)
    assert power[0].tolist() == [0.0, 0.0, 0.0]  # 58 rows never suffice
    assert power[1:, 0].tolist() == [1.0, 1.0]
    assert power[:, 2].tolist() == [0.0, 0.0, 0.0]


def test_power_of_a_rule_at_its_budget_is_at_most_rho():
    assert certification_power(np.arange(1, 500), 0.05, expected_jcw=0.05).max() <= 0.05


@pytest.mark.parametrize("name", ["alpha", "rho"])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, float("nan"), "0.05", None])
@pytest.mark.parametrize(
    ("function", "first"),
    [
        (largest_certifiable_errors, {"n": 100}),
        (rows_for_errors, {"errors": 2}),
        (certification_power, {"n": 100}),
        (rows_needed, {}),
    ],
)
def test_levels_outside_the_unit_interval_are_refused(function, first, name, value):
    setting = {"alpha": 0.05, "rho": 0.05} | first | {name: value}
    text = rf"`{name}` of {function.__name__} must lie in \(0, 1\); got {value!r}"
    with pytest.raises(InvalidParameterError, match=text):
        function(**setting)


def test_a_budget_in_percent_is_answered_with_a_guess():
    with pytest.raises(InvalidParameterError, match=r"got 5\. Did you mean 0\.05\?"):
        rows_needed(5)


@pytest.mark.parametrize("n", [0, -1])
def test_largest_certifiable_errors_refuses_an_impossible_size(n):
    with pytest.raises(InvalidParameterError, match="`n` of largest_certifiable_errors"):
        largest_certifiable_errors(n, 0.05)


@pytest.mark.parametrize("errors", [-1, 1.5, [0, -2]])
def test_rows_for_errors_refuses_what_is_no_count(errors):
    with pytest.raises(InvalidParameterError, match="`errors` of rows_for_errors must hold whole"):
        rows_for_errors(errors, 0.05)


@pytest.mark.parametrize("n", [0, 10.5, [10, 0]])
def test_power_refuses_an_impossible_size(n):
    with pytest.raises(InvalidParameterError, match="`n` of certification_power must hold whole"):
        certification_power(n, 0.05)


@pytest.mark.parametrize("truth", [-0.1, 1.1, float("nan")])
def test_power_refuses_a_truth_that_is_no_probability(truth):
    with pytest.raises(InvalidParameterError, match=r"`expected_jcw` of certification_power must"):
        certification_power(100, 0.05, expected_jcw=truth)


@pytest.mark.parametrize("truth", [0.05, 0.5, -0.01, float("nan")])
def test_rows_needed_refuses_a_rule_that_does_not_keep_its_budget(truth):
    text = (
        r"`expected_jcw` of rows_needed must lie in \[0, alpha\) = \[0, 0.05\).*No number of rows"
    )
    with pytest.raises(InvalidParameterError, match=text):
        rows_needed(0.05, expected_jcw=truth)


def test_rows_needed_refuses_an_impossible_power():
    with pytest.raises(InvalidParameterError, match=r"`power` of rows_needed must lie in \(0, 1\)"):
        rows_needed(0.05, power=1.0)


def test_the_binomial_distribution_is_that_of_scipy():
    n, k = np.tril_indices(12, -1)
    for p in (0.05, 0.3, 0.9):
        np.testing.assert_allclose(binomial_cdf(k, n, p), binom.cdf(k, n, p), rtol=1e-12)


def test_a_bound_equal_to_alpha_is_within_it():
    alpha = clopper_pearson_upper(3, 100, 0.05)
    assert largest_certifiable_errors(100, alpha) == 3
    assert largest_certifiable_errors(100, math.nextafter(alpha, 0)) == 2


@pytest.mark.parametrize("n", [20, 27, 100, 1000])
def test_a_bound_equal_to_alpha_is_within_it_whichever_count_is_tried_first(n):
    """Where the bound is alpha, the guess rounds to this count or to the one below."""
    for errors in range(10):
        alpha = clopper_pearson_upper(errors, n, 0.05)
        assert largest_certifiable_errors(n, alpha) == errors


@pytest.mark.parametrize("n", [1, 59, 10**6])
def test_a_budget_too_small_for_a_guess_is_answered_all_the_same(n):
    """scipy finds no count whose binomial tail is rho, and returns NaN."""
    assert largest_certifiable_errors(n, 1e-300) == -1


@pytest.mark.parametrize(
    ("errors", "n", "rho"), [(0, 8, 0.05), (0, 29, 0.05), (0, 106, 0.05), (1, 5, 0.01)]
)
def test_where_the_tail_rounds_above_rho_the_certificate_still_decides(errors, n, rho):
    """alpha is the very bound of n rows, and yet the binomial tail at alpha exceeds rho."""
    alpha = clopper_pearson_upper(errors, n, rho)
    assert rows_for_errors(errors, alpha, rho) == n


@pytest.mark.parametrize(
    ("errors", "n", "rho"), [(1, 16, 0.05), (2, 17, 0.05), (4, 19, 0.1), (2, 15, 0.01)]
)
def test_where_the_tail_rounds_below_rho_the_certificate_still_decides(errors, n, rho):
    """alpha lies one float below the bound of n rows, and yet the tail at alpha is within rho."""
    alpha = math.nextafter(clopper_pearson_upper(errors, n, rho), 0)
    assert rows_for_errors(errors, alpha, rho) == n + 1


def test_one_row_suffices_for_a_budget_that_nearly_everything_keeps():
    assert rows_for_errors([0, 1], 0.96).tolist() == [1, 3]
    assert certification_power(1, 0.96) == 1.0


def test_without_an_expectation_a_rule_is_taken_to_make_no_error():
    assert certification_power(100, 0.05) == certification_power(100, 0.05, 0.05, 0.0) == 1.0


def test_rows_needed_takes_the_first_size_whose_power_is_just_reached():
    power = certification_power(93, 0.05, expected_jcw=0.01)
    assert certification_power(59, 0.05, expected_jcw=0.01) < power
    assert rows_needed(0.05, expected_jcw=0.01, power=power) == 93
    assert rows_needed(0.05, expected_jcw=0.01, power=math.nextafter(power, 1)) == 124


def test_rows_needed_searches_on_where_many_errors_must_be_affordable():
    n = rows_needed(0.05, expected_jcw=0.04)
    errors = np.arange(largest_certifiable_errors(n, 0.05) + 1)
    assert len(errors) > 64 + 64
    sizes = rows_for_errors(errors, 0.05)
    assert sizes[-1] == n
    power = binom.cdf(errors, sizes, 0.04)
    assert power[-1] >= 0.9 > power[:-1].max()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: rows_for_errors(-1, 0.05),
            "`errors` of rows_for_errors must hold whole numbers of at least 0; got -1.",
        ),
        (
            lambda: certification_power(0, 0.05),
            "`n` of certification_power must hold whole numbers of at least 1; got 0.",
        ),
        (
            lambda: certification_power(9, 0.05, expected_jcw=1.1),
            "`expected_jcw` of certification_power must lie in [0, 1]; got 1.1.",
        ),
        (
            lambda: certification_power([9, 10], 0.05, expected_jcw=[0.1, 0.2, 0.3]),
            "The arrays of certification_power do not fit together: `n` (2,), `expected_jcw` (3,).",
        ),
        (
            lambda: certification_power(9, 0.05, expected_jcw="0"),
            "`expected_jcw` of certification_power must hold numbers; got '0'.",
        ),
        (
            lambda: rows_needed(0.05, expected_jcw=0.05),
            "`expected_jcw` of rows_needed must lie in [0, alpha) = [0, 0.05); got 0.05. "
            "No number of rows certifies a rule that does not keep its budget.",
        ),
        (
            lambda: rows_needed(0.05, groups=0),
            "`groups` of rows_needed must be a whole number of at least 1; got 0.",
        ),
        (
            lambda: rows_needed(0.05, shares="half"),
            "`shares` of rows_needed must hold numbers; got 'half'.",
        ),
        (
            lambda: rows_needed(0.05, shares=[0.5, 0.6]),
            "`shares` of rows_needed must be positive and have the sum 1; got [0.5, 0.6].",
        ),
        (
            lambda: certification_rows(0, 0.05),
            "`n` of certification_rows must be a whole number of at least 1; got 0.",
        ),
        (
            lambda: certification_rows(9, 0.0),
            "`alpha` of certification_rows must lie in (0, 1); got 0.0.",
        ),
        (
            lambda: certification_rows(9, 0.05, 0.0),
            "`rho` of certification_rows must lie in (0, 1); got 0.0.",
        ),
        (
            lambda: largest_certifiable_errors(0, 0.05),
            "`n` of largest_certifiable_errors must be a whole number of at least 1; got 0.",
        ),
    ],
)
def test_errors_say_whose_parameter_what_is_allowed_and_what_came(call, text):
    with pytest.raises(InvalidParameterError) as caught:
        call()
    assert str(caught.value) == text


@given(n=st.integers(1, 3000), alpha=ALPHA, rho=RHO, power=st.sampled_from([0.5, 0.9, 0.99]))
def test_certifiable_jcw_is_certified_with_just_the_power_asked_for(n, alpha, rho, power):
    aim = certifiable_jcw(n, alpha, rho, power)
    most = largest_certifiable_errors(n, alpha, rho)
    if most < 0:
        assert aim == 0.0
    else:
        assert binom.cdf(most, n, aim) == pytest.approx(power, abs=1e-9)
        assert certification_power(n, alpha, rho, aim) == pytest.approx(power, abs=1e-9)
        assert aim < alpha or power < rho


def test_certifiable_jcw_checks_its_power():
    with pytest.raises(InvalidParameterError, match="`power` of certifiable_jcw must lie in"):
        certifiable_jcw(100, 0.05, power=1.0)


def test_a_budget_below_what_can_be_counted_is_refused():
    """The search had no end."""
    with pytest.raises(InvalidParameterError) as caught:
        rows_for_errors(0, 5e-324)
    text = "`alpha` of rows_for_errors must be at least 8.9e-16; got 5e-324."
    assert str(caught.value) == text
    with pytest.raises(InvalidParameterError, match="`errors` of rows_for_errors"):
        rows_for_errors(2**63, 0.1)
    assert rows_for_errors(0, 1e-12) == pytest.approx(-math.log(0.05) * 1e12, rel=1e-6)


def test_the_smallest_budget_and_the_most_errors_are_still_answered():
    assert rows_for_errors(0, 2.0**-50) == pytest.approx(-math.log(0.05) * 2**50, rel=1e-6)
    beyond = rows_for_errors(2**49, 0.5) - 2**50  # the normal approximation is good here
    assert beyond / math.sqrt(2**50) == pytest.approx(norm.ppf(0.95), rel=1e-6)


@pytest.mark.parametrize(
    ("errors", "alpha", "most"), [(2**49 + 1, 0.5, "5.6e+14"), (10**12, 1e-8, "1.1e+07")]
)
def test_more_errors_than_can_be_counted_are_refused(errors, alpha, most):
    """The search had no end, as the rows that it tried overflowed."""
    with pytest.raises(InvalidParameterError) as caught:
        rows_for_errors([0, errors], alpha)
    expected = f"be at most {most} where alpha is {alpha:g}; got [0, {errors}]."
    assert str(caught.value) == f"`errors` of rows_for_errors must {expected}"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: rows_for_errors([[1], [1, 2]], 0.05), "errors"),
        (lambda: certification_power([[1], [1, 2]], 0.05), "n"),
        (lambda: certification_power(9, 0.05, expected_jcw=[[0.1], [0.1, 0.2]]), "expected_jcw"),
    ],
)
def test_rows_of_unequal_length_are_refused_by_name(call, name):
    with pytest.raises(InvalidDataError, match=f"^`{name}` must be an array; got a list"):
        call()


@pytest.mark.parametrize("value", [np.timedelta64(1, "D"), np.datetime64("2026-01-01"), "x", 1j])
def test_what_is_no_number_is_no_budget(value):
    with pytest.raises(InvalidParameterError, match="`alpha` of rows_needed"):
        rows_needed(value)


def test_expected_jcw_may_be_a_fraction():
    assert rows_needed(0.5, expected_jcw=Fraction(1, 4)) == rows_needed(0.5, expected_jcw=0.25)


@pytest.mark.parametrize(("alpha", "rho"), [(0.05, 0.05), (0.01, 0.05), (0.2, 0.1), (0.001, 0.01)])
@pytest.mark.parametrize("n", [60, 100, 382, 569, 1000, 2000, 9500, 50_000, 400_000])
def test_certification_rows_afford_fifty_errors_within_20_to_40_percent(n, alpha, rho):
    """An account of its own: the first sizes at which the binomial tail affords an error more."""
    sizes = np.arange(1, 2 * n // 5 + 1)
    affordable = binom.ppf(rho, sizes, alpha).astype(int)
    affordable -= binom.cdf(affordable, sizes, alpha) > rho * (1 + 1e-12)
    found = certification_rows(n, alpha, rho)
    none = math.ceil(math.log(rho) / math.log1p(-alpha) - 1e-9)
    if affordable[-1] < 0:  # 40 % prove nothing
        assert found == (none if none <= 3 * n // 5 else len(sizes))
    else:
        enough = (affordable >= 50) & (sizes >= n // 5)
        wanted = affordable[np.argmax(enough)] if enough.any() else affordable[-1]
        assert found == sizes[np.argmax(affordable == wanted)]


def test_no_row_is_spent_that_affords_no_error():
    assert certification_rows(382, 0.05) == 124  # 152 would afford two errors as well
    assert largest_certifiable_errors(152, 0.05) == largest_certifiable_errors(124, 0.05) == 2


@given(st.integers(1, 10**7), st.floats(1e-300, 0.99), st.floats(1e-3, 0.9))
def test_certification_rows_never_exceed_60_percent(n, alpha, rho):
    found = certification_rows(n, alpha, rho)
    assert 1 <= found <= max(0.6 * n, 1)


@pytest.mark.parametrize("groups", [1, 2, 5, 50])
def test_rows_of_groups_are_those_of_a_share_of_rho(groups):
    """Without a mistake: the rows at which (1 - alpha) ** n falls to a share of rho."""
    assert rows_needed(0.05, groups=groups) == math.ceil(math.log(0.05 / groups) / math.log(0.95))
    each = rows_needed(0.05, expected_jcw=0.02, groups=groups)
    assert each == rows_needed(0.05, 0.05 / groups, expected_jcw=0.02)
    shares = np.full(groups, 1 / groups)
    total = rows_needed(0.05, expected_jcw=0.02, groups=groups, shares=shares)
    assert total == each * groups


@pytest.mark.parametrize("shares", [[0.5, 0.6], [1.0, 0.0], [[0.5, 0.5]]])
def test_shares_of_groups_have_the_sum_one(shares):
    with pytest.raises(InvalidParameterError, match="`shares` of rows_needed must be positive"):
        rows_needed(0.05, groups=2, shares=shares)


def test_shares_may_miss_the_sum_one_by_their_last_digits() -> None:
    """Seven digits of 3/8 are cut off; the smallest group is a quarter of all rows."""
    each = rows_needed(0.05, expected_jcw=0.02, power=0.5, groups=3)
    assert each < rows_needed(0.05, expected_jcw=0.02, groups=3)
    shares = [0.375, 0.25, 0.3749999]
    assert rows_needed(0.05, expected_jcw=0.02, power=0.5, groups=3, shares=shares) == 4 * each
