"""Paths: places that rise with the score of each class, and the thresholds that they stand for."""

from __future__ import annotations

import math
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.isotonic import IsotonicRegression

from reliablenet.certificate.path import (
    Path,
    _falling,
    _float,
    _rank,
    learn_path,
)

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALE = (np.array([0.2, 0.5, 0.8]), np.array([-1.0, -0.25, 0.0]))


def place_by_hand(x: float) -> float:
    """Straight between the knots, flat beyond them, and a little for the score itself."""
    if x <= 0.2:
        level = -1.0
    elif x <= 0.5:
        level = -1.0 + (x - 0.2) / 0.3 * 0.75
    elif x <= 0.8:
        level = -0.25 + (x - 0.5) / 0.3 * 0.25
    else:
        level = 0.0
    return level + 1e-6 * x / (1 + abs(x))


def test_places_lie_between_the_knots_and_rise_beyond_them():
    score = np.array([-3.0, 0.0, 0.2, 0.3, 0.5, 0.65, 0.8, 4.0, 5.0])
    path = Path({"cat": SCALE, "dog": (SCALE[0], SCALE[1] - 1)}, 0.0)
    cats = path.places(score, np.full(9, "cat"))
    assert cats == pytest.approx([place_by_hand(x) for x in score], abs=1e-15)
    assert (np.diff(cats) > 0).all()
    mixed = path.places(score, np.array(["cat", "dog", "cow"] * 3))
    np.testing.assert_array_equal(mixed[::3], cats[::3])
    assert mixed[1::3] == pytest.approx(cats[1::3] - 1)
    assert (mixed[2::3] == -math.inf).all()  # nothing was learned of it: its rows come last


def test_without_scales_the_score_is_the_place():
    score = np.array([0.3, 0.1])
    assert Path({}, 0.0).places(score, None) is score
    assert Path({}, 0.0).thresholds(0.5) == {}


@given(st.floats(-1.1, 0.1), st.sampled_from([0.0, -math.inf, 0.3]))
def test_the_threshold_is_the_smallest_score_that_reaches_a_place(place, lowest):
    path = Path({"cat": SCALE}, lowest)
    (found,) = path.thresholds(place).values()
    reached = lambda x: path.places(np.array([x]), np.array(["cat"]))[0] >= place  # noqa: E731
    least = max(lowest, -sys.float_info.max)
    if found == lowest:
        assert reached(least)
    elif found == math.inf:
        assert not reached(sys.float_info.max)
    else:
        assert reached(found)
        assert not reached(math.nextafter(found, -math.inf))
        assert found > least


@given(FLOATS, FLOATS)
def test_ranks_are_in_the_order_of_floats(one, other):
    assert (_rank(one) < _rank(other)) == (one < other)
    assert _float(_rank(one)) == one
    assert _rank(math.nextafter(one, math.inf)) in (_rank(one) + 1, 0x7FF0000000000000)


def test_both_zeros_have_the_same_rank():
    assert _rank(0.0) == _rank(-0.0) == 0
    assert _float(-1) == -5e-324
    assert str(_float(0)) == "0.0"


@pytest.mark.parametrize("seed", range(5))
def test_knots_are_those_of_an_isotonic_regression(seed):
    rng = np.random.default_rng(seed)
    x, y, weight = rng.random(40).round(2), rng.random(40).round(1), rng.uniform(0.1, 2, 40)
    fit = IsotonicRegression(increasing=False).fit(x, y, sample_weight=weight).predict(x)
    knots, level = _falling(x, y, weight)
    blocks = [np.isclose(fit, value) for value in sorted(set(fit.round(9)), reverse=True)]
    assert level == pytest.approx([fit[own].mean() for own in blocks])
    assert knots == pytest.approx([np.average(x[own], weights=weight[own]) for own in blocks])
    assert (np.diff(knots) > 0).all()


def learn_by_hand(score, predicted, spending):
    """The same in plain steps, with the regression of scikit-learn."""
    share = spending / spending.max()

    def knots_of(x, y, weight):
        order = np.argsort(x)
        x, y, weight = x[order], y[order], weight[order]
        fit = IsotonicRegression(increasing=False).fit(x, y, sample_weight=weight).predict(x)
        starts = np.flatnonzero(np.r_[True, ~np.isclose(np.diff(fit), 0, atol=1e-12)])
        pieces = np.split(np.arange(len(x)), starts[1:])
        middle = [np.average(x[piece], weights=weight[piece]) for piece in pieces]
        return np.array(middle), np.array([fit[piece[0]] for piece in pieces])

    pooled = knots_of(score, share, np.ones(len(score)))
    points = np.quantile(score, np.linspace(0, 1, 64))
    prior = np.interp(points, *pooled)
    found = {}
    for label in dict.fromkeys(predicted.tolist()):
        own = predicted == label
        weight = np.r_[np.ones(own.sum()), np.full(64, 30 / 64)]
        knots, level = knots_of(np.r_[score[own], points], np.r_[share[own], prior], weight)
        found[label] = (knots, -level)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("decimals", [1, 16])
def test_each_class_learns_a_scale_of_its_own(seed, decimals):
    rng = np.random.default_rng(seed)
    score = rng.random(150).round(decimals)
    predicted = rng.choice(["cat", "dog"], 150, p=[0.8, 0.2])
    chance = np.where(predicted == "cat", 0.5, 0.9) * (1 - score)
    spending = np.where(rng.random(150) < chance, rng.choice([3.0, 7.0], 150), 0.0)
    path = learn_path(score, predicted, spending, 0.25)
    assert path.lowest == 0.25
    expected = learn_by_hand(score, predicted, spending)
    assert list(path.scales) == list(expected)
    grid = np.linspace(0, 1, 101)
    for label, scale in expected.items():
        found = np.interp(grid, *path.scales[label])
        assert found == pytest.approx(np.interp(grid, *scale), abs=1e-9)
        assert (np.diff(path.scales[label][1]) > 0).all()


def test_the_order_of_rows_with_one_score_teaches_nothing():
    """Of cats with the score 0.9 half are mistaken: which of them come first in the table is chance."""
    score, predicted = np.full(100, 0.9), np.repeat(["cat", "dog"], 50)
    half = np.repeat([1.0, 0.0], 25)
    for spending in (np.r_[half, 1 - half], np.r_[1 - half, half]):
        path = learn_path(score, predicted, spending, 0.0)
        places = path.places(score[:2], np.array(["cat", "dog"]))
        assert places == pytest.approx([-0.5, -0.5], abs=1e-6)


def test_a_path_stays_as_it_was_learned():
    path = Path({}, 0.0)
    with pytest.raises(FrozenInstanceError):
        path.lowest = 1.0
    assert len({path, Path({}, 0.0)}) == 2  # arrays are not compared: each is one of its own


def test_what_spends_less_at_the_same_score_comes_first():
    score = np.tile(np.linspace(0.5, 1, 200), 2)
    predicted = np.repeat([0, 1], 200)
    spending = np.where(predicted == 1, np.arange(400) % 2, np.arange(400) % 10 == 0).astype(float)
    place = learn_path(score, predicted, spending, 0.0).places(
        np.array([0.7, 0.7]), np.array([0, 1])
    )
    assert place[0] > place[1] + 0.2


def test_few_rows_one_class_or_no_mistake_teach_nothing():
    n = 50
    score, predicted, spending = np.linspace(0, 1, n), np.arange(n) % 2, np.arange(n) % 3 / 2.0
    assert set(learn_path(score, predicted, spending, 0.0).scales) == {0, 1}
    for nothing in (
        learn_path(score[1:], predicted[1:], spending[1:], 0.5),
        learn_path(score, np.zeros(n, int), spending, 0.5),
        learn_path(score, predicted, np.zeros(n), 0.5),
    ):
        assert nothing.scales == {}
        assert nothing.lowest == 0.5
