"""The two figures whose networks are trained on the spot, with schedules of seconds."""

from __future__ import annotations

import numpy as np
import pytest

from reliablenet.bench import PROFILES, Store
from reliablenet.bench.figures import FIGURES
from reliablenet.bench.geometry import confidence_by_distance, geometry
from reliablenet.errors import InvalidParameterError

SMOKE = PROFILES["smoke"]
PLAN = SMOKE.plans["synthetic_band"]


def test_bins_hold_nearly_all_rows_and_their_confidence(tmp_path):
    figure = confidence_by_distance(plan=PLAN, bins=10)
    table = figure.frame()
    assert table.groupby("method").size().to_dict() == {"ERM": 10, "ReliableNet": 10}
    assert table.groupby("method")["rows"].sum().to_dict() == {"ERM": 2970, "ReliableNet": 2970}
    for _, part in table.groupby("method"):
        np.testing.assert_allclose(np.diff(part["distance"]), 2 * part["distance"].iloc[0])
        assert part["confidence"].between(0.5, 1).all()
        # Coin tosses in the band, of half-width 0.5; none beyond it.
        assert part["accuracy"].iloc[0] < 0.65
        assert part["accuracy"].iloc[-1] > 0.95
    figure.plot().savefig(tmp_path / "figure.png")


def test_confident_errors_are_counted_marked_and_named_in_the_title(tmp_path):
    figure = geometry(gamma=0.9, plan=PLAN)
    table = figure.frame()
    assert list(table["method"]) == ["ERM", "ReliableNet"]
    assert table["threshold"].nunique() == 1
    np.testing.assert_allclose(table["jcw"], table["errors"] / 3000)
    np.testing.assert_allclose(table["coverage"], table["accepted"] / 3000)
    assert (table["in_band"] <= table["errors"]).all()
    assert table["errors"].max() > 0
    picture = figure.plot()
    for axes, found in zip(picture.axes, table.itertuples(), strict=False):
        (crosses,) = [line for line in axes.lines if line.get_marker() == "x"]
        assert len(crosses.get_xdata()) == found.errors
        assert axes.get_title().startswith(f"{found.method}: {found.errors} confident errors")
    picture.savefig(tmp_path / "figure.png")


def test_the_same_seed_gives_the_same_numbers():
    first, second = (geometry(37, plan=PLAN).frame() for _ in range(2))
    assert first.equals(second)


@pytest.mark.parametrize("name", ["confidence_by_distance", "geometry"])
def test_a_report_draws_them_with_its_profile_and_no_results(name, tmp_path):
    table = FIGURES[name](Store(tmp_path), SMOKE).frame()
    assert set(table["seed"]) == {SMOKE.seeds[0]}


def test_bins_are_counted():
    with pytest.raises(InvalidParameterError, match="`bins` of confidence_by_distance"):
        confidence_by_distance(bins=0)
