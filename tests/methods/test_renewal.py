import json
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.errors import (
    InvalidDataError,
    InvalidParameterError,
    ModelFileError,
    NotCertifiedWarning,
)
from reliablenet.methods.renewal import RenewalState, renew
from reliablenet.methods.seen import model_hashes
from reliablenet.modelfile.archive import seal
from reliablenet.modelfile.chain import add_link, read_chain, to_plain


def draw(n, seed, shift=0.0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = np.where(random.random(n) < 1 / (1 + np.exp(-3 * X[:, 0])), "yes", "no")
    return np.where(random.random((n, 1)) < shift, -X, X), y


@pytest.fixture(scope="module")
def model():
    base = LogisticRegression().fit(*draw(500, 9))
    return rn.CertifiedThreshold(base, alpha=0.1, random_state=0).fit(*draw(1500, 0))


def fresh(model, n, seed, shift=0.0):
    X, y = draw(n, seed, shift)
    return model.score_rows(X, y), model_hashes(model, X)


def test_a_renewed_model_acts_by_its_new_certificate_and_remembers_the_old(model, tmp_path):
    renewed, found = renew(model, *fresh(model, 900, 1), reason="a new year")
    assert found.certified
    assert renewed.threshold_ == found.threshold != model.threshold_
    assert not hasattr(model, "chain_")
    again = rn.load(renewed.save(tmp_path / "renewed.rnet"))
    assert again.threshold_ == renewed.threshold_
    assert [link.reason for link in again.chain_] == ["first certificate", "a new year"]
    assert again.chain_[0].document == model.certificate_.to_json()
    third, _ = renew(again, *fresh(model, 900, 2))
    final = rn.load(third.save(tmp_path / "third.rnet"))
    assert len(final.chain_) == 3
    assert final.chain_[2].predecessor == final.chain_[1].sha256
    X, y = draw(900, 2)
    with pytest.raises(InvalidDataError, match="given to `fit` already"):
        final.certify(X, y)


def test_a_refusal_leaves_the_model_as_it_was(model):
    renewed, found = renew(model, *fresh(model, 20, 3))
    assert not found.certified
    assert renewed is model


def test_forged_chains_are_refused(model, tmp_path):
    renewed, _ = renew(model, *fresh(model, 900, 1))
    chain = to_plain(add_link(renewed.chain_, renewed.certificate_.to_json(), "{}", "x"))
    in_force = "{}"
    assert len(read_chain(chain, in_force, "file")) == 3
    for change in (
        lambda c: c.pop(1),
        lambda c: c[0].update(reason="another"),
        lambda c: c[1].update(document=c[0]["document"]),
        lambda c: c[2].update(certificate="0" * 64),
        lambda c: c[2].update(date="2001-01-01T00:00:00+00:00"),
        lambda c: c[2].update(date="yesterday"),
        lambda c: c[2].pop("reason"),
        lambda c: c.clear(),
    ):
        forged = json.loads(json.dumps(chain))
        change(forged)
        with pytest.raises(ModelFileError):
            read_chain(forged, in_force, "file")
    path = renewed.save(tmp_path / "model.rnet")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    manifest["chain"][0]["reason"] = "forged"
    path.write_bytes(seal(members | {"manifest.json": json.dumps(manifest).encode()}))
    with pytest.raises(ModelFileError, match="does not fit into the chain"):
        rn.load(path)
    assert read_chain(None, in_force, "file") == ()


def test_a_sequential_renewal_looks_again_until_it_passes(model, tmp_path):
    path = tmp_path / "state.json"
    state = RenewalState.begin(model).add(*fresh(model, 30, 4))
    assert not state.certify().certified
    state.save(path)
    for seed in (5, 6, 7):
        state = RenewalState.load(path, model).add(*fresh(model, 400, seed))
        state.save(path)
    found = state.certify()
    assert found.certified
    assert (found.kind, found.n, state.looks) == ("anytime", 1230, (30, 430, 830, 1230))
    assert found.threshold in state.thresholds
    with pytest.raises(InvalidDataError, match="already"):
        state.add(*fresh(model, 400, 6))


def test_strange_states_are_refused(model, tmp_path):
    path = tmp_path / "state.json"
    RenewalState.begin(model).add(*fresh(model, 30, 4)).save(path)
    path.write_text(path.read_text().replace('"alpha": 0.1', '"alpha": 0.2'))
    with pytest.raises(InvalidDataError, match="altered"):
        RenewalState.load(path, model)
    path.write_text("{}")
    with pytest.raises(InvalidDataError, match="is not the state of a renewal"):
        RenewalState.load(path, model)
    other, _ = renew(model, *fresh(model, 900, 1))
    RenewalState.begin(other).save(path)
    with pytest.raises(InvalidDataError, match="another model"):
        RenewalState.load(path, model)
    with pytest.raises(InvalidDataError, match="at least one fresh row"):
        RenewalState.load(path, other).certify()


def test_a_rule_of_its_own_is_not_renewed():
    base = LogisticRegression().fit(*draw(500, 9))
    with warnings.catch_warnings(action="ignore", category=NotCertifiedWarning):
        own = rn.ConformalRiskControl(base, alpha=0.1, random_state=0).fit(*draw(1500, 0))
    with pytest.raises(InvalidParameterError, match="a rule of its own"):
        renew(own, *fresh(own, 50, 1))
