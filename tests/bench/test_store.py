from __future__ import annotations

import json
import math

import numpy as np
import pytest

from reliablenet.bench.store import Store, settings_hash

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
