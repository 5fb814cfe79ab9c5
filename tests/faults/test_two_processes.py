"""Several processes write the same output: every file is whole, and no run is lost."""

from __future__ import annotations

import json
import sys

import pytest

from reliablenet.bench import Store, load_profile, pending_jobs
from reliablenet.bench.methods import study_methods

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")

WRITERS = """
import json, mmap, os, sys, time
import torch
torch.set_num_threads(1)
import reliablenet as rn
from pathlib import Path
path = Path("m.rnet")
models = [rn.load(sys.argv[1]) for _ in range(3)]
for number, model in enumerate(models):
    model.clip_norm = 1.0 + number
models[0].save(path)
stop = mmap.mmap(-1, 1)  # a byte that all see
children = []
for model in models:
    if (child := os.fork()) == 0:
        while not stop[0]:
            model.save(path)
        os._exit(0)
    children.append(child)
seen, end = [], time.monotonic() + 200  # however little of the processor each of them gets
while (len(seen) < 50 or len(set(seen)) < 3) and time.monotonic() < end:
    seen.append(rn.load(path).clip_norm)
stop[0] = 1
codes = [os.waitpid(child, 0)[1] for child in children]
print(json.dumps({"seen": seen, "codes": codes, "files": os.listdir()}))
"""


def test_three_save_and_one_reads(model, start) -> None:
    code, out, err = start(model, program=WRITERS).end()
    assert code == 0, err
    found = json.loads(out)
    assert found["codes"] == [0, 0, 0]
    assert found["files"] == ["m.rnet"]
    assert len(found["seen"]) >= 50
    assert set(found["seen"]) == {1.0, 2.0, 3.0}


def test_two_studies_in_the_same_folder(tables, start, tmp_path) -> None:
    arguments = ("bench", "run", "--profile", tables / "tiny.toml", "--results", "results")
    for command in [start(*arguments), start(*arguments)]:
        code, _, err = command.end()
        assert code == 0, err
    profile = load_profile(str(tables / "tiny.toml"))
    store = profile.open_store(tmp_path / "results")
    assert pending_jobs(profile, store) == []
    methods = {method.name for method in study_methods(profile.plans["synthetic_band"])}
    assert {record["method"] for record in store.records()} == {*methods, "geometry"}
    assert list(tmp_path.glob("results/*/*/*/.*")) == []


def test_a_failure_does_not_replace_what_another_process_finished(tmp_path) -> None:
    store = Store(tmp_path)
    store.write("adult", "erm", 0, {"hash": "h", "value": 1}, None)
    store.write("adult", "erm", 0, {"hash": "h", "error": "MemoryError: "}, None)
    assert store.read("adult", "erm", 0)["value"] == 1
    store.write("adult", "erm", 0, {"hash": "other", "error": "MemoryError: "}, None)
    assert "error" in store.read("adult", "erm", 0)
