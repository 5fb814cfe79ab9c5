"""Promises: what they refuse and in which words, and what survives as text."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rule_examples import EASY, TRUTH

from reliablenet import Promise, certified_rule
from reliablenet.errors import InvalidDataError, InvalidParameterError


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
        (lambda: Promise.from_dict({"kind": "overall"}), "This does not describe a promise: KeyError('alpha')."),
        (lambda: Promise.from_dict(3), "This does not describe a promise"),
        (lambda: Promise.from_dict({"kind": "luck", "alpha": 0.1}), "`kind` of Promise must be one of"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_these_words(make, message):
    with pytest.raises((InvalidParameterError, InvalidDataError)) as caught:
        make()
    assert message in str(caught.value)


def test_groups_of_numbers_keep_their_type_through_text():
    promise = Promise.by_group({1: 0.1, 2.5: 0.2, "1": 0.3})
    assert Promise.from_dict(json.loads(json.dumps(promise.to_dict()))) == promise
    found = certified_rule(EASY, TRUTH, Promise.by_group(0.1), by=np.repeat([1, 2], 100))
    again = type(found).from_json(found.to_json())
    accepted = again.rule.accept(EASY, by=np.repeat([1, 2], 100))
    assert accepted.mean() == found.coverage == 1.0
    assert not again.rule.accept(EASY, by=np.repeat(["1", "2"], 100)).any()
