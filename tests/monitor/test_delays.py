import numpy as np
import pytest

from reliablenet.errors import InvalidParameterError
from reliablenet.monitor import Monitor
from reliablenet.monitor.delays import first_passage, last_rows, plan_delay
from reliablenet.monitor.e_process import LOG_WHOLE, log_beta_mixture


def test_the_border_is_where_the_evidence_reaches_the_level():
    last = last_rows(0.05, 0.05, 1.0, 60)
    for k in (5, 20, 60):
        assert LOG_WHOLE + log_beta_mixture(k, last[k - 1], 0.05) >= np.log(20)
        assert LOG_WHOLE + log_beta_mixture(k, last[k - 1] + 1, 0.05) < np.log(20)


def test_first_passages_are_those_of_all_paths():
    """Over all 2^12 paths: the alarm at two wrong rows in the first 3, three in the first 9."""
    last, chance = np.array([0, 3, 9]), 0.3
    times = {}
    for outcome in range(2**12):
        x = np.array([outcome >> i & 1 for i in range(12)])
        places = np.flatnonzero(x) + 1
        hits = [place for k, place in enumerate(places[:3]) if place <= last[k]]
        time = min(hits, default=99)
        times[time] = times.get(time, 0) + chance ** x.sum() * (1 - chance) ** (12 - x.sum())
    order = sorted(times)
    total = np.cumsum([times[t] for t in order])
    for share in (0.05, 0.2, 0.4):
        expected = order[int(np.searchsorted(total, share))]
        assert first_passage(last, chance, (share,)) == [expected]
    assert first_passage(last, chance, (0.99,)) == [None]


@pytest.mark.parametrize("audit", [1.0, 0.4])
def test_the_planned_median_is_that_of_monitors(audit):
    planned = plan_delay(0.1, 0.3, audit=audit)
    random = np.random.default_rng(0)
    found = []
    for _ in range(300):
        monitor = Monitor(0.1, audit=audit)
        wrong = random.random(1500) < 0.3
        monitor.update(np.ones(1500, bool), wrong, random.random(1500) < audit)
        found.append(monitor.parts[""].alarm_row or 10**6)
    below = np.mean(np.array(found) <= planned.median)
    assert 0.4 < below < 0.64  # five standard errors, and restarts come a little sooner
    assert planned.median < planned.most


def test_the_promised_delay_and_its_mistakes():
    assert plan_delay(0.05, 0.10).median <= 140
    with pytest.raises(InvalidParameterError, match="no alarm to wait for"):
        plan_delay(0.05, 0.05)
    with pytest.raises(InvalidParameterError, match="`audit`"):
        plan_delay(0.05, 0.1, audit=0)
