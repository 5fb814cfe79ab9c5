"""The simulations of the monitor and of renewals in short, and what their committed long form must show."""

from __future__ import annotations

import math

import numpy as np
import pytest

from studies.guarantees import monitor, renewal
from studies.guarantees.intervals import keeps
from studies.runner import read_records

SOUND = [way for way in monitor.WAYS if way not in (*monitor.FAULTS, "mapie")]


def stored(name):
    return read_records("guarantees", name)


@pytest.mark.parametrize("way", SOUND)
def test_the_monitor_keeps_its_level_at_the_edge_of_the_promise(way):
    found = monitor.run_setting(way, 0.05, "1 x alpha", 40, 3000)
    assert keeps(found["alarms"], 40, monitor.LEVEL), found
    assert keeps(found["bound_failed"], 40, monitor.LEVEL), found


@pytest.mark.parametrize("way", monitor.FAULTS)
def test_each_fault_of_feeding_it_is_caught(way):
    found = monitor.run_setting(way, 0.05, "1 x alpha", 20, 12_000)
    assert not keeps(found["alarms"], 20, monitor.LEVEL), found


def test_a_breach_is_seen_soon_and_sooner_than_by_a_peer():
    ours = monitor.run_setting("every label", 0.05, "2 x alpha", 100, 1500)
    peer = monitor.run_setting("mapie", 0.05, "2 x alpha", 4, 1500)
    assert ours["alarms"] == 100
    assert ours["delay"][1] < 200
    assert peer["delay"][1] is None or peer["delay"][1] > 2 * ours["delay"][1]


def test_streams_have_the_truth_that_they_say():
    rows = monitor.draw(np.random.default_rng(0), 200_000, 0.05)
    assert np.mean(rows.accepted & rows.wrong) == pytest.approx(0.05, abs=0.003)
    assert rows.accepted.mean() == pytest.approx(monitor.COVERAGE, abs=0.005)
    jcw = monitor.path(0.05, "late change", 20_000)
    assert (jcw[0], jcw[-1]) == (0.025, 0.1)


def test_looking_often_is_free_by_evidence_and_not_by_a_fixed_plan():
    sound = renewal.run_setting("evidence", renewal.FACTORS[2], 60)
    assert keeps(sound["false"], 60, renewal.RHO)
    assert sound["granted"] == 60
    fault = renewal.run_setting("fixed plan, again and again", renewal.FACTORS[2], 60)
    assert fault["false"] > sound["false"]
    assert not keeps(fault["false"], 60, renewal.RHO)
    assert keeps(renewal.run_edge(20)["false"], 20, renewal.RHO)


def test_the_committed_streams_keep_the_level_and_see_breaches_in_time():
    records = {(r["way"], r["truth"]): r for r in stored("monitor") if r["alpha"] == 0.05}
    for record in stored("monitor"):
        if record["truth"] != "1 x alpha" or record["way"] == "mapie":
            continue
        if record["way"] in monitor.FAULTS:
            assert not keeps(record["alarms"], record["streams"], record["level"]), record
            continue
        assert record["streams"] >= 2000
        assert record["rows"] >= 20_000
        level = record["level"]
        limit = level + 3 * math.sqrt(level * (1 - level) / record["streams"])
        assert record["alarms"] / record["streams"] <= limit, record
        assert record["bound_failed"] / record["streams"] <= limit, record
    ours = records["every label", "2 x alpha"]["delay"][1]
    assert ours <= 140
    peer = records["mapie", "2 x alpha"]["delay"][1]
    assert peer is None or ours <= peer / 4


def test_the_committed_renewals_are_false_in_at_most_rho():
    for record in stored("renewal"):
        if record["way"].startswith("evidence"):
            rho = record["rho"]
            limit = rho + 3 * math.sqrt(rho * (1 - rho) / record["streams"])
            assert record["false"] / record["streams"] <= limit, record
    faults = [
        r for r in stored("renewal") if r["way"].startswith("fixed") and r["jcw_of_all"] > 0.05
    ]
    assert any(not keeps(r["false"], r["streams"], r["rho"]) for r in faults)
