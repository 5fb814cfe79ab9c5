"""A decision log keeps what was acknowledged, once, in order, in SQLite and in PostgreSQL."""

import hashlib
import sqlite3
import threading

import pytest
import sqlalchemy as sa

from reliablenet.errors import (
    DataFileError,
    DecisionLogError,
    InvalidDataError,
    InvalidParameterError,
)
from reliablenet.monitor.coin import AuditCoin
from reliablenet.monitor.log import DecisionLog, Outcome, Status, schema
from reliablenet.monitor.log.verification import verify

MODEL = hashlib.sha256(b"model").hexdigest()


def fill(log, coin, n=6, **more):
    rule = log.put_in_force("loans", MODEL, '{"alpha": 0.05}')
    labels = [("yes", "no")[i % 2] for i in range(n)]
    return log.append(
        rule,
        coin,
        labels,
        [0.5 + i / 1000 for i in range(n)],
        [i % 3 > 0 for i in range(n)],
        **more,
    )


def test_what_is_written_is_read(log, coin):
    written = fill(log, coin, groups=[None, "a", "b", "a", "ü", ""])
    entries = list(log.entries())
    assert [entry.id for entry in entries] == written.ids
    assert [entry.audit for entry in entries] == list(map(coin.picks, written.ids))
    first = entries[1]
    assert (first.label, first.confidence, first.accepted, first.group) == ("no", 0.501, True, "a")
    assert (first.model, first.share) == (MODEL, 0.5)
    assert first.certificate == hashlib.sha256(b'{"alpha": 0.05}').hexdigest()
    assert (first.truth, first.wrong, first.learned) == (None, None, None)
    assert all(type(entry.accepted) is bool and type(entry.audit) is bool for entry in entries)
    numbers = [entry.number for entry in entries]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("n", [1, 7, 512, 1023])
def test_as_many_as_came_are_written_to_the_bit(log, coin, n):
    """One statement writes many rows; none is left out and none moves to another."""
    confidences = [1 / (3 + i) for i in range(n)]
    rule = log.put_in_force("loans", MODEL, "{}")
    labels, accepted = [f"label {i}" for i in range(n)], [i % 3 > 0 for i in range(n)]
    written = log.append(rule, coin, labels, confidences, accepted)
    expected = list(zip(*written, labels, confidences, accepted, strict=True))
    assert [(e.id, e.audit, e.label, e.confidence, e.accepted) for e in log.entries()] == expected
    with pytest.raises(ValueError, match="one length"):
        log.append(rule, coin, labels, [*confidences, 0.5], accepted)


@pytest.mark.parametrize("n", [1, 700])
def test_what_only_some_decisions_have_is_written_beside_the_rest(log, coin, n):
    """What all of them have in common goes to the database once; what differs goes to its own row."""
    rule = log.put_in_force("prices", MODEL, "{}")
    own = {
        "tolerances": [f"{i}.5" for i in range(n)],
        "groups": [None if i % 3 else f"group {i}" for i in range(n)],
        "features": [f'{{"x": {i}}}' for i in range(n)],
    }
    for given in ({}, {"groups": own["groups"]}, own):
        numbers = list(range(n))
        known = max((entry.number for entry in log.entries()), default=0)
        written = log.append(rule, coin, list(map(str, numbers)), [0.5] * n, [True] * n, **given)
        entries = list(log.entries(after=known))
        assert [int(entry.label) for entry in entries] == numbers
        nothing = [None] * n
        assert [entry.tolerance for entry in entries] == given.get("tolerances", nothing)
        assert [entry.group for entry in entries] == given.get("groups", nothing)
        kept = log.features(written.ids)
        assert list(map(kept.get, written.ids)) == given.get("features", nothing)
        assert {(entry.rule, entry.share) for entry in entries} == {(rule, coin.share)}
        assert len({entry.time for entry in entries}) == 1


def test_a_reader_goes_on_where_it_stopped(log, coin, monkeypatch):
    monkeypatch.setattr("reliablenet.monitor.log.decision_log.READ", 4)
    fill(log, coin, 11)
    seen = list(log.entries())
    assert len(seen) == 11
    assert list(log.entries(after=seen[-1].number)) == []
    fill(log, coin, 2)
    assert len(list(log.entries(after=seen[-1].number))) == 2


def test_outcomes_join_by_id_and_the_first_one_stands(log, coin):
    a, b, c, *_ = fill(log, coin).ids
    reported = [Outcome(a, truth="yes"), Outcome(b, truth="yes"), Outcome("none-1", truth="yes")]
    assert log.record(reported) == [Status.RECORDED, Status.RECORDED, Status.UNKNOWN]
    again = [
        Outcome(a, truth="yes"),
        Outcome(a, truth="no"),
        Outcome(b, wrong=True),
        Outcome(b, wrong=False),
    ]
    assert log.record(again) == [Status.KNOWN, Status.OTHER, Status.KNOWN, Status.OTHER]
    twice = [Outcome(c, truth="no"), Outcome(c, truth="no"), Outcome(c, truth="yes")]
    assert log.record(twice) == [Status.RECORDED, Status.KNOWN, Status.OTHER]
    wrong = {entry.id: entry.wrong for entry in log.entries()}
    assert (wrong[a], wrong[b], wrong[c]) == (False, True, True)
    assert log.counts() == {
        "decisions": 6,
        "accepted": 4,
        "audit": log.counts()["audit"],
        "outcomes": 3,
    }
    assert all(entry.learned >= entry.time for entry in log.entries() if entry.learned)


def test_an_outcome_says_the_truth_or_right_or_wrong():
    with pytest.raises(InvalidDataError, match="either the truth"):
        Outcome("a")
    with pytest.raises(InvalidDataError, match="either the truth"):
        Outcome("a", truth="yes", wrong=True)


def test_what_waits_for_a_person(log, coin):
    written = fill(log, coin, 40)
    picked = [name for name, audit in zip(*written, strict=True) if audit]
    assert [entry.id for entry in log.to_audit(100)] == picked
    log.record([Outcome(picked[0], truth="no")])
    assert [entry.id for entry in log.to_audit(2)] == picked[1:3]
    deferred = written.ids[::3]
    assert [entry.id for entry in log.deferred(3)] == [
        name for name in reversed(deferred) if name != picked[0]
    ][:3]


def test_features_are_kept_only_if_given(log, coin):
    plain, kept = fill(log, coin, 1).ids, fill(log, coin, 1, features=['{"age": 30}']).ids
    assert log.features([*plain, *kept]) == {kept[0]: '{"age": 30}'}


def test_a_rule_is_noted_when_it_changes(log):
    first = log.put_in_force("loans", MODEL, "{}")
    assert log.put_in_force("loans", MODEL, "{}") == first
    assert log.put_in_force("loans", MODEL, '{"verdict": "in other words"}') == first
    second = log.put_in_force("loans", MODEL, '{"renewed": true}')
    assert second > first
    assert [rule.document for rule in log.rules()] == ["{}", '{"renewed": true}']
    assert log.put_in_force("loans", MODEL, "{}") > second  # back to the old one is a change too


def test_another_key_is_refused(log, place, coin):
    fill(log, coin)
    other = AuditCoin(bytes(32), 0.5)
    with pytest.raises(InvalidParameterError, match="audit key is not the one"):
        fill(log, other)
    with DecisionLog(place, create=True) as again, pytest.raises(InvalidParameterError):
        fill(again, other)
    assert log.counts()["decisions"] == 6


def test_the_coin_of_all_decisions_can_be_checked(log, coin):
    fill(log, coin, 30)
    fill(log, AuditCoin(coin.key, 0.1), 30)  # the share may change
    assert verify(log, coin.key)
    other = verify(log, bytes(32))
    assert (len(other.otherwise) > 5, other.gaps) == (True, [])


def test_a_decision_that_was_left_out_is_missed(log, coin):
    fill(log, coin, 3)
    log._count += 2  # as if two had been decided and never written
    fill(log, coin, 1)
    found = verify(log, coin.key)
    assert not found
    assert [name.split("-")[1] for name in found.gaps] == ["00000003", "00000004"]


def test_nothing_can_be_changed_or_dropped(log, coin):
    fill(log, coin)
    log.record([Outcome(next(log.entries()).id, truth="no")])
    for statement in (
        "UPDATE decisions SET label = 'yes'",
        "DELETE FROM decisions",
        "UPDATE outcomes SET wrong = NOT wrong",
        "DELETE FROM outcomes",
        "UPDATE facts SET value = '2'",
        "DELETE FROM rules",
    ):
        with (
            log._engine.connect() as connection,
            pytest.raises(sa.exc.DBAPIError, match="only added to"),
        ):
            connection.execute(sa.text(statement))
    assert log.counts()["decisions"] == 6


def test_threads_write_at_once_and_lose_nothing(log, coin):
    found = []

    def work():
        for _ in range(10):
            found.extend(fill(log, coin, 3).ids)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.id for entry in log.entries()) == sorted(found)
    assert len(set(found)) == 120


def test_two_servers_write_one_log(log, place, coin):
    with DecisionLog(place, create=True) as other:
        ids = [*fill(log, coin).ids, *fill(other, coin).ids, *fill(log, coin).ids]
        assert [entry.id for entry in other.entries()] == ids
        assert log.record([Outcome(ids[7], truth="yes")]) == [Status.RECORDED]
        assert other.record([Outcome(ids[7], truth="yes")]) == [Status.KNOWN]


def test_a_failed_write_leaves_nothing_and_begins_a_new_run(log, coin):
    fill(log, coin)
    with pytest.raises(DecisionLogError, match="cannot be written"):
        log.append(999, coin, ["yes", "no"], [0.5, 0.5], [True, True])  # no such rule
    assert log.counts()["decisions"] == 6
    fill(log, coin)
    runs = {entry.id.split("-")[0] for entry in log.entries()}
    assert len(runs) == 2


def test_a_connection_that_breaks_costs_one_write(postgres, coin, monkeypatch, caplog):
    with DecisionLog(postgres.new_database(), create=True) as log:
        fill(log, coin)
        with monkeypatch.context() as patched:
            patched.setattr(schema, "LOCK", "SELECT pg_terminate_backend(pg_backend_pid())")
            with pytest.raises(DecisionLogError, match="cannot be written"):
                fill(log, coin)
        fill(log, coin)
        assert log.counts()["decisions"] == 12
    assert not caplog.records


def test_an_empty_batch_writes_nothing(log, coin):
    assert fill(log, coin, 0) == ([], [])
    assert log.record([]) == []


def test_a_log_is_read_without_writing_to_it(log, place, coin):
    fill(log, coin)
    with DecisionLog(place) as reader:
        assert len(list(reader.entries())) == 6
        with pytest.raises(DecisionLogError, match="opened read-only"):
            reader.put_in_force("loans", MODEL, "{}")


def test_a_log_of_another_version_is_refused(log, place):
    log.close()
    url = str(place).replace(
        "postgresql://", "postgresql+psycopg://"
    )  # as every SQLAlchemy reads it
    engine = sa.create_engine(url if "://" in url else f"sqlite:///{place}")
    drop = ["DROP TRIGGER facts_no_update", "DROP TRIGGER facts_no_change ON facts"]
    with engine.begin() as connection:
        connection.execute(sa.text(drop["://" in str(place)]))
        connection.execute(sa.text("UPDATE facts SET value = '9' WHERE name = 'version'"))
    engine.dispose()
    with pytest.raises(DecisionLogError, match="version 9 of the schema; this program knows 2"):
        DecisionLog(place, create=True)


def test_places_that_are_no_log(tmp_path):
    with pytest.raises(DataFileError, match="There is no decision log"):
        DecisionLog(tmp_path / "none.db")
    with pytest.raises(DataFileError, match="There is no folder"):
        DecisionLog(tmp_path / "none" / "log.db", create=True)
    with pytest.raises(DataFileError, match="a URL of 'mysql'"):
        DecisionLog("mysql://root@localhost/x")
    (tmp_path / "text.db").write_text(
        "this is no database, but some text that is long enough\n" * 20
    )
    with pytest.raises(DecisionLogError, match="cannot be opened: file is not a database"):
        DecisionLog(tmp_path / "text.db", create=True)
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE a (b)").connection.close()
    with pytest.raises(DecisionLogError, match="not a decision log"):
        DecisionLog(tmp_path / "other.db")


def test_a_file_that_is_no_database_is_closed_again(tmp_path, monkeypatch):
    opened = []

    class Connection(sqlite3.Connection):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            opened.append(self)

    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **more: real(*given, **more, factory=Connection)
    )
    (tmp_path / "text.db").write_text("some text that is no database\n" * 40)
    with pytest.raises(DecisionLogError, match="file is not a database"):
        DecisionLog(tmp_path / "text.db", create=True)
    assert opened
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_password_is_never_shown():
    with pytest.raises(DecisionLogError) as caught:
        DecisionLog("postgresql://user:secret@127.0.0.1:1/x", timeout=2)
    assert "secret" not in str(caught.value)
    assert "user:***@" in str(caught.value)


def test_a_lock_of_another_process_is_waited_for_and_then_told(tmp_path, coin):
    path = tmp_path / "decisions.db"
    with DecisionLog(path, create=True, timeout=0.3) as log:
        fill(log, coin)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DecisionLogError, match="cannot be written: database is locked"):
            fill(log, coin)
        assert len(list(log.entries())) == 6  # readers are not held up
        other.execute("ROLLBACK")
        other.close()
        fill(log, coin)
        assert log.counts()["decisions"] == 12


@pytest.mark.parametrize(("durable", "level"), [(False, 1), (True, 2)])
def test_sqlite_is_set_up_to_survive(tmp_path, durable, level):
    with (
        DecisionLog(tmp_path / "d.db", create=True, durable=durable) as log,
        log._engine.connect() as c,
    ):
        assert c.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert c.exec_driver_sql("PRAGMA synchronous").scalar() == level
