"""The distribution of a number over bins, against counting it out."""

from __future__ import annotations

import numpy as np
import pytest

from reliablenet.errors import InvalidDataError
from reliablenet.methods.distribution import POINTS, ValueBins
from reliablenet.tables.tolerance import Margin

RNG = np.random.default_rng(0)
TABLES = {
    "normal": RNG.normal(size=3000),
    "few": np.array([1.0, 2.0]),
    "whole": RNG.integers(-20, 20, 500).astype(float),
    "mostly one": np.r_[np.full(600, 40.0), RNG.normal(40, 9, 400)],
    "heavy": np.exp(RNG.normal(0, 3, 2000)),
}
MARGINS = {
    "wide": Margin(100.0),
    "narrow": Margin(0.3),
    "tiny": Margin(1e-9),
    "relative": Margin(0.2, relative=True),
}


@pytest.fixture(params=TABLES)
def bins(request) -> ValueBins:
    return ValueBins.of(TABLES[request.param], 16)


def test_bins_hold_all_values_and_about_equally_many(bins) -> None:
    assert len(bins.points) <= POINTS
    assert 2 <= len(bins) <= 33  # one that many rows share splits its neighbours
    np.testing.assert_array_equal(bins.places(bins.points), bins.bins)
    assert bins.places(np.array([-1e300, 1e300])).tolist() == [0, len(bins) - 1]


def test_a_value_that_many_rows_share_is_alone() -> None:
    bins = ValueBins.of(TABLES["mostly one"], 16)
    own = bins.bins[bins.points == 40.0]
    assert np.count_nonzero(bins.bins == own) == 1


@pytest.mark.parametrize("margin", MARGINS)
def test_the_answer_is_the_best_of_all_values(bins, margin) -> None:
    allowed = MARGINS[margin]
    proba = np.random.default_rng(1).dirichlet(np.full(len(bins), 0.3), 40)
    value, chance = bins.answer(proba, allowed)
    weights = proba[:, bins.bins] * bins.weights
    reach = allowed.of(bins.points)
    slack = 1e-9 * np.maximum(np.abs(bins.points), 1e-9)

    def counted(candidate: float) -> np.ndarray:
        inside = np.abs(bins.points - candidate) <= reach + slack
        return weights[:, inside].sum(axis=1)

    best = np.max([counted(edge) for edge in (bins.points + reach)], axis=0)
    np.testing.assert_allclose(chance, best, atol=1e-9)
    own = np.array([counted(v)[i] for i, v in enumerate(value)])
    np.testing.assert_allclose(chance, own, atol=1e-9)


def test_one_row_gets_the_same_bits_as_many(bins) -> None:
    proba = np.random.default_rng(2).dirichlet(np.ones(len(bins)), 5000)
    amount = np.random.default_rng(3).uniform(0.1, 3, 5000)
    for margin in (Margin(1.0), Margin(amount)):
        together = bins.answer(proba, margin)
        for i in (0, 17, 4999):
            alone = bins.answer(proba[i : i + 1], margin.take(slice(i, i + 1)))
            assert [part[i] for part in together] == [part[0] for part in alone]


def test_equal_tolerances_of_rows_are_one_for_all(bins) -> None:
    proba = np.random.default_rng(4).dirichlet(np.ones(len(bins)), 50)
    one, each = bins.answer(proba, Margin(0.7)), bins.answer(proba, Margin(np.full(50, 0.7)))
    np.testing.assert_array_equal(one, each)


def test_bins_come_back_and_forged_ones_do_not(bins) -> None:
    plain = bins.to_plain()
    again = ValueBins.from_plain(plain)
    assert all(np.array_equal(getattr(again, name), getattr(bins, name)) for name in plain)
    for name, change in (
        ("points", lambda v: v[::-1]),
        ("points", lambda v: [float("nan"), *v[1:]]),
        ("weights", lambda v: [2.0, *v[1:]]),
        ("weights", lambda v: v[1:]),
        ("bins", lambda v: [1, *v[1:]]),
    ):
        with pytest.raises(InvalidDataError, match="Bins of values"):
            ValueBins.from_plain(plain | {name: change(plain[name])})
