"""What the two figures of Synthetic Band show is measured in a run and only read when they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from reliablenet.bench import PROFILES, Plan, Profile, Store, pending_jobs, run_jobs
from reliablenet.bench.figures import confidence_by_distance, geometry
from reliablenet.bench.geometry import CELLS, geometry_job, measure_distance
from reliablenet.bench.results import NoRunsError
from reliablenet.datasets import load_dataset
from reliablenet.errors import InvalidDataError, InvalidParameterError

SMOKE = PROFILES["smoke"]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    store = Store(tmp_path_factory.mktemp("results") / "smoke")
    [job] = pending_jobs(SMOKE, store, methods=["geometry"])
    assert run_jobs([job], store) == []
    return store


@pytest.fixture
def untrained(monkeypatch) -> None:
    """Let every fit fail."""
    monkeypatch.setattr("reliablenet.bench.fitting.fit_on", None)


def test_it_is_run_once_with_the_first_seed(store):
    assert pending_jobs(SMOKE, store, methods=["geometry"]) == []
    assert pending_jobs(SMOKE, Store(store.folder / "new"), methods=["geometry"], seeds=[37]) == []
    record = geometry_job(SMOKE).find(store)
    assert (record["method"], record["seed"]) == ("geometry", SMOKE.seeds[0])
    assert record["timing"]["fit_seconds"] > 0


@pytest.mark.usefixtures("untrained")
def test_bins_hold_nearly_all_rows_and_their_confidence(store, tmp_path):
    figure = confidence_by_distance(store, SMOKE)
    table = figure.to_frame()
    assert table.groupby("method").size().to_dict() == {"ERM": 24, "ReliableNet": 24}
    assert table.groupby("method")["rows"].sum().to_dict() == {"ERM": 2970, "ReliableNet": 2970}
    assert set(table["seed"]) == {SMOKE.seeds[0]}
    for _, part in table.groupby("method"):
        np.testing.assert_allclose(np.diff(part["distance"]), 2 * part["distance"].iloc[0])
        assert part["confidence"].between(0.5, 1).all()
        # Coin tosses in the band, of half-width 0.5; none beyond it.
        near = part[part["distance"] < 0.3]
        assert np.average(near["accuracy"], weights=near["rows"]) < 0.65
        assert part["accuracy"].iloc[-1] > 0.95
    figure.plot().savefig(tmp_path / "figure.png")


@pytest.mark.usefixtures("untrained")
def test_confident_errors_are_counted_marked_and_named_in_the_title(store, tmp_path):
    figure = geometry(store, SMOKE)
    table = figure.to_frame()
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
        assert axes.images[0].get_array().shape == (CELLS, CELLS)
    picture.savefig(tmp_path / "figure.png")


def test_the_same_seed_gives_the_same_numbers_packed_or_not(store, tmp_path):
    again = Store(tmp_path / "smoke")
    run_jobs(pending_jobs(SMOKE, again, methods=["geometry"]), again)
    again.pack()
    again.path("synthetic_band", "geometry", 0).unlink()
    for make in (confidence_by_distance, geometry):
        assert make(again, SMOKE).to_frame().equals(make(store, SMOKE).to_frame())
    wanted = geometry_job(SMOKE).find(store)["hash"]
    first, second = (one.curves("synthetic_band", "geometry", 0, wanted) for one in (store, again))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("make", [confidence_by_distance, geometry])
def test_without_a_run_the_error_tells_what_is_missing(make, tmp_path):
    store = Store(tmp_path / "smoke")
    with pytest.raises(
        NoRunsError, match=r"^No run .*'smoke' for synthetic_band lies in .*Make"
    ) as told:
        make(store, SMOKE)
    error = told.value
    assert (error.store, error.profile) == (store, SMOKE)
    assert (error.plans, error.method) == (("synthetic_band",), "geometry")
    with pytest.raises(InvalidDataError, match="has no plan of Synthetic Band"):
        make(Store(tmp_path), Profile("adult", {"adult": Plan("adult")}))


def test_a_run_that_fails_leaves_its_error(tmp_path):
    broken = Profile("bad", {"bad": Plan("synthetic_band", data={"scale": -1.0})}, seeds=(0,))
    store = Store(tmp_path)
    [failure] = run_jobs(pending_jobs(broken, store, methods=["geometry"]), store)
    assert failure.startswith("bad geometry 0: InvalidParameterError: `scale` of SyntheticBand")
    assert "error" in store.read("bad", "geometry", 0)


def test_bins_are_counted():
    with pytest.raises(InvalidParameterError, match="`bins` of measure_distance"):
        measure_distance(load_dataset("synthetic_band"), {}, 0.5, bins=0)
