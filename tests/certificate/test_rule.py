"""Rules: whom they accept, whom they defer, and what they need to decide."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from rule_examples import EASY, TRUTH

from refusal import refused
from reliablenet.certificate.promise_counter import limited_by
from reliablenet.certificate.rule import (
    Rule,
    Thresholds,
    columns_of,
    crossed,
    factorize,
    key_name,
    merge_tables,
)
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
        (lambda rule: rule.accept(score=[0.9]), "Rule.accept needs `predicted` (or `proba`): the threshold depends on the prediction."),
        (lambda rule: rule.limits(1), "Rule.limits needs `predicted` (or `proba`): the threshold depends on the prediction."),
        (lambda rule: rule.accept(EASY, predicted=TRUTH), "Rule.accept takes `predicted` only with proba=None: `proba` already decides it."),
        (lambda rule: rule.accept(score=[0.5, np.nan], predicted=[0, 0]), "`score` of Rule.accept must be finite; got nan in row 1 (1 such values in all). Drop or repair those rows first."),
        (lambda rule: rule.accept(score=["a"]), "`score` of Rule.accept must hold numbers; got <U1."),
        (lambda rule: rule.accept(score=[0.5 + 1j]), "`score` of Rule.accept must hold numbers; got complex128."),
        (lambda rule: rule.accept(score=0.7), "`score` of Rule.accept must be a vector; got shape ()."),
        (lambda rule: rule.accept(score=[[0.7], [0.8]]), "`score` of Rule.accept must be a vector; got shape (2, 1)."),
        (lambda rule: rule.accept(EASY, score=[0.5]), "`score` of Rule.accept must have one entry for each of the 200 rows; got shape (1,)."),
        (lambda rule: rule.accept(score=[0.5, 0.6], predicted=[0]), "`predicted` of Rule.accept must have one entry for each of the 2 rows; got shape (1,)."),
        (lambda rule: rule.accept([[0.5, 0.9]]), "Each row of `proba` of Rule.accept must sum to 1; row 0 sums to 1.4. Normalise the rows, or pass `score` and `predicted`."),
    ],
)  # fmt: skip
def test_what_a_rule_needs_to_decide(accept, message):
    with refused(message):
        accept(Rule((Thresholds(("predicted",), {0: 0.5}),)))


@pytest.mark.parametrize("name", ["score", "predicted"])
def test_what_is_no_array_is_named(name):
    given = {"score": [0.5, 0.6], "predicted": [0, 0]} | {name: [[1], [2, 3]]}
    rule = Rule((Thresholds(("predicted",), {0: 0.5}),))
    with pytest.raises(InvalidDataError, match=f"^`{name}` must be an array; got a list"):
        rule.accept(**given)
    if name == "predicted":
        with pytest.raises(InvalidDataError, match=r"^`predicted` must be an array; got a list"):
            rule.limits(2, predicted=given["predicted"])


def test_groups_of_the_wrong_length_are_named_with_whom_they_are_for():
    rule = Rule((Thresholds(("race",), {"A": 0.5}),))
    for owner, call in (
        ("Rule.accept", lambda: rule.accept(score=[0.5, 0.6], by=["A"])),
        ("Rule.limits", lambda: rule.limits(2, by=["A"])),
    ):
        with pytest.raises(InvalidDataError) as caught:
            call()
        assert str(caught.value) == (
            f"`by` of {owner} must give one group for each of the 2 rows; got shape (1,) for 'race'."
        )


def test_rules_stay_as_they_are():
    rule = Rule((Thresholds(("all",), {"all": 0.5}),))
    with pytest.raises(FrozenInstanceError):
        rule.classes = (0, 1)
    with pytest.raises(FrozenInstanceError):
        rule.tables[0].key = ("race",)
    assert rule == Rule((Thresholds(("all",), {"all": 0.5}),)) != Rule(rule.tables, (0, 1))


def test_a_table_limits_each_row():
    one = Thresholds(("all",), {"all": 0.5})
    assert one.limits(3).tolist() == [0.5] * 3
    table = Thresholds(("race",), {"A": 0.5, 3: 0.7})
    labels = np.array(["A", 3, "B", None], object)
    assert table.limits(4, labels).tolist() == [0.5, 0.7, np.inf, np.inf]


def test_infinite_thresholds_are_told_as_texts():
    rule = Rule((Thresholds(("race",), {"A": np.inf, "B": -np.inf, "C": 0.5}),), ("no", 1))
    assert rule.to_dict() == {
        "tables": [{"key": ["race"], "values": [["A", "inf"], ["B", "-inf"], ["C", 0.5]]}],
        "classes": ["no", 1],
    }


def test_a_rule_without_thresholds_is_none():
    with pytest.raises(InvalidDataError, match="A rule needs at least one threshold"):
        Rule(())
    for damaged in (
        {},
        {"tables": [{"key": ["all"], "values": [["all", "high"]]}], "classes": None},
    ):
        with pytest.raises((InvalidDataError, InvalidParameterError)):
            Rule.from_dict(damaged)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Thresholds(("race",), {("A", "B"): 0.5}), "`values` of Thresholds must name texts or numbers; got ('A', 'B')."),
        (lambda: Thresholds(("race",), {"A": np.nan}), "`threshold` of Thresholds must be a number; got nan."),
        (lambda: Thresholds(("race",), {"A": "high"}), "`threshold` of Thresholds must be a number; got 'high'."),
        (lambda: Rule(()), "A rule needs at least one threshold."),
        (lambda: Rule.from_dict(None), "This does not describe a rule: TypeError("),
        (lambda: Rule.from_dict({"tables": []}), "This does not describe a rule: KeyError('classes')."),
        (lambda: Rule.from_dict({"tables": [{"key": ["all"], "values": [["all"]]}], "classes": None}), "This does not describe a rule: ValueError("),
        (lambda: Rule.from_dict({"tables": [{"key": ["all"], "values": [["all", "high"]]}], "classes": None}), "`threshold` of Thresholds must be a number; got 'high'."),
        (lambda: Rule.from_dict({"tables": [3], "classes": None}), "This does not describe a rule: TypeError("),
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused_in_these_words(make, message):
    with refused(message):
        make()


def test_a_row_is_accepted_at_its_threshold_and_above():
    one = Rule((Thresholds(("all",), {"all": 0.5}),))
    assert one.accept(score=[0.4, 0.5, 0.6]).tolist() == [False, True, True]
    assert (one.threshold, one.thresholds, one.columns) == (0.5, {"all": 0.5}, ())
    none = Thresholds(("race",), {"A": np.inf, "B": -np.inf})
    labels = np.array(["A", "B", "B"])
    assert none.accept(np.array([np.inf, -np.inf, 0.0]), labels).tolist() == [False, True, True]


def test_predictions_are_columns_or_the_names_of_columns():
    table = Thresholds(("predicted",), {"no": 0.95, "yes": 0.5})
    rule = Rule((table,), classes=("no", "yes"))
    proba = [[0.9, 0.1], [0.1, 0.9]]
    assert rule.accept(proba).tolist() == [False, True]
    assert rule.accept(proba, score=[0.96, 0.4]).tolist() == [True, False]
    assert rule.accept(score=[0.9, 0.9], predicted=["no", "yes"]).tolist() == [False, True]
    assert Rule((Thresholds(("predicted",), {1: 0.5}),)).accept(proba).tolist() == [False, True]
    mixed = Rule((Thresholds(("predicted",), {1: 0.5}),), classes=("no", 1))
    assert mixed.accept(proba).tolist() == [False, True]


def test_a_row_must_reach_every_threshold():
    rule = Rule(
        (
            Thresholds(("all",), {"all": 0.4}),
            Thresholds(("race",), {"A": 0.5, "B": 0.8}),
            Thresholds(("race", "sex"), {"A, f": 0.6, "A, m": 0.0, "B, f": 0.0}),
        )
    )
    assert rule.columns == ("race", "sex")
    assert rule.thresholds == {
        "all": 0.4, "race=A": 0.5, "race=B": 0.8,
        "race, sex=A, f": 0.6, "race, sex=A, m": 0.0, "race, sex=B, f": 0.0,
    }  # fmt: skip
    assert rule.threshold == 0.5  # no row below it reaches all of them
    by = {"race": np.array(list("AAAB")), "sex": np.array(list("fmfm"))}
    assert rule.accept(score=[0.55, 0.55, 0.65, 0.99], by=by).tolist() == [False, True, True, False]
    assert Rule((Thresholds(("race",), {}),)).threshold == np.inf


def test_a_rule_survives_its_text():
    tables = (
        Thresholds(("race",), {"A": np.inf, 1: -np.inf, 2.5: 0.5, False: 0.1}),
        Thresholds(("all",), {"all": 0}),
    )
    for classes in (None, ("no", 1)):
        rule = Rule(tables, classes)
        text = json.dumps(rule.to_dict(), allow_nan=False)
        assert Rule.from_dict(json.loads(text)) == rule


def test_of_two_thresholds_for_the_same_rows_the_larger_counts():
    one = Thresholds(("race",), {"A": 0.5, "B": 0.6})
    two = Thresholds(("race",), {"C": 0.3, "A": 0.7})
    merged = merge_tables([one, Thresholds(("all",), {"all": 0.2}), two])
    assert [table.key for table in merged] == [("race",), ("all",)]
    # whom a table does not know it defers
    assert list(merged[0].values.items()) == [("A", 0.7), ("B", np.inf), ("C", np.inf)]
    score, labels = np.linspace(0, 1, 30), np.array(list("ABC") * 10)
    both = one.accept(score, labels) & two.accept(score, labels)
    np.testing.assert_array_equal(merged[0].accept(score, labels), both)


@pytest.mark.parametrize(
    ("kind", "predicted", "budgets", "whose"),
    [
        ("by_predicted", "a", ["a", "b"], "a"),
        ("by_predicted", "c", ["a", "b"], None),
        ("by_class", "a", ["a", "b"], "b"),
        ("by_class", "b", ["a", "b"], "a"),
        ("by_class", "c", ["a"], "a"),
        ("by_class", "a", ["a"], None),
    ],
)
def test_a_wrong_prediction_is_a_mistake_in_another_class(kind, predicted, budgets, whose):
    assert limited_by(kind, predicted, budgets) == whose


def test_names_of_values_say_of_which_key():
    assert key_name(("all",), "all") == "all"
    assert key_name(("race", "sex"), "A, f") == "race, sex=A, f"


@pytest.mark.parametrize(
    ("by", "names", "message"),
    [
        (None, ("race", "sex"), "`by` of certify must give the group of each row (race, sex); got None."),
        (np.zeros(3), ("race", "sex"), "`by` of certify must hold the columns ['race', 'sex'], as a mapping or a data frame; got a ndarray."),
        ({"race": [1, 2, 3]}, ("race", "sex"), "`by` of certify must hold the column 'sex'; got ['race']."),
        (pd.DataFrame({"sex": [1, 2, 3]}), ("race",), "`by` of certify must hold the column 'race'; got ['sex']."),
        ([1, 2], ("race",), "`by` of certify must give one group for each of the 3 rows; got shape (2,) for 'race'."),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), ("race",), "`by` must not hold masked values; got 1 of them. Drop those rows first."),
        ([None, 1, np.nan], ("race",), "`by` of certify must name a group for every row; 'race' is missing in row 0 (2 in all). Give such rows a group of their own, such as 'unknown'."),
    ],
)  # fmt: skip
def test_groups_that_are_none_are_refused_in_these_words(by, names, message):
    with refused(message):
        columns_of(by, names, 3, "certify", missing=False)


def test_groups_are_read_from_arrays_mappings_and_frames():
    frame = pd.DataFrame({"race": ["A", "B", None], "sex": list("fmf")})
    for by in (frame, frame.to_dict("list"), dict(frame)):
        found = columns_of(by, ("race", "sex"), 3, "certify")
        assert list(found) == ["race", "sex"]
        assert found["sex"].tolist() == ["f", "m", "f"]
    # numpy would write NaN among texts as the text "nan"
    (values,) = columns_of(["A", np.nan, "B"], ("race",), 3, "certify").values()
    assert values.dtype == object
    (numbers,) = columns_of(np.array([1, 2, 3]), ("race",), 3, "certify").values()
    assert numbers.dtype == np.int64


def test_crossed_groups_have_both_names_and_no_other_rows():
    columns = {
        "a": np.array([1, 1, 2, 2, 1, 3]),
        "b": np.array(["x", "y", "x", None, "x", "y"], object),
        "c": np.array(["u", "u", "v", "v", "u", "u"]),
    }
    assert crossed(columns, ("a",)) is columns["a"]
    assert crossed(columns, ("a", "b")).tolist() == ["1, x", "1, y", "2, x", None, "1, x", "3, y"]
    assert crossed(columns, ("c", "b", "a")).tolist() == [
        "u, x, 1", "u, y, 1", "v, x, 2", None, "u, x, 1", "u, y, 3",
    ]  # fmt: skip


def test_values_are_numbered_in_the_order_of_any_machine():
    values = np.array([3, 1, 3], dtype=">i4")
    codes, names = factorize(values)
    assert (codes.tolist(), names) == ([0, 1, 0], [3, 1])
    assert factorize(np.array([None, "a"], object))[0].tolist() == [-1, 0]


def test_rows_of_groups_that_are_always_deferred_are_counted():
    rule = Rule(
        (
            Thresholds(("all",), {"all": np.inf}),
            Thresholds(("race",), {"A": 0.5, "B": np.inf, 3: np.inf}),
            Thresholds(("race", "sex"), {"A, f": 0.5, "B, f": 0.5}),
        )
    )
    race = np.array(["A", "A", "B", 3, "C", None], object)
    assert rule.without_threshold({"race": race}) == {"B": 1, 3: 1, "C": 1, None: 1}
    both = rule.without_threshold({"race": race, "sex": np.array(list("fmffff"))})
    assert both == {"B": 1, 3: 1, "C": 1, None: 2, "A, m": 1, "3, f": 1, "C, f": 1}
    assert rule.without_threshold({}) == {}
    assert rule.without_threshold({"race": np.array(["A", "B", "A"])}) == {"B": 1}


def test_the_score_that_a_row_needs_is_where_it_is_accepted():
    rule = Rule(
        (
            Thresholds(("all",), {"all": 0.6}),
            Thresholds(("predicted",), {0: 0.7, 1: 0.5}),
            Thresholds(("race", "sex"), {"A, f": 0.9, "B, f": 0.1, "B, m": np.inf}),
        )
    )
    by = {"race": list("AABBC"), "sex": list("fmfmf")}
    predicted = np.array([0, 0, 0, 1, 1])
    needed = rule.limits(5, by=by, predicted=predicted)
    assert needed.tolist() == [0.9, np.inf, 0.7, np.inf, np.inf]
    assert rule.limits(1, by={"race": ["B"], "sex": ["f"]}, predicted=[1]).tolist() == [0.6]
    enough = np.minimum(needed, 1.0)
    for score, wanted in ((enough, needed < np.inf), (np.nextafter(enough, 0), needed < 0)):
        assert rule.accept(score=score, by=by, predicted=predicted).tolist() == wanted.tolist()
    with pytest.raises(InvalidParameterError, match=r"Rule\.limits needs `predicted`"):
        rule.limits(5, by=by)


def test_a_rule_tells_the_values_of_each_column():
    ward = Thresholds(("ward",), {1: 0.9, 2: 0.8})
    both = Thresholds(("ward", "sex"), {"1, f": 0.9, "1, m": 0.8, "3, f": 0.7})
    rule = Rule((Thresholds(("all",), {"all": 0.5}), both, ward))
    assert rule.values_of("ward") == [1, 2, "1", "3"]
    assert rule.values_of("sex") == ["f", "m"]
    assert rule.values_of("race") == []


def test_of_crossed_values_with_commas_none_is_told():
    """Where "Bonn, Rhein" ends and the next value begins, nobody knows."""
    rule = Rule((Thresholds(("town", "sex"), {"Bonn, Rhein, f": 0.9, "Ulm, m": 0.8}),))
    assert (rule.values_of("town"), rule.values_of("sex")) == (["Ulm"], ["m"])
    alone = Rule((Thresholds(("town",), {"Bonn, Rhein": 0.9}),))
    assert alone.values_of("town") == ["Bonn, Rhein"]
