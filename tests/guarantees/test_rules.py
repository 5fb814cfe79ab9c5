"""Every rule around every estimator keeps its promise: the simulation in short, and its results."""

from __future__ import annotations

import warnings

import pytest

from reliablenet.datasets import SyntheticBand
from reliablenet.methods import ledger
from reliablenet.methods.neural import NeuralEstimator
from reliablenet.tables import Fold
from studies.guarantees import rules
from studies.guarantees.intervals import keeps
from studies.guarantees.rules import (
    CERTIFIED,
    CONFORMAL,
    FAULT,
    LOGISTIC,
    NETWORK,
    RULES,
    STOPPED,
    TRIALS,
    Trial,
)

LEAST, LEAST_FAULTY = 100, 250  # fits around a network so far: the study goes on to `trial.fits`


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != FAULT])
def test_rules_around_a_cheap_model_keep_their_promise(rule):
    (block,) = rules.blocks([Trial(rule, "LogisticRegression()", 60)], jobs=1)
    (record,) = block.finish([])
    assert record["draws"] == 60
    assert keeps(record["failures"], 60, record["rho"])
    if rule.startswith(CONFORMAL):
        assert rules.keeps_mean(record)


def test_fits_are_continued_where_they_were_stopped():
    def block(**fits):
        names = {"conformal": CONFORMAL, "certified": CERTIFIED}
        trials = [Trial(names[name], LOGISTIC, wanted) for name, wanted in fits.items()]
        (found,) = rules.blocks(trials, jobs=1, fresh=1000)
        return found

    longer = block(conformal=5, certified=4)
    after = longer.finish(block(conformal=3).finish([]))
    assert [record["draws"] for record in after] == [5, 4]
    for record, whole in zip(after, longer.finish([]), strict=True):
        assert record == pytest.approx(whole)
    assert list(longer.measure(after)) == []


@pytest.mark.parametrize("estimator", [NETWORK, STOPPED, "SelectiveNetClassifier(epochs=10)"])
def test_a_network_trained_once_gives_the_same_jcw_as_one_trained_for_each_rule(
    estimator, monkeypatch
):
    trainings = []
    train = NeuralEstimator._fit_folds

    def counted(self, *folds, **more):
        trainings.append(self)
        train(self, *folds, **more)

    monkeypatch.setattr(NeuralEstimator, "_fit_folds", counted)
    trials = [Trial(rule, estimator) for rule in RULES]
    for seed in range(2):
        together = rules.fit_together(trials, seed, 2000)
        shared, trainings[:] = len(trainings), []
        assert together == [rules.fit_once(trial, seed, 2000) for trial in trials]
        assert shared < len(trainings) == len(RULES)
        trainings.clear()


def test_what_decides_a_training_has_it_done_anew():
    rows = SyntheticBand(0).sample(200)
    train, selection = Fold(rows.X[:150], rows.y[:150]), Fold(rows.X[150:], rows.y[150:])
    fitted = []
    with rules.trained_once():
        for seed, fold, keep in (
            (0, train, True),
            (0, train, True),
            (1, train, True),
            (0, selection, True),
            (0, train, False),
        ):
            model = rules.ERM(epochs=1, random_state=seed)
            fitted.append(model._fit_scores(fold, selection, None, keep_selection=keep).network_)
    assert fitted[0] is fitted[1]
    assert len(set(map(id, fitted))) == 4


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
    quick = "LogisticRegression" in trial.estimator or "Boosting" in trial.estimator
    least = LEAST_FAULTY if trial.rule == FAULT else LEAST
    assert record["draws"] >= (trial.fits if quick or trial.rule == CONFORMAL else least)
    if trial.rule == FAULT:
        assert not rules.keeps_mean(record)
        return
    assert keeps(record["failures"], record["draws"], record["rho"]), record
    if trial.rule.startswith(CONFORMAL):
        assert rules.keeps_mean(record), record
