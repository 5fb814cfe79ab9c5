"""`ReliableRegressor`: scikit-learn's contract, decisions, certificates, files, bad input."""

from __future__ import annotations

import json
import math
import zipfile

import numpy as np
import pandas as pd
import pytest
from contract_helpers import EXPECTED_WARNINGS
from sklearn.base import clone, is_regressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import reliablenet as rn
from reliablenet.certificate.record import Certificate
from reliablenet.errors import (
    InvalidDataError,
    InvalidParameterError,
    ModelFileError,
)
from reliablenet.methods.evidence import NumberEvidence

pytestmark = pytest.mark.filterwarnings(
    *(f"ignore::reliablenet.errors.{c.__name__}" for c in EXPECTED_WARNINGS)
)


def quick(tolerance=0.5, alpha=0.1, **settings) -> rn.ReliableRegressor:
    settings = {"network": "mlp", "epochs": 6, "random_state": 0} | settings
    return rn.ReliableRegressor(tolerance, alpha, **settings)


def noisy(n=1500, seed=0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows whose noise is 0.1 or 1, by a text column."""
    rng = np.random.default_rng(seed)
    loud = rng.random(n) < 0.5
    frame = pd.DataFrame({"x": rng.uniform(-2, 2, n), "room": np.where(loud, "loud", "quiet")})
    frame["allowed"] = np.where(loud, 2.0, 0.3)
    return frame, frame["x"].to_numpy() * 2 + rng.normal(0, np.where(loud, 1.0, 0.1))


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    return noisy()


@pytest.fixture(scope="module")
def fitted(table) -> rn.ReliableRegressor:
    return quick(epochs=30, learning_rate=5e-3).fit(*table)


# One of the checks sets alpha to 0.01 and 200 rows: folds of its own choice would leave 65 to train on.
@parametrize_with_checks(
    [rn.ReliableRegressor(0.5, 0.2, fold_sizes=(0.6, 0.2, 0.2), random_state=0)],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learn_accepts_the_estimator(estimator, check) -> None:
    check(estimator)


def test_it_acts_where_the_noise_is_small(fitted, table) -> None:
    X, y = noisy(4000, seed=1)
    decisions = fitted.decide(X)
    assert fitted.certificate_.certified
    assert decisions.to_frame().columns.tolist() == ["value", "confidence", "accepted"]
    loud = (X["room"] == "loud").to_numpy()
    assert decisions.accepted[~loud].mean() > 2 * decisions.accepted[loud].mean()
    wrong = np.abs(decisions.value - y) > 0.5
    assert np.array_equal(fitted.predict(X), decisions.value)
    measured = fitted.evaluate(X, y)
    assert measured.jcw == (wrong & decisions.accepted).mean()
    assert is_regressor(fitted)
    assert not hasattr(fitted, "classes_")
    assert not hasattr(fitted, "predict_proba")


def test_the_certificate_says_what_is_promised(fitted) -> None:
    found = fitted.certificate_
    assert found.tolerance == "0.5"
    assert "with an error above 0.5 on at most 10 % of all rows" in str(found)
    assert "off by more than 0.5" in rn.certificate.wording.acted_on(found)
    assert Certificate.from_json(found.to_json()) == found
    evidence = fitted.evidence_
    accepted = evidence.score >= fitted.threshold_
    assert found.errors == int((accepted & evidence.wrong).sum())


def test_one_row_is_decided_as_in_a_table(fitted, table) -> None:
    together = fitted.decide(table[0])
    for i in (0, 7, 1499):
        alone = fitted.decide(table[0].iloc[i : i + 1])
        assert alone.value[0] == together.value[i]
        assert alone.confidence[0] == together.confidence[i]


def test_the_same_seed_gives_the_same_bits(table) -> None:
    first, second = (quick().fit(*table) for _ in range(2))
    np.testing.assert_array_equal(
        first.acceptance_score(table[0]), second.acceptance_score(table[0])
    )
    assert first.certificate_ == second.certificate_


def test_save_and_load_to_the_bit(fitted, table, tmp_path) -> None:
    again = rn.load(fitted.save(tmp_path / "m.rnet"))
    assert again.decide(table[0]).to_frame().equals(fitted.decide(table[0]).to_frame())
    assert again.certificate_ == fitted.certificate_
    assert again.evidence_ == fitted.evidence_
    assert again.tolerance == 0.5
    fresh = noisy(600, seed=2)
    assert again.certify(*fresh) == fitted.certify(*fresh)
    with pytest.raises(InvalidDataError, match="given to `fit` already"):
        again.certify(*table)


def forge(path, target, change) -> None:
    """Rewrite a model file with one member changed, its hashes right again."""
    from reliablenet.modelfile.archive import seal, sha256

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    members, manifest = change(members, manifest)
    manifest["sha256"] = {name: sha256(member) for name, member in members.items()}
    target.write_bytes(seal({"manifest.json": json.dumps(manifest).encode()} | members))


def wider(members, manifest):
    manifest["methods"][0]["settings"]["tolerance"] = 5.0
    return members, manifest


def better(members, manifest):
    known = NumberEvidence.from_bytes(members["evidence.safetensors"])
    near = NumberEvidence(known.score, known.truth, known.truth, known.tolerance, known.row)
    return members | {"evidence.safetensors": near.to_bytes()}, manifest


def bins_gone(members, manifest):
    manifest["methods"][0]["bins"]["points"][0] = 1e9
    return members, manifest


@pytest.mark.parametrize("change", [wider, better, bins_gone])
def test_a_forged_file_is_refused(fitted, tmp_path, change) -> None:
    path = fitted.save(tmp_path / "m.rnet")
    forge(path, tmp_path / "forged.rnet", change)
    with pytest.raises((ModelFileError, InvalidDataError)):
        rn.load(tmp_path / "forged.rnet")


def test_a_tolerance_for_each_row(table, tmp_path) -> None:
    model = quick("allowed", epochs=20, learning_rate=5e-3).fit(*table)
    assert 'the tolerance in "allowed"' in str(model.certificate_)
    X, y = noisy(2000, seed=3)
    found = model.certify(X, y)
    decisions = model.decide(X)
    wrong = decisions.accepted & (np.abs(decisions.value - y) > X["allowed"])
    assert found.errors == wrong.sum()
    again = rn.load(model.save(tmp_path / "m.rnet"))
    assert again.decide(X).to_frame().equals(decisions.to_frame())
    with pytest.raises(ValueError, match="feature names"):
        model.decide(X.drop(columns="allowed"))


def test_a_share_of_the_truth(table) -> None:
    X, y = table
    model = quick("20%").fit(X, np.exp(y))
    assert "20 % of the truth" in str(model.certificate_)
    value, truth = model.evidence_.value, model.evidence_.truth
    assert np.array_equal(model.evidence_.wrong, np.abs(value - truth) > 0.2 * np.abs(truth))


def test_truths_at_zero_are_never_close_and_no_reason_to_fail(table) -> None:
    X, y = table
    model = quick("20%").fit(X, np.where(y < 0, 0.0, y))
    at_zero = model.evidence_.truth == 0.0
    assert (model.evidence_.value[at_zero] == 0.0).tolist() == (
        ~model.evidence_.wrong[at_zero]
    ).tolist()


def test_groups_count_once(table) -> None:
    groups = np.arange(1500) // 3
    model = quick().fit(*table, groups=groups)
    assert model.certificate_.unit == "group"
    assert model.certificate_.n <= 500


@pytest.mark.parametrize("threshold", ["selection", 0.8])
def test_thresholds_of_other_kinds(table, threshold) -> None:
    model = quick(threshold=threshold).fit(*table)
    assert model.certificate_.kind == "fixed"
    assert not math.isnan(model.selection_threshold_)


BAD_Y = {
    "text": (["a"] * 20, "must hold numbers; got 'a'"),
    "constant": ([3.0] * 20, r"holds a single value, 3 \(n_samples = 20\)"),
    "infinite": ([1.0] * 19 + [math.inf], "infinity, NaN or a missing value in row 19"),
    "missing": ([math.nan] + [1.0] * 19, "infinity, NaN or a missing value in row 0"),
}


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_truth_is_refused(case) -> None:
    y, message = BAD_Y[case]
    with pytest.raises(InvalidDataError, match=message):
        quick().fit(np.arange(20.0)[:, None], y)


@pytest.mark.parametrize("tolerance", [None, 0, -1.0, math.nan, "0%", "120%", [1.0, 2.0]])
def test_a_bad_tolerance_is_refused_before_training(table, tolerance) -> None:
    with pytest.raises(InvalidParameterError, match="`tolerance` of ReliableRegressor"):
        quick(tolerance).fit(*table)


def test_other_bad_settings(table) -> None:
    for settings, message in (
        ({"bins": 1}, "`bins`"),
        ({"checkpoint": "last"}, "`checkpoint`"),
        ({"threshold": 1.5}, "`threshold`"),
        ({"epochs": 0}, "`epochs`"),
    ):
        with pytest.raises(InvalidParameterError, match=message):
            quick(**settings).fit(*table)


def test_ten_rows_are_deferred_or_refused_in_numbers() -> None:
    X = np.arange(10.0)[:, None]
    model = quick().fit(X, X[:, 0] ** 2)
    assert not model.certificate_.certified
    assert not model.accept(X).any()
    assert "needs at least" in model.certificate_.reason


def test_parameters_are_cloned(table) -> None:
    model = quick("10%", bins=9)
    assert clone(model).get_params() == model.get_params()
