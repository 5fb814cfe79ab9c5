"""Promises through estimators: fitted, decided, certified anew, kept in files, compared."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import reliablenet as rn
from reliablenet.certificate import Promise, RuleCertificate
from reliablenet.errors import (
    InvalidDataError,
    InvalidParameterError,
    NotCertifiedWarning,
    ReliableNetError,
)
from reliablenet.methods import Comparison, ledger
from reliablenet.modelfile.archive import seal
from reliablenet.modelfile.manifest import MANIFEST, with_manifest
from reliablenet.modelfile.save_load import MEMBERS, open_sealed


def make_table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two noisy numbers and a group on which the noise depends."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["calm", "rough", "rare"], n, p=[0.55, 0.43, 0.02])
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "group": group})
    noise = np.where(group == "calm", 0.5, 1.3) * rng.normal(size=n)
    return frame, np.where(frame.a + frame.b + noise > 0, "yes", "no")


TABLE, LABELS = make_table(4000, 0)
FRESH, TRUTH = make_table(4000, 1)
NUMBERS = ["a", "b"]
PROMISES = {
    "overall": Promise.overall(0.06),
    "among": Promise.among_accepted(0.08),
    "group": Promise.by_group(0.06, by="group"),
    "predicted": Promise.by_predicted({"yes": 0.03}),
    "class": Promise.by_class({"yes": 0.06}),
    "cost": Promise.cost([[0, 1], [4, 0]], 0.2, classes=["no", "yes"]),
    "several": Promise.all_of(Promise.overall(0.05), Promise.by_group(0.08, by="group")),
}


def fitted(promise: Promise, **settings: Any) -> rn.CertifiedThreshold:
    model = rn.CertifiedThreshold(LogisticRegression(), promise=promise, random_state=0, **settings)
    by = TABLE[["group"]] if promise.columns else None
    return model.fit(TABLE[NUMBERS], LABELS, by=by)


@pytest.fixture(scope="module")
def models() -> dict[str, rn.CertifiedThreshold]:
    made = {}
    for name, promise in PROMISES.items():
        made[name] = fitted(promise)
        ledger.clear()  # each is a process of its own
    return made


@pytest.mark.parametrize("name", PROMISES)
def test_a_promise_is_certified_and_its_rule_acts(
    name: str, models: dict[str, rn.CertifiedThreshold]
) -> None:
    model = models[name]
    found = model.certificate_
    assert isinstance(found, RuleCertificate)
    assert found.certified
    assert found.promise == PROMISES[name]
    by = FRESH.group if PROMISES[name].columns else None
    decisions = model.decide(FRESH[NUMBERS], by=by)
    assert 0.3 < decisions.accepted.mean() < 0.95
    assert np.array_equal(decisions.accepted, model.accept(FRESH[NUMBERS], by=by))
    one_by_one = [
        model.decide(FRESH[NUMBERS].iloc[[i]], by=None if by is None else by.iloc[[i]]).accepted[0]
        for i in range(20)
    ]
    assert one_by_one == decisions.accepted[:20].tolist()


@pytest.mark.parametrize("name", PROMISES)
def test_a_promise_survives_save_and_load(
    name: str, models: dict[str, rn.CertifiedThreshold], tmp_path: Path
) -> None:
    model = models[name]
    again = rn.load(model.save(tmp_path / "m.rnet"))
    assert again.promise == model.promise
    assert again.certificate_ == model.certificate_
    assert again.evidence_ == model.evidence_
    by = FRESH.group if model.promise.columns else None
    for rows in (FRESH[NUMBERS],):
        assert np.array_equal(again.decide(rows, by).accepted, model.decide(rows, by).accepted)


def test_a_group_that_is_small_new_or_missing_is_deferred(
    models: dict[str, rn.CertifiedThreshold],
) -> None:
    model = models["group"]
    assert model.rule_.thresholds["rare"] == math.inf
    assert "group=rare" in model.certificate_.deferred
    rows = FRESH[NUMBERS].head(3)
    sure = pd.DataFrame({"a": [2.5] * 3, "b": [2.5] * 3})
    assert model.decide(sure, by=["calm"] * 3).accepted.all()
    assert not model.decide(sure, by=["rare", "new", None]).accepted.any()
    with pytest.raises(InvalidParameterError, match=r"needs the group of each row \(group\)"):
        model.decide(rows)


def test_the_groups_are_a_column_of_the_table_unless_given() -> None:
    promise = Promise.by_group(0.06, by="side")
    frame = TABLE[NUMBERS].assign(side=(TABLE.group == "calm").astype(int))
    model = rn.CertifiedThreshold(LogisticRegression(), promise=promise, random_state=0)
    model.fit(frame, LABELS)
    assert set(model.rule_.thresholds) == {0, 1}
    assert model.decide(frame).accepted.any()


def test_a_certification_fold_brings_its_own_groups() -> None:
    promise = Promise.by_group(0.06, by="side")
    side = (TABLE.group == "calm").astype(int)
    frame = TABLE[NUMBERS].assign(side=side)
    fresh = FRESH[NUMBERS].assign(side=(FRESH.group == "calm").astype(int))
    model = rn.CertifiedThreshold(LogisticRegression(), promise=promise, random_state=0)
    model.fit(frame, LABELS, certification=(fresh, TRUTH))
    assert {part.n for part in model.certificate_.parts} == set(fresh.side.value_counts())


def test_one_threshold_for_all_groups_needs_no_group_to_decide() -> None:
    promise = Promise.by_group(0.09, by="side", common=True)
    side = (TABLE.group == "calm").map({True: "calm", False: "rough"})
    model = rn.CertifiedThreshold(LogisticRegression(), promise=promise, random_state=0)
    model.fit(TABLE[NUMBERS], LABELS, by=side)
    assert model.certificate_.certified
    assert model.decide(FRESH[NUMBERS]).accepted.any()


@pytest.mark.parametrize("name", ["group", "class", "several"])
def test_a_fixed_rule_is_certified_on_fresh_rows(
    name: str, models: dict[str, rn.CertifiedThreshold]
) -> None:
    model = models[name]
    by = FRESH.group if model.promise.columns else None
    found = model.certify(FRESH[NUMBERS], TRUTH, by=by)
    assert {part.kind for part in found.parts} == {"fixed"}
    assert found.rule == model.rule_
    measured = model.evaluate(FRESH[NUMBERS], TRUTH, by=by)
    assert measured.coverage == found.coverage
    with pytest.raises(InvalidParameterError, match="the promise of the model has its budgets"):
        model.certify(FRESH[NUMBERS], TRUTH, by=by, alpha=0.1)


def test_what_cannot_be_certified_defers_every_row() -> None:
    promise = Promise.by_group(0.01, by="group", common=True)
    with pytest.warns(NotCertifiedWarning, match="defers every row"):
        model = fitted(promise)
    assert model.threshold_ == math.inf
    assert not model.decide(FRESH[NUMBERS]).accepted.any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"promise": 0.05}, "`promise` of CertifiedThreshold must be a Promise or None"),
        ({"promise": "overall"}, "must be a Promise or None"),
    ],
)
def test_a_promise_is_a_promise(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        rn.CertifiedThreshold(LogisticRegression(), **settings).fit(TABLE[NUMBERS], LABELS)


def test_a_threshold_of_its_own_and_a_promise_do_not_go_together() -> None:
    model = rn.ERMClassifier(promise=Promise.overall(0.05), threshold=0.9)
    with pytest.raises(InvalidParameterError, match='be "certified" where a promise is given'):
        model.fit(TABLE[NUMBERS], LABELS)


def test_groups_must_be_asked_for_known_and_complete() -> None:
    plain = rn.CertifiedThreshold(LogisticRegression())
    with pytest.raises(InvalidParameterError, match="the promise is about none"):
        plain.fit(TABLE[NUMBERS], LABELS, by=TABLE.group)
    model = rn.CertifiedThreshold(LogisticRegression(), promise=PROMISES["group"])
    with pytest.raises(InvalidParameterError, match="fit needs the group of each row"):
        model.fit(TABLE[NUMBERS], LABELS)
    holes = TABLE.group.where(TABLE.index != 7)
    with pytest.raises(InvalidDataError, match="is missing in row 7"):
        model.fit(TABLE[NUMBERS], LABELS, by=holes)


def test_a_promise_is_a_setting_like_others() -> None:
    model = rn.CertifiedThreshold(LogisticRegression(), promise=PROMISES["several"])
    assert clone(model).promise == PROMISES["several"]


def test_a_forged_promise_is_refused(
    models: dict[str, rn.CertifiedThreshold], tmp_path: Path
) -> None:
    path = models["group"].save(tmp_path / "m.rnet")
    members = open_sealed(path, MEMBERS)
    manifest = json.loads(members.pop(MANIFEST))
    settings = manifest["methods"][0]["settings"]
    assert settings["promise"] == {"promise": PROMISES["group"].to_dict()}
    settings["promise"]["promise"]["alpha"] = 0.01
    manifest.pop("sha256")
    path.write_bytes(seal(with_manifest(manifest, members)))
    with pytest.raises(ReliableNetError, match="about another promise"):
        rn.load(path)


def test_methods_are_compared_by_a_promise_and_stored() -> None:
    frame = TABLE[NUMBERS].assign(side=(TABLE.group == "calm").astype(int))
    methods = {
        "logistic": LogisticRegression(),
        "bayes": GaussianNB(),
        "conformal": rn.ConformalRiskControl(LogisticRegression()),
    }
    promise = Promise.by_group(0.06, by="side")
    found = rn.compare(frame, LABELS, methods=methods, promise=promise, resamples=20)
    assert set(found.results) == {"logistic", "bayes"}
    assert "keeps no other promise" in found.failures["conformal"]
    again = Comparison.from_json(found.to_json())
    assert again.to_frame().equals(found.to_frame())
    best = found.best()
    assert str(again.best()) == str(best)
    assert best.certificate.certified
    assert sum(part.rho for part in best.certificate.parts) <= 0.05
    assert best.model.decide(frame).accepted.any()


@pytest.mark.parametrize("given", [False, True], ids=["cut", "selection given without groups"])
def test_a_learned_path_heeds_groups_that_share_a_threshold(given: bool, tmp_path: Path) -> None:
    groups = Promise.by_group({"calm": 0.08, "rough": 0.12}, by="group", common=True)
    promise = Promise.all_of(Promise.among_accepted(0.15), groups)
    selection = (FRESH[NUMBERS], TRUTH) if given else None
    model = rn.CertifiedThreshold(LogisticRegression(), promise=promise, random_state=0)
    model.fit(TABLE[NUMBERS], LABELS, by=TABLE.group, selection=selection)
    assert model.certificate_.certified
    assert [part.name for part in model.certificate_.parts[1:]] == ["group=calm", "group=rough"]
    assert rn.load(model.save(tmp_path / "m.rnet")).certificate_ == model.certificate_


@pytest.mark.parametrize(
    "promise",
    [Promise.by_class({"Yes": 0.1}), Promise.by_predicted({"maybe": 0.1}), Promise.cost(np.eye(3), 0.1)],
)  # fmt: skip
def test_classes_that_are_not_there_are_refused_before_training(promise: Promise) -> None:
    class Untrained(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            raise AssertionError("trained")

    with pytest.raises(InvalidParameterError, match=r"class(es)? of the model.*\['no', 'yes'\]"):
        rn.CertifiedThreshold(Untrained(), promise=promise).fit(TABLE[NUMBERS], LABELS)


@pytest.mark.filterwarnings("ignore::reliablenet.errors.ReuseWarning")  # two rules are compared
def test_selection_rows_that_nothing_else_uses_teach_scales_where_they_pay() -> None:
    """Around a fitted classifier, and one of scikit-learn's, which choose nothing on such rows."""
    random = np.random.default_rng(0)
    X = random.standard_normal((6000, 4))
    y = (X[:, 0] + random.standard_normal(6000) > 1.5).astype(int)
    weighted = LogisticRegression(class_weight="balanced")
    train, chosen, held = slice(0, 2000), slice(2000, 4000), slice(4000, 6000)
    folds = {"selection": (X[chosen], y[chosen]), "certification": (X[held], y[held])}
    for model in (weighted, clone(weighted).fit(X[train], y[train])):
        rule = rn.CertifiedThreshold(model, promise=Promise.overall(0.05), random_state=0)
        several = rule.fit(X[train], y[train], **folds).certificate_
        assert set(several.rule.thresholds) == {0, 1}
        one = rn.CertifiedThreshold(model, 0.05, random_state=0).fit(X[train], y[train], **folds)
        assert one.certificate_.certified
        assert several.throughput > one.certificate_.throughput + 0.05
