"""Confidences in a log against those of the certification rows: the level is kept, changes are seen, looks do not matter."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from reliablenet import certified_threshold
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog
from reliablenet.monitor.martingale import score_counts
from reliablenet.monitor.score_stream import MOST_POINTS, ScoreStream, read_scores, write_scores
from reliablenet.monitor.watched import watch


def scores(n, seed, a=8.0):
    return np.random.default_rng(seed).beta(a, 2.0, n)


def test_streams_of_the_same_source_keep_the_level():
    level, streams = 0.2, 120
    alarms = sum(
        ScoreStream(score_counts(scores(80, [1, seed])), level).update(scores(80, [2, seed])).alarm
        for seed in range(streams)
    )
    assert stats.binom.sf(alarms - 1, streams, level) > 1e-4


def test_a_change_is_seen_after_it_came_and_stays_told():
    stream = ScoreStream(score_counts(scores(500, 1))).update(scores(200, 2))
    assert not stream.alarm
    assert "No change" in str(stream)
    stream.update(scores(200, 3, a=2.0))
    assert 200 < stream.alarm_row <= 400
    row = stream.alarm_row
    assert stream.update(scores(100, 4)).alarm_row == row
    assert f"at row {row}" in str(stream)
    told = stream.to_dict()
    assert (told["changed"], told["alarm_row"], told["rows"]) == (True, row, 500)
    assert json.dumps(told, allow_nan=False)


def test_how_often_one_looks_does_not_matter_and_the_line_stays_short():
    new = scores(1500, 5)
    whole, parts = (ScoreStream(score_counts(scores(300, 6))) for _ in range(2))
    whole.update(new)
    for start in range(0, 1500, 37):
        parts.update(new[start : start + 37])
    assert (parts.e_value, parts.points) == (whole.e_value, whole.points)
    assert MOST_POINTS // 4 < len(whole.points) <= MOST_POINTS
    rows = [point.rows for point in whole.points]
    assert rows == sorted(rows)
    assert 1500 - rows[-1] < rows[1] - rows[0]


def test_a_log_goes_on_where_the_last_look_ended(tmp_path):
    made = certified_threshold(
        None, None, 0.05, score=np.linspace(0.5, 1, 400), correct=np.ones(400, bool)
    )
    model = SimpleNamespace(grouped_=False, evidence_=SimpleNamespace(score=scores(300, 7)))
    with DecisionLog(tmp_path / "d.db", create=True) as log:
        coin = AuditCoin(bytes(32), 0.0)  # no audit: the source is watched all the same
        rule = log.put_in_force("m", "0" * 64, made.to_json(), write_scores(model))
        log.append(rule, coin, ["a"] * 90, scores(90, 8).tolist(), [True] * 90)
        first = watch(log)
        log.append(rule, coin, ["a"] * 90, scores(90, 9, a=3.0).tolist(), [True] * 90)
        stream, again = first.source, watch(log, before=first)
        assert again.source is stream  # the first rows were not looked at twice
        assert (again.source.rows, watch(log).source.e_value) == (180, stream.e_value)
        log.put_in_force("m", "1" * 64, made.to_json(), write_scores(model))
        assert watch(log, before=again).source.rows == 0  # a new rule begins anew
        log.put_in_force("m", "2" * 64, made.to_json())
        assert watch(log, before=again).source is None


def test_what_cannot_be_compared_is_not_written_or_refused():
    rows = SimpleNamespace(score=scores(10, 0))
    assert write_scores(SimpleNamespace(grouped_=True, evidence_=rows)) is None
    assert write_scores(SimpleNamespace(grouped_=False, evidence_=None)) is None
    kept = write_scores(SimpleNamespace(grouped_=False, evidence_=rows))
    assert read_scores(kept).sum() == 10
    for damaged in ("[1, 2]", "{}", json.dumps([-1] * 128), json.dumps([0.5] * 128)):
        with pytest.raises(InvalidDataError, match="damaged"):
            read_scores(damaged)
    with pytest.raises(InvalidParameterError, match="`level`"):
        ScoreStream(read_scores(kept), 5)
