"""Folders of Parquet, here and on a cluster of two processes: decided and certified as one table is."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from launcher import Process, launcher
from pandas.testing import assert_frame_equal
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reliablenet as rn
from dask_cluster import start_cluster
from people import people

pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("distributed")

ENDS = [0, 300, 300, 301, 550, 800, 1000]  # a file without rows, and one with a single one


FEATURES = ["age", "debt", "job", "race"]


def wait_until(held: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not held():
        assert time.monotonic() < end
        time.sleep(0.01)


def write_parts(table: pd.DataFrame, folder: Path, ends: list[int] = ENDS) -> Path:
    folder.mkdir()
    for number, (start, end) in enumerate(pairwise(ends)):
        table.iloc[start:end].to_parquet(folder / f"part.{number}.parquet", row_group_size=100)
    (folder / "_SUCCESS").touch()
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A model with an encoder, one with a promise by group, and rows as a file and as a folder."""
    folder = tmp_path_factory.mktemp("folders")
    train, fresh = people(2000, 0), people(1000, 1)
    model = rn.ERMClassifier(alpha=0.1, epochs=2, random_state=0)
    model.fit(train[FEATURES], train["y"]).save(folder / "model.rnet")
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    promise = rn.Promise.by_group(0.15, by="race")
    ruled = rn.CertifiedThreshold(inner, 0.1, promise=promise, random_state=0)
    ruled.fit(train[["age", "debt"]], train["y"], by=train["race"]).save(folder / "ruled.rnet")
    fresh.to_parquet(folder / "fresh.parquet")
    write_parts(fresh, folder / "fresh")
    proba = model.predict_proba(fresh[FEATURES])
    said = pd.DataFrame(proba, columns=["p_no", "p_yes"]).assign(
        guess=model.predict(fresh[FEATURES]),
        score=proba.max(axis=1),
        truth=fresh["y"],
        right=model.predict(fresh[FEATURES]) == fresh["y"],
        race=fresh["race"],
        whose=np.random.default_rng(0).integers(0, 600, 1000),
    )
    said.to_parquet(folder / "said.parquet")
    write_parts(said, folder / "said")
    costs = pd.DataFrame({"truth": ["no", "yes"], "no": [0, 4], "yes": [1, 0]})
    costs.to_csv(folder / "costs.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with start_cluster(2) as cluster:
        yield cluster.scheduler_address


def decided(folder: Path) -> pd.DataFrame:
    parts = [pd.read_parquet(folder / f"part.{number}.parquet") for number in range(6)]
    assert [len(part) for part in parts] == np.diff(ENDS).tolist()
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def expected(place, call) -> tuple[pd.DataFrame, dict]:
    """What is decided of the single file."""
    out = place / "single.csv"
    ran = call(
        *("predict", place / "model.rnet", place / "fresh.parquet", "--keep", "id,age,y"),
        *("--defer-odd", "--explain", "--out", out, "--json"),
    )
    assert ran.exit_code == 0, ran.output
    return pd.read_csv(out, keep_default_na=False, na_values=[""]), json.loads(ran.stdout)


ASKED = ("--keep", "id,age,y", "--defer-odd", "--explain", "--json")


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_a_folder_is_decided_into_a_folder(where, place, call, tmp_path, request, expected) -> None:
    out = tmp_path / "decisions"
    dask = ("--dask", request.getfixturevalue("address")) if where == "cluster" else ()
    ran = call("predict", place / "model.rnet", place / "fresh", "--out", out, *ASKED, *dask)
    assert ran.exit_code == 0, ran.output
    found = decided(out)
    frame, summary = expected
    assert found["id"].dtype == np.int64  # as it is in the folder, not as a text of CSV
    texts = ["why", "lowered_by"]
    frame = frame.assign(**{name: frame[name].fillna("") for name in texts})
    assert_frame_equal(found, frame, check_dtype=False)
    assert json.loads(ran.stdout) == summary | {"out": str(out)}
    assert sorted(path.name for path in out.iterdir()) == [f"part.{n}.parquet" for n in range(6)]


def test_a_folder_is_decided_into_one_file_and_into_a_pipe(place, call, tmp_path) -> None:
    single, one = tmp_path / "single.csv", tmp_path / "one.csv"
    rows = (place / "model.rnet", place / "fresh")
    assert call("predict", rows[0], place / "fresh.parquet", "--out", single).exit_code == 0
    assert call("predict", *rows, "--out", one).exit_code == 0
    assert one.read_bytes() == single.read_bytes()
    assert call("predict", *rows, "--out", "-").stdout_bytes == single.read_bytes()


def test_what_is_finished_is_not_decided_again(place, call, tmp_path) -> None:
    out = tmp_path / "decisions"
    command = ("predict", place / "model.rnet", place / "fresh", "--out", out, "--keep", "id")
    whole = call(*command)
    (out / "part.3.parquet").unlink()
    (out / ".part.3.parquet.0a1b2c3d").write_bytes(b"half")  # of a run that was killed
    stamps = {path.name: path.stat().st_mtime_ns for path in out.glob("part*")}
    again = call(*command)
    assert again.output == whole.output
    now = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert stamps.items() <= now.items()
    assert now.keys() - stamps.keys() == {"part.3.parquet"}
    # by another model nothing is kept, and neither is what other columns were asked for
    other = (*command[:1], place / "ruled.rnet", *command[2:])
    assert call(*other).exit_code == 0
    ruled = pd.read_parquet(out / "part.0.parquet")
    assert call(*command[:-2]).exit_code == 0
    assert list(pd.read_parquet(out / "part.0.parquet")) == ["label", "confidence", "accepted"]
    assert list(ruled) == ["id", "label", "confidence", "accepted"]


def test_rows_that_changed_are_decided_again(place, call, tmp_path) -> None:
    source = write_parts(people(1000, 5), tmp_path / "source")
    out = tmp_path / "decisions"
    command = ("predict", place / "model.rnet", source, "--out", out)
    assert call(*command).exit_code == 0
    people(7, 6).to_parquet(source / "part.0.parquet")
    assert call(*command).exit_code == 0
    assert len(pd.read_parquet(out / "part.0.parquet")) == 7


def test_a_folder_with_something_else_inside_is_left_alone(place, call, tmp_path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    ran = call("predict", place / "model.rnet", place / "fresh", "--out", tmp_path)
    assert ran.exit_code == 2
    assert "holds other files: 'notes.txt'. Name an empty folder" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_rows_that_cannot_be_used_are_named_by_their_file(
    where, place, call, tmp_path, request
) -> None:
    source = write_parts(people(1000, 5), tmp_path / "source")
    people(40, 2).assign(age="old").to_parquet(source / "part.2.parquet")
    dask = ("--dask", request.getfixturevalue("address")) if where == "cluster" else ()
    out = tmp_path / "out"
    ran = call("predict", place / "model.rnet", source, "--out", out, *dask)
    assert ran.exit_code == 2
    assert ran.stderr.startswith("error: part.2.parquet: ")
    assert not (out / "part.2.parquet").exists()
    wait_until(lambda: not list(out.glob(".*")))  # workers finish the files that they are at
    people(40, 2).drop(columns="debt").to_parquet(source / "part.2.parquet")
    ran = call("predict", place / "model.rnet", source, "--out", out, *dask)
    assert ran.exit_code == 2
    assert "part.2.parquet has no column 'debt'" in ran.stderr


def test_types_and_categories_may_differ_between_files(place, call, tmp_path) -> None:
    table = people(100, 3).assign(job=lambda t: t["job"].where(t.index != 60, "astronaut"))
    source = tmp_path / "source"
    source.mkdir()
    table.iloc[:50].astype({"age": "float32"}).to_parquet(source / "a.parquet")
    second = table.iloc[50:].astype({"age": "str", "job": "category"})
    second.assign(age=table["age"].round().astype("int32")).to_parquet(source / "b.parquet")
    out = tmp_path / "out"
    ran = call("predict", place / "model.rnet", source, "--out", out)
    assert ran.exit_code == 0, ran.output
    assert "'astronaut'" in ran.stderr
    whole = pd.concat([pd.read_parquet(source / name) for name in ("a.parquet", "b.parquet")])
    model = rn.load(place / "model.rnet")
    known = model.decide(whole[FEATURES].astype({"job": "str"}))
    found = pd.concat([pd.read_parquet(out / name) for name in ("a.parquet", "b.parquet")])
    assert found["confidence"].tolist() == known.confidence.tolist()


PREDICTIONS = {
    "threshold": ("--predicted", "guess", "--score", "score"),
    "fixed": ("--predicted", "guess", "--score", "score", "--threshold", "0.8"),
    "groups": ("--predicted", "guess", "--score", "score", "--group", "whose"),
    "probabilities": ("--proba", "p_no,p_yes"),
    "one probability": ("--proba", "p_yes"),
    "among accepted": ("--proba", "p_no,p_yes", "--promise", "among-accepted"),
    "by group": ("--proba", "p_no,p_yes", "--by", "race", "--alpha", "0.15"),
    "by class": ("--proba", "p_no,p_yes", "--promise", "by-class", "--budget", "yes=0.2"),
    "by predicted": ("--predicted", "guess", "--score", "score", "--promise", "by-predicted"),
    "cost": ("--proba", "p_no,p_yes", "--costs", "costs.csv", "--budget", "0.5"),
    "several": ("--proba", "p_no,p_yes", "--by", "race", "--promise", "overall", "--common"),
    "several groups": (
        *("--predicted", "guess", "--score", "score", "--promise", "overall"),
        *("--by", "race", "--group", "whose"),
    ),
}


@pytest.mark.parametrize("name", PREDICTIONS)
def test_predictions_are_certified_as_one_file(name, place, call, address, monkeypatch) -> None:
    monkeypatch.chdir(place)
    budget = () if "--alpha" in PREDICTIONS[name] else ("--alpha", "0.1")
    options = ("--label", "truth", *budget, *PREDICTIONS[name], "--json")
    single = call("certify", "--predictions", "said.parquet", *options)
    assert single.exit_code in (0, 3), single.output
    for dask in ((), ("--dask", address)):
        found = call("certify", "--predictions", "said", *options, *dask)
        assert found.exit_code == single.exit_code, found.output
        assert json.loads(found.stdout) == json.loads(single.stdout)


@pytest.mark.parametrize("lower", [False, True])
def test_answers_are_certified_as_one_file(lower, place, call, address) -> None:
    options = ("--correct", "right", "--score", "score", "--json", *["--lower-is-better"] * lower)
    single, spread = (
        call("certify", "--predictions", place / source, *options, *dask)
        for source, dask in (("said.parquet", ()), ("said", ("--dask", address)))
    )
    assert (spread.stdout, spread.exit_code) == (single.stdout, single.exit_code)


@pytest.mark.parametrize("model", ["model.rnet", "ruled.rnet"])
@pytest.mark.parametrize("group", [(), ("--group", "id")])
def test_a_model_is_certified_as_on_one_file(model, group, place, call, address) -> None:
    command = ("certify", place / model, "--target", "y", "--json", *group)
    single = call(*command, place / "fresh.parquet")
    assert single.exit_code in (0, 3), single.output
    for dask in ((), ("--dask", address)):
        found = call(*command, place / "fresh", *dask)
        assert found.exit_code == single.exit_code, found.output
        assert json.loads(found.stdout) == json.loads(single.stdout)
    unit = json.loads(single.stdout)["unit"]
    assert unit == ("group" if group else "row")


def test_a_slip_in_spelling_is_seen_over_all_files(place, call, address, tmp_path) -> None:
    said = pd.read_parquet(place / "said.parquet")
    source = write_parts(said.assign(guess=said["guess"].str.upper()), tmp_path / "said")
    options = ("--label", "truth", "--predicted", "guess", "--score", "score", "--dask", address)
    ran = call("certify", "--predictions", source, *options)
    assert ran.exit_code == 2
    assert "they differ in case or spaces alone" in ran.stderr


def test_rows_that_were_seen_are_refused_on_a_cluster_too(place, call, address, tmp_path) -> None:
    source = write_parts(people(2000, 0).iloc[:1000], tmp_path / "seen")
    ran = call("certify", place / "model.rnet", source, "--target", "y", "--dask", address)
    assert ran.exit_code == 2
    assert "1,000 of 1,000 rows were given to `fit` already, row 0 among them" in ran.stderr


# Mistakes that people make.

ANSWERS = ("--correct", "right", "--score", "score")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_an_address_where_nobody_listens_is_told_soon(place, call, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("reliablenet._dask.CONNECT_SECONDS", 1)
    nobody = f"tcp://127.0.0.1:{free_port()}"
    out = tmp_path / "out"
    ran = call("predict", place / "model.rnet", place / "fresh", "--out", out, "--dask", nobody)
    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"error: No Dask scheduler answers at '{nobody}': ")
    assert ran.stderr.count("\n") == 1
    assert not out.exists()
    ran = call("predict", place / "model.rnet", place / "fresh", "--out", out, "--dask", "nonsense")
    assert ran.exit_code == 2
    assert "No Dask scheduler answers at 'nonsense'" in ran.stderr


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (("predict", "model.rnet", "absent", "--out", "o"), 5, "absent"),
        (("predict", "model.rnet", "absent", "--out", "o", "--dask", "local"), 5, "absent"),
        (
            ("predict", "model.rnet", "fresh.parquet", "--out", "o.csv", "--dask", "local"),
            2,
            "--dask decides a folder of Parquet into another folder",
        ),
        (
            ("predict", "model.rnet", "fresh", "--out", "o.csv", "--dask", "local"),
            2,
            "--dask decides a folder of Parquet into another folder",
        ),
        (
            ("predict", "model.rnet", "fresh.parquet", "--out", "fresh"),
            2,
            "is a folder; name a file",
        ),
        (("predict", "model.rnet", "fresh", "--out", "no/o"), 2, "there is no folder no"),
        (("predict", "model.rnet", "fresh", "--out", "o", "--keep", "ide"), 2, "no column 'ide'"),
        (
            (*("certify", "--predictions", "said.parquet", *ANSWERS), "--dask", "local"),
            2,
            "--dask is for a folder of Parquet",
        ),
        (
            (*("certify", "--predictions", "absent", *ANSWERS), "--dask", "local"),
            5,
            "There is no folder absent",
        ),
    ],
)
def test_mistakes_are_told_in_a_line(command, code, message, place, call, monkeypatch) -> None:
    monkeypatch.chdir(place)
    ran = call(*command)
    assert ran.exit_code == code, ran.output
    assert message in " ".join(ran.stderr.replace("│", " ").split())
    assert not (place / "o").exists()


def test_without_dask_the_install_command_is_told(place, call, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    out = tmp_path / "out"
    ran = call("predict", place / "model.rnet", place / "fresh", "--out", out, "--dask", "local")
    assert ran.exit_code == 2
    assert ran.stderr == "error: Dask is not installed: pip install 'reliablenet[dask]'\n"


# A worker or the command itself is killed in mid-run.


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Path:
    """Forty files, so that there is a middle of the run."""
    ends = list(range(0, 40_001, 1000))
    return write_parts(people(40_000, 9), tmp_path_factory.mktemp("many") / "rows", ends)


def start(*arguments: object) -> Process:
    """Start a command as a user does."""
    return Process(launcher(), ["-m", "reliablenet", *map(str, arguments)], Path.cwd(), os.environ)


def wait_for_files(out: Path, some: int, process: Process) -> None:
    def there() -> bool:
        assert process.poll() is None, process.communicate()
        return len(list(out.glob("part*"))) >= some

    wait_until(there)


@pytest.mark.skipif(sys.platform != "linux", reason="kills processes")
def test_a_worker_that_is_killed_and_a_command_that_is_killed_change_nothing(
    place, many, call, tmp_path
) -> None:
    here, out = tmp_path / "here", tmp_path / "out"
    assert call("predict", place / "model.rnet", many, "--out", here).exit_code == 0
    with start_cluster(2) as cluster:
        command = ("predict", place / "model.rnet", many, "--out", out)
        command += ("--dask", cluster.scheduler_address)
        process = start(*command)
        wait_for_files(out, 3, process)
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        wait_for_files(out, 6, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert len(list(out.glob("part*"))) < 40
        process = start(*command)
        _, complaint = process.communicate(timeout=300)
        assert process.returncode == 0, complaint
    for path in sorted(here.iterdir()):
        assert_frame_equal(pd.read_parquet(out / path.name), pd.read_parquet(path))
    assert len(list(out.iterdir())) == 40
