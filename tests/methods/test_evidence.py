"""What a fitted model keeps of its certification fold, and the fingerprint of what it was given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from contract_helpers import NETWORKS, fit_quietly, frame_of, quick
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.datasets import SyntheticBand
from reliablenet.methods.evidence import Evidence
from reliablenet.tables import Fold
from reliablenet.tables.digest import fingerprint

WRAPPERS = (
    rn.CertifiedThreshold,
    rn.ConfidenceThreshold,
    rn.ConformalRiskControl,
    rn.TemperatureScaling,
)
BAND = SyntheticBand(random_state=0).sample(3000)


def estimators() -> list:
    wrapped = [kind(LogisticRegression(), random_state=0) for kind in WRAPPERS]
    return [quick(kind) for kind in NETWORKS] + wrapped


def evidence(**changes: object) -> Evidence:
    arrays = {
        "score": [0.9, 0.8, 0.7, 0.6],
        "top_probability": [0.9, 0.8, 0.7, 0.6],
        "predicted": [0, 1, 1, 0],
        "truth": [0, 0, 1, 0],
        "row": [4, 7, 9, 11],
    }
    return Evidence(**(arrays | changes))


@pytest.mark.parametrize("model", estimators(), ids=lambda model: type(model).__name__)
def test_evidence_is_what_the_model_says_of_its_certification_rows(model) -> None:
    model = fit_quietly(model, BAND.X, BAND.y)
    found = model.evidence_
    X, y = BAND.X[found.row], BAND.y[found.row]
    assert len(found) == model.certificate_.n == len(set(found.row.tolist()))
    np.testing.assert_array_equal(found.score, model.acceptance_score(X))
    np.testing.assert_array_equal(found.top_probability, model.predict_proba(X).max(axis=1))
    np.testing.assert_array_equal(model.classes_[found.predicted], model.predict(X))
    np.testing.assert_array_equal(model.classes_[found.truth], y)
    counted = rn.certify(
        None,
        found.truth,
        model.certificate_.threshold,
        score=found.score,
        predicted=found.predicted,
    )
    assert (counted.errors, counted.accepted, counted.n) == (
        model.certificate_.errors,
        model.certificate_.accepted,
        model.certificate_.n,
    )


def test_a_fold_of_ones_own_has_no_row_numbers() -> None:
    other = SyntheticBand(random_state=1).sample(500)
    model = fit_quietly(quick(rn.ERMClassifier), BAND.X, BAND.y, certification=(other.X, other.y))
    assert (model.evidence_.row == -1).all()
    np.testing.assert_array_equal(model.evidence_.truth, other.y)
    np.testing.assert_array_equal(model.evidence_.score, model.acceptance_score(other.X))


def test_evidence_has_no_features() -> None:
    """Groups are kept where a promise speaks of them, and nothing else of the rows."""
    kept = {"score", "top_probability", "predicted", "truth", "row", "by"}
    assert set(vars(evidence())) == kept
    assert evidence().by == {}


def test_bytes_and_back() -> None:
    assert Evidence.from_bytes(evidence().to_bytes()) == evidence()
    assert evidence() != evidence(row=[4, 7, 9, 12])
    assert evidence() != 3
    with pytest.raises(rn.errors.InvalidDataError, match=r"must hold the arrays \['score'"):
        Evidence.from_bytes(evidence().to_bytes().replace(b"truth", b"trust"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row": [1, 2]}, "five vectors of one length"),
        ({"score": [[0.9], [0.8], [0.7], [0.6]]}, "five vectors of one length"),
        (
            {"top_probability": [0.9, np.nan, 0.7, 0.6]},
            "`top_probability` of Evidence must be finite",
        ),
    ],
)
def test_evidence_checks_itself(changes, message) -> None:
    with pytest.raises(rn.errors.InvalidDataError, match=message):
        evidence(**changes)


def test_a_contradicted_certificate_is_refused() -> None:
    rows = evidence()
    right = rn.Certificate(1, 2, 4, alpha=0.9, rho=0.05, threshold=0.75)
    rows.check(right, n_classes=2)
    for wrong in (
        rn.Certificate(0, 2, 4, alpha=0.9, rho=0.05, threshold=0.75),
        rn.Certificate(1, 3, 4, alpha=0.9, rho=0.05, threshold=0.75),
        rn.Certificate(1, 2, 5, alpha=0.9, rho=0.05, threshold=0.75),
    ):
        with pytest.raises(rn.errors.InvalidDataError, match=r"\(1, 2, 4\) at the threshold 0.75"):
            rows.check(wrong, n_classes=2)
    with pytest.raises(rn.errors.InvalidDataError, match=r"`predicted` of the evidence.*1 classes"):
        rows.check(right, n_classes=1)


def test_scored_rows_know_whether_the_score_is_a_probability() -> None:
    assert evidence().scored().lowest == 0.0
    assert evidence(score=[3.0, 2.0, 1.0, -1.0]).scored().lowest == -np.inf
    assert evidence().scored().wrong.tolist() == [False, True, False, False]


def test_fingerprints_tell_values_names_types_and_labels_apart() -> None:
    table, y = frame_of(50)
    renamed, retyped, changed = table.copy(), table.copy(), table.copy()
    renamed.columns = ["number", "job", "flag", "other"]
    retyped["constant"] = 1
    changed.loc[7, "job"] = "b" if table.loc[7, "job"] != "b" else "a"
    tables = [table, renamed, retyped, changed, table[table.columns[::-1]], table.iloc[::-1]]
    prints = [fingerprint(one, y) for one in tables] + [fingerprint(table, y[::-1])]
    assert len(set(prints)) == len(prints)
    assert fingerprint(table.copy(), y.copy()) == prints[0]
    assert fingerprint(table.set_axis(range(5, 55)), y) == prints[0]  # an index is no value


def test_fingerprints_of_everything_that_wrappers_take() -> None:
    dense = np.array([[0.0, 1.0], [2.0, 0.0]])
    csr = sparse.csr_array(dense)
    assert fingerprint(csr) == fingerprint(csr.tocoo()) == fingerprint(csr.tocsc())
    assert fingerprint(csr) != fingerprint(sparse.csr_array(dense * 2))
    assert fingerprint(torch.tensor(dense)) != fingerprint(torch.tensor(dense * 2))
    assert (
        fingerprint(dense) == fingerprint(np.asfortranarray(dense)) == fingerprint(dense.tolist())
    )
    assert fingerprint(dense) != fingerprint(dense.reshape(4))
    for rows in (["a text", "another"], [{"a": 1}, {"b": 2}], [[1, 2], [3]], np.array(["x", None])):
        assert fingerprint(rows) == fingerprint(rows)
        assert fingerprint(rows) != fingerprint(rows[::-1])
    twice = pd.DataFrame([[1, 2]], columns=["same", "same"])
    assert fingerprint(twice) != fingerprint(twice.iloc[:, ::-1])


def test_fit_takes_the_fingerprint_of_all_it_was_given() -> None:
    other = SyntheticBand(random_state=1).sample(500)
    model = rn.CertifiedThreshold(LogisticRegression(), random_state=0)
    assert model.fit(BAND.X, BAND.y).fingerprint_ == fingerprint(BAND.X, BAND.y)
    model.fit(BAND.X, BAND.y, certification=Fold(other.X, other.y))
    assert model.fingerprint_ == fingerprint(BAND.X, BAND.y, other.X, other.y)
