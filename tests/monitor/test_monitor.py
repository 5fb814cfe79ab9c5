import json
import math

import numpy as np
import pytest

import reliablenet as rn
from reliablenet.certificate import Certificate, anytime_upper
from reliablenet.certificate.sealing import digest
from reliablenet.errors import InvalidDataError, InvalidParameterError
from reliablenet.monitor import Monitor
from reliablenet.monitor.e_process import log_beta_mixture


def stream(n, jcw, coverage=0.8, seed=0):
    random = np.random.default_rng(seed)
    accepted = random.random(n) < coverage
    return accepted, random.random(n) < jcw / coverage


def test_an_alarm_comes_where_the_promise_breaks_and_not_before():
    monitor = Monitor(0.05)
    monitor.update(*stream(3000, 0.03))
    assert not monitor.alarm
    assert monitor.upper_bound < 0.05
    assert str(monitor).startswith("No alarm: acted on wrongly so far at most")
    monitor.update(*stream(3000, 0.15))
    assert monitor.alarm
    assert 3000 < monitor.parts[""].alarm_row < 3400
    assert "Alarm at row 3," in str(monitor)
    assert monitor.rows == 6000
    assert monitor.labels == monitor.parts[""].accepted


def test_deferred_rows_count_as_rows_and_never_as_mistakes():
    monitor = Monitor(0.05)
    monitor.update([False] * 50, [True] * 50)
    assert (monitor.rows, monitor.labels, monitor.parts[""].errors) == (50, 0, 0)
    assert str(monitor) == "No alarm, and no outcome yet: nothing is known."
    assert monitor.e_value < 1


def test_the_value_is_that_of_the_closed_form_before_the_first_restart():
    monitor = Monitor(0.05)
    accepted, wrong = stream(99, 0.1)
    monitor.update(accepted, wrong)
    k = int((accepted & wrong).sum())
    assert monitor.e_value == pytest.approx(0.9 * math.exp(log_beta_mixture(k, 99, 0.05)) + 0.1)
    assert monitor.upper_bound == anytime_upper(k, 99, 0.05)


def test_a_certificate_gives_the_budget():
    certificate = Certificate(0, 80, 100, alpha=0.03, rho=0.05, threshold=0.9)
    assert Monitor(certificate).parts[""].alpha == 0.03
    assert rn.Monitor is Monitor


def test_the_audited_share_is_weighted_by_its_probability():
    random = np.random.default_rng(0)
    accepted, wrong = stream(20_000, 0.04)
    audited = random.random(20_000) < 0.25
    monitor = Monitor(0.05, audit=0.25)
    monitor.update(accepted, np.where(audited, wrong, np.nan), audited)
    part = monitor.parts[""]
    assert part.labels == (accepted & audited).sum()
    assert part.jcw == pytest.approx(0.04, abs=0.01)
    assert 0.04 < monitor.upper_bound < 0.065
    assert not monitor.alarm


def test_pending_rows_are_counted_and_their_worst_case_is_told():
    accepted, wrong = np.ones(400, bool), np.zeros(400, bool)
    waits = np.arange(400) % 4 == 0
    monitor = Monitor(0.05)
    monitor.update(accepted, np.where(waits, np.nan, wrong), pending=waits)
    assert (monitor.pending, monitor.labels, monitor.rows) == (100, 300, 400)
    assert monitor.best_upper_bound == anytime_upper(0, 400)
    assert monitor.upper_bound == anytime_upper(100, 400)
    assert monitor.e_value < 1 < 1e6 < monitor.worst_e_value
    monitor.resolve(np.zeros(60, bool))
    monitor.resolve([True] * 40)
    assert (monitor.pending, monitor.labels, monitor.parts[""].errors) == (0, 400, 40)
    assert monitor.upper_bound == monitor.best_upper_bound == anytime_upper(40, 400)
    assert monitor.worst_e_value == monitor.e_value
    assert monitor.alarm
    assert monitor.parts[""].alarm_row == 400


def test_late_labels_never_give_more_evidence_than_prompt_ones():
    for seed in range(20):
        accepted, wrong = stream(600, 0.1, seed=seed)
        late = np.random.default_rng(seed).random(600) < 0.3
        prompt, tardy = Monitor(0.05), Monitor(0.05)
        prompt.update(accepted, wrong)
        tardy.update(accepted, wrong, pending=late)
        assert tardy.e_value <= prompt.e_value <= tardy.worst_e_value
        assert tardy.best_upper_bound <= prompt.upper_bound <= tardy.upper_bound
        tardy.resolve(wrong[late & accepted])
        assert tardy.e_value <= prompt.e_value * (1 + 1e-9)
        assert tardy.upper_bound == pytest.approx(prompt.upper_bound)


def test_groups_share_the_level_and_each_has_its_alarm():
    accepted, wrong = stream(4000, 0.02)
    group = np.random.default_rng(1).choice(["A", "B"], 4000)
    wrong[group == "B"] = np.random.default_rng(2).random((group == "B").sum()) < 0.2
    monitor = Monitor({"A": 0.05, "B": 0.05}, level=0.1)
    monitor.update(accepted, wrong, by=group)
    assert {name: part.alarm for name, part in monitor.parts.items()} == {"A": False, "B": True}
    assert monitor.alarm
    assert "of B" in str(monitor)
    assert monitor.rows == 4000
    alone = Monitor(0.05, level=0.05)
    alone.update(accepted[group == "A"], wrong[group == "A"])
    assert monitor.parts["A"].log_e_value == alone.parts[""].log_e_value
    assert monitor.e_value == pytest.approx(math.exp(monitor.parts["B"].log_e_value) / 2)
    assert monitor.to_dict()["parts"]["B"]["alarm"]


def test_a_certificate_by_parts_sends_rows_to_all_its_populations():
    random = np.random.default_rng(0)
    p, group = random.uniform(0.5, 1.0, 4000), random.choice(["A", "B"], 4000)
    y = np.where(random.random(4000) > p, "yes", "no")
    promise = rn.Promise.all_of(
        rn.Promise.overall(0.1),
        rn.Promise.by_group({"A": 0.1, "B": 0.1}),
        rn.Promise.by_class({"no": 0.2}),
    )
    proba = np.column_stack([p, 1 - p])
    whole = rn.certified_rule(proba, y, promise, by=group, classes=["no", "yes"])
    monitor = Monitor(whole)
    accepted = np.array([True, True, False, True])
    wrong = np.array([True, False, True, True])
    monitor.update(
        accepted,
        wrong,
        by=["A", "B", "A", "B"],
        truth=["yes", "no", "no", "no"],
    )
    found = {name: (part.rows, part.errors) for name, part in monitor.parts.items()}
    assert found == {
        "all": (4, 2),
        "group=A": (2, 1),
        "group=B": (2, 1),
        "no": (3, 1),
    }
    assert (monitor.rows, monitor.labels) == (4, 3)
    with pytest.raises(InvalidParameterError, match="needs `by`"):
        monitor.update(accepted, wrong)
    for promise, expected in (
        (rn.Promise.by_predicted({"no": 0.1}), {"no": (4, 1)}),
        (rn.Promise.among_accepted(0.2), {"accepted": (3, 2)}),
        (rn.Promise.overall(0.1), {"": (4, 2)}),
    ):
        monitor = Monitor(rn.certified_rule(proba, y, promise, classes=["no", "yes"]))
        monitor.update(accepted, wrong, predicted=["no", "no", "no", "yes"])
        assert {n: (part.rows, part.errors) for n, part in monitor.parts.items()} == expected


def test_merged_servers_are_one_stream():
    accepted, wrong = stream(1000, 0.04)
    one, other, both = Monitor(0.05), Monitor(0.05), Monitor(0.05)
    one.update(accepted[:700], wrong[:700])
    other.update(accepted[700:], wrong[700:], pending=np.arange(300) < 10)
    both.update(accepted, wrong, pending=(np.arange(1000) >= 700) & (np.arange(1000) < 710))
    merged = one.merge(other)
    assert (merged.rows, merged.labels, merged.pending) == (both.rows, both.labels, both.pending)
    assert merged.upper_bound == pytest.approx(both.upper_bound)
    assert merged.parts[""].errors == both.parts[""].errors
    with pytest.raises(InvalidParameterError, match="same budgets"):
        one.merge(Monitor(0.04))


def test_an_alarm_of_one_server_alone_stays_there():
    loud, quiet = Monitor(0.05), Monitor(0.05)
    loud.update([True] * 12, [True] * 12)
    quiet.update(*stream(5000, 0.01))
    assert loud.alarm
    assert not loud.merge(quiet).alarm
    assert loud.merge(Monitor(0.05)).alarm


def test_json_goes_on_where_it_stopped():
    accepted, wrong = stream(3000, 0.06)
    random = np.random.default_rng(0)
    for audit in (1.0, 0.3):
        audited = random.random(3000) < audit
        whole, first = Monitor(0.05, audit=audit), Monitor(0.05, audit=audit)
        whole.update(accepted, wrong, audited, pending=np.arange(3000) == 5)
        first.update(accepted[:1234], wrong[:1234], audited[:1234], pending=np.arange(1234) == 5)
        second = Monitor.from_json(first.to_json())
        second.update(accepted[1234:], wrong[1234:], audited[1234:])
        assert second.e_value == pytest.approx(whole.e_value, rel=1e-9)
        assert second.upper_bound == pytest.approx(whole.upper_bound, rel=1e-9)
        assert (second.alarm, second.rows, second.labels) == (whole.alarm, whole.rows, whole.labels)
        assert Monitor.from_json(second.to_json()).to_json() == second.to_json()
    by_group = Monitor({"A": 0.05, "B": 0.02})
    assert Monitor.from_json(by_group.to_json()).parts.keys() == {"A", "B"}


def test_altered_texts_are_refused():
    monitor = Monitor(0.05)
    monitor.update(*stream(200, 0.05))
    text = monitor.to_json()
    values = json.loads(text)
    for broken in (text.replace('"rows": 200', '"rows": 900'), text.replace("0.05", "0.06")):
        with pytest.raises(InvalidDataError, match="altered"):
            Monitor.from_json(broken)
    with pytest.raises(InvalidDataError, match="not the JSON"):
        Monitor.from_json("{")
    with pytest.raises(InvalidDataError, match="format"):
        Monitor.from_json("[]")

    def forged(change):
        copy = json.loads(text)
        copy.pop("sha256")
        change(copy)
        return json.dumps(copy | {"sha256": digest(copy)})

    with pytest.raises(InvalidDataError, match="errors <= labels"):
        Monitor.from_json(forged(lambda v: v["parts"][""].update(labels=0)))
    with pytest.raises(InvalidDataError, match="do not fit"):
        Monitor.from_json(forged(lambda v: v.update(level=0.2)))
    with pytest.raises(InvalidDataError, match="cannot be read"):
        Monitor.from_json(forged(lambda v: v["parts"][""].pop("capital")))
    with pytest.raises(InvalidDataError, match="summary"):
        Monitor.from_json(forged(lambda v: v["summary"].update(alarm=True)))
    assert values["summary"]["alarm"] is False


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"alpha": 0}, r"`alpha` of Monitor must lie in \(0, 1\); got 0"),
        ({"alpha": 5}, "Did you mean 0.05"),
        ({"alpha": "low"}, "a certificate, or a mapping"),
        ({"alpha": {}}, "at least one group"),
        ({"alpha": 0.05, "level": 0}, r"`level` of Monitor must lie in \(0, 1\)"),
        ({"alpha": 0.05, "audit": 0}, r"`audit` of Monitor must lie in \(0, 1\]"),
        ({"alpha": 0.05, "audit": 30}, "Did you mean 0.3"),
    ],
)
def test_bad_settings_are_named(arguments, expected):
    with pytest.raises(InvalidParameterError, match=expected):
        Monitor(**arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"accepted": [True], "wrong": [True, False]}, "`wrong` of update must be a vector of 1"),
        ({"accepted": [[True]], "wrong": [True]}, "`accepted` of update must be a vector"),
        ({"accepted": [True], "wrong": [np.nan]}, "`wrong` is missing in row 0.*`pending`"),
        ({"accepted": [None], "wrong": [True]}, "`accepted` of update must be known"),
        ({"accepted": [True], "wrong": [2]}, "True and False, or 1 and 0; got 2"),
        ({"accepted": ["yes"], "wrong": [True]}, "got 'yes'"),
        ({"accepted": [True], "wrong": [True], "audited": [False]}, "accepted but not audited"),
        ({"accepted": [True], "wrong": [True], "by": ["A", "B"]}, "`by` of update must have one"),
        ({"accepted": [True], "wrong": [True], "probability": [0.5]}, "between `audit` of the"),
        ({"accepted": [True], "wrong": [True], "probability": [np.nan]}, "must be finite"),
        ({"accepted": [True], "wrong": [True], "probability": 1.0}, "a vector of 1 numbers"),
    ],
)
def test_bad_rows_are_named_and_change_nothing(arguments, expected):
    monitor = Monitor(0.05)
    with pytest.raises((InvalidDataError, InvalidParameterError), match=expected):
        monitor.update(**arguments)
    assert monitor.rows == 0


def test_other_mistakes_are_named():
    with pytest.raises(InvalidDataError, match="needs `audited`"):
        Monitor(0.05, audit=0.5).update([True], [True])
    with pytest.raises(InvalidDataError, match="0 are pending"):
        Monitor(0.05).resolve([True])
    with pytest.raises(InvalidParameterError, match="`name` of resolve"):
        Monitor(0.05).resolve([True], name="A")
    with pytest.raises(InvalidDataError, match="entry 0 is missing"):
        Monitor(0.05).resolve([None])
    with pytest.raises(InvalidDataError, match="its group 'C' in `by` has no budget"):
        Monitor({"A": 0.05}).update([True], [False], by=["C"])
    Monitor({"A": 0.05}).update([False], [False], by=["C"])  # deferred: no promise is touched


def test_a_thousand_looks_are_as_good_as_one():
    accepted, wrong = stream(2000, 0.07)
    once, often = Monitor(0.05), Monitor(0.05)
    once.update(accepted, wrong)
    for place in range(0, 2000, 2):
        often.update(accepted[place : place + 2], wrong[place : place + 2])
    assert often.e_value == pytest.approx(once.e_value, rel=1e-9)
    assert often.parts[""].alarm_row == once.parts[""].alarm_row
