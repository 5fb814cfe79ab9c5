from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import rel_entr
from scipy.stats import beta, binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from reliablenet.certificate import clopper_pearson_upper, hoeffding_upper, uniform_slack
from reliablenet.certificate.bounds import clopper_pearson_interval, coin_divergence
from reliablenet.errors import InvalidDataError, InvalidParameterError


def every_pair(largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return every (errors, n) with 0 <= errors <= n <= largest."""
    n, errors = np.tril_indices(largest + 1)
    return errors[n > 0], n[n > 0]


@pytest.mark.parametrize("rho", [0.01, 0.05, 0.2])
def test_clopper_pearson_equals_the_beta_quantile_for_every_count(rho):
    errors, n = every_pair(200)
    part = errors < n
    expected = np.ones(len(n))
    expected[part] = beta.ppf(1 - rho, errors[part] + 1, (n - errors)[part])
    np.testing.assert_allclose(clopper_pearson_upper(errors, n, rho), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rho", [0.01, 0.05, 0.2])
def test_clopper_pearson_inverts_the_binomial_test_for_every_count(rho):
    """The definition: at the bound, a count as low as the observed one has probability rho."""
    errors, n = every_pair(200)
    errors, n = errors[errors < n], n[errors < n]
    bound = clopper_pearson_upper(errors, n, rho)
    np.testing.assert_allclose(binom.cdf(errors, n, bound), rho, rtol=1e-11)


def test_clopper_pearson_equals_scipy_binomtest():
    """Every pair up to 25 rows, and a spread up to ten million; scipy takes milliseconds for each."""
    pairs = list(zip(*every_pair(25), strict=True))
    for n in (10**3, 10**4, 10**5, 10**6, 10**7):
        pairs += [(k, n) for k in (0, 1, 7, n // 1000, n // 100, n // 20, n // 2, n - 1, n)]
    expected = [
        binomtest(int(errors), int(n), alternative="less").proportion_ci(0.95).high
        for errors, n in pairs
    ]
    errors, n = np.array(pairs).T
    np.testing.assert_allclose(clopper_pearson_upper(errors, n), expected, rtol=0, atol=1e-12)


def test_clopper_pearson_equals_statsmodels():
    """Their interval is two-sided, so its upper end at 2 rho is ours at rho."""
    errors, n = every_pair(200)
    _, expected = proportion_confint(errors, n, alpha=2 * 0.05, method="beta")
    np.testing.assert_allclose(clopper_pearson_upper(errors, n), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [10**3, 10**5, 10**7])
def test_clopper_pearson_holds_for_many_rows(n):
    errors = np.unique(np.concatenate([np.arange(5), np.geomspace(5, n - 1, 40).astype(int)]))
    bound = clopper_pearson_upper(errors, n)
    np.testing.assert_allclose(bound, beta.ppf(0.95, errors + 1, n - errors), rtol=1e-12)
    np.testing.assert_allclose(binom.cdf(errors, n, bound), 0.05, rtol=1e-6)


@given(n=st.integers(1, 10**7), rho=st.floats(1e-6, 0.999))
def test_clopper_pearson_has_its_closed_form_at_either_end(n, rho):
    none = -math.expm1(math.log(rho) / n)
    all_but_one = math.exp(math.log1p(-rho) / n)
    assert clopper_pearson_upper(0, n, rho) == pytest.approx(none, rel=1e-10)
    assert clopper_pearson_upper(n - 1, n, rho) == pytest.approx(all_but_one, rel=1e-10)
    assert clopper_pearson_upper(n, n, rho) == 1.0


@given(n=st.integers(1, 500), rho=st.floats(0.001, 0.5))
def test_clopper_pearson_rises_with_errors_and_falls_with_rho(n, rho):
    bound = clopper_pearson_upper(np.arange(n + 1), n, rho)
    assert (np.diff(bound) > 0).all()
    assert (bound >= np.arange(n + 1) / n).all()
    assert (clopper_pearson_upper(np.arange(n), n, rho * 0.9) > bound[:-1]).all()


@given(n=st.integers(1, 300), share=st.floats(0.0, 1.0), rho=st.floats(0.001, 0.5))
def test_clopper_pearson_is_never_above_hoeffding(n, share, rho):
    errors = round(share * n)
    assert clopper_pearson_upper(errors, n, rho) <= hoeffding_upper(errors / n, n, rho) + 1e-12


def test_clopper_pearson_broadcasts_over_all_arguments():
    errors, n, rho = np.arange(3)[:, None, None], np.array([10, 20])[:, None], [0.01, 0.05, 0.1]
    bound = clopper_pearson_upper(errors, n, rho)
    assert bound.shape == (3, 2, 3)
    assert bound[2, 1, 0] == clopper_pearson_upper(2, 20, 0.01)


@pytest.mark.parametrize(
    "value",
    [
        clopper_pearson_upper(3, 50, 0.05),
        clopper_pearson_upper(np.int64(3), np.array(50), np.float64(0.05)),
        hoeffding_upper(0.1, 50),
        uniform_slack(50, 0.05, 0.1, n_parameters=2, lipschitz=1.0, radius=1.0),
    ],
)
def test_scalars_give_a_python_float(value):
    assert type(value) is float


@given(
    mean=st.floats(0.0, 1.0),
    n=st.integers(1, 10**6),
    rho=st.floats(1e-6, 0.999),
    height=st.floats(1.0, 2.0),
)
def test_hoeffding_solves_its_own_inequality(mean, n, rho, height):
    distance = hoeffding_upper(mean, n, rho, height) - mean
    assert math.exp(-2 * n * (distance / height) ** 2) == pytest.approx(rho, rel=1e-6)


def test_hoeffding_needs_600_rows_without_a_loss():
    assert hoeffding_upper(0.0, 599) > 0.05 >= hoeffding_upper(0.0, 600)


def test_hoeffding_takes_a_mean_that_float32_rounded_just_above_its_bound():
    """The psi of seven rows that all violate, at tau = 0.1 and so with the height 1.05."""
    mean = 1.0500000715255737
    assert hoeffding_upper(mean, 7, bound=1.05) >= 1.05


def test_hoeffding_broadcasts():
    assert hoeffding_upper([0.1, 0.2], [[10], [20], [30]]).shape == (3, 2)


def test_uniform_slack_broadcasts_and_is_vacuous_for_the_papers_network():
    slack = uniform_slack([5000, 10**9], 0.05, 0.01, n_parameters=18_178, lipschitz=1.0, radius=1.0)
    assert slack[0] > 4
    assert slack[1] < 0.02


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, 0), "`n` of clopper_pearson_upper must be at least 1; got 0"),
        ((0, -3), "`n` of clopper_pearson_upper must be at least 1; got -3"),
        ((11, 10), "`errors` of clopper_pearson_upper must lie between 0 and n; got 11"),
        ((-1, 10), "`errors` of clopper_pearson_upper must lie between 0 and n; got -1"),
        (([0, 11], 10), r"`errors` of .* must lie between 0 and n; got \[0, 11\]"),
        ((1.5, 10), "`errors` must hold whole numbers; got 1.5"),
        ((math.nan, 10), "`errors` must hold whole numbers; got nan"),
        ((True, 10), "`errors` must hold whole numbers; got True"),
        (("3", 10), "`errors` must hold whole numbers; got '3'"),
        ((0, 10.5), "`n` must hold whole numbers; got 10.5"),
        ((0, math.inf), "`n` must hold whole numbers; got inf"),
        ((0, 10, 0.0), r"`rho` of clopper_pearson_upper must lie in \(0, 1\); got 0.0"),
        ((0, 10, 1.0), r"`rho` of clopper_pearson_upper must lie in \(0, 1\); got 1.0"),
        ((0, 10, math.nan), r"`rho` of clopper_pearson_upper must lie in \(0, 1\); got nan"),
    ],
)
def test_clopper_pearson_refuses_bad_input(arguments, text):
    with pytest.raises(InvalidParameterError, match=text):
        clopper_pearson_upper(*arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0.1, 0), "`n` of hoeffding_upper must be at least 1; got 0"),
        ((0.1, 10.5), "`n` must hold whole numbers; got 10.5"),
        ((0.1, 10, 2), r"`rho` of hoeffding_upper must lie in \(0, 1\); got 2"),
        ((1.2, 10), r"`mean` of hoeffding_upper must lie in \[0, bound\]; got 1.2"),
        ((-0.1, 10), r"`mean` of hoeffding_upper must lie in \[0, bound\]; got -0.1"),
        ((math.nan, 10), r"`mean` of hoeffding_upper must lie in \[0, bound\]; got nan"),
        ((0.1, 10, 0.05, 0.0), "`bound` of hoeffding_upper must be finite and positive; got 0.0"),
        ((0.1, 10, 0.05, math.inf), "`bound` of .* must be finite and positive; got inf"),
    ],
)
def test_hoeffding_refuses_bad_input(arguments, text):
    with pytest.raises(InvalidParameterError, match=text):
        hoeffding_upper(*arguments)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"n": 0}, "`n` of uniform_slack must be at least 1; got 0"),
        ({"n": 10.5}, "`n` must hold whole numbers; got 10.5"),
        ({"rho": 1}, r"`rho` of uniform_slack must lie in \(0, 1\); got 1"),
        ({"tau": 0.0}, r"`tau` of uniform_slack must lie in \(0, 1\); got 0.0"),
        ({"n_parameters": 0}, "`n_parameters` of uniform_slack must be at least 1; got 0"),
        ({"n_parameters": 2.5}, "`n_parameters` must hold whole numbers; got 2.5"),
        ({"lipschitz": -1.0}, "`lipschitz` of uniform_slack must be finite and not negative"),
        ({"radius": math.inf}, "`radius` of uniform_slack must be finite and not negative"),
        ({"m1": math.nan}, "`m1` of uniform_slack must be finite and not negative"),
    ],
)
def test_uniform_slack_refuses_bad_input(changed, text):
    setting = {"n": 10, "rho": 0.05, "tau": 0.1, "n_parameters": 2, "lipschitz": 1.0, "radius": 1.0}
    with pytest.raises(InvalidParameterError, match=text):
        uniform_slack(**setting | changed)


@pytest.mark.parametrize("m1", [0.5, 2.0])
def test_uniform_slack_is_the_equation_of_the_paper(m1):
    n, rho, tau, d, l_g, r = 700, 0.1, 0.2, 30, 3.0, 5.0
    height = 1 + m1 * tau
    expected = height * math.sqrt((d * math.log(3 * n) + math.log(2 / rho)) / (2 * n))
    expected += height * l_g * r / (2 * tau * n)
    found = uniform_slack(n, rho, tau, n_parameters=d, lipschitz=l_g, radius=r, m1=m1)
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_ends_of_every_domain_are_allowed():
    one_row = {"n": 1, "rho": 0.05, "tau": 0.1, "n_parameters": 1}
    concentration = math.sqrt((math.log(3) + math.log(2 / 0.05)) / 2)
    assert uniform_slack(**one_row, lipschitz=0.0, radius=0.0, m1=0.0) == pytest.approx(
        concentration, rel=1e-12
    )
    assert hoeffding_upper(0.0, 1) == pytest.approx(math.sqrt(math.log(20) / 2))
    assert hoeffding_upper(1 * (1 + 1e-6), 1) > 1  # what rounding may bring


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: clopper_pearson_upper([1, 2], [5, 6, 7]),
            "The arrays of clopper_pearson_upper do not fit together: "
            "`errors` (2,), `n` (3,), `rho` ().",
        ),
        (
            lambda: hoeffding_upper([0.1, 0.2], [5, 6, 7], bound=[[1.0]]),
            "The arrays of hoeffding_upper do not fit together: "
            "`mean` (2,), `n` (3,), `rho` (), `bound` (1, 1).",
        ),
        (
            lambda: uniform_slack([1, 2], 0.1, 0.1, n_parameters=[1, 2, 3], lipschitz=1, radius=1),
            "The arrays of uniform_slack do not fit together: `n` (2,), `rho` (), `tau` (), "
            "`n_parameters` (3,), `lipschitz` (), `radius` (), `m1` ().",
        ),
        (
            lambda: hoeffding_upper("0.1", 5),
            "`mean` of hoeffding_upper must hold numbers; got '0.1'.",
        ),
        (
            lambda: hoeffding_upper(0.1, 5, bound="1"),
            "`bound` of hoeffding_upper must hold numbers; got '1'.",
        ),
        (
            lambda: uniform_slack(9, 0.1, 0.1, n_parameters=2, lipschitz=1, radius=True),
            "`radius` of uniform_slack must hold numbers; got True.",
        ),
        (
            lambda: uniform_slack(9, 0.1, 0.1, n_parameters=2, lipschitz=1, radius=-2.0),
            "`radius` of uniform_slack must be finite and not negative; got -2.0.",
        ),
    ],
)
def test_what_does_not_fit_is_named(call, text):
    with pytest.raises(InvalidParameterError) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("errors", lambda bad: clopper_pearson_upper(bad, 9)),
        ("rho", lambda bad: clopper_pearson_upper(1, 9, bad)),
        ("mean", lambda bad: hoeffding_upper(bad, 9)),
    ],
)
def test_masked_values_are_refused_by_the_name_of_their_array(name, call):
    bad = np.ma.masked_array([0.25, 0.5], [True, False])
    with pytest.raises(InvalidDataError, match=f"^`{name}` must not hold masked values; got 1 of"):
        call(bad)


def test_a_small_type_does_not_overflow():
    assert clopper_pearson_upper(np.uint8(255), np.uint16(256)) == clopper_pearson_upper(255, 256)


@pytest.mark.parametrize("rho", [1e-120, 1e-200, 5e-324])
def test_a_bound_too_near_to_one_for_scipy_is_one(rho):
    """It was NaN."""
    assert clopper_pearson_upper([2, 1, 0], [8, 5, 1], rho).tolist() == [1.0, 1.0, 1.0]


def test_hoeffding_at_the_smallest_rho_and_a_slack_beyond_floats():
    assert hoeffding_upper(0.0, 100, 5e-324) == pytest.approx(math.sqrt(-math.log(5e-324) / 200))
    slack = {"rho": 0.05, "tau": 0.1, "n_parameters": 10, "lipschitz": 1e308, "radius": 1e308}
    assert uniform_slack(10, **slack) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hoeffding_upper("x", 10), "`mean` of hoeffding_upper must hold numbers"),
        (
            lambda: hoeffding_upper(0.1, 10, bound=1j),
            "`bound` of hoeffding_upper must hold numbers",
        ),
        (
            lambda: hoeffding_upper([0.1, 0.2], [1, 2, 3]),
            r"do not fit together: `mean` \(2,\), `n` \(3,\)",
        ),
        (lambda: clopper_pearson_upper([1, 2], [3, 4, 5]), "do not fit together: `errors`"),
        (
            lambda: clopper_pearson_upper(np.ma.masked_array([1, 2], [0, 1]), 9),
            "masked values; got 1",
        ),
        (lambda: clopper_pearson_upper([[1], [1, 2]], 9), "`errors` must be an array"),
    ],
)
def test_arrays_that_are_none_or_do_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_two_sided_interval_equals_statsmodels_for_every_count(level):
    count, n = every_pair(200)
    low, high = clopper_pearson_interval(count, n, level)
    expected = proportion_confint(count, n, alpha=1 - level, method="beta")
    np.testing.assert_allclose(low, np.where(count > 0, expected[0], 0.0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(high, np.where(count < n, expected[1], 1.0), rtol=0, atol=1e-12)


def test_the_two_sided_interval_equals_scipy_binomtest():
    pairs = list(zip(*every_pair(20), strict=True))
    for n in (10**3, 10**5, 10**7):
        pairs += [(k, n) for k in (0, 1, 7, n // 100, n // 2, n - 1, n)]
    for count, n in pairs:
        expected = binomtest(int(count), int(n)).proportion_ci(0.95, "exact")
        found = clopper_pearson_interval(int(count), int(n))
        assert found == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("truth", [0.0, 0.005, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("n", [1, 20, 153])
def test_the_two_sided_interval_holds_at_its_level_by_summing_over_every_count(n, truth):
    counts = np.arange(n + 1)
    low, high = clopper_pearson_interval(counts, n, 0.95)
    weight = binom.pmf(counts, n, truth)
    assert weight[truth < low].sum() <= 0.025 + 1e-12
    assert weight[truth > high].sum() <= 0.025 + 1e-12


def test_the_ends_of_the_two_sided_interval_are_one_sided_bounds():
    count, n = every_pair(60)
    low, high = clopper_pearson_interval(count, n, 0.9)
    np.testing.assert_allclose(high, clopper_pearson_upper(count, n, 0.05), rtol=1e-12)
    np.testing.assert_allclose(1 - low, clopper_pearson_upper(n - count, n, 0.05), rtol=1e-12)


def test_no_rows_say_nothing_and_extreme_levels_are_still_intervals():
    assert clopper_pearson_interval(0, 0) == (0.0, 1.0)
    for level in (1e-12, 1 - 1e-15):
        count, n = every_pair(30)
        low, high = clopper_pearson_interval(count, n, level)
        assert np.all((low >= 0) & (low <= high) & (high <= 1))
        assert np.all((low <= count / n) & (count / n <= high) | (level < 0.5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0), "`count` of clopper_pearson_interval must lie between 0 and n; got 1"),
        ((-1, 5), "`count` of clopper_pearson_interval must lie between 0 and n; got -1"),
        ((0, -1), "`n` of clopper_pearson_interval must be at least 0; got -1"),
        ((0.5, 5), "`count` must hold whole numbers; got 0.5"),
        ((0, 5.5), "`n` must hold whole numbers; got 5.5"),
        ((0, 5, 95.0), r"`level` of clopper_pearson_interval must lie in \(0, 1\); got 95"),
        (
            ([1, 2], [3, 3, 3]),
            "The arrays of clopper_pearson_interval do not fit together: `count`",
        ),
    ],
)
def test_bad_counts_of_an_interval_are_named(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        clopper_pearson_interval(*arguments)


@pytest.mark.parametrize("u", [1e-6, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("q", [0.0, 1e-6, 0.2, 0.5, 1.0])
def test_the_divergence_of_two_coins_is_that_of_scipy(q, u):
    expected = float(rel_entr([q, 1.0 - q], [u, 1.0 - u]).sum())
    assert coin_divergence(q, u) == pytest.approx(expected, rel=1e-9, abs=1e-16)
