"""A clock that is wrong, or jumps, changes nothing but the dates of files."""

from __future__ import annotations

import functools
import operator
import os
import sys
import time
from pathlib import Path

import pytest

from reliablenet.bench import Store, load_profile, pending_jobs, run_jobs
from reliablenet.datasets.sources import SourceFile, fetch, sha256_of

LIBRARY = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
fakes_time = pytest.mark.skipif(
    LIBRARY is None or sys.platform != "linux", reason="needs libfaketime (Debian: faketime)"
)
FAKE = {"LD_PRELOAD": str(LIBRARY), "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1"}


@fakes_time
def test_a_model_trained_in_another_year_is_the_same_file(model, tables, start, tmp_path) -> None:
    arguments = (tables / "small.csv", "--target", "y", "--alpha", "0.3", "--out")
    for year in ("1999", "2090"):
        fake = FAKE | {"FAKETIME": f"@{year}-06-01 00:00:00"}
        code, _, err = start("train", *arguments, f"{year}.rnet", **fake).end()
        assert code == 0, err
        written = tmp_path / f"{year}.rnet"
        assert time.gmtime(written.stat().st_mtime).tm_year >= 2026  # the disk has its own clock
        assert written.read_bytes() == model.read_bytes()


@fakes_time
def test_a_clock_that_jumps_while_a_study_runs(tables, start, tmp_path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+20y")
    fake = FAKE | {"FAKETIME_TIMESTAMP_FILE": str(clock)}
    arguments = ("bench", "run", "--profile", tables / "tiny.toml", "--results", "jumping")
    command = start(*arguments, "--methods", "erm,reliablenet@eps", **fake)
    jumps = 0
    while command.process.poll() is None:
        jumps += 1
        replacement = tmp_path / "next"
        replacement.write_text("-20y" if jumps % 2 else "+20y")
        os.replace(replacement, clock)
        time.sleep(0.2)
    code, _, err = command.end()
    assert code == 0, err
    assert jumps > 5
    profile = load_profile(str(tables / "tiny.toml"))
    steady = Store(tmp_path / "steady")
    run_jobs(pending_jobs(profile, steady, methods=["erm", "reliablenet@eps"]), steady)
    records = [store.records() for store in (profile.open_store(tmp_path / "jumping"), steady)]
    for record in functools.reduce(operator.iadd, records, []):
        assert 0 <= record.pop("timing")["fit_seconds"] < 600
    assert records[0] == records[1]
    assert len(records[0]) == 2


@pytest.mark.parametrize("moment", [0, 4_000_000_000])
def test_dates_of_files_decide_nothing(moment, tmp_path, monkeypatch) -> None:
    store = Store(tmp_path / "results")
    store.write("adult", "erm", 0, {"hash": "h"}, None)
    os.utime(store.path("adult", "erm", 0), (moment, moment))
    assert store.read_finished("adult", "erm", 0, "h") is not None
    monkeypatch.setenv("RELIABLENET_DATA", str(tmp_path))
    path = tmp_path / "rows.csv"
    path.write_text("whole")
    source = SourceFile("rows.csv", "", sha256_of(path), "somewhere")
    os.utime(path, (moment, moment))
    assert fetch(source) == path
    path.write_text("other")  # as long as before, and of the same date
    os.utime(path, (moment, moment))
    with pytest.raises(OSError, match=r"rows\.csv is not what its publisher offers"):
        fetch(source)
