"""Every public function meets values of every kind: an answer that is right, or an error of ours."""

from __future__ import annotations

import pytest
from fuzz_case import run_case
from fuzz_targets import SLOW, TARGETS

import reliablenet as rn
from reliablenet import certificate, datasets, methods, metrics, risk, tables, training

CASES = 40  # of each; the study `fuzz` runs a thousand times as many
UNCALLED = {
    "BatchEnsemble",
    "Bracket", "Comparison", "DATASETS", "Dataset", "Decisions", "EpochRecord", "Evaluation",
    "Folds", "History", "Importance", "Interval", "JCWCurve", "MethodResult", "Network", "Objective",
    "Provenance", "Recommendation", "RiskCoverageCurve", "RowAnswers", "Rows", "SelectiveClassifier", "Stream", "__version__",
    "certify_partitions", "default_methods", "metrics",
    # of promises, shifts, numbers, profiles and monitors: bad input is tried in tests of their own
    "Breakdown", "Monitor", "NumberDecisions", "Promise", "ReliableRegressor", "Rule",
    "RuleCertificate", "SelectiveEstimator", "SelectiveRegressor", "Sensitivity", "SourceMonitor", "anytime_upper",
    "bound_under_shift", "breakdown", "certified_rule", "keep_by_weight", "sensitivity", "shift_to_reach",
    "source_test",
}  # records that our functions make, protocols, and names without arguments  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_a_right_answer_or_an_error_of_ours(name) -> None:
    outcomes = {
        run_case(name, TARGETS[name], seed) for seed in range(CASES // (8 if name in SLOW else 1))
    }
    assert outcomes <= {"answer", "right answer", "our error", "documented error", "no memory"}


def test_every_public_function_is_a_target() -> None:
    targets = {name.split(",")[0].removeprefix("risk.") for name in TARGETS}
    public = {
        name
        for module in (rn, certificate, datasets, methods, metrics, risk, tables, training)
        for name in module.__all__
    }
    errors = {name for name in public if name.endswith(("Error", "Warning"))}
    assert sorted(public - targets - errors - UNCALLED) == []
