from __future__ import annotations

import hashlib

import numpy as np
import pytest

from reliablenet.datasets import SyntheticBand, synthetic_band
from reliablenet.errors import InvalidParameterError

MILLION = 1_000_000
FOUR_STANDARD_ERRORS = 4 * 0.5 / np.sqrt(MILLION)  # of a share of a million rows, at most


@pytest.fixture(scope="module")
def million():
    """A band with a million rows: their distance to the boundary and whether the label agrees."""
    band = SyntheticBand(random_state=0)
    fold = band.sample(MILLION)
    distance = fold.X @ band.direction
    return band, distance, (distance > 0) == fold.y


def test_folds_have_the_papers_row_counts_and_dimension():
    folds = SyntheticBand(random_state=0).folds()
    shapes = [fold.X.shape for fold in (folds.train, folds.selection, folds.certification)]
    assert shapes == [(5000, 10), (1500, 10), (3000, 10)]


def test_folds_share_no_row():
    folds = SyntheticBand(random_state=0).folds()
    rows = np.concatenate([folds.train.X, folds.selection.X, folds.certification.X])
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_the_same_seed_draws_the_same_rows_and_another_seed_others():
    first, again, other = (
        SyntheticBand(random_state=seed).folds().selection for seed in (37, 37, 42)
    )
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)


def test_the_direction_is_a_unit_vector_that_depends_on_the_seed():
    first, other = SyntheticBand(random_state=0).direction, SyntheticBand(random_state=1).direction
    assert np.linalg.norm(first) == pytest.approx(1.0, abs=1e-12)
    assert abs(first @ other) < 0.99


def test_features_are_normal_with_the_scale_asked_for():
    X = SyntheticBand(random_state=0, scale=3.0).sample(100_000).X
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(np.cov(X.T), 9.0 * np.eye(10), atol=0.2)


def test_labels_are_coin_tosses_inside_the_band_and_certain_outside(million):
    band, distance, agrees = million
    inside = np.abs(distance) <= band.gamma
    assert agrees[~inside].all()
    assert agrees[inside].mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(inside.sum()))


def test_a_wider_band_can_be_drawn_from_the_same_source():
    band = SyntheticBand(random_state=0, gamma=0.1)
    fold = band.sample(20_000, gamma=0.7)
    distance = fold.X @ band.direction
    agrees = (distance > 0) == fold.y
    assert agrees[np.abs(distance) > 0.7].all()
    assert agrees[np.abs(distance) <= 0.7].mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("gamma", [None, 0.1, 0.7, 1.3])
def test_in_band_is_the_share_of_rows_in_the_band(million, gamma):
    band, distance, _ = million
    share = (np.abs(distance) <= (band.gamma if gamma is None else gamma)).mean()
    assert band.in_band(gamma) == pytest.approx(share, abs=FOUR_STANDARD_ERRORS)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_best_throughput_is_what_the_optimal_rule_attains_within_its_budget(million, alpha):
    # Optimal: all rows outside the band, and of those inside as many as half of which is alpha.
    band, distance, agrees = million
    inside = np.abs(distance) <= band.gamma
    drawn = np.random.default_rng(0).uniform(size=MILLION) < 2 * alpha / inside.mean()
    accepted = ~inside | drawn
    assert (accepted & ~agrees).mean() == pytest.approx(alpha, abs=FOUR_STANDARD_ERRORS)
    throughput = (accepted & agrees).mean()
    assert band.best_throughput(alpha) == pytest.approx(throughput, abs=2 * FOUR_STANDARD_ERRORS)


def test_a_budget_beyond_all_noise_cannot_buy_more_than_the_bayes_accuracy(million):
    band, _, agrees = million
    assert band.best_throughput(0.9) == pytest.approx(agrees.mean(), abs=FOUR_STANDARD_ERRORS)


def test_the_best_classifier_has_the_papers_accuracy(million):
    _, _, agrees = million
    assert agrees.mean() == pytest.approx(0.835, abs=0.01)


@pytest.mark.parametrize(
    ("setting", "value"), [("dimension", 0), ("scale", 0.0), ("gamma", -0.1), ("gamma", np.nan)]
)
def test_settings_outside_their_domain_are_refused(setting, value):
    with pytest.raises(InvalidParameterError, match=f"`{setting}` of SyntheticBand must be"):
        SyntheticBand(**{setting: value})


def test_a_budget_outside_0_1_is_refused():
    with pytest.raises(InvalidParameterError, match=r"`alpha` of best_throughput.*mean 0.05"):
        SyntheticBand().best_throughput(alpha=5)


def test_loaded_folds_are_those_of_the_generator_to_the_bit():
    loaded, drawn = (
        synthetic_band.load(random_state=37).folds,
        SyntheticBand(random_state=37).folds(),
    )
    for name, fold in vars(drawn).items():
        assert getattr(loaded, name).X.tobytes() == fold.X.tobytes()
        assert getattr(loaded, name).y.tobytes() == fold.y.tobytes()


def test_shift_and_sweep_have_the_papers_levels_and_rows():
    dataset = synthetic_band.load(random_state=0)
    assert list(dataset.shifts) == ["gamma 0.7"]
    assert list(dataset.sweeps) == [0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3]
    folds = [*dataset.shifts.values(), *dataset.sweeps.values()]
    assert {fold.X.shape for fold in folds} == {(3000, 10)}


def test_a_level_is_the_same_alone_or_with_others_and_whatever_was_drawn_before():
    dataset = synthetic_band.load(random_state=0)
    band = SyntheticBand(random_state=0, gamma=0.2)
    band.sample(17)
    for gamma, fold in dataset.sweeps.items():
        alone = synthetic_band.load(random_state=0, shift_gamma=gamma).shifts[f"gamma {gamma:g}"]
        for other in (alone, band.level(gamma)):
            assert np.array_equal(other.X, fold.X)
            assert np.array_equal(other.y, fold.y)


def test_levels_share_no_row_with_each_other_or_with_the_folds():
    dataset = synthetic_band.load(random_state=0)
    folds = [*vars(dataset.folds).values(), *dataset.sweeps.values()]
    rows = np.concatenate([fold.X for fold in folds])
    assert len(np.unique(rows, axis=0)) == len(rows) == 9500 + 7 * 3000


def test_levels_change_the_labels_inside_their_band_only_and_keep_the_direction():
    dataset = synthetic_band.load(random_state=0)
    direction = SyntheticBand(**dataset.info["generator"]).direction
    for gamma, fold in dataset.sweeps.items():
        distance = fold.X @ direction
        agrees, inside = (distance > 0) == fold.y, np.abs(distance) <= gamma
        assert agrees[~inside].all()
        assert agrees[inside].mean() == pytest.approx(0.5, abs=2.5 / np.sqrt(inside.sum()))
        assert fold.X.std() == pytest.approx(1.17, abs=0.03)  # p(x) is that of the folds


def test_a_seed_draws_the_same_levels_on_any_machine_and_another_seed_others():
    first, again, other = (synthetic_band.load(random_state=seed) for seed in (0, 0, 37))
    digest = hashlib.sha256()
    for fold in (*vars(first.folds).values(), *first.sweeps.values()):
        rounded = np.round(fold.X, 6) + 0.0  # the last bits of a logarithm may differ
        digest.update(rounded.astype("<f8").tobytes() + fold.y.astype("u1").tobytes())
    assert digest.hexdigest() == "a6a75d46f450eec47e53415e73f5e83e83dc00afbf54e9fd1d3ef999e0557701"
    assert np.array_equal(first.sweeps[1.3].X, again.sweeps[1.3].X)
    assert not np.array_equal(first.sweeps[1.3].X, other.sweeps[1.3].X)


def test_the_figures_plane_can_be_loaded():
    plane = synthetic_band.load(random_state=0, dimension=2, gamma=0.9)
    assert plane.folds.certification.X.shape == (3000, 2)
    assert plane.sweeps[0.9].X.shape == (3000, 2)
    generator = SyntheticBand(**plane.info["generator"])
    distance = plane.folds.train.X @ generator.direction
    agrees = (distance > 0) == plane.folds.train.y
    assert agrees[np.abs(distance) > 0.9].all()
    assert not agrees[np.abs(distance) > 0.8].all()


def test_info_holds_the_best_throughput_at_the_papers_budget():
    assert synthetic_band.load().info["best_throughput"] == SyntheticBand().best_throughput(0.05)


def test_a_negative_shift_is_refused():
    with pytest.raises(InvalidParameterError, match="`shift_gamma` of synthetic_band must be"):
        synthetic_band.load(shift_gamma=-0.1)
