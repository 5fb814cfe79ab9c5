"""Model files: same bits after a round trip, and no way to load what was damaged or smuggled in."""

from __future__ import annotations

import copy
import dataclasses
import functools
import io
import json
import os
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest
import skops.io
from contract_helpers import NETWORKS, QUICK, certify_again, fit_quietly, frame_of, quick
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch import nn

import reliablenet as rn
from reliablenet._files import write_atomically
from reliablenet.certificate.sealing import digest
from reliablenet.modelfile.archive import SEAL, SEAL_LENGTH, seal, sha256
from reliablenet.tables import TabularEncoder


@pytest.fixture(scope="module")
def model():
    table, y = frame_of(1200)
    return fit_quietly(quick(rn.ReliableClassifier), table, y)


@pytest.fixture
def path(model, tmp_path):
    return model.save(tmp_path / "model.rnet")


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_loaded_model_decides_the_same_to_the_bit(kind, tmp_path) -> None:
    model = fit_quietly(quick(kind), *frame_of(1200))
    loaded = rn.load(model.save(tmp_path / "model.rnet"))
    table, y = frame_of(500, seed=1)
    assert type(loaded) is kind
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert loaded.decide(table).to_frame().equals(model.decide(table).to_frame())
    assert loaded.certificate_ == model.certificate_
    assert loaded.evidence_ == model.evidence_
    assert loaded.fingerprint_ == model.fingerprint_
    assert loaded.threshold_ == model.threshold_
    assert loaded.get_params() == model.get_params()
    assert loaded.history_.to_frame().equals(model.history_.to_frame())
    assert certify_again(loaded, table, y) == certify_again(model, table, y)


def test_saving_over_a_file_leaves_one_whole_file(model, path) -> None:
    path.write_bytes(b"old")
    model.save(path)
    assert rn.load(path).threshold_ == model.threshold_
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(path, monkeypatch) -> None:
    before = path.read_bytes()

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_model_is_used_in_another_process(path) -> None:
    code = (
        "import sys, reliablenet as rn; m = rn.load(sys.argv[1]);"
        "print(m.certificate_.certified, m.threshold_)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    loaded = rn.load(path)
    assert result.stdout.split() == [str(loaded.certificate_.certified), str(loaded.threshold_)]


@pytest.mark.parametrize("labels", [[True, False], [3, 5], ["a", "b"], [1.0, 2.0]])
def test_labels_of_every_plain_type_come_back(labels, tmp_path) -> None:
    table, _ = frame_of(300)
    y = np.array(labels)[np.arange(300) % 2]
    fitted = fit_quietly(quick(rn.ERMClassifier, epochs=1), table, y)
    loaded = rn.load(fitted.save(tmp_path / "m.rnet"))
    assert loaded.classes_.dtype == fitted.classes_.dtype
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)


def test_an_uncertified_model_still_defers_everything_after_loading(tmp_path) -> None:
    table, y = frame_of(60)
    fitted = fit_quietly(quick(rn.ERMClassifier, epochs=1), table, y)
    loaded = rn.load(fitted.save(tmp_path / "m.rnet"))
    assert loaded.threshold_ == np.inf
    assert not loaded.accept(table).any()


def test_a_network_of_ones_own_needs_its_factory(tmp_path) -> None:
    table, y = frame_of(300)

    def linear(d: int, k: int) -> nn.Module:
        return nn.Linear(d, k)

    fitted = fit_quietly(quick(rn.ERMClassifier, epochs=1, network=linear), table, y)
    path = fitted.save(tmp_path / "m.rnet")
    with pytest.raises(rn.errors.ModelFileError, match=r"linear.*load\(path, network=...\)"):
        rn.load(path)
    np.testing.assert_array_equal(
        rn.load(path, network=linear).predict_proba(table), fitted.predict_proba(table)
    )
    with pytest.raises(
        rn.errors.InvalidDataError, match="`network` of ERMClassifier must return 2 outputs"
    ):
        rn.load(path, network=lambda d, k: nn.Linear(d, k + 1))
    with pytest.raises(rn.errors.ModelFileError, match="cannot be read"):
        rn.load(path, network=lambda d, k: nn.Linear(d, k, bias=False))


def test_one_changed_byte_anywhere_is_refused(path) -> None:
    content = path.read_bytes()
    random = np.random.RandomState(0)
    places = {0, 1, len(content) - 1, *random.randint(len(content), size=300).tolist()}
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << random.randint(8)
        path.write_bytes(changed)
        with pytest.raises(rn.errors.ModelFileError):
            rn.load(path)


@pytest.mark.parametrize("kept", [0, 1, 100, 0.5, -1])
def test_a_truncated_file_is_refused(path, kept) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept) if isinstance(kept, float) else kept])
    with pytest.raises(rn.errors.ModelFileError, match="Copy or save it again"):
        rn.load(path)


def test_missing_and_foreign_files(tmp_path) -> None:
    with pytest.raises(rn.errors.ModelFileError, match=r"No model file can be read at .*none.rnet"):
        rn.load(tmp_path / "none.rnet")
    (tmp_path / "text.rnet").write_text("hello")
    with pytest.raises(rn.errors.ModelFileError, match="not a ReliableNet model file"):
        rn.load(tmp_path / "text.rnet")


def resealed(path, change) -> None:
    """Do what an attacker can: change members and seal the file again."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    manifest = json.loads(parts["manifest.json"])
    for name in manifest["sha256"]:
        if name in parts:
            manifest["sha256"][name] = sha256(parts[name])
    parts["manifest.json"] = json.dumps(manifest).encode()
    path.write_bytes(seal(parts))


def test_a_certificate_better_than_its_counts_is_refused(path) -> None:
    def forge(parts) -> None:
        values = json.loads(parts["certificate.json"])
        del values["sha256"]
        values["upper_bound"] = values["upper_bound"] / 2
        values["sha256"] = digest(values)
        parts["certificate.json"] = json.dumps(values).encode()

    resealed(path, forge)
    with pytest.raises(rn.errors.InvalidDataError, match="altered"):
        rn.load(path)


def test_evidence_that_contradicts_the_certificate_is_refused(path, model) -> None:
    better = dataclasses.replace(model.evidence_, predicted=model.evidence_.truth)
    resealed(path, lambda parts: parts.update({"evidence.safetensors": better.to_bytes()}))
    with pytest.raises(
        rn.errors.InvalidDataError, match="The evidence contradicts the certificate"
    ):
        rn.load(path)


def test_no_feature_gets_into_the_file(tmp_path) -> None:
    table, y = frame_of(600)
    fitted = fit_quietly(quick(rn.ERMClassifier, epochs=1), table, y)
    number = table["number"].to_numpy()
    content = fitted.save(tmp_path / "m.rnet").read_bytes()
    certified = number[fitted.evidence_.row]
    assert not any(value.tobytes() in content for value in certified[np.isfinite(certified)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts.update({"../evil": b"x"}), "must hold"),
        (lambda parts: parts.pop("history.json"), "must hold"),
        (lambda parts: parts.pop("evidence.safetensors"), "must hold"),
        (lambda parts: parts.update({"evidence.safetensors": b"not arrays"}), "cannot be read"),
        (lambda parts: parts.update({"weights.safetensors": b"not tensors"}), "cannot be read"),
        (lambda parts: parts.update({"preprocessing.json": b"not JSON"}), "cannot be read"),
        (
            lambda parts: parts.update(
                {"manifest.json": parts["manifest.json"].replace(b"ReliableClassifier", b"Evil")}
            ),
            "holds a model of class 'Evil'",
        ),
        (
            lambda parts: parts.update(
                {"manifest.json": parts["manifest.json"].replace(b"model/1", b"model/9")}
            ),
            "has the format",
        ),
    ],
)
def test_an_altered_but_sealed_file_is_refused(path, change, message) -> None:
    resealed(path, change)
    with pytest.raises(rn.errors.ModelFileError, match=message):
        rn.load(path)


def test_compressed_members_are_refused(path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.comment = SEAL + b"0" * 64
    body = buffer.getvalue()[:-SEAL_LENGTH]
    path.write_bytes(body + SEAL + sha256(body).encode())
    with pytest.raises(rn.errors.ModelFileError, match="compressed"):
        rn.load(path)


def test_saving_says_what_it_cannot_do(model, tmp_path) -> None:
    with pytest.raises(rn.errors.InvalidParameterError, match="a file in an existing folder"):
        model.save(tmp_path / "no" / "folder.rnet")
    with pytest.raises(ValueError, match="not fitted"):
        rn.ReliableClassifier(schedule=QUICK).save(tmp_path / "m.rnet")


def test_loading_warns_of_nothing(path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rn.load(path)


def test_settings_of_every_kind_come_back(tmp_path) -> None:
    table, y = frame_of(300)
    fitted = fit_quietly(
        quick(
            rn.ReliableClassifier,
            fold_sizes=(0.6, 0.2, 0.2),
            checkpoint_file=tmp_path / "run.safetensors",
            batch_size=np.int64(64),
            random_state=np.random.RandomState(3),
        ),
        table,
        y,
    )
    loaded = rn.load(fitted.save(tmp_path / "m.rnet"))
    assert loaded.schedule == QUICK
    assert loaded.fold_sizes == [0.6, 0.2, 0.2]
    assert loaded.checkpoint_file == str(tmp_path / "run.safetensors")
    assert loaded.batch_size == 64
    assert loaded.random_state is None  # it decided the fit and decides nothing any more


def test_inputs_with_more_axes_come_back_without_an_encoder(tmp_path) -> None:
    images = np.random.RandomState(0).uniform(size=(300, 2, 3, 3))
    y = (images.sum(axis=(1, 2, 3)) > 9).astype(int)

    def flat(shape: tuple[int, ...], k: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), k))

    fitted = fit_quietly(quick(rn.ERMClassifier, network=flat), images, y)
    loaded = rn.load(fitted.save(tmp_path / "m.rnet"), network=flat)
    assert loaded.encoder_ is None
    np.testing.assert_array_equal(loaded.predict_proba(images), fitted.predict_proba(images))


def test_tied_weights_come_back_tied(tmp_path) -> None:
    class Tied(nn.Module):
        def __init__(self, d: int, k: int) -> None:
            super().__init__()
            self.first = self.second = nn.Linear(d, d)
            self.last = nn.Linear(d, k)

        def forward(self, x):
            return self.last(self.second(self.first(x).relu()).relu())

    table, y = frame_of(300)
    fitted = fit_quietly(quick(rn.ERMClassifier, epochs=2, network=Tied), table, y)
    loaded = rn.load(fitted.save(tmp_path / "m.rnet"), network=Tied)
    assert loaded.network_.first is loaded.network_.second
    np.testing.assert_array_equal(loaded.predict_proba(table), fitted.predict_proba(table))


def test_labels_of_mixed_types_cannot_be_saved(model, tmp_path) -> None:
    fitted = copy.copy(model)
    fitted.classes_ = np.array(["a", 1], dtype=object)
    with pytest.raises(rn.errors.InvalidParameterError, match=r"got \['int', 'str'\]"):
        fitted.save(tmp_path / "m.rnet")


def test_a_class_without_a_file_format_cannot_be_saved(model, tmp_path) -> None:
    class Mine(rn.ReliableClassifier):
        pass

    mine = Mine()
    mine.__dict__.update(model.__dict__)
    with pytest.raises(rn.errors.InvalidParameterError, match="Mine, which has no file format"):
        mine.save(tmp_path / "m.rnet")


def test_a_member_that_does_not_match_its_hash_is_named(path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["history.json"] = parts["history.json"].replace(b"1", b"2", 1)
    path.write_bytes(seal(parts))
    with pytest.raises(rn.errors.ModelFileError, match=r"history.json does not match its hash"):
        rn.load(path)


def test_labels_of_a_strange_type_are_refused(path) -> None:
    def change(parts) -> None:
        manifest = json.loads(parts["manifest.json"])
        manifest["methods"][0]["classes"]["dtype"] = "V8"
        parts["manifest.json"] = json.dumps(manifest).encode()

    resealed(path, change)
    with pytest.raises(rn.errors.ModelFileError, match="'V8' are refused"):
        rn.load(path)


def boosted() -> rn.CertifiedThreshold:
    trees = HistGradientBoostingClassifier(max_iter=10, random_state=0)
    return rn.CertifiedThreshold(make_pipeline(TabularEncoder(), trees), random_state=0)


@pytest.mark.parametrize(
    "wrapper",
    [
        boosted(),
        rn.TemperatureScaling(
            make_pipeline(TabularEncoder(), LogisticRegression()), threshold=0.9, random_state=0
        ),
        rn.ConfidenceThreshold(make_pipeline(TabularEncoder(), RandomForestClassifier(10))),
        rn.ConformalRiskControl(quick(rn.SelectiveNetClassifier)),
        rn.CertifiedThreshold(rn.TemperatureScaling(quick(rn.ReliableClassifier))),
    ],
    ids=["boosting", "temperature", "forest", "network", "nested"],
)
def test_a_rule_comes_back_with_the_classifier_it_wraps(wrapper, tmp_path) -> None:
    table, y = frame_of(1200)
    fitted = fit_quietly(wrapper, table, y)
    loaded = rn.load(fitted.save(tmp_path / "m.rnet"))
    assert type(loaded) is type(fitted)
    assert loaded.decide(table).to_frame().equals(fitted.decide(table).to_frame())
    np.testing.assert_array_equal(loaded.predict_proba(table), fitted.predict_proba(table))
    assert loaded.threshold_ == fitted.threshold_
    np.testing.assert_equal(loaded.selection_threshold_, fitted.selection_threshold_)
    assert loaded.certificate_ == fitted.certificate_
    mine, theirs = (model.get_params(deep=False) for model in (loaded, fitted))
    assert {k: v for k, v in mine.items() if k != "estimator"} == {
        k: v for k, v in theirs.items() if k != "estimator"
    }


def test_what_was_wrapped_comes_back_without_a_rule_of_its_own(tmp_path) -> None:
    table, y = frame_of(1200)
    inner = fit_quietly(quick(rn.ERMClassifier), table, y)
    fitted = fit_quietly(rn.CertifiedThreshold(inner), *frame_of(800, seed=1))
    loaded = rn.load(fitted.save(tmp_path / "m.rnet"))
    assert inner.threshold_ < np.inf
    assert loaded.estimator_.threshold_ == np.inf
    assert not loaded.estimator_.accept(table).any()
    assert loaded.accept(table).any()


def test_texts_have_no_columns_to_remember(tmp_path) -> None:
    texts = ["good and fine", "bad and poor", "fine", "poor"] * 100
    labels = ["yes", "no", "yes", "no"] * 100
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    fitted = fit_quietly(rn.CertifiedThreshold(model, random_state=0), texts, labels)
    loaded = rn.load(fitted.save(tmp_path / "m.rnet"))
    assert loaded.decide(texts[:2]).label.tolist() == ["yes", "no"]


class Opaque:
    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X):
        return np.tile([0.1, 0.9], (len(X), 1))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Opaque(), "wraps a scikit-learn estimator or a network of this library; got Opaque"),
        (
            make_pipeline(TabularEncoder(), KNeighborsClassifier(algorithm="kd_tree")),
            "the types .*KDTree.*, which are not known to be harmless",
        ),
        (
            make_pipeline(
                FunctionTransformer(lambda frame: frame[["number"]].fillna(0)), LogisticRegression()
            ),
            "save cannot store this Pipeline",
        ),
    ],
)
def test_saving_says_which_classifier_it_cannot_store(estimator, message, tmp_path) -> None:
    fitted = fit_quietly(rn.CertifiedThreshold(estimator, alpha=0.9), *frame_of(400))
    with pytest.raises(rn.errors.InvalidParameterError, match=message):
        fitted.save(tmp_path / "m.rnet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("function", [os.system, functools.partial(os.system, "true")])
def test_a_smuggled_type_in_a_wrapped_classifier_is_refused_by_name(function, tmp_path) -> None:
    path = fit_quietly(boosted(), *frame_of(600)).save(tmp_path / "m.rnet")

    def smuggle(parts) -> None:
        parts["estimator.skops"] = skops.io.dumps(FunctionTransformer(function))

    resealed(path, smuggle)
    with pytest.raises(rn.errors.ModelFileError, match=r"refused.*system"):
        rn.load(path)


def test_a_model_without_a_network_takes_no_factory(tmp_path) -> None:
    path = fit_quietly(boosted(), *frame_of(600)).save(tmp_path / "m.rnet")
    with pytest.raises(rn.errors.InvalidParameterError, match="this one has none"):
        rn.load(path, network=nn.Linear)


def test_the_same_model_gives_the_same_file(model, path, tmp_path) -> None:
    assert model.save(tmp_path / "again.rnet").read_bytes() == path.read_bytes()


def test_loading_a_network_needs_no_skops(path) -> None:
    """skops takes seconds to import; a network has nothing that it is for."""
    code = (
        f"import sys, reliablenet as rn; rn.load({str(path)!r}); sys.exit('skops' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
