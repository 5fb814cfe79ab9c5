"""Every rule around every estimator keeps its promise: the simulation in short, and its results."""

from __future__ import annotations

import warnings

import pytest

from reliablenet.datasets import SyntheticBand
from reliablenet.methods import ledger
from studies.guarantees import rules
from studies.guarantees.intervals import keeps
from studies.guarantees.rules import CERTIFIED, CONFORMAL, FAULT, NETWORK, RULES, TRIALS, Trial


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != FAULT])
def test_rules_around_a_cheap_model_keep_their_promise(rule):
    (block,) = rules.blocks([Trial(rule, "LogisticRegression()", 60)], jobs=1)
    (record,) = block.finish([])
    assert record["draws"] == 60
    assert keeps(record["failures"], 60, record["rho"])
    if rule.startswith(CONFORMAL):
        assert rules.keeps_mean(record)


def test_fits_are_continued_where_they_were_stopped():
    trials = [Trial(CONFORMAL, "LogisticRegression()", fits) for fits in (3, 5)]
    short, longer = rules.blocks(trials, jobs=1, fresh=1000)
    after, whole = longer.finish(short.finish([])), longer.finish([])
    assert after[0] == pytest.approx(whole[0])
    assert list(longer.measure(after)) == []


@pytest.mark.parametrize("rule", RULES)
def test_no_weight_is_fitted_to_rows_on_which_a_rule_computes(rule):
    """What the fault of the simulation undoes; a certified threshold computes on other rows."""
    rows = SyntheticBand(0).sample(rules.ROWS)
    model = RULES[rule](rules.ESTIMATORS[NETWORK](0), 0)
    with warnings.catch_warnings(), ledger.closed():
        warnings.simplefilter("ignore")
        model.fit(rows.X, rows.y)
    while hasattr(model, "estimator_"):
        model = model.estimator_
    assert (model.history_.refitted_rows > 0) == (rule in (CERTIFIED, FAULT))


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.rule}-{trial.estimator}")
def test_the_committed_fits_keep_every_promise_and_catch_the_fault(trial):
    found = {(one["rule"], one["estimator"]): one for one in rules.STUDY.read()}
    record = found[trial.rule, trial.estimator]
    assert record["draws"] >= trial.fits
    if trial.rule == FAULT:
        assert not rules.keeps_mean(record)
        return
    assert keeps(record["failures"], record["draws"], record["rho"]), record
    if trial.rule.startswith(CONFORMAL):
        assert rules.keeps_mean(record), record
