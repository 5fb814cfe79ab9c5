"""Rules: whom they accept, whom they defer, and what they need to decide."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rule_examples import EASY, TRUTH

from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.errors import InvalidDataError, InvalidParameterError


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


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        (lambda rule: rule.accept(), "Rule.accept needs `proba`, or `score`."),
        (lambda rule: rule.accept(score=[0.9]), "needs `predicted` (or `proba`): the threshold depends"),
        (lambda rule: rule.accept(EASY, predicted=TRUTH), "takes `predicted` only with proba=None"),
        (lambda rule: rule.accept(score=[np.nan], predicted=[0]), "`score` of Rule.accept"),
        (lambda rule: rule.accept(EASY, score=[0.5]), "`score`"),
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
