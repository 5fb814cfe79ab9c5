"""The monitor's view of a log is that of a monitor that was fed row by row."""

import math

import numpy as np
import pytest

from reliablenet import Monitor, Promise, certified_rule, certified_threshold
from reliablenet.errors import DecisionLogError
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog, Outcome
from reliablenet.monitor.watched import POINTS, watch

KEY = bytes(32)


def certificate(n=400):
    scores = np.linspace(0.5, 1.0, n)
    return certified_threshold(None, None, 0.05, score=scores, correct=np.ones(n, bool))


@pytest.fixture
def log(tmp_path):
    with DecisionLog(tmp_path / "d.db", create=True) as opened:
        yield opened


def fill(log, n, share, rate, seed=0, **more):
    rng = np.random.default_rng(seed)
    rule = log.put_in_force("m", "0" * 64, certificate().to_json())
    accepted, wrong = rng.random(n) < 0.8, rng.random(n) < rate
    logged = log.append(
        rule, AuditCoin(KEY, share), ["a"] * n, [0.9] * n, accepted.tolist(), **more
    )
    told = [
        Outcome(name, wrong=bool(bad))
        for name, audit, bad, acted in zip(*logged, wrong, accepted, strict=True)
        if audit and acted
    ]
    return rule, np.array(logged.audit), accepted, wrong, told


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_the_view_is_that_of_a_monitor(log, share):
    _, audit, accepted, wrong, told = fill(log, 700, share, 0.12)
    log.record(told)
    expected = Monitor(0.05, 0.05, share)
    expected.update(accepted, wrong, audit)
    view = watch(log)
    assert view.monitor.e_value == pytest.approx(expected.e_value, rel=1e-9)
    assert view.monitor.upper_bound == pytest.approx(expected.upper_bound, rel=1e-6)
    assert (view.monitor.alarm, view.monitor.labels) == (expected.alarm, expected.labels)
    assert view.now.rows == 700
    assert view.now.wrong == int((audit & accepted & wrong).sum())
    assert 0 < len(view.points) <= POINTS + 1
    assert [point.rows for point in view.points] == sorted({point.rows for point in view.points})
    assert view.points[-1].rows == 700
    assert view.points[-1].e_value == view.monitor.e_value


def test_outcomes_that_wait_count_for_the_bound_and_against_the_alarm(log):
    *_, told = fill(log, 300, 1.0, 0.02)
    log.record(told[:-40])
    waiting = watch(log)
    assert waiting.monitor.pending == waiting.now.waiting == 40
    log.record(told[-40:])
    known = watch(log)
    assert known.monitor.pending == 0
    assert known.monitor.upper_bound < waiting.monitor.upper_bound


def test_outcomes_that_the_coin_did_not_ask_for_do_not_count(log):
    """Complaints come from mistakes: whoever counts them too raises false alarms."""
    _, audit, accepted, _, told = fill(log, 400, 0.3, 0.02)
    log.record(told)
    before = watch(log).monitor
    others = [entry.id for entry in log.entries() if entry.accepted and not entry.audit]
    log.record([Outcome(name, wrong=True) for name in others])
    after = watch(log).monitor
    assert (after.e_value, after.labels) == (before.e_value, before.labels)
    assert before.labels == int((audit & accepted).sum())


def test_a_renewed_rule_begins_anew(log):
    *_, told = fill(log, 300, 1.0, 0.5)
    log.record(told)
    assert watch(log).monitor.alarm
    log.put_in_force("m", "1" * 64, certificate(500).to_json())
    renewed = watch(log)
    assert (renewed.monitor.alarm, renewed.monitor.rows, renewed.points) == (False, 0, [])
    assert renewed.by_rule[renewed.rules[0].number].rows == 300
    assert len(renewed.rules) == 2


def test_groups_are_counted(log):
    fill(log, 10, 1.0, 0.0, groups=["north", "south"] * 5)
    assert {name: counts.rows for name, counts in watch(log).groups.items()} == {
        "north": 5,
        "south": 5,
    }


def test_without_an_audit_nothing_is_known(log):
    fill(log, 10, 0.0, 0.0)
    view = watch(log)
    assert view.monitor is None
    assert "No decision is audited" in view.why_not


def test_an_empty_log(log):
    with pytest.raises(DecisionLogError, match="nothing has been decided yet"):
        watch(log)


def test_promises_by_group_are_watched_by_group(log):
    rng = np.random.default_rng(0)
    n = 2000
    by = rng.choice(["north", "south"], n)
    scores = rng.uniform(0.5, 1.0, n)
    proba = np.column_stack([scores, 1 - scores])
    y = np.where(rng.random(n) < 0.99, 0, 1)
    made = certified_rule(proba, y, Promise.by_group(0.05, by="region"), by=by, classes=[0, 1])
    rule = log.put_in_force("m", "0" * 64, made.to_json())
    groups = ["north", "south"] * 200
    logged = log.append(
        rule, AuditCoin(KEY, 1.0), ["0"] * 400, [0.9] * 400, [True] * 400, groups=groups
    )
    log.record(
        [
            Outcome(name, wrong=group == "south")
            for name, group in zip(logged.ids, groups, strict=True)
        ]
    )
    view = watch(log)
    assert view.why_not == ""
    raised = {part.value: part.alarm for part in view.monitor.parts.values()}
    assert raised == {"north": False, "south": True}
    assert math.isfinite(view.points[-1].upper_bound)
