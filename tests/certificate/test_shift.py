"""What a bound is worth in another source, against a search over the distributions themselves."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy.optimize import linprog, minimize
from scipy.special import xlog1py
from scipy.stats import binomtest
from splitmix64 import mix_by_hand

from reliablenet.certificate import (
    Certificate,
    bound_under_shift,
    clopper_pearson_upper,
    keep_by_weight,
    sensitivity,
    shift_to_reach,
)
from reliablenet.certificate.shift import EXAMPLES, Sensitivity, sensitivities
from reliablenet.errors import InvalidDataError, InvalidParameterError

DISTANCES = list(EXAMPLES)
SIZES = {
    "total variation": [0.0, 0.01, 0.3, 0.99],
    "chi-square": [0.0, 0.01, 0.5, 40.0],
    "KL divergence": [0.0, 0.01, 0.5, 6.0],
    "likelihood ratio": [1.0, 1.2, 3.0, 80.0],
}


def distance_of(q, p, distance) -> float:
    if distance == "total variation":
        return float(np.abs(q - p).sum() / 2)
    if distance == "chi-square":
        return float(((q - p) ** 2 / p).sum())
    if distance == "KL divergence":
        # of shares with the same sum; the plain formula loses what is below 1e-16
        x = np.maximum((q - p) / p, -1.0)
        return float((p * (xlog1py(1.0 + x, x) - x)).sum())
    return float(max((q / p).max(), (p / np.maximum(q, 1e-300)).max()))


def source(u, seed=0, kinds=6):
    """A source with several kinds of rows, of which the first half go wrong, with chance u in all."""
    share = np.random.default_rng(seed).dirichlet(np.ones(kinds) * 2)
    bad = np.arange(kinds) < kinds // 2
    share[bad] *= u / share[bad].sum()
    share[~bad] *= (1 - u) / share[~bad].sum()
    return share, bad


def worst(u, size, distance, seed=0) -> float:
    """The largest risk that a search over sources near this one finds."""
    p, bad = source(u, seed)
    k = len(p)
    if distance == "likelihood ratio":
        found = linprog(
            -1.0 * bad, A_eq=np.ones((1, k)), b_eq=[1], bounds=np.c_[p / size, p * size]
        )
        return float(-found.fun)
    if distance == "total variation":  # q = p + up - down, up and down of at most this size
        gain = np.r_[-1.0 * bad, bad * 1.0]
        total = np.r_[np.ones(k), np.zeros(k)][None]
        found = linprog(
            gain,
            A_ub=total,
            b_ub=[size],
            A_eq=np.r_[np.ones(k), -np.ones(k)][None],
            b_eq=[0],
            bounds=[(0, None)] * k + [(0, share) for share in p],
        )
        return float(u - found.fun)
    found = minimize(
        lambda q: -q[bad].sum(),
        p,
        bounds=[(0, 1)] * k,
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1},
            {"type": "ineq", "fun": lambda q: size - distance_of(q, p, distance)},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    feasible = distance_of(found.x, p, distance) <= size + 1e-5
    return float(-found.fun) if feasible else u


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("u", [0.001, 0.03, 0.4, 0.9])
def test_the_bound_is_the_worst_case_over_all_sources_so_near(distance, u) -> None:
    for size in SIZES[distance]:
        searched = worst(u, size, distance)
        bound = bound_under_shift(u, size, distance)
        assert searched <= bound + 1e-5
        assert searched == pytest.approx(bound, abs=2e-4), (size, searched)


@given(
    u=st.floats(0.001, 0.999),
    kinds=st.integers(2, 8),
    seed=st.integers(0, 10**6),
    far=st.floats(0, 1),
)
@example(u=0.25, kinds=2, seed=0, far=1e-8)
def test_no_source_is_worse_than_its_distance_allows(u, kinds, seed, far) -> None:
    p, bad = source(u, seed, kinds)
    other = np.random.default_rng(seed + 1).dirichlet(np.ones(kinds) / 2) + 1e-9
    q = (1 - far) * p + far * other / other.sum()
    for distance in DISTANCES:
        size = distance_of(q, p, distance)
        assert q[bad].sum() <= bound_under_shift(u, max(size, 0.0), distance) + 1e-9


@given(u=st.floats(1e-6, 1), more=st.floats(0, 1), size=st.floats(0, 5), extra=st.floats(0, 5))
def test_bounds_rise_with_the_bound_and_the_size(u, more, size, extra) -> None:
    v = u + (1 - u) * more
    for distance in DISTANCES:
        start = 1.0 if distance == "likelihood ratio" else 0.0
        here = bound_under_shift(u, start + size, distance)
        assert u <= here + 1e-12
        assert here <= bound_under_shift(v, start + size, distance) + 1e-9
        assert here <= bound_under_shift(u, start + size + extra, distance) + 1e-9
        assert 0.0 <= here <= 1.0
        assert bound_under_shift(u, start, distance) == pytest.approx(u)


@given(u=st.floats(1e-6, 0.99), more=st.floats(0, 1))
def test_the_reach_is_where_the_bound_meets_alpha(u, more) -> None:
    alpha = min(u + (0.999 - u) * more, 0.999)
    for distance in DISTANCES:
        reach = shift_to_reach(u, alpha, distance)
        start = 1.0 if distance == "likelihood ratio" else 0.0
        assert reach >= start - 1e-12
        reach = max(reach, start)
        assert bound_under_shift(u, reach, distance) == pytest.approx(alpha, abs=1e-6)


def test_nothing_wrong_stays_nothing_wrong_unless_rows_come_from_elsewhere() -> None:
    for distance in DISTANCES[1:]:
        assert bound_under_shift(0.0, SIZES[distance][2], distance) == 0.0
        assert shift_to_reach(0.0, 0.05, distance) == math.inf
    assert bound_under_shift(0.0, 0.02) == 0.02
    assert shift_to_reach(0.0, 0.05) == 0.05


NEAR = "('total variation', 'chi-square', 'KL divergence', 'likelihood ratio')"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: bound_under_shift(1.2, 0.1), "`bound` of bound_under_shift must lie in [0, 1]; got 1.2. Did you mean 0.012?"),
        (lambda: bound_under_shift(-0.1, 0.1), "`bound` of bound_under_shift must lie in [0, 1]; got -0.1."),
        (lambda: bound_under_shift(math.nan, 0.1), "`bound` of bound_under_shift must lie in [0, 1]; got nan."),
        (lambda: bound_under_shift("0.1", 0.1), "`bound` of bound_under_shift must lie in [0, 1]; got '0.1'."),
        (lambda: bound_under_shift(0.1, -0.1), "`size` of bound_under_shift must be a finite number of at least 0 for the total variation; got -0.1."),
        (lambda: bound_under_shift(0.1, "far"), "`size` of bound_under_shift must be a finite number of at least 0 for the total variation; got 'far'."),
        (lambda: bound_under_shift(0.1, 0.5, "likelihood ratio"), "`size` of bound_under_shift must be a finite number of at least 1 for the likelihood ratio; got 0.5."),
        (lambda: bound_under_shift(0.1, math.inf, "chi-square"), "`size` of bound_under_shift must be a finite number of at least 0 for the chi-square; got inf."),
        (lambda: bound_under_shift(0.1, 0.5, "far"), f"`distance` of bound_under_shift must be one of {NEAR}; got 'far'."),
        (lambda: shift_to_reach(0.1, 0.05), "`bound` of shift_to_reach must be at most alpha = 0.05; got 0.1. It is already above alpha."),
        (lambda: shift_to_reach(2, 0.05), "`bound` of shift_to_reach must lie in [0, 1]; got 2. Did you mean 0.02?"),
        (lambda: shift_to_reach(0.1, 5), "`alpha` of shift_to_reach must lie in (0, 1); got 5. Did you mean 0.05?"),
        (lambda: shift_to_reach(0.1, 0.5, "far"), f"`distance` of shift_to_reach must be one of {NEAR}; got 'far'."),
        (lambda: keep_by_weight([1, 2], 0), "`most` of keep_by_weight must be a finite positive number; got 0."),
        (lambda: keep_by_weight([1, 2], math.inf), "`most` of keep_by_weight must be a finite positive number; got inf."),
        (lambda: keep_by_weight([1, 2], "2"), "`most` of keep_by_weight must be a finite positive number; got '2'."),
        (lambda: keep_by_weight([1, 2], 2, -1), "`random_state` of keep_by_weight must be a whole number from 0 to 2**32 - 1; got -1."),
        (lambda: keep_by_weight([1, 3], 2), "`weights` of keep_by_weight must lie between 0 and `most` = 2; got 3 in row 1. `most` is the largest weight that any row of the source can have."),
        (lambda: keep_by_weight([1, -1, 9], 2.5), "`weights` of keep_by_weight must lie between 0 and `most` = 2.5; got -1 in row 1. `most` is the largest weight that any row of the source can have."),
        (lambda: keep_by_weight([math.nan], 2), "`weights` of keep_by_weight must lie between 0 and `most` = 2; got nan in row 0. `most` is the largest weight that any row of the source can have."),
        (lambda: keep_by_weight([[1.0]], 2), "`weights` of keep_by_weight must be a vector of numbers; got shape (1, 1) of float64."),
        (lambda: keep_by_weight(["a"], 2), "`weights` of keep_by_weight must be a vector of numbers; got shape (1,) of <U1."),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_in_these_words(call, text) -> None:
    with pytest.raises((InvalidParameterError, InvalidDataError)) as caught:
        call()
    assert str(caught.value) == text


def test_what_is_no_vector_is_named() -> None:
    with pytest.raises(InvalidDataError, match=r"^`weights` must be an array; got a list"):
        keep_by_weight([[1], [2, 3]], 2)


@pytest.mark.parametrize("kind", [float, np.float32, int, np.uint8])
def test_a_row_is_kept_by_a_number_of_the_seed_and_its_place(kind) -> None:
    weights = (np.arange(300) % 7).astype(kind)
    for seed in (0, 5):
        chance = [(mix_by_hand(i ^ mix_by_hand(seed)) >> 11) / 2**53 for i in range(300)]
        found = keep_by_weight(weights, 6, seed)
        assert found.tolist() == [u < w / 6 for u, w in zip(chance, weights.tolist(), strict=True)]
    assert (keep_by_weight(weights, 6) == keep_by_weight(weights, 6, 0)).all()
    number = (mix_by_hand(mix_by_hand(0)) >> 11) / 2**53
    for weight, kept in ((number, False), (math.nextafter(number, 1), True)):
        assert keep_by_weight([weight], 1.0).tolist() == [kept]


@pytest.mark.parametrize("u", [1e-9, 1e-4, 0.3])
@pytest.mark.parametrize("move", [1e-9, 1e-3, 0.5])
def test_the_bound_under_a_divergence_is_exact_to_the_last_digits(u, move) -> None:
    """The divergence just below the bound is less than the size of the move, just above it is more."""
    bound = bound_under_shift(u, move, "KL divergence")
    p = np.array([u, 1.0 - u])
    low, high = (
        distance_of(np.array([q, 1.0 - q]), p, "KL divergence")
        for q in (bound - 1e-10 * (bound - u), bound + 1e-10 * (bound - u))
    )
    assert low < move * (1 + 1e-12)
    assert high > move * (1 - 1e-12)


@pytest.mark.parametrize("distance", DISTANCES)
def test_what_is_always_wrong_stays_so(distance) -> None:
    assert bound_under_shift(1.0, SIZES[distance][2], distance) == 1.0
    assert (
        bound_under_shift(0.99, SIZES[distance][3], distance) == 1.0
        or distance == "likelihood ratio"
    )
    assert bound_under_shift(1, SIZES[distance][0], distance) == 1.0


def test_all_rows_may_go_wrong_where_the_move_is_minus_the_logarithm() -> None:
    assert bound_under_shift(0.5, math.log(2), "KL divergence") == 1.0
    assert 0.9 < bound_under_shift(0.5, math.log(2) - 0.05, "KL divergence") < 1.0


def test_the_card_is_these_closed_forms() -> None:
    granted = Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    u, a = granted.upper_bound, 0.05
    card = sensitivity(granted)
    assert (card.alpha, card.bound) == (a, u)
    kl = a * math.log(a / u) + (1 - a) * math.log((1 - a) / (1 - u))
    assert card.reach == pytest.approx(
        {
            "total variation": a - u,
            "chi-square": (a - u) ** 2 / (u * (1 - u)),
            "KL divergence": kl,
            "likelihood ratio": a / u,
        }
    )
    found = card.to_dict()
    assert found["meaning"] == (
        "sensitivity, not a promise: how far the source may move before alpha is reached"
    )
    assert found["reach"] == card.reach
    bounds = [tuple(entry.values()) for entry in found["bounds"]]
    assert {tuple(entry) for entry in found["bounds"]} == {("distance", "size", "bound")}
    expected = [
        ("total variation", 0.01, u + 0.01),
        ("total variation", 0.05, u + 0.05),
        ("chi-square", 0.01, u + math.sqrt(0.01 * u * (1 - u))),
        ("chi-square", 0.1, u + math.sqrt(0.1 * u * (1 - u))),
        ("KL divergence", 0.01, bound_under_shift(u, 0.01, "KL divergence")),
        ("KL divergence", 0.1, bound_under_shift(u, 0.1, "KL divergence")),
        ("likelihood ratio", 1.1, 1.1 * u),
        ("likelihood ratio", 1.5, 1.5 * u),
        ("likelihood ratio", 2.0, 2.0 * u),
    ]
    assert [entry[:2] for entry in bounds] == [entry[:2] for entry in expected]
    assert [entry[2] for entry in bounds] == pytest.approx([entry[2] for entry in expected])
    frame = card.to_frame()
    assert list(frame.columns) == ["distance", "size", "bound", "within_alpha"]
    assert frame.iloc[:, :3].to_numpy().tolist() == [list(entry) for entry in bounds]


def test_a_bound_that_is_alpha_is_within_it() -> None:
    card = Sensitivity(0.05, 0.04, {}, {"total variation": {0.01: 0.05, 0.02: 0.06}})
    assert card.to_frame()["within_alpha"].tolist() == [True, False]
    with pytest.raises(FrozenInstanceError):
        card.alpha = 0.1


def test_parts_that_share_a_name_are_told_apart() -> None:
    made = {"alpha": 0.05, "rho": 0.05, "threshold": 0.9, "name": "yes"}
    granted = Certificate(1, 120, 153, **made, population="class")
    refused = Certificate(9, 120, 153, **made, population="group")
    other = Certificate(0, 120, 153, **made, population="predicted")
    found = sensitivities(SimpleNamespace(parts=(granted, refused, other)))
    assert {name: card.bound for name, card in found.items()} == {
        "yes": granted.upper_bound,
        "yes (predicted, part 3)": other.upper_bound,
    }
    assert sensitivities(refused) == {}


def test_a_granted_certificate_has_a_card_and_a_refused_one_has_none() -> None:
    granted = Certificate(1, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    card = sensitivity(granted)
    assert card.bound == granted.upper_bound
    assert set(card.reach) == set(DISTANCES)
    frame = card.to_frame()
    assert (frame["within_alpha"] == (frame["bound"] <= 0.05)).all()
    for distance, size, bound, within in frame.itertuples(index=False):
        assert bound == bound_under_shift(granted.upper_bound, size, distance)
        assert within == (size <= card.reach[distance])
    assert card.to_dict()["meaning"].startswith("sensitivity, not a promise")
    refused = Certificate(9, 120, 153, alpha=0.05, rho=0.05, threshold=0.9)
    assert sensitivity(refused) is None


def test_rows_kept_by_known_weights_are_a_sample_of_the_other_source() -> None:
    """Rare rows, wrong in 20 %, are half of the sample and a tenth of the source; others err in 1 %."""
    rng = np.random.default_rng(0)
    truth, rho, draws = 0.1 * 0.2 + 0.9 * 0.01, 0.1, 2000
    found = np.empty((draws, 3), int)
    for draw in range(draws):
        rare = rng.random(300) < 0.5
        right = rng.random(300) > np.where(rare, 0.2, 0.01)
        kept = keep_by_weight(np.where(rare, 1.0, 9.0), most=9.0, random_state=draw)
        found[draw] = (kept & ~right).sum(), kept.sum(), (~right).sum()
    errors, rows, all_errors = found.T
    failures = int((clopper_pearson_upper(errors, rows, rho) < truth).sum())
    assert binomtest(failures, draws, rho, "greater").pvalue > 1e-4
    naive = clopper_pearson_upper(all_errors, 300, rho) > 2 * truth
    assert naive.mean() > 0.9  # of the sample as it stands the bound speaks of another source


def test_the_same_number_keeps_the_same_rows() -> None:
    weights = np.linspace(0, 1, 10_000)
    kept = keep_by_weight(weights, 1.0, 7)
    assert (kept == keep_by_weight(weights, 1.0, 7)).all()
    assert (kept != keep_by_weight(weights, 1.0, 8)).any()
    assert kept.mean() == pytest.approx(0.5, abs=0.03)
    assert not keep_by_weight(np.zeros(100), 1.0).any()
    assert keep_by_weight(np.ones(100), 1.0).all()
