"""Every promise in short, what its committed long form must show, and careless ways that it must catch."""

from __future__ import annotations

import math

import pytest

from reliablenet.certificate.rule_checks import POPULATIONS
from studies.guarantees import promises
from studies.guarantees.intervals import keeps
from studies.runner import read_records

SHORT = 400
STORED = read_records("guarantees", "promises")


@pytest.mark.parametrize("case", promises.CASES)
def test_a_promise_is_kept(case):
    """Every setting also compares the library with what is computed for all draws at once."""
    for name, _, _ in promises.CASES[case][2]:
        found = promises.run_setting(case, name, SHORT)
        assert keeps(found["failures"], SHORT, promises.RHO), (case, name, found)


def test_every_promise_has_a_careless_way_that_is_tried():
    tried = {case for case, way in promises.FAULTS.values() if way not in ("blind", "plain")}
    assert tried == set(promises.CASES)


def test_every_kind_of_promise_was_simulated_long_enough():
    kinds = {part.kind for promise, _, _ in promises.CASES.values() for part in promise.simple()}
    assert kinds == set(POPULATIONS)
    kept = [record for record in STORED if not record["fault"]]
    assert len(kept) == 3 * len(promises.CASES)
    for record in kept:
        assert record["draws"] >= 20_000
        error = math.sqrt(promises.RHO * (1 - promises.RHO) / record["draws"])
        assert record["failures"] / record["draws"] <= promises.RHO + 3 * error, record


@pytest.mark.parametrize(
    ("fault", "case", "setting"),
    [
        ("each group at rho", "by group", "edge"),
        ("each group at rho", "by group", "unequal"),
        ("all groups together", "by group, one threshold", "unequal"),
        ("each predicted class at rho", "by predicted class", "edge"),
        ("each true class at rho", "by true class, two", "edge"),
        ("all true classes together", "by true class, five", "unequal"),
        ("the observed cost within the budget", "cost, one", "edge"),
        ("the observed costs within the budget", "cost, several", "few rows"),
        ("each promise and each group at rho", "overall and by group", "edge"),
        ("each coverage at rho", "among rows acted on, ten coverages", "edge"),
        ("path learned on the certification fold", "overall, learned path", "few rows"),
        ("the best of all thresholds that pass", "among rows acted on, learned order", "edge"),
    ],
)
def test_a_careless_way_is_caught(fault, case, setting):
    draws = 200 if "path" in fault else 2_000
    found = promises.run_setting(case, setting, draws, fault)
    assert not keeps(found["failures"], draws, promises.RHO), found
    (long,) = [r for r in STORED if r["fault"] == fault and r["setting"] == setting]
    assert not keeps(long["failures"], long["draws"], promises.RHO), long


def coverage(case, setting, fault=""):
    wanted = {"promise": case, "setting": setting, "fault": fault}
    (found,) = [r for r in STORED if wanted.items() <= r.items()]
    return found["coverage"]


def test_what_the_choices_are_worth():
    own, common = (coverage(case, "unequal") for case in ("by group", "by group, one threshold"))
    assert own >= 1.2 * common
    for setting in ("edge", "few rows", "unequal"):
        path = coverage("overall, learned path", setting)
        assert path > coverage("overall, learned path", setting, "one threshold, no path")
    learned = "among rows acted on, learned order"
    assert coverage(learned, "best in the middle") > 0.5
    assert coverage(learned, "best in the middle", "a blind start") < 0.05
