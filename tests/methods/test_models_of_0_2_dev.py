"""Model files of every kind that 0.2 wrote before its model files were a package of their own.

They were written by `models_of_0_2_dev/write.py` with the code of commit 9093a2e. They load, decide as they
did, and are written again as they were, but for names that have been changed or added since.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models_on_file import (
    HERE,
    NETWORK_TOLERANCE,
    TOLERANCE,
    check_decisions,
    read as on_file,
    without_words,
)

import reliablenet as rn

FOLDER = HERE / "models_of_0_2_dev"
NETWORKS = {
    "reliable": rn.ReliableClassifier,
    "reliable_at_selection": rn.ReliableClassifier,
    "erm": rn.ERMClassifier,
    "selectivenet": rn.SelectiveNetClassifier,
    "deep_gamblers": rn.DeepGamblersClassifier,
    "uncertified": rn.ERMClassifier,
    "two_rules": rn.CertifiedThreshold,
}
RULES = {
    "boosting": rn.CertifiedThreshold,
    "forest": rn.ConfidenceThreshold,
    "threshold": rn.CertifiedThreshold,
    "temperature": rn.TemperatureScaling,
    "conformal": rn.ConformalRiskControl,
    "groups": rn.CertifiedThreshold,
}
ADDED_TO_CERTIFICATES = {"population": "all", "name": "", "tolerance": ""}
ADDED_TO_METHODS = (
    "promise",
    "tolerance",
    "breakdown",
    "class_weight",
    "embedding",
)  # none of them
ADDED_FOR_GROUPS: dict[str, Any] = {
    "group_training": "auto",
    "groups": [],
    "way": "",
    "ways": {},
    "at_chance": False,
    "attainable": None,
    "group_jcw": [],
    "group_multiplier": [],
}
every_file = pytest.mark.parametrize("name", [*NETWORKS, *RULES])


def read(name: str) -> tuple[Any, dict[str, Any], Any]:
    return on_file(FOLDER, name)


def members(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the manifest, without what differs between installations, and the other members."""
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    manifest = json.loads(parts.pop("manifest.json"), object_hook=settings_of_today)
    del manifest["versions"]
    certificate = certificate_of_today(json.loads(parts.pop("certificate.json")))
    manifest["certificate"] = certificate
    del manifest["sha256"]["certificate.json"]
    if "history.json" in parts:
        manifest["history"] = json.loads(parts.pop("history.json"), object_hook=settings_of_today)
        del manifest["sha256"]["history.json"]
    if "estimator.skops" in parts:  # names its parts by their addresses in memory
        del parts["estimator.skops"], manifest["sha256"]["estimator.skops"]
    return manifest, parts


def settings_of_today(node: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a manifest with the settings that have other names or classes since."""
    if node.get("score") in ("native", "softmax"):
        node["scored_by"] = node.pop("score")
    for name in ADDED_TO_METHODS:
        if node.get(name, 0) is None:
            del node[name]
    for name, usual in ADDED_FOR_GROUPS.items():
        if name in node and node[name] == usual:
            del node[name]
    for name in ("text", "dates"):
        if node.get(name) == "auto":
            del node[name]
    if node.get("members") == ["network"]:
        del node["members"]
    if node.get("patience", 0) is None:  # the paper's schedule
        del node["patience"]
    return node


def certificate_of_today(written: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate with what has been added to its file since, and without its words and their hash."""
    return without_words(ADDED_TO_CERTIFICATES | written)


def test_every_file_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.rnet")} == NETWORKS.keys() | RULES.keys()


@every_file
def test_it_decides_as_it_did(name) -> None:
    model, told, rows = read(name)
    tolerance = NETWORK_TOLERANCE if name in NETWORKS else TOLERANCE
    check_decisions(model.decide(rows), told, tolerance)
    np.testing.assert_allclose(model.predict_proba(rows), told["proba"], atol=tolerance)


@every_file
def test_it_is_what_it_was(name) -> None:
    model, told, _ = read(name)
    assert type(model) is (NETWORKS | RULES)[name]
    today = json.loads(model.certificate_.to_json())
    assert certificate_of_today(today) == certificate_of_today(told["certificate"])
    assert model.grouped_ == (name == "groups")
    assert str(model.selection_threshold_) == told["selection_threshold"]
    assert model.fingerprint_ == told["fingerprint"]
    assert len(model.evidence_) == len(model.seen_.certified) == model.certificate_.n


@every_file
def test_it_is_written_as_it_was(name, tmp_path) -> None:
    model, _, rows = read(name)
    again = model.save(tmp_path / "again.rnet")
    assert members(again) == members(FOLDER / f"{name}.rnet")
    assert rn.load(again).decide(rows).to_frame().equals(model.decide(rows).to_frame())


def test_rules_around_rules_come_back_one_around_the_other() -> None:
    model, _, rows = read("two_rules")
    assert type(model.estimator_) is rn.TemperatureScaling
    assert type(model.estimator_.estimator_) is rn.ReliableClassifier
    assert not model.estimator_.accept(rows).any()  # without a rule of its own
