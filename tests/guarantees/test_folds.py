"""How folds are drawn decides whether a certificate is exact: the simulation in short, and its results."""

from __future__ import annotations

import pytest

from studies.guarantees import folds
from studies.guarantees.folds import FIRST, RANDOM, SETTINGS, STRATIFIED
from studies.guarantees.intervals import keeps

PLACES = {setting.name: place for place, setting in enumerate(SETTINGS)}


def failures(name, cut, draws):
    return int(folds.run_part(PLACES[name], cut, 0, draws)[0])


@pytest.mark.parametrize("name", ["10 classes", "10 classes, groups of 1 to 5 rows"])
def test_a_fold_drawn_first_keeps_the_promise_and_a_stratified_one_does_not(name):
    assert keeps(failures(name, FIRST, 4000), 4000, 0.05)
    assert not keeps(failures(name, STRATIFIED, 4000), 4000, 0.05)


def test_a_shrunken_logistic_regression_keeps_it_too():
    assert keeps(failures("shrunken logistic regression", FIRST, 300), 300, 0.2)


def test_a_conformal_threshold_needs_a_selection_fold_drawn_at_random():
    place, draws = PLACES["conformal threshold, 10 classes"], 2000
    for cut, kept in ((RANDOM, True), (FIRST, False)):
        total, squares = folds.run_part(place, cut, 0, draws)
        error = ((squares / draws - (total / draws) ** 2) / draws) ** 0.5
        assert (total / draws <= 0.05 + 3 * error) == kept


def test_a_run_counts_every_draw_of_every_setting_once():
    found = [one for block in folds.blocks(10, jobs=1, chunk=4) for one in block.finish([])]
    assert len(found) == sum(len(setting.cuts) for setting in SETTINGS)
    assert all(record["draws"] == 10 for record in found)
    for record in found:
        total, _ = folds.run_part(PLACES[record["source"]], record["cut"], 0, 10)
        assert record.get("failures", 10 * record.get("mean", 0.0)) == pytest.approx(total)


def test_the_committed_counts_are_long_enough_and_tell_the_cuts_apart():
    found = folds.STUDY.read()
    assert {(record["source"], record["cut"]) for record in found} == {
        (setting.name, cut) for setting in SETTINGS for cut in setting.cuts
    }
    for record in found:
        assert record["draws"] >= 20_000
        if "mean" in record:
            kept = record["mean"] <= record["alpha"] + 3 * record["standard_error"]
            assert kept == (record["cut"] == RANDOM)
        else:
            kept = keeps(record["failures"], record["draws"], record["rho"])
            assert kept == (record["cut"] == FIRST), record
