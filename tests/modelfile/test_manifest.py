"""Settings and labels as the manifest holds them, and a manifest that is checked when it is read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import reliablenet as rn
from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.modelfile.manifest import (
    FORMAT,
    from_plain,
    labels_from_plain,
    labels_to_plain,
    read_manifest,
    to_plain,
    versions,
    with_manifest,
)
from reliablenet.training import Schedule


@pytest.mark.parametrize(
    ("setting", "stored", "restored"),
    [
        (None, None, None),
        (0.05, 0.05, 0.05),
        ("auto", "auto", "auto"),
        (np.int64(3), 3, 3),
        ((0.6, 0.2, 0.2), [0.6, 0.2, 0.2], [0.6, 0.2, 0.2]),
        (Path("runs/one"), "runs/one", "runs/one"),
        (np.random.RandomState(0), {"custom": "RandomState"}, None),
        (np.sum, {"custom": "sum"}, None),
    ],
)
def test_settings_come_back_or_are_named(setting, stored, restored) -> None:
    assert to_plain(setting) == stored
    assert json.loads(json.dumps(to_plain(setting))) == stored
    assert from_plain({"setting": stored}) == {"setting": restored}


def test_a_schedule_comes_back() -> None:
    schedule = Schedule(warmup_epochs=3, epochs_per_stage=2, max_stages=2)
    stored = json.loads(json.dumps(to_plain({"schedule": schedule})))
    assert from_plain(stored) == {"schedule": schedule}


@pytest.mark.parametrize(
    "labels", [[True, False], [3, 5], ["a", "bc"], [1.0, 2.5], np.array(["x", "y"], object)]
)
def test_labels_come_back_with_their_type(labels) -> None:
    labels = np.array(labels)
    again = labels_from_plain(json.loads(json.dumps(labels_to_plain(labels))))
    assert again.dtype == labels.dtype
    np.testing.assert_array_equal(again, labels)


def test_other_labels_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"got \['NoneType', 'str'\]"):
        labels_to_plain(np.array(["a", None], object))
    with pytest.raises(InvalidParameterError, match="all texts, numbers or booleans"):
        labels_to_plain(np.array(["2020-01-01"], "datetime64[D]"))
    with pytest.raises(ModelFileError, match="'M8' are refused"):
        labels_from_plain({"dtype": "M8", "values": [0]})


def test_a_manifest_names_the_hash_of_each_member() -> None:
    members = with_manifest({"format": FORMAT, "versions": versions()}, {"a": b"one", "b": b"two"})
    assert list(members) == ["manifest.json", "a", "b"]
    assert set(read_manifest(members, "m.rnet")["sha256"]) == {"a", "b"}
    with pytest.raises(ModelFileError, match=r"m.rnet was altered: b does not match its hash"):
        read_manifest({**members, "b": b"three"}, "m.rnet")
    other = with_manifest({"format": "reliablenet-model/9"}, {})
    with pytest.raises(ModelFileError, match="has the format 'reliablenet-model/9'; we read"):
        read_manifest(other, "m.rnet")


def test_versions_are_those_of_the_libraries() -> None:
    assert versions()["reliablenet"] == rn.__version__
    assert list(versions()) == ["reliablenet", "torch", "scikit-learn", "numpy"]
