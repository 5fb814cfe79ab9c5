"""What a selection fold teaches: a scale for each predicted class, and the order of tests."""

from __future__ import annotations

from rule_examples import draw

from reliablenet import Promise, certified_rule

RHO = 0.1


def test_a_prediction_that_the_selection_fold_never_saw_is_deferred():
    proba, y, _ = draw(8, n=1200, classes=3)
    seen = proba[:600].argmax(1) != 2
    selection = (proba[:600][seen], y[:600][seen])
    found = certified_rule(proba[600:], y[600:], Promise.overall(0.2), RHO, selection=selection)
    assert set(found.rule.thresholds) == {0, 1}
    assert not found.rule.accept(proba)[proba.argmax(1) == 2].any()


def test_groups_without_a_budget_teach_the_path_nothing():
    """A budget that is not there must not make every place of the path NaN."""
    proba, y, by = draw(9, n=3000)
    promise = Promise.by_group({"A": 0.1, "B": 0.1}, common=True)
    found = certified_rule(
        proba[1000:], y[1000:], promise, RHO, by=by[1000:],
        selection=(proba[:1000], y[:1000], by[:1000]),
    )  # fmt: skip
    assert found.certified
    assert not found.deferred  # of no group is it known at decision time that it has no budget
