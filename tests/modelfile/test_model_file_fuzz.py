"""Altered model files, sealed again as an attacker can: refused, or a working model."""

from __future__ import annotations

import pytest
from contract_helpers import fit_quietly
from fuzz_models import BAND, MODELS, MUTATIONS, good_file, mutants, run_mutant
from sklearn.ensemble import HistGradientBoostingClassifier

import reliablenet as rn

SEEDS = range(3)  # the study `fuzz` takes many more


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", MODELS)
def test_altered_files_are_refused_or_work(kind, seed, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = good_file(kind, seed, tmp_path)
    path = tmp_path / "case.rnet"
    outcomes = [
        run_mutant(kind, mutant, path, f"seed {seed}, case {number}")
        for number, mutant in enumerate(mutants(content, seed))
    ]
    assert set(outcomes) <= {"answer", "our error", "documented error"}
    assert outcomes.count("answer") < MUTATIONS // 2
    assert [file.name for file in tmp_path.iterdir()] == ["case.rnet"]  # nothing was written


@pytest.mark.parametrize(
    ("estimator", "attribute", "field", "value", "message"),
    [
        (HistGradientBoostingClassifier(max_iter=2), "left", "left", 10**6, "a child that is not"),
        (HistGradientBoostingClassifier(max_iter=2), "circle", "right", 0, "a child that is not"),
        (HistGradientBoostingClassifier(max_iter=2), "f", "feature_idx", 99, "a feature that is"),
    ],
)
def test_a_tree_that_leads_out_of_itself_is_refused(
    estimator, attribute, field, value, message, tmp_path
) -> None:
    model = fit_quietly(rn.CertifiedThreshold(estimator, alpha=0.4), BAND.X, BAND.y)
    model.estimator_._predictors[0][0].nodes[field][0] = value
    path = model.save(tmp_path / "model.rnet")
    with pytest.raises(rn.errors.ModelFileError, match=message):
        rn.load(path)
