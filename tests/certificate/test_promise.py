"""Promises: what they refuse and in which words, and what survives as text."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from rule_examples import EASY, TRUTH

from refusal import refused
from reliablenet import Promise, certified_rule
from reliablenet.certificate.promise import plain_label
from reliablenet.errors import InvalidDataError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Promise.overall(0), "`alpha` of Promise.overall must lie in (0, 1); got 0."),
        (lambda: Promise.overall(5), "`alpha` of Promise.overall must lie in (0, 1); got 5. Did you mean 0.05?"),
        (lambda: Promise.by_class({"a": 0.0}), "`alpha['a']` of Promise.by_class must lie in (0, 1); got 0.0."),
        (lambda: Promise.by_class(0), "`alpha` of Promise.by_class must lie in (0, 1); got 0."),
        (lambda: Promise.by_group({}), "`alpha` of Promise.by_group must name at least one budget; got {}."),
        (lambda: Promise.by_group(0.1, by=[]), "`by` of Promise.by_group must name a column, or several; got ()."),
        (lambda: Promise.by_group(0.1, by=""), "`by` of Promise.by_group must name a column, or several; got ('',)."),
        (lambda: Promise.cost([[0, 1, 2], [1, 0, 2]], 0.1), "`matrix` of Promise.cost must have shape (K, K) with K >= 2; got (2, 3)."),
        (lambda: Promise.cost([[0, 1], [-1, 0]], 0.1), "`matrix` of Promise.cost must hold costs of at least 0, one of them positive; got [[0.0, 1.0], [-1.0, 0.0]]."),
        (lambda: Promise.cost([[0, 0], [0, 0]], 0.1), "`matrix` of Promise.cost must hold costs of at least 0, one of them positive; got [[0.0, 0.0], [0.0, 0.0]]."),
        (lambda: Promise.cost([["a", "b"], ["c", "d"]], 0.1), "`matrix` of Promise.cost must hold numbers; got [['a', 'b'], ['c', 'd']]."),
        (lambda: Promise.cost([[0, 1], [5, 0]], 5), "`budget` of Promise.cost must lie below the largest cost, 5: every rule keeps a larger budget; got 5."),
        (lambda: Promise.cost([[0, 1], [5, 0]], 1, classes=["a", "a"]), "`classes` of Promise.cost must be 2 distinct labels; got ('a', 'a')."),
        (lambda: Promise.all_of(Promise.overall(0.1), 0.2), "`promises` of Promise.all_of must be promises; got 0.2."),
        (lambda: Promise.all_of(Promise.overall(0.1), Promise.overall(0.1)), "Promise.all_of gives the same rows two budgets: at most 10 % of all rows are acted on wrongly; at most 10 % of all rows are acted on wrongly. Keep the smaller budget, or name the budget of each in one mapping."),
        (lambda: Promise.all_of(Promise.by_group(0.1), Promise.by_group({"A": 0.1}, common=True)), "Promise.all_of gives the same rows two budgets: in every group, at most 10 % of the rows are acted on wrongly; of the rows of group=A, at most 10 % are acted on wrongly. Keep the smaller budget, or name the budget of each in one mapping."),
        (lambda: Promise.all_of(Promise.cost([[0, 1], [5, 0]], 1), Promise.cost([[0, 1], [5, 0]], 1)), "Promise.all_of gives the same rows two budgets: acting costs at most 1 a row on average; acting costs at most 1 a row on average. Keep the smaller budget, or name the budget of each in one mapping."),
        (lambda: Promise.all_of(Promise.among_accepted(0.1), Promise.by_group(0.1)), "Promise.all_of cannot combine `Promise.among_accepted` with separate thresholds for groups: fewer rows acted on may mean a larger share of mistakes among them. Use `Promise.by_group(..., common=True)`."),
        (lambda: Promise.from_dict({"kind": "overall"}), "This does not describe a promise: KeyError('alpha')."),
        (lambda: Promise.from_dict(3), "This does not describe a promise: TypeError("),
        (lambda: Promise.from_dict({"kind": "luck", "alpha": 0.1}), "`kind` of Promise must be one of ('overall', 'among_accepted', 'by_group', 'by_predicted', 'by_class', 'cost', 'all_of'); got 'luck'."),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_these_words(make, message):
    with refused(message):
        make()


def test_groups_of_numbers_keep_their_type_through_text():
    promise = Promise.by_group({1: 0.1, 2.5: 0.2, "1": 0.3})
    assert Promise.from_dict(json.loads(json.dumps(promise.to_dict()))) == promise
    found = certified_rule(EASY, TRUTH, Promise.by_group(0.1), by=np.repeat([1, 2], 100))
    again = type(found).from_json(found.to_json())
    accepted = again.rule.accept(EASY, by=np.repeat([1, 2], 100))
    assert accepted.mean() == found.coverage == 1.0
    assert not again.rule.accept(EASY, by=np.repeat(["1", "2"], 100)).any()


COSTS = [[0.0, 1.0], [5.0, 0.0]]
ALL = [
    Promise.overall(0.1),
    Promise.among_accepted(0.1),
    Promise.by_group(0.1, by=["race", "sex"], common=True),
    Promise.by_group({"A": 0.1, 2: 0.2}),
    Promise.by_predicted({True: 0.1}),
    Promise.by_class(0.3),
    Promise.cost(COSTS, 1, classes=["no", "yes"]),
    Promise.cost(COSTS, 1),
    Promise.all_of(Promise.overall(0.1), Promise.cost(COSTS, 1), Promise.by_class({"a": 0.1})),
]


@pytest.mark.parametrize("promise", ALL, ids=str)
def test_a_promise_survives_its_text(promise):
    assert Promise.from_dict(json.loads(json.dumps(promise.to_dict()))) == promise


def test_the_text_holds_what_the_promise_needs_and_no_more():
    assert ALL[0].to_dict() == {"kind": "overall", "alpha": 0.1}
    assert ALL[2].to_dict() == {
        "kind": "by_group",
        "alpha": 0.1,
        "by": ["race", "sex"],
        "common": True,
    }
    assert ALL[3].to_dict()["alpha"] == [["A", 0.1], [2, 0.2]]
    assert ALL[6].to_dict() == {
        "kind": "cost",
        "alpha": 1.0,
        "costs": COSTS,
        "classes": ["no", "yes"],
    }
    assert ALL[7].to_dict()["classes"] is None
    assert [part["kind"] for part in ALL[8].to_dict()["parts"]] == ["overall", "cost", "by_class"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Promise("by_class", {("a",): 0.1}), "`alpha` of Promise.by_class must have texts or numbers as its keys; got ('a',)."),
        (lambda: Promise("by_group", 0.1, by=("race",), common=1), "`common` of Promise.by_group must be True or False; got 1."),
        (lambda: Promise("by_group", 0.1, by=("race", 3)), "`by` of Promise.by_group must name a column, or several; got ('race', 3)."),
        (lambda: Promise("cost", 0.1, costs=((1.0,),)), "`matrix` of Promise.cost must have shape (K, K) with K >= 2; got ((1.0,),)."),
        (lambda: Promise("cost", 0.1, costs=((0.0, 1.0), (1.0,))), "`matrix` of Promise.cost must have shape (K, K) with K >= 2; got ((0.0, 1.0), (1.0,))."),
        (lambda: Promise("cost", 0.1, costs=((0, 1), (-1, 0))), "`matrix` of Promise.cost must hold costs of at least 0, one of them positive; got [[0.0, 1.0], [-1.0, 0.0]]."),
        (lambda: Promise.cost([[0, np.inf], [1, 0]], 0.1), "`matrix` of Promise.cost must be finite; got inf in row 0, column 1 (1 such values in all). Drop or repair those rows first."),
        (lambda: Promise.cost([0, 1], 0.1), "`matrix` of Promise.cost must have shape (K, K) with K >= 2; got (2,)."),
        (lambda: Promise.cost([[1]], 0.1), "`matrix` of Promise.cost must have shape (K, K) with K >= 2; got (1, 1)."),
        (lambda: Promise.cost(COSTS, 0), "`budget` of Promise.cost must be a finite positive number; got 0."),
        (lambda: Promise.cost(COSTS, 1, classes=["a", "b", "c"]), "`classes` of Promise.cost must be 2 distinct labels; got ('a', 'b', 'c')."),
        (lambda: Promise("all_of", parts=(Promise.overall(0.1),)), f"`promises` of Promise.all_of must be two or more promises; got {(Promise.overall(0.1),)!r}."),
        (lambda: Promise("all_of", parts=(Promise.overall(0.1), ALL[8])), f"`promises` of Promise.all_of must be two or more promises; got {(Promise.overall(0.1), ALL[8])!r}."),
        (lambda: Promise.all_of(), "`promises` of Promise.all_of must be two or more promises; got ()."),
        (lambda: Promise.all_of(ALL[2], Promise.by_group(0.2, by=["sex", "race"])), "Promise.all_of gives the same rows two budgets: in every group of race and sex, at most 10 % of the rows are acted on wrongly; in every group of sex and race, at most 20 % of the rows are acted on wrongly. Keep the smaller budget, or name the budget of each in one mapping."),
        (lambda: Promise.from_dict({"kind": "overall", "alpha": 2}), "`alpha` of Promise.overall must lie in (0, 1); got 2. Did you mean 0.02?"),
        (lambda: Promise.from_dict({"kind": "all_of", "parts": 3}), "This does not describe a promise: TypeError("),
        (lambda: Promise.from_dict({"kind": "by_class", "alpha": [[1, 2, 3]]}), "This does not describe a promise: ValueError("),
    ],
)  # fmt: skip
def test_what_is_no_promise_is_refused_in_these_words(make, message):
    with refused(message):
        make()


def test_what_may_stand_together():
    Promise.all_of(
        Promise.among_accepted(0.1), Promise.by_group(0.1, common=True), Promise.by_class(0.1)
    )
    Promise.all_of(Promise.by_group(0.1, by="race"), Promise.by_group(0.1, by="sex"))
    Promise.all_of(Promise.cost(COSTS, 1), Promise.cost(COSTS, 2))
    assert Promise.all_of(ALL[0]) == ALL[0]
    assert ALL[8].alpha == 0.0  # its parts have the budgets
    nested = Promise.all_of(Promise.all_of(ALL[0], ALL[1]), ALL[5])
    assert nested.parts == nested.simple() == (ALL[0], ALL[1], ALL[5])
    assert ALL[0].simple() == (ALL[0],)


def test_a_promise_stays_as_it_was_made():
    with pytest.raises(FrozenInstanceError):
        ALL[0].alpha = 0.5
    for name in ("matrix", "classes"):
        given = {"matrix": COSTS, "budget": 1, "classes": ["a", "b"]} | {name: [[1], [2, 3]]}
        with pytest.raises(InvalidDataError, match=f"^`{name}` must be an array; got a list"):
            Promise.cost(**given)
    assert vars(Promise("overall", 0.1)) == {
        "kind": "overall", "alpha": 0.1, "by": (), "common": False,
        "costs": (), "classes": None, "parts": (),
    }  # fmt: skip


def test_columns_groups_and_budgets_of_all_parts():
    several = Promise.all_of(
        Promise.by_group(0.1, by=["race", "sex"]),
        Promise.by_group({"A": 0.02, "B": 0.3}, by="race", common=True),
        Promise.cost(COSTS, 0.2),
    )
    assert several.columns == ("race", "sex")
    assert several.needs_group
    assert not ALL[2].needs_group
    assert not ALL[0].needs_group
    assert several.strictest == 0.02
    assert Promise.all_of(Promise.overall(0.1), Promise.cost(COSTS, 0.2)).strictest == 0.2 / 5.0
    assert ALL[6].largest_cost == 5.0
    assert (several.parts[1].budget_of("A"), several.parts[1].budget_of("C")) == (0.02, None)
    assert ALL[5].budget_of("whatever") == 0.3


def test_labels_and_budgets_get_the_types_of_python():
    for label, plain in ((np.int64(3), 3), (np.str_("a"), "a"), (np.True_, True), (0.5, 0.5), ((1, 2), "(1, 2)"), (None, "None")):  # fmt: skip
        assert plain_label(label) == plain
        assert type(plain_label(label)) is type(plain)
    series = pd.Series([0.1, 0.2], index=np.array([1, 2]))
    found = Promise.by_class(series)
    assert found.alpha == {1: 0.1, 2: 0.2}
    assert {type(label) for label in found.alpha} == {int}
    assert Promise.by_group(0.1, by=["a", "b"]).by == ("a", "b")
    assert Promise.by_group(0.1).by == ("group",)
    assert Promise.cost(np.array(COSTS), 1, classes=np.array([3, 4])).classes == (3, 4)
    assert Promise.cost(np.array(COSTS, bool), 0.5).costs == ((0.0, 1.0), (1.0, 0.0))
    assert type(Promise.overall(np.float32(0.5)).alpha) is float
    assert type(Promise.cost(COSTS, 1).alpha) is float
    assert str(Promise.overall(0.1)) == "at most 10 % of all rows are acted on wrongly"


def test_budgets_of_numpy_become_numbers_of_python():
    budgets = {np.str_("a"): np.float64(0.05), "b": np.float32(0.25)}
    for promise in (
        Promise.by_class(budgets),
        Promise.by_predicted(budgets),
        Promise.by_group(budgets, by="ward"),
        Promise.by_group(pd.Series(budgets), by="ward"),
    ):
        assert [type(budget) for budget in promise.alpha.values()] == [float, float]
        assert "5 %" in str(promise)
        assert "25 %" in str(promise)
        assert Promise.from_dict(json.loads(json.dumps(promise.to_dict()))) == promise
