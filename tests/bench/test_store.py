from __future__ import annotations

import json
import math

import numpy as np
import pytest

from reliablenet.bench.store import Store, settings_hash
from reliablenet.errors import DataFileError

CURVES = np.arange(4, dtype=np.float32).reshape(2, 2)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "paper")


def test_a_record_comes_back_with_its_curves(store):
    store.write("adult", "erm@eps", 37, {"hash": "h", "value": 0.1}, CURVES)
    record = store.read("adult", "erm@eps", 37)
    assert record["value"] == 0.1
    np.testing.assert_array_equal(store.curves("adult", "erm@eps", 37, "h"), CURVES)
    assert store.path("adult", "erm@eps", 37).parts[-3:] == ("adult", "erm@eps", "37.json")
    assert store.records() == [record]


def test_done_means_there_whole_successful_and_of_the_same_settings(store):
    assert store.read_finished("adult", "erm", 0, "h") is None
    store.write("adult", "erm", 0, {"hash": "h", "error": "ValueError: no"}, None)
    assert store.read_finished("adult", "erm", 0, "h") is None
    store.write("adult", "erm", 0, {"hash": "h"}, CURVES)
    assert store.read_finished("adult", "erm", 0, "h") is not None
    assert store.read_finished("adult", "erm", 0, "other") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "another/1", "hash": "h"}'])
def test_what_cannot_be_read_is_not_there(store, text):
    store.write("adult", "erm", 0, {"hash": "h"}, CURVES)
    store.path("adult", "erm", 0).write_text(text)
    assert store.read("adult", "erm", 0) is None
    assert store.read_finished("adult", "erm", 0, "h") is None
    assert store.records() == []


def test_no_number_that_json_lacks_gets_into_a_record(store):
    with pytest.raises(ValueError, match="JSON"):
        store.write("adult", "erm", 0, {"value": math.nan}, None)
    assert store.read("adult", "erm", 0) is None


def test_a_record_is_written_after_its_curves(store, monkeypatch):
    """Or a kill in between would leave a record without them."""
    order = []
    monkeypatch.setattr(
        "reliablenet.bench.store.write_atomically", lambda path, _: order.append(path.suffix)
    )
    store.write("adult", "erm", 0, {}, CURVES)
    assert order == [".npy", ".json"]


def test_the_hash_depends_on_every_setting_and_on_nothing_else():
    settings = {"a": 1, "b": {"c": [1, 2.5]}}
    assert settings_hash(settings) == settings_hash(json.loads(json.dumps(settings)))
    assert settings_hash({"b": {"c": [1, 2.5]}, "a": 1}) == settings_hash(settings)
    assert settings_hash({"a": 1, "b": {"c": [1, 2.6]}}) != settings_hash(settings)


def test_runs_of_an_extended_profile_count_if_their_settings_are_the_same(store, tmp_path):
    extending = Store(tmp_path / "cpu", (store.folder,))
    store.write("adult", "erm", 0, {"hash": "h", "value": 1}, CURVES)
    extending.write("adult", "erm", 0, {"hash": "other", "value": 2}, CURVES + 1)
    assert extending.read_finished("adult", "erm", 0, "h")["value"] == 1
    assert extending.read_finished("adult", "erm", 0, "other")["value"] == 2
    np.testing.assert_array_equal(extending.curves("adult", "erm", 0, "h"), CURVES)
    np.testing.assert_array_equal(extending.curves("adult", "erm", 0, "other"), CURVES + 1)
    with pytest.raises(FileNotFoundError, match="No finished run of adult erm 0"):
        extending.curves("adult", "erm", 0, "third")
    assert store.read_finished("adult", "erm", 0, "other") is None


def fill(store: Store) -> None:
    for seed in (37, 0, 123):
        for method in ("erm@eps", "erm"):
            record = {"method": method, "seed": seed, "hash": "h", "value": 0.1 + seed}
            store.write("adult", method, seed, record, CURVES + np.float32(seed / 7))
    store.write("german_credit", "erm", 0, {"method": "erm", "seed": 0, "hash": "h"}, None)


def forget(store: Store) -> None:
    """Delete the working runs."""
    for path in store.folder.glob("*/*/*"):
        path.unlink()


def test_every_run_survives_packing_to_the_bit(store):
    fill(store)
    texts = {path: path.read_text() for path in store.folder.glob("*/*/*.json")}
    curves = {path: np.load(path) for path in store.folder.glob("*/*/*.npy")}
    before = store.records()
    assert store.pack() == {"adult": 6, "german_credit": 1}
    assert len(store.records()) == 7  # a run that is there twice counts once
    forget(store)
    assert store.records() == before
    for path, text in texts.items():
        key = path.parts[-3], path.parts[-2], int(path.stem)
        assert json.dumps(store.read(*key), indent=1) == text
        assert store.read_finished(*key, "h") is not None
    for path, values in curves.items():
        found = store.curves(path.parts[-3], path.parts[-2], int(path.stem), "h")
        assert found.dtype == values.dtype
        assert found.tobytes() == values.tobytes()
    with pytest.raises(FileNotFoundError, match="german_credit erm 0 has no curves"):
        store.curves("german_credit", "erm", 0, "h")


def test_any_curve_keeps_its_bits(store):
    bits = np.random.default_rng(0).integers(0, 0x7F800000, 20_000, dtype=np.uint32)
    values = bits.view(np.float32).reshape(2, -1)  # every finite size of number
    store.write("adult", "erm", 0, {"method": "erm", "seed": 0, "hash": "h"}, values)
    store.pack()
    forget(store)
    assert store.curves("adult", "erm", 0, "h").tobytes() == values.tobytes()


def test_a_pack_is_sorted_and_the_same_to_the_byte_whatever_the_order(store, tmp_path):
    fill(store)
    store.pack()
    path = store.pack_path("adult")
    text, time = path.read_bytes(), path.stat().st_mtime_ns
    runs = [json.loads(line) for line in text.splitlines()]
    assert [(run["method"], run["seed"]) for run in runs] == [
        (method, seed) for method in ("erm", "erm@eps") for seed in (0, 37, 123)
    ]
    assert store.pack()["adult"] == 6
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (text, time)  # not even written
    other = Store(tmp_path / "other")
    for run in reversed(runs):
        curves = np.array(run.pop("curves"), dtype=np.float32)
        other.write("adult", run["method"], run["seed"], run, curves)
        other.pack()  # one at a time
        forget(other)
    assert other.pack_path("adult").read_bytes() == text


def test_working_runs_come_before_packed_ones_and_failures_are_not_packed(store):
    record = {"method": "erm", "seed": 0, "hash": "h", "value": 1}
    store.write("adult", "erm", 0, record, CURVES)
    store.pack()
    store.write("adult", "erm", 0, record | {"hash": "new", "value": 2}, CURVES + 1)
    assert store.read("adult", "erm", 0)["value"] == 2
    assert store.read_finished("adult", "erm", 0, "h")["value"] == 1
    np.testing.assert_array_equal(store.curves("adult", "erm", 0, "h"), CURVES)
    np.testing.assert_array_equal(store.curves("adult", "erm", 0, "new"), CURVES + 1)
    store.pack()
    forget(store)
    assert store.read("adult", "erm", 0)["value"] == 2
    store.write("adult", "erm", 0, record | {"hash": "new", "error": "MemoryError: "}, None)
    assert not store.path("adult", "erm", 0).exists()  # what is finished and packed stays
    store.write("adult", "erm", 37, record | {"seed": 37, "error": "MemoryError: "}, None)
    assert store.pack() == {"adult": 1}


def test_packed_runs_of_an_extended_profile_count(store, tmp_path):
    fill(store)
    store.pack()
    forget(store)
    extending = Store(tmp_path / "cpu", (store.folder,))
    assert extending.read_finished("adult", "erm", 37, "h")["value"] == 37.1
    assert extending.curves("adult", "erm", 37, "h").shape == (2, 2)
    assert extending.pack() == {}


def test_runs_of_version_0_1_are_read_and_new_ones_have_a_format_of_their_own(store):
    store.write("adult", "erm", 0, {"method": "erm", "seed": 0, "hash": "h"}, CURVES)
    path = store.path("adult", "erm", 0)
    assert json.loads(path.read_text())["format"] == "reliablenet-study-run/1"
    path.write_text(path.read_text().replace("reliablenet-study-run/1", "reliablenet-run/1"))
    assert store.read_finished("adult", "erm", 0, "h")["format"] == "reliablenet-run/1"
    store.pack()
    forget(store)
    assert store.read_finished("adult", "erm", 0, "h")["format"] == "reliablenet-run/1"


@pytest.mark.parametrize("line", ["{half", "[]", '{"method": "erm"}', "<<<<<<< ours"])
def test_a_damaged_pack_is_an_error_and_nothing_is_lost(store, line):
    fill(store)
    store.pack()
    path = store.pack_path("adult")
    text = path.read_text() + line + "\n"
    path.write_text(text)
    for read in (store.records, store.pack, lambda: store.read("adult", "new", 0)):
        with pytest.raises(DataFileError, match=r"Line 7 of .*adult.jsonl is not a run .* Restore"):
            read()
    assert path.read_text() == text


def test_the_same_run_twice_in_a_pack_is_an_error(store):
    fill(store)
    store.pack()
    path = store.pack_path("adult")
    path.write_text(path.read_text() + path.read_text().splitlines()[0] + "\n")
    with pytest.raises(DataFileError, match="two runs of erm with seed 0; the second is in line 7"):
        store.records()
