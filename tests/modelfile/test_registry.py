"""Methods enter themselves, and a file is read by the classes that have."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import zipfile

import pytest
from contract_helpers import fit_quietly, frame_of, quick
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.errors import InvalidParameterError, ModelFileError
from reliablenet.modelfile import registry, stored_as
from reliablenet.tables import TabularEncoder

NETWORKS = [
    "DeepGamblersClassifier",
    "ERMClassifier",
    "ReliableClassifier",
    "ReliableRegressor",
    "SelectiveNetClassifier",
]
RULES = [
    "CertifiedThreshold",
    "ConfidenceThreshold",
    "ConformalRiskControl",
    "TemperatureScaling",
    "TunedClassifier",
]


@pytest.fixture
def own_registry(monkeypatch) -> None:
    """Leave what the library has entered as it is."""
    for name in ("_classes", "_kinds"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))


def boosted() -> rn.TemperatureScaling:
    return rn.TemperatureScaling(make_pipeline(TabularEncoder(), LogisticRegression()))


def test_every_estimator_of_ours_has_a_file_format() -> None:
    assert registry.known_names() == sorted(NETWORKS + RULES)
    for kind, names in (("network", NETWORKS), ("rule", RULES)):
        assert all(
            registry.find_class(name, kind, "m.rnet") is getattr(rn.methods, name) for name in names
        )


def test_this_room_alone_knows_no_method_and_load_brings_them(tmp_path) -> None:
    path = fit_quietly(quick(rn.ERMClassifier, epochs=1), *frame_of(300)).save(tmp_path / "m.rnet")
    code = (
        "import sys, reliablenet as rn, reliablenet.modelfile as room\n"
        "assert 'reliablenet.methods' not in sys.modules\n"
        "try: room.load(sys.argv[1])\n"
        "except rn.errors.ModelFileError as error: print(error)\n"
        "print(type(rn.load(sys.argv[1])).__name__)"
    )
    run = [sys.executable, "-c", code, str(path)]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == [
        f"{path} holds a model of class 'ERMClassifier', which is not registered as a network. Import the module that defines it, or load it with the version that wrote it.",
        "ERMClassifier",
    ]


def test_a_rule_cannot_stand_where_a_network_must_and_the_other_way_round() -> None:
    with pytest.raises(
        ModelFileError, match=r"m.rnet holds a model of class 'ERMClassifier', which"
    ):
        registry.find_class("ERMClassifier", "rule", "m.rnet")
    for name in ("CertifiedThreshold", "Evil", None, ["ERMClassifier"], {}):
        with pytest.raises(ModelFileError, match="which is not registered"):
            registry.find_class(name, "network", "m.rnet")


def test_a_subclass_inside_a_rule_is_refused_when_it_is_saved(tmp_path) -> None:
    class Mine(rn.TemperatureScaling):
        pass

    fitted = fit_quietly(rn.CertifiedThreshold(boosted()), *frame_of(600))
    mine = Mine(None)
    mine.__dict__.update(fitted.estimator_.__dict__)
    changed = copy.copy(fitted)
    changed.estimator_ = mine
    with pytest.raises(
        InvalidParameterError, match=r"save can write \[.*\]; got Mine, which has no"
    ):
        changed.save(tmp_path / "m.rnet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("own_registry")
def test_a_method_of_ones_own_enters_itself_and_tells_what_it_has_learned(tmp_path) -> None:
    @stored_as("rule")
    class Named(rn.CertifiedThreshold):
        def _learned(self):
            return super()._learned() | {"name": self.name_}

        def _relearn(self, learned) -> None:
            super()._relearn(learned)
            self.name_ = learned["name"]

    table, y = frame_of(600)
    fitted = fit_quietly(Named(boosted(), random_state=0), table, y)
    fitted.name_ = "spring"
    path = fitted.save(tmp_path / "m.rnet")
    loaded = rn.load(path)
    assert (type(loaded), loaded.name_) == (Named, "spring")
    assert loaded.decide(table).to_frame().equals(fitted.decide(table).to_frame())
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert [entry["class"] for entry in manifest["methods"]] == ["Named", "TemperatureScaling"]


@pytest.mark.usefixtures("own_registry")
def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"'ERMClassifier' is that of .*methods\.erm"):
        stored_as("network")(type("ERMClassifier", (), {}))
    assert registry.find_class("ERMClassifier", "network", "") is rn.ERMClassifier
