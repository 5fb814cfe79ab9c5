"""Promises and rules: what they refuse and in which words, and whom a rule defers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from reliablenet import Promise, certified_rule
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.errors import InvalidDataError, InvalidParameterError

PROBA = np.tile([[0.9, 0.1], [0.2, 0.8]], (100, 1))
Y = np.tile([0, 1], 100)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Promise.overall(0), "`alpha` of Promise.overall must lie in (0, 1); got 0."),
        (lambda: Promise.overall(5), "`alpha` of Promise.overall must lie in (0, 1); got 5. Did you mean 0.05?"),
        (lambda: Promise.by_class({"a": 0.0}), "`alpha['a']` of Promise.by_class must lie in (0, 1); got 0.0."),
        (lambda: Promise.by_group({}), "`alpha` of Promise.by_group must name at least one budget; got {}."),
        (lambda: Promise.by_group(0.1, by=[]), "`by` of Promise.by_group must name a column, or several; got ()."),
        (lambda: Promise.by_group(0.1, by=""), "`by` of Promise.by_group must name a column, or several; got ('',)."),
        (lambda: Promise.cost([[0, 1, 2], [1, 0, 2]], 0.1), "`matrix` of Promise.cost must have shape (K, K) with K >= 2; got (2, 3)."),
        (lambda: Promise.cost([[0, 1], [-1, 0]], 0.1), "`matrix` of Promise.cost must hold costs of at least 0, one of them positive; got [[0.0, 1.0], [-1.0, 0.0]]."),
        (lambda: Promise.cost([[0, 0], [0, 0]], 0.1), "`matrix` of Promise.cost must hold costs of at least 0, one of them positive; got [[0.0, 0.0], [0.0, 0.0]]."),
        (lambda: Promise.cost([["a", "b"], ["c", "d"]], 0.1), "`matrix` of Promise.cost must hold numbers; got [['a', 'b'], ['c', 'd']]."),
        (lambda: Promise.cost([[0, 1], [5, 0]], 5), "`budget` of Promise.cost must lie below the largest cost, 5: any rule keeps a larger one; got 5."),
        (lambda: Promise.cost([[0, 1], [5, 0]], 1, classes=["a", "a"]), "`classes` of Promise.cost must be 2 distinct labels; got ('a', 'a')."),
        (lambda: Promise.all_of(Promise.overall(0.1), 0.2), "`promises` of Promise.all_of must be promises; got 0.2."),
        (lambda: Promise.all_of(Promise.overall(0.1), Promise.overall(0.1)), "Promise.all_of speaks twice of the same rows: at most 10 % of all rows are acted on wrongly; at most 10 %"),
        (lambda: Promise.all_of(Promise.by_group(0.1), Promise.by_group({"A": 0.1}, common=True)), "Keep the smaller budget, or name the budget of each in one mapping."),
        (lambda: Promise.all_of(Promise.cost([[0, 1], [5, 0]], 1), Promise.cost([[0, 1], [5, 0]], 1)), "Promise.all_of speaks twice of the same rows"),
        (lambda: Promise.all_of(Promise.among_accepted(0.1), Promise.by_group(0.1)), "cannot hold a promise among rows acted on together with thresholds of their own for groups"),
        (lambda: certified_rule(PROBA, Y, 0.05), "`promise` of certified_rule must be a Promise; got 0.05. Did you mean Promise.overall(...)?"),
        (lambda: certified_rule(PROBA, Y, Promise.by_class({2: 0.1})), "`alpha` of Promise.by_class names [2], which is no class of the model; its classes are [0, 1]."),
        (lambda: certified_rule(PROBA, Y, Promise.cost(np.eye(3), 0.1)), "`matrix` of Promise.cost must have a row and a column for each class of the model, [0, 1]; got 3 for [0, 1]."),
        (lambda: certified_rule(PROBA, Y, Promise.by_group(0.1)), "`by` of certified_rule must give the group of each row (group); got None."),
        (lambda: certified_rule(PROBA, Y, Promise.by_group(0.1), by=["A"]), "`by` of certified_rule must give one group for each of the 200 rows; got shape (1,) for 'group'."),
        (lambda: certified_rule(PROBA, Y, Promise.by_group(0.1, by=["a", "b"]), by=Y), "`by` of certified_rule must hold the columns ['a', 'b'], as a mapping or a data frame; got a ndarray."),
        (lambda: certified_rule(PROBA, Y, Promise.by_group(0.1, by="sex"), by={"race": Y}), "`by` of certified_rule must hold the column 'sex'; got ['race']."),
        (lambda: certified_rule(PROBA, Y, Promise.overall(0.1), selection=PROBA), "`selection` of certified_rule must be (proba, y), (proba, y, by) or ScoredRows; got 'ndarray'."),
        (lambda: certified_rule(None, None, Promise.by_class(0.1), score=Y * 1.0, correct=Y > 0), "Promise.by_class needs true and predicted labels; `correct` alone has none."),
        (lambda: certified_rule(None, None, Promise.cost([[0, 1], [2, 0]], 0.1), score=Y * 1.0, correct=Y > 0), "Promise.cost needs true and predicted labels; `correct` alone has none."),
        (lambda: Promise.from_dict({"kind": "overall"}), "This does not describe a promise: KeyError('alpha')."),
        (lambda: Promise.from_dict(3), "This does not describe a promise"),
        (lambda: Promise.from_dict({"kind": "luck", "alpha": 0.1}), "`kind` of Promise must be one of"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_these_words(make, message):
    with pytest.raises((InvalidParameterError, InvalidDataError)) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA, pd.NaT])
def test_a_group_that_is_missing_is_refused_where_it_counts(absent):
    by = np.where(np.arange(200) % 2, "A", "B").astype(object)
    by[[7, 9]] = absent
    with pytest.raises(InvalidDataError) as caught:
        certified_rule(PROBA, Y, Promise.by_group(0.1, by="race"), by={"race": by})
    assert str(caught.value) == (
        "`by` of certified_rule must name a group for every row; 'race' is missing in row 7 (2 in all). "
        "Give such rows a group of their own, such as 'unknown'."
    )


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA])
def test_a_group_that_is_missing_or_new_is_deferred_when_deciding(absent):
    rule = Rule((Thresholds(("race",), {"A": 0.5, "B": np.inf}),))
    by = np.array(["A", "B", "C", absent], object)
    assert rule.accept(score=np.full(4, 0.9), by=by).tolist() == [True, False, False, False]
    crossed = Rule((Thresholds(("race", "sex"), {"A, f": 0.5}),))
    table = {"race": np.array(["A", "A", absent], object), "sex": np.array(["f", "m", "f"])}
    assert crossed.accept(score=np.full(3, 0.9), by=table).tolist() == [True, False, False]
    assert crossed.accept(score=np.full(3, 0.9), by=pd.DataFrame(table)).tolist() == [
        True,
        False,
        False,
    ]


def test_groups_of_numbers_keep_their_type_through_text():
    promise = Promise.by_group({1: 0.1, 2.5: 0.2, "1": 0.3})
    assert Promise.from_dict(json.loads(json.dumps(promise.to_dict()))) == promise
    found = certified_rule(PROBA, Y, Promise.by_group(0.1), by=np.repeat([1, 2], 100))
    again = type(found).from_json(found.to_json())
    accepted = again.rule.accept(PROBA, by=np.repeat([1, 2], 100))
    assert accepted.mean() == found.coverage == 1.0
    assert not again.rule.accept(PROBA, by=np.repeat(["1", "2"], 100)).any()


def test_a_group_of_the_selection_fold_alone_is_deferred():
    by = np.repeat(["A", "B"], 100)
    found = certified_rule(
        PROBA, Y, Promise.by_group(0.1), by=by, selection=(PROBA, Y, np.repeat(["A", "Z"], 100))
    )
    assert set(found.rule.thresholds) == {"A", "B"}
    assert not found.rule.accept(PROBA, by=np.full(200, "Z")).any()


def test_a_group_with_a_budget_and_no_row_is_named():
    by = np.full(200, "A")
    found = certified_rule(PROBA, Y, Promise.by_group({"A": 0.1, "B": 0.1}), by=by)
    assert found.deferred == {"group=B": "no certification row"}
    common = certified_rule(PROBA, Y, Promise.by_group({"A": 0.1, "B": 0.1}, common=True), by=by)
    assert not common.certified  # B's rows would be acted on, and nothing is known of them


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        (lambda rule: rule.accept(), "Rule.accept needs `proba`, or `score`."),
        (lambda rule: rule.accept(score=[0.9]), "needs `predicted` (or `proba`): the threshold depends"),
        (lambda rule: rule.accept(PROBA, predicted=Y), "takes `predicted` only with proba=None"),
        (lambda rule: rule.accept(score=[np.nan], predicted=[0]), "`score` of Rule.accept"),
        (lambda rule: rule.accept(PROBA, score=[0.5]), "`score`"),
    ],
)  # fmt: skip
def test_what_a_rule_needs_to_decide(accept, message):
    with pytest.raises((InvalidParameterError, InvalidDataError)) as caught:
        accept(Rule((Thresholds(("predicted",), {0: 0.5}),)))
    assert message in str(caught.value)


def test_a_rule_without_thresholds_is_none():
    with pytest.raises(InvalidDataError, match="A rule needs at least one threshold"):
        Rule(())
    for damaged in (
        {},
        {"tables": [{"key": ["all"], "values": [["all", "high"]]}], "classes": None},
    ):
        with pytest.raises((InvalidDataError, InvalidParameterError)):
            Rule.from_dict(damaged)
