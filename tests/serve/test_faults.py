"""What was acknowledged is there: kill -9, a full disk, a lock, SIGTERM in mid-batch, a renewed model, two servers."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest
from contract_helpers import fit_quietly, quick
from fault_cases import FAULTS, count_kept
from serving import Load, LocalServer, ServerProcess, make_rows, records, wait_until

import reliablenet as rn
from reliablenet.errors import ModelFileError
from reliablenet.modelfile.signature import make_keys, sign_file
from reliablenet.monitor.log import DecisionLog

linux = pytest.mark.skipif(sys.platform != "linux", reason="signals and mounts of Linux")


def check_kept(log, loads):
    """Every decision and outcome that was told is there, and none twice; others may be there too."""
    found = count_kept(log, loads)
    assert (found["lost"], found["lost_outcomes"], found["twice"]) == (0, 0, 0)


@pytest.mark.parametrize("case", FAULTS)
def test_what_was_told_under_load_is_kept(case, model_file, tmp_path):
    """`python -m studies server_faults` does each many times."""
    with case(model_file, tmp_path, number=1) as (log, loads):
        assert all(load.reported for load in loads)
        check_kept(log, loads)


@linux
def test_stopped_in_mid_batch_and_renewed_without_a_lost_request(model_file, tmp_path):
    path, log = tmp_path / "m.rnet", tmp_path / "d.db"
    path.write_bytes(model_file.read_bytes())
    rows = records(make_rows(40, seed=0)[0])
    other = fit_quietly(quick(rn.ReliableClassifier, alpha=0.2), *make_rows(1500, seed=9))
    with ServerProcess(path, log, "--audit", "0.3") as server:
        first = server.get("/certificate").json()["model"]
        with Load(server.url, rows, outcomes=False) as load:
            wait_until(lambda: len(load.decisions) > 80)
            other.save(path)
            server.send(signal.SIGHUP)
            server.wait_for("A new model is in force")
            begun = len(load.decisions)
            wait_until(lambda: len(load.decisions) > begun + 200)
            path.write_bytes(b"no model")
            server.send(signal.SIGHUP)
            server.wait_for("The old model stays in force")
            assert server.get("/certificate").json()["model"] != first
            server.send(signal.SIGTERM)
            assert server.process.wait(60) == 0
        assert load.refused == []
    assert not log.with_name("d.db-wal").exists()  # closed in order
    check_kept(log, [load])
    with DecisionLog(log) as opened:
        entries = list(opened.entries())
    assert len(entries) == len(load.decisions)  # all that was decided was told
    models = list(dict.fromkeys(entry.model for entry in entries))
    assert (len(models), models[0]) == (2, first)


def test_a_file_that_was_replaced_is_noticed(model_file, tmp_path):
    path = tmp_path / "m.rnet"
    path.write_bytes(model_file.read_bytes())
    other = fit_quietly(quick(rn.ReliableClassifier, alpha=0.2), *make_rows(1500, seed=9))
    with LocalServer(path, tmp_path / "d.db", watch=0.05) as server:
        other.save(path)
        server.wait_for("A new model is in force")
        table, _ = make_rows(5, seed=3)
        assert [row["confidence"] for row in server.decide(table)] == other.decide(
            table
        ).confidence.tolist()


def test_a_file_that_no_trusted_key_signed_is_not_taken_up(model_file, tmp_path):
    pytest.importorskip("cryptography")
    path, other = tmp_path / "m.rnet", tmp_path / "other.rnet"
    _, public = make_keys(tmp_path / "key")
    for copy in (path, other):
        copy.write_bytes(model_file.read_bytes())
    with pytest.raises(ModelFileError, match=r"m.rnet is not signed"):
        LocalServer(path, tmp_path / "d.db", trusted_keys=(public,))
    sign_file(path, tmp_path / "key")
    with LocalServer(path, tmp_path / "d.db", watch=0.05, trusted_keys=(public,)) as server:
        os.replace(other, path)
        server.wait_for("The old model stays in force: .*m.rnet is not signed")
        assert len(server.decide(make_rows(5, seed=3)[0])) == 5


def test_a_lock_that_is_held_gives_no_decision(model_file, tmp_path, monkeypatch):
    log, rows = tmp_path / "d.db", {"dataframe_records": records(make_rows(3, seed=0)[0])}
    with LocalServer(model_file, log, timeout=30.0) as server:
        told = [row["id"] for row in server.post("/invocations", rows).json()["predictions"]]
        with server.running.state.log._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 300")  # of the one in the pool
        other = sqlite3.connect(log, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = server.post("/invocations", rows)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert "Nothing was decided" in answer.json()["error"]
        assert "locked" in answer.json()["error"]
        assert server.get("/healthz").status_code == 503
        body = {"outcomes": [{"id": told[0], "truth": "yes"}]}
        assert server.post("/outcomes", body).status_code == 503
        other.execute("ROLLBACK")
        other.close()
        assert server.post("/outcomes", body).status_code == 200
        told += [row["id"] for row in server.post("/invocations", rows).json()["predictions"]]
        assert server.get("/healthz").status_code == 200
    with DecisionLog(log) as opened:
        assert [entry.id for entry in opened.entries()] == told


@linux
def test_a_full_disk_gives_no_decision(model_file, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("No disk can be mounted here: that takes root.")
    told, refused = [], []
    try:
        log, rows = disk / "d.db", {"dataframe_records": records(make_rows(400, seed=0)[0])}
        with LocalServer(model_file, log) as server:
            while not refused:
                answer = server.post("/invocations", rows)
                if answer.status_code == 200:
                    told += [row["id"] for row in answer.json()["predictions"]]
                else:
                    refused.append(answer)
            assert refused[0].status_code == 503
            assert "full" in refused[0].json()["error"]
            assert server.get("/healthz").status_code == 503
            assert server.get("/ping").status_code == 200
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            told += [row["id"] for row in server.post("/invocations", rows).json()["predictions"]]
            assert server.get("/healthz").status_code == 200
        with DecisionLog(log) as opened:
            assert [entry.id for entry in opened.entries()] == told
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_two_servers_on_one_postgresql(model_file, postgres):
    place, rows = postgres.new_database(), records(make_rows(5, seed=0)[0])
    with LocalServer(model_file, place) as one, LocalServer(model_file, place) as two:
        with Load(one.url, rows, clients=2) as first, Load(two.url, rows, clients=2) as second:
            wait_until(lambda: min(len(first.reported), len(second.reported)) > 50)
        name = second.decisions[0]  # decided by the one, reported to the other
        body = {"outcomes": [{"id": name, "truth": "yes"}]}
        assert one.post("/outcomes", body).json()["results"][0]["status"] == "already recorded"
    assert first.refused == second.refused == []
    check_kept(place, [first, second])
    with DecisionLog(place) as opened:
        found = {entry.id for entry in opened.entries()}
    assert found == {*first.decisions, *second.decisions}


def test_postgresql_restarts_under_a_server(model_file, postgres):
    place, rows = postgres.new_database(), {"dataframe_records": records(make_rows(2, seed=0)[0])}
    with LocalServer(model_file, place) as server:
        told = [row["id"] for row in server.post("/invocations", rows).json()["predictions"]]
        postgres.stop()
        try:
            answer = server.post("/invocations", rows)
            assert (answer.status_code, "Nothing was decided" in answer.text) == (503, True)
        finally:
            postgres.start()
        told += [row["id"] for row in server.post("/invocations", rows).json()["predictions"]]
    with DecisionLog(place) as opened:
        assert [entry.id for entry in opened.entries()] == told


def test_more_than_can_wait_is_refused(model_file, tmp_path):
    table, _ = make_rows(20, seed=0)
    with LocalServer(model_file, tmp_path / "d.db", most_rows=20) as server:
        desk = server.running.state.desk
        desk.most_waiting, held = 30, threading.Event()
        decide = server.running.state.served.model.decide
        server.running.state.served.model.decide = lambda X, **more: (
            held.wait(30),
            decide(X, **more),
        )[1]
        codes = []
        ask = lambda: codes.append(  # noqa: E731
            server.post("/invocations", {"dataframe_records": records(table)}).status_code
        )
        first = threading.Thread(target=ask)
        first.start()
        wait_until(lambda: desk.waiting == 20)
        ask()
        held.set()
        first.join()
        assert codes == [503, 200]


def test_a_decision_that_comes_too_late_is_not_told(model_file, tmp_path):
    table, _ = make_rows(2, seed=0)
    with LocalServer(model_file, tmp_path / "d.db", timeout=0.3) as server:
        held = threading.Event()
        decide = server.running.state.served.model.decide
        server.running.state.served.model.decide = lambda X, **more: (
            held.wait(30),
            decide(X, **more),
        )[1]
        answer = server.post("/invocations", {"dataframe_records": records(table)})
        assert (answer.status_code, "No decision within 0.3 s" in answer.text) == (503, True)
        held.set()
        wait_until(lambda: server.running.state.desk.waiting == 0)


def test_a_bug_shows_no_traceback(model_file, tmp_path):
    table, _ = make_rows(2, seed=0)
    with LocalServer(model_file, tmp_path / "d.db") as server:

        def fail(X, **more):
            raise RuntimeError("secret /path")

        server.running.state.served.model.decide = fail
        answer = server.post("/invocations", {"dataframe_records": records(table)})
        assert answer.status_code == 500
        assert answer.json() == {"error": "The server failed; nothing was decided."}
