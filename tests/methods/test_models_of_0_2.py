"""Model files of the kinds that 0.2 added: teams, text and dates, promises, numbers, renewals, signatures.

They were written by `models_of_0_2/write.py`. They load for ever, and decide as they did.
"""

from __future__ import annotations

import json

import pytest
from models_on_file import (
    HERE,
    NETWORK_TOLERANCE,
    TOLERANCE,
    check_decisions,
    read,
    without_words,
)

import reliablenet as rn
from reliablenet.errors import ModelFileError
from reliablenet.methods import TunedClassifier

FOLDER = HERE / "models_of_0_2"
NETWORKS = {
    "team": rn.ReliableClassifier,
    "team_with_own": rn.ReliableClassifier,
    "weighted": rn.ReliableClassifier,
    "trained_by_group": rn.ReliableClassifier,
    "text_and_dates": rn.ReliableClassifier,
    "regressor": rn.ReliableRegressor,
}
RULES = dict.fromkeys(
    (
        *("by_group", "by_group_common", "among_accepted", "by_predicted", "by_class", "cost"),
        *("several", "learned_path", "regressor_inside", "renewed", "signed"),
    ),
    rn.CertifiedThreshold,
) | {"tuned": TunedClassifier}
every_file = pytest.mark.parametrize("name", [*NETWORKS, *RULES])


def tolerance(name: str) -> float:
    return NETWORK_TOLERANCE if name in NETWORKS else TOLERANCE


def test_every_file_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.rnet")} == NETWORKS.keys() | RULES.keys()


@every_file
def test_it_decides_as_it_did(name) -> None:
    model, told, rows = read(FOLDER, name)
    assert type(model) is (NETWORKS | RULES)[name]
    decided = model.decide(rows)
    check_decisions(decided, told["decided"], tolerance(name))
    assert 0 < decided.accepted.sum() < len(rows)


@every_file
def test_its_certificate_is_the_same(name) -> None:
    model, told, _ = read(FOLDER, name)
    today = json.loads(model.certificate_.to_json())
    assert without_words(today) == without_words(told["certificate"])
    assert model.certificate_.certified
    assert model.fingerprint_ == told["fingerprint"]
    assert len(model.evidence_) == len(model.seen_.certified) == model.certificate_.n


@every_file
def test_it_is_saved_again(name, tmp_path) -> None:
    model, _, rows = read(FOLDER, name)
    again = rn.load(model.save(tmp_path / "again.rnet"))
    assert again.certificate_ == model.certificate_
    assert again.decide(rows).to_frame().equals(model.decide(rows).to_frame())


def test_each_is_of_its_kind() -> None:
    team, words = read(FOLDER, "team")[0], read(FOLDER, "text_and_dates")[0]
    assert team.team_.names == ("boosting", "forest")
    assert (words.encoder_.texts_, words.encoder_.dates_) == (["said"], ["day"])
    assert read(FOLDER, "tuned")[0].estimator_[-1].C == 1.0
    assert read(FOLDER, "weighted")[0].class_weight == "balanced"
    assert read(FOLDER, "trained_by_group")[0].promise.by == ("job",)
    kinds = [read(FOLDER, name)[0].promise.kind for name in ("cost", "several", "learned_path")]
    assert kinds == ["cost", "all_of", "overall"]
    assert [str(read(FOLDER, name)[0].tolerance) for name in ("regressor", "regressor_inside")] == [
        "15.0",
        "10%",
    ]
    reasons = [link.reason for link in read(FOLDER, "renewed")[0].chain_]
    assert reasons == ["first certificate", "a new year"]


def test_a_signature_made_before_is_still_known() -> None:
    key = FOLDER / "signed.pub"
    assert read(FOLDER, "signed", trusted_keys=key)[0].certificate_.certified
    with pytest.raises(ModelFileError, match="is not signed"):
        read(FOLDER, "renewed", trusted_keys=key)
