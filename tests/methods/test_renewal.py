import json
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.certificate import wording
from reliablenet.errors import (
    FoldWarning,
    InvalidDataError,
    InvalidParameterError,
    LabelWarning,
    ModelFileError,
    NotCertifiedWarning,
)
from reliablenet.methods.renewal import RenewalState, identity, renew
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


def test_a_version_that_words_certificates_differently_reads_and_writes_the_chain(
    model, tmp_path, monkeypatch
):
    with monkeypatch.context() as earlier:
        earlier.setattr(wording, "verdict", lambda c: "certified, in other words")
        renewed, _ = renew(model, *fresh(model, 900, 1))
        path, known = renewed.save(tmp_path / "earlier.rnet"), identity(renewed)
    again = rn.load(path)
    assert identity(again) == known != identity(model)
    assert len(rn.load(again.save(tmp_path / "now.rnet")).chain_) == 2
    third, _ = renew(again, *fresh(model, 900, 2))
    assert len(rn.load(third.save(tmp_path / "third.rnet")).chain_) == 3


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


PERSONS = np.repeat(np.arange(500), 3)


@pytest.fixture(scope="module")
def grouped():
    base = LogisticRegression().fit(*draw(500, 9))
    return rn.CertifiedThreshold(base, alpha=0.1, random_state=0).fit(
        *draw(1500, 0), groups=PERSONS
    )


def test_a_model_that_counts_groups_is_not_renewed_by_rows_unless_it_is_said(grouped, tmp_path):
    with pytest.raises(InvalidParameterError, match="`groups` of renew must say whose row each is"):
        renew(grouped, *fresh(grouped, 900, 1))
    renewed, found = renew(grouped, *fresh(grouped, 900, 1), groups=np.arange(900) // 3)
    assert (found.unit, found.n, found.certified) == ("group", 300, True)
    assert renewed.grouped_
    again = rn.load(renewed.save(tmp_path / "renewed.rnet"))
    assert (len(again.seen_.certified), len(again.evidence_)) == (300, 300)
    X, y = draw(900, 1)
    with pytest.raises(
        InvalidDataError, match="given to `fit` already"
    ):  # the rows not drawn as well
        again.certify(X, y, groups=np.arange(900) // 3)
    by_rows, found = renew(grouped, *fresh(grouped, 900, 2), groups="rows")
    assert (found.unit, found.n, by_rows.grouped_) == ("row", 900, False)
    assert json.loads(by_rows.chain_[0].document)["unit"] == "group"


def test_a_sequential_renewal_counts_each_group_once_by_its_first_row_drawn(grouped, tmp_path):
    path = tmp_path / "state.json"
    with pytest.raises(
        InvalidDataError, match=r"counts rows since it began\. Leave the groups out"
    ):
        RenewalState.begin(grouped).add(*fresh(grouped, 30, 4), np.arange(30))
    state = RenewalState.begin(grouped, "group")
    with pytest.raises(
        InvalidDataError, match=r"counts groups since it began\. Say whose row each is"
    ):
        state.add(*fresh(grouped, 30, 4))
    state = state.add(*fresh(grouped, 30, 4), [f"p{i // 3}" for i in range(30)])
    kept = state.evidence
    assert (state.looks, len(state.hashes), len(state.beside), len(state.groups)) == (
        (10,), 10, 20, 10,
    )  # fmt: skip
    state.save(path)
    assert "p3" not in path.read_text()
    state = RenewalState.load(path, grouped)
    assert state.unit == "group"
    state = state.add(*fresh(grouped, 1200, 5), [f"p{5 + i // 2}" for i in range(1200)])
    assert state.looks == (10, 605)  # five came before, and keep the row that was drawn then
    assert state.evidence.score[:10].tolist() == kept.score.tolist()
    with pytest.raises(InvalidDataError, match="None of these rows is of a new group"):
        state.add(*fresh(grouped, 3, 6), ["p0", "p0", "p1"])
    with pytest.raises(InvalidDataError, match="already"):
        state.add(*fresh(grouped, 1200, 5), [f"q{i}" for i in range(1200)])
    renewed, found = state.renew(grouped)
    assert (found.unit, found.n, found.kind, found.certified) == ("group", 605, "anytime", True)
    assert len(renewed.seen_.certified) == 605
    saved = rn.load(renewed.save(tmp_path / "renewed.rnet"))
    assert saved.grouped_
    assert saved.threshold_ == found.threshold


def test_names_of_groups_are_the_same_whatever_their_type(grouped):
    state = RenewalState.begin(grouped, "group").add(*fresh(grouped, 20, 4), np.arange(20))
    later = state.add(*fresh(grouped, 21, 5), [str(i) for i in range(21)])
    assert later.looks == (20, 21)


def test_a_sequential_renewal_tells_of_copies_and_unknown_labels(model):
    X, y = draw(150, 4)
    X, y = np.tile(X, (5, 1)), np.tile(y, 5).astype(object)
    with pytest.warns(FoldWarning, match="600 of 750 certification rows"):
        found = (
            RenewalState.begin(model).add(model.score_rows(X, y), model_hashes(model, X)).certify()
        )
    assert found.provenance.copies == 600
    assert any("repeat another row" in note for note in found.to_dict()["notes"])
    X, y = draw(60, 4)
    y = np.where(np.arange(60) < 10, "perhaps", y)
    with pytest.warns(LabelWarning):
        rows = model.score_rows(X, y)
    found = RenewalState.begin(model).add(rows, model_hashes(model, X)).certify()
    assert found.unknown == 10
    assert found.commonest <= 50
