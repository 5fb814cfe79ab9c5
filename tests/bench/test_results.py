"""What is read from a store: runs that succeeded with the profile's settings, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from study_records import PROFILE, record, small_study

from reliablenet.bench import Store
from reliablenet.bench.results import finished_curves, finished_runs, results_frame, stack_curves
from reliablenet.errors import InvalidDataError, InvalidParameterError


@pytest.fixture
def store(tmp_path) -> Store:
    return small_study(tmp_path)


def test_runs_that_failed_or_had_other_settings_are_left_out(store):
    store.path("adult", "erm", 37).unlink()  # a failure replaces no finished run
    store.write("adult", "erm", 37, record("erm", 37, 1, 2) | {"error": "no"}, None)
    store.write("adult", "erm+certified", 0, record("erm", 0, 1, 2) | {"hash": "old"}, None)
    frame = results_frame(store, PROFILE)
    assert set(frame["plan"]) == {"adult"}
    assert len(frame[frame["method"] == "erm"]) == 1
    assert len(frame[frame["method"] == "erm+certified"]) == 1


def test_no_run_at_all_says_how_to_make_it(tmp_path):
    with pytest.raises(InvalidDataError, match=r"profile 'mine' lies in .*: `run_jobs"):
        results_frame(Store(tmp_path), PROFILE)


def test_a_frame_says_where_a_method_acts_with_what_and_what_it_may_do(store):
    frame = results_frame(store, PROFILE).set_index(["method", "seed"])
    last = frame.loc[("reliablenet_last+certified", 0)]
    assert (last["point"], last["classifier"]) == ("certified", "reliablenet_last")
    assert last["certified_throughput"] == last["throughput"] == pytest.approx(0.6)
    refused = frame.loc[("erm+certified", 37)]
    assert refused["throughput"] == pytest.approx(0.97)
    assert refused["certified_throughput"] == 0.0


def test_curves_come_by_seed_and_part(store):
    curves = np.stack([np.zeros(200), np.full(200, 0.25)]).astype(np.float32)
    for seed in (0, 37):
        store.write("adult", "erm", seed, record("erm", seed, 20, 100), curves + seed)
    found = finished_curves(store, PROFILE, "adult", "erm", "shift")
    assert {seed: set(curve) for seed, curve in found.items()} == {0: {0.25}, 37: {37.25}}
    assert stack_curves(found).shape == (2, 200)
    assert stack_curves({}).shape == (0, 200)
    assert finished_curves(store, PROFILE, "unsw_nb15", "erm", "shift") == {}


def test_an_unknown_method_names_those_there_are(store):
    with pytest.raises(
        InvalidParameterError, match=r"`methods` of bench must be among .*'erm@eps'"
    ):
        finished_runs(store, PROFILE, "adult", "magic")
