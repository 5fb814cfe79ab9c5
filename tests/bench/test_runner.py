"""Runs that are stopped, killed, or spread over processes end with the same results."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from launcher import Process, launcher
from study_records import TINY_FILE

from reliablenet.bench import Plan, Point, Profile, Store, load_profile, pending_jobs, run_jobs
from reliablenet.bench.methods import METHODS, study_methods
from reliablenet.bench.runner import count_runs
from reliablenet.errors import InvalidParameterError

TABLE_METHODS = [method.name for method in study_methods(Plan("synthetic_band"))]
TRAININGS = {method.training.name for method in study_methods()}
TINY = Profile(
    "tiny",
    {
        "synthetic_band": Plan(
            "synthetic_band", epochs=2, warmup_epochs=1, epochs_per_stage=1, max_stages=1
        )
    },
    seeds=(0,),
)


def contents(folder: Path) -> dict[str, object]:
    """Return all results but the time they took."""
    store = Store(folder)
    found: dict[str, object] = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("*/*/*.npy")
    }
    for record in store.records():
        record.pop("timing")
        found[f"{record['settings']['dataset']}/{record['method']}/{record['seed']}"] = record
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "tiny"
    store = Store(folder)
    assert run_jobs(pending_jobs(TINY, store), store) == []
    return folder


def test_every_method_has_a_record_and_nothing_is_left(finished) -> None:
    store = Store(finished)
    assert {record["method"] for record in store.records()} == {*TABLE_METHODS, "geometry"}
    assert pending_jobs(TINY, store) == []
    assert count_runs(TINY, store) == {"synthetic_band": (len(TABLE_METHODS) + 1, 0, 0)}


def test_records_hold_what_the_tables_need(finished) -> None:
    for record in Store(finished).records():
        if record["method"] == "geometry":
            continue
        certificate, measured = record["certificate"], record["measured"]
        assert certificate["n"] == 3000 == measured["certification"]["n"]
        assert certificate["errors"] == measured["certification"]["errors"]
        assert list(measured["shifts"]) == ["gamma 0.7"]
        assert list(measured["sweeps"]) == ["0.1", "0.3", "0.5", "0.7", "0.9", "1.1", "1.3"]
        certified = METHODS[record["method"]].point is Point.CERTIFIED
        kind = "monotone" if certified else "fixed"
        assert certificate["kind"] == kind
        assert record["timing"]["fit_seconds"] > 0


def test_rules_at_eps_share_one_threshold_to_the_bit(finished) -> None:
    store = Store(finished)
    at_eps = [
        store.read("synthetic_band", method, 0)["threshold"]
        for method in TABLE_METHODS
        if METHODS[method].point is Point.EPS
    ]
    assert len(at_eps) == 7
    assert len(set(at_eps)) == 1


def test_erm_accepts_everything_as_the_papers_table_has_it(finished) -> None:
    measured = Store(finished).read("synthetic_band", "erm", 0)["measured"]["certification"]
    assert measured["coverage"] == 1.0
    assert measured["jcw"] == pytest.approx(1 - measured["accuracy"])


def test_only_what_is_missing_failed_or_changed_is_run_again(finished, tmp_path) -> None:
    store = Store(tmp_path)
    source = Store(finished)
    for method in (*TABLE_METHODS, "geometry"):
        record = source.read("synthetic_band", method, 0)
        store.write("synthetic_band", method, 0, record, None)
    store.path("synthetic_band", "erm@eps", 0).unlink()
    failed = source.read("synthetic_band", "selectivenet", 0) | {"error": "MemoryError: "}
    store.path("synthetic_band", "selectivenet", 0).unlink()  # a failure replaces nothing finished
    store.write("synthetic_band", "selectivenet", 0, failed, None)
    store.path("synthetic_band", "temperature", 0).write_text("{half")
    jobs = pending_jobs(TINY, store)
    assert [(job.training.name, tuple(m.name for m in job.methods)) for job in jobs] == [
        ("erm", ("erm@eps", "temperature")),
        ("selectivenet", ("selectivenet",)),
    ]
    other = Profile("tiny", TINY.plans, seeds=(0,), rho=0.1)
    *trainings, drawn = pending_jobs(other, store)
    assert sum(len(job.methods) for job in trainings) == len(TABLE_METHODS)
    assert str(drawn) == "synthetic_band geometry 0"


def test_a_failed_run_leaves_its_error_and_the_others_go_on(tmp_path) -> None:
    broken = Profile("tiny", {"bad": Plan("synthetic_band", data={"gamma": -1.0})}, seeds=(0,))
    store = Store(tmp_path)
    jobs = pending_jobs(broken, store, methods=["erm", "boosting+certified"])
    failures = run_jobs(jobs, store)
    assert len(failures) == 2
    assert "`gamma` of SyntheticBand" in failures[0]
    assert "error" in store.read("bad", "erm", 0)
    assert len(pending_jobs(broken, store, methods=["erm", "boosting+certified"])) == 2


def test_images_have_no_methods_for_tables(tmp_path) -> None:
    jobs = pending_jobs(load_profile("paper"), Store(tmp_path), ["cifar10"], seeds=[0])
    tables = {"boosting", "boosting_all", "tabular", "tabular_constrained"}
    assert {job.training.name for job in jobs} == TRAININGS - tables
    assert count_runs(load_profile("paper"), Store(tmp_path))["cifar10"][2] == 5 * 17


def test_tables_have_no_methods_for_images(tmp_path) -> None:
    jobs = pending_jobs(load_profile("paper"), Store(tmp_path), ["adult"], seeds=[0])
    assert {job.training.name for job in jobs} == TRAININGS - {"images", "images_augmented"}


def test_ablations_run_only_when_they_are_named(tmp_path) -> None:
    store, profile = Store(tmp_path), load_profile("smoke")
    usual = [method for job in pending_jobs(profile, store, seeds=[37]) for method in job.methods]
    assert len(usual) == len(TABLE_METHODS)
    assert not any(method.ablation for method in usual)
    name = "tabular-ensemble+certified"
    [job] = pending_jobs(profile, store, methods=[name], seeds=[0])
    assert (job.training.name, [m.name for m in job.methods]) == ("tabular-ensemble", [name])
    assert run_jobs([job], store) == []
    assert store.read("synthetic_band", name, 0)["certificate"]["n"] == 3000


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"plans": ["mnist"]}, "`datasets` of bench must be among"),
        ({"methods": ["magic"]}, "`methods` of bench must be among"),
    ],
)
def test_unknown_names(choice, message, tmp_path) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        pending_jobs(TINY, Store(tmp_path), **choice)


def bench(folder: Path, *options: str, **settings: str) -> subprocess.Popen[bytes]:
    profile = folder / "tiny.toml"
    profile.write_text(TINY_FILE)
    command = ["-m", "reliablenet", "bench", "run", "--profile", str(profile)]
    return subprocess.Popen(
        [sys.executable, *command, "--results", str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that a kill takes the workers too
        env=os.environ | {"OMP_NUM_THREADS": "1"} | settings,
    )


@pytest.mark.parametrize("options", [("--jobs", "2"), ("--jobs", "2", "--dask", "local")])
def test_processes_and_a_dask_cluster_give_the_same_to_the_bit(finished, tmp_path, options) -> None:
    process = bench(tmp_path, *options)
    _, err = process.communicate(timeout=1200)
    assert process.returncode == 0, err.decode()
    assert contents(tmp_path / "tiny") == contents(finished)


def test_dask_says_nothing_of_a_taken_port_or_of_a_worker_that_is_slow_to_go(tmp_path) -> None:
    slow = '["import atexit, time; atexit.register(time.sleep, 60)"]'
    options = ("--methods", "boosting+certified", "--dask", "local")
    with socket.socket() as taken:
        with suppress(OSError):  # another test has it
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        process = bench(tmp_path, *options, DASK_DISTRIBUTED__WORKER__PRELOAD=slow)
        _, err = process.communicate(timeout=1200)
    assert process.returncode == 0
    assert err.decode() == f"1 trainings to do; results go to {tmp_path / 'tiny'}.\n"


def test_ten_kills_at_random_moments_change_nothing(finished, tmp_path) -> None:
    moments = random.Random(0)  # noqa: S311
    profile = tmp_path / "tiny.toml"
    profile.write_text(TINY_FILE)
    line = ["-m", "reliablenet", "bench", "run", "--profile", profile, "--results", tmp_path]

    def run() -> Process:
        return Process(launcher(), [str(part) for part in line], tmp_path, os.environ)

    for _ in range(10):
        process = run()
        time.sleep(moments.uniform(0.5, 3.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = run()
    _, err = process.communicate(timeout=1200)
    assert process.returncode == 0, err
    assert contents(tmp_path / "tiny") == contents(finished)
