"""Labels: which column each is, which none is, and which only look different."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from reliablenet.certificate.labels import (
    LabelsSeen,
    check_spelling,
    class_indices,
    column_indices,
    find_places,
    known_indices,
    warn_of_twins,
)
from reliablenet.certificate.scored import score_rows
from reliablenet.errors import InvalidDataError, LabelWarning

PROBA = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]])
LABELS = [0, 1, 0, 2]


def reduce(proba=PROBA, y=LABELS, **others):
    return score_rows(proba, y, owner="certify", **others)


@pytest.mark.parametrize(
    ("y", "classes", "text"),
    [
        ([0, 1, 2, 3], None, r"not among the 3 known classes: 3. Known: 0, 1, 2"),
        ([0, 1, 2, -1], None, r"not among the 3 known classes: -1"),
        ([0, 1, 2, 0.5], None, r"not among the 3 known classes: 0.5"),
        ([0, 1, 2, math.nan], None, r"not among the 3 known classes: nan"),
        (
            ["a", "b", "a", "b"],
            None,
            r"classes: 'a', 'b'.*Give the names of the classes.*`classes=`",
        ),
        (["0", "1", "0", "1"], None, r"not among the 3 known classes: '0', '1'"),
        ([0, 1, 2, 0], ["a", "b", "c"], r"None of the labels.*3 known classes: got 0, 1, 2"),
        (["a", "b", None, "a"], ["a", "b", "c"], r"truth of every row; it is missing in row 2"),
        ([0.0, 1.0, math.nan, 1.0], [0.0, 1.0, 2.0], r"truth of every row; it is missing in row 2"),
        (
            ["a", "B ", "c", "a"],
            ["a", "b", "c"],
            r"'B ' where the predictions say 'b': they differ",
        ),
    ],
)
def test_unknown_labels_are_refused_by_name(y, classes, text):
    with pytest.raises(InvalidDataError, match=text):
        reduce(y=y, classes=classes)


UNKNOWN = [
    {"proba": PROBA[:, :2] / PROBA[:, :2].sum(axis=1, keepdims=True), "classes": ["a", "b"]},
    {"proba": None, "score": [1, 2, 3, 4], "predicted": list("abab"), "classes": ["a", "b"]},
]


@pytest.mark.parametrize("given", UNKNOWN)
def test_a_class_that_the_model_does_not_know_is_always_wrong(given):
    """AUDIT A6: to leave such rows out, as an earlier version advised, hides certain errors."""
    with pytest.warns(LabelWarning, match=r"2 of 4 rows have a label .*\('z', 'x'\)"):
        rows = reduce(y=["a", "z", "b", "x"], **given)
    assert rows.unknown.tolist() == [False, True, False, True]
    assert rows.n_unknown == 2
    assert rows.wrong[rows.unknown].all()
    assert rows.label_counts() == {0: 1, 1: 1}


@pytest.mark.parametrize("given", UNKNOWN)
def test_labels_of_which_none_is_known_are_a_mistake_in_the_table(given):
    text = r"None of the labels in `y` of certify is among the 2 known classes: got 'x', 'z'"
    with pytest.raises(InvalidDataError, match=text):
        reduce(y=["x", "x", "z", "x"], **given)


@pytest.mark.parametrize("other", ["A", " a", "a ", " A\t"])
@pytest.mark.parametrize("given", [*UNKNOWN, UNKNOWN[1] | {"classes": None}])
def test_labels_that_differ_in_case_or_spaces_alone_are_refused_by_name(given, other):
    text = "`y` of certify holds {!r} where the predictions say 'a': they differ in case or spaces"
    with pytest.raises(InvalidDataError, match=re.escape(text.format(other))):
        reduce(y=[other, "b", "b", other], **given)


def test_spelling_is_no_matter_where_both_spellings_are_predicted():
    """Of labels that the model itself tells apart, none is a slip."""
    given = {"proba": None, "score": [1, 2, 3], "predicted": ["a", "A", "A"]}
    rows = reduce(y=["a", "A", "a"], **given)
    assert rows.wrong.tolist() == [False, False, True]


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_label_is_no_class_of_its_own(missing):
    y = np.array(["a", missing, "b", "a"], object)
    with pytest.raises(InvalidDataError, match=r"must hold the truth of every row.*in row 1"):
        reduce(y=y, **UNKNOWN[1])


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        (["a", "a", "b"], r"`classes` of certify must be distinct labels; got \['a', 'a', 'b'\]"),
        ([["a", "b", "c"]], "`classes` of certify must"),
        (["a", "b", "c", "d"], "must name the 3 columns of `proba`; got 4 names"),
        (["a", "b"], "must name the 3 columns of `proba`; got 2 names"),
    ],
)
def test_classes_that_do_not_name_the_columns_are_refused(classes, text):
    with pytest.raises(InvalidDataError, match=text):
        reduce(y=["a", "b", "a", "b"], classes=classes)


@pytest.mark.parametrize("classes", [[["a", "b"]], ["a", "a"]])
def test_classes_that_are_no_list_of_labels_are_refused_without_proba_too(classes):
    with pytest.raises(InvalidDataError, match="`classes` of certify must be distinct labels"):
        reduce(None, ["a"], score=[1], predicted=["a"], classes=classes)


def test_of_many_strangers_and_classes_the_first_are_named():
    names, strangers = [f"c{k}" for k in range(22)], [f"z{k}" for k in range(23)]
    with pytest.raises(InvalidDataError) as caught:
        class_indices(np.array([*names, *strangers]), names, "certify")
    unknown, known = (str(some[:20])[1:-1] for some in (strangers, names))
    assert f": {unknown} and 3 more. Known: {known} and 2 more. Give" in str(caught.value)


@pytest.mark.parametrize("kind", [np.int64, np.float64, "U8", object])
def test_labels_become_the_numbers_of_their_columns(kind):
    names = np.array([30, 10, 20]).astype(kind)
    index = class_indices(names[[2, 0, 1, 1]], names, "certify")
    assert index.tolist() == [2, 0, 1, 1]
    assert index.dtype == np.intp


def test_labels_that_have_no_order_become_numbers_too():
    names = np.array(["a", None, 3], dtype=object)
    assert class_indices(names[[2, 2, 0, 1]], names, "certify").tolist() == [2, 2, 0, 1]


def test_large_labels_of_another_type_are_not_rounded_together():
    """As float64, which signed and unsigned numbers have in common, these two are one."""
    names = np.array([2**53, 2**53 + 1])
    labels = np.array([2**53 + 1, 2**53], np.uint64)
    assert column_indices(labels, names, 2, "certify").tolist() == [1, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: column_indices(np.array(["a"]), ["a", "b", "c"], 2, "certify"), "`classes` of certify must name the 2 columns of `proba`; got 3 names."),
        (lambda: column_indices(np.array([3, 0]), None, 3, "certify"), "`y` of certify holds labels that are not among the 3 known classes: 3. Known: 0, 1, 2. Give the names of the classes, in the order of the columns, with `classes=`."),
        (lambda: class_indices(np.arange(10, 20), range(10), "certify"), f"`y` of certify holds labels that are not among the 10 known classes: {str([*range(10, 20)])[1:-1]}. Known: {str([*range(10)])[1:-1]}. Give the names of the classes, in the order of the columns, with `classes=`."),
        (lambda: class_indices(np.array([3, 3, 4]), [1, 2], "certify", "predicted"), "`predicted` of certify holds labels that are not among the 2 known classes: 3, 4. Known: 1, 2. Give the names of the classes, in the order of the columns, with `classes=`."),
        (lambda: known_indices(np.array(["a", None], object), ["a"], "certify", "truth"), "`truth` of certify must hold the truth of every row; it is missing in row 1."),
        (lambda: known_indices(np.array([math.nan, 1.0]), [1.0], "certify"), "`y` of certify must hold the truth of every row; it is missing in row 0."),
        (lambda: known_indices(np.array(["x", "z", "x"]), ["a", "b"], "certify"), "None of the labels in `y` of certify is among the 2 known classes: got 'x', 'z'; known are 'a', 'b'."),
        (lambda: known_indices(np.array(["a", "B "]), ["a", "b"], "certify"), "`y` of certify holds 'B ' where the predictions say 'b': they differ in case or spaces alone. Spell the labels alike."),
        (lambda: class_indices(np.array([1]), [[1, 2]], "certify"), "`classes` of certify must be distinct labels; got [[1, 2]]."),
        (lambda: check_spelling(np.array(["a", "c"]), np.array(["A", "c"]), "certify"), "`y` of certify holds 'a' where the predictions say 'A': they differ in case or spaces alone. Spell the labels alike."),
    ],
)  # fmt: skip
def test_labels_are_refused_in_these_words(call, message):
    with pytest.raises(InvalidDataError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "call",
    [
        lambda classes: column_indices(np.array([1]), classes, 2, "certify"),
        lambda classes: class_indices(np.array([1]), classes, "certify"),
        lambda classes: known_indices(np.array([1]), classes, "certify"),
    ],
)
def test_classes_that_are_no_array_are_named(call):
    with pytest.raises(InvalidDataError, match=r"^`classes` must be an array; got a list"):
        call([[1], [2, 3]])


def test_rows_of_classes_not_known_are_warned_of_in_these_words():
    labels = np.array(["a", "z", "b", "z", "x"])
    with pytest.warns(LabelWarning) as caught:
        found = known_indices(labels, ["b", "a"], "certify")
    assert found.tolist() == [1, -1, 0, -1, -1]
    assert str(caught[0].message) == (
        "3 of 5 rows have a label that the model does not know ('z', 'x'): whatever it predicts for "
        "them is counted as wrong."
    )
    with pytest.warns(LabelWarning, match=r"'c19' and 1 more\)"):
        known_indices(np.array(["a", *(f"c{k}" for k in range(21))]), ["a"], "certify")


def test_column_numbers_are_taken_as_they_are():
    for labels in (np.array([0, 1, 2]), np.array([2, 0], np.uint8), np.array([0.0, 2.0])):
        found = column_indices(labels, None, 3, "certify")
        assert found.tolist() == labels.tolist()
        assert found.dtype == np.intp
    for strange in (3, -1, 0.5):
        with pytest.raises(
            InvalidDataError, match=re.escape(f"known classes: {strange}. Known: 0, 1, 2")
        ):
            column_indices(np.array([strange]), None, 3, "certify")
    assert column_indices(np.array(["b", "a"]), ["a", "b"], 2, "certify").tolist() == [1, 0]


def test_numbers_and_labels_that_are_predicted_are_not_compared_by_spelling():
    check_spelling(np.array([1, 2]), np.array([1, 2]), "certify")
    check_spelling(np.array(["a", "A"]), np.array(["a", "A"]), "certify")
    check_spelling(np.array([1, "a"], object), np.array(["b", None], object), "certify")


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float64, "U3", object])
def test_places_are_those_of_a_loop(kind):
    names = np.array([3, 1, 2]).astype(kind)
    labels = np.array([1, 9, 3, 0, 2, 1]).astype(kind)
    expected = [names.tolist().index(x) if x in names.tolist() else -1 for x in labels.tolist()]
    found = find_places(labels, names)
    assert found.tolist() == expected
    assert found.dtype == np.intp
    other = find_places(labels.astype(object), names)
    assert other.tolist() == expected


NAMES = ["a", "b"]


def seen_in(*parts: list[str]) -> LabelsSeen:
    """Return what was written down of the labels of several parts, in this order."""
    whole = LabelsSeen()
    for labels in parts:
        seen = LabelsSeen()
        known_indices(np.array(labels), NAMES, "certify", seen=seen)
        whole.merge(seen)
    return whole


def test_of_parts_unknown_labels_are_told_together():
    whole = seen_in(["a", "z"], ["y", "y"], ["b", "z", "x"])
    assert (whole.n, whole.unknown) == (7, 5)
    with pytest.warns(LabelWarning) as told:
        whole.check(NAMES, "certify")
    assert [str(one.message) for one in told] == [
        "5 of 7 rows have a label that the model does not know ('z', 'y', 'x'): whatever it predicts "
        "for them is counted as wrong."
    ]


def test_a_part_of_unknown_labels_alone_is_refused_only_if_all_are_such():
    with pytest.warns(LabelWarning, match="^2 of 3 rows"):
        seen_in(["z", "z"], ["a"]).check(NAMES, "certify")
    with pytest.raises(InvalidDataError) as refusal:
        seen_in(["z", "z"], ["y"]).check(NAMES, "certify", "label")
    assert str(refusal.value) == (
        "None of the labels in `label` of certify is among the 2 known classes: got 'z', 'y'; known "
        "are 'a', 'b'."
    )
    seen_in(["a"], ["b", "b"]).check(NAMES, "certify")  # nothing to tell


def test_spelling_is_compared_among_all_parts():
    """What one part predicts another may have as its truth."""
    parts = [(["cow", "dog"], ["dog", "Cat"]), (["cat", "cat"], ["Cat", "dog"])]
    whole = LabelsSeen()
    for labels, answers in parts:
        seen = LabelsSeen()
        check_spelling(np.array(labels), np.array(answers), "certify", seen)
        whole.merge(seen)
    assert (whole.n, whole.true, whole.said) == (4, {"cow", "dog", "cat"}, {"dog", "Cat"})
    text = (
        "`y` of certify holds 'cat' where the predictions say 'Cat': they differ in case or spaces"
    )
    with pytest.raises(InvalidDataError, match=text):
        whole.check(None, "certify")
    check_spelling(np.array(["cat"]), np.array(["Cat"]), "certify", whole)
    assert whole.said == {"dog", "Cat"}
    whole.said.add("cat")  # the model tells both spellings apart
    whole.check(None, "certify")


def test_numbers_have_no_spelling():
    seen = LabelsSeen()
    check_spelling(np.array([1, 2]), np.array([2, 2]), "certify", seen)
    assert seen == LabelsSeen(2)


def test_of_columns_too_the_labels_are_written_down_where_others_will_come():
    seen = LabelsSeen()
    found = column_indices(np.array(["a", "z"]), NAMES, 2, "certify", seen)
    assert found.tolist() == [0, -1]
    assert seen == LabelsSeen(2, 1, {"z": None})


def test_classes_that_differ_in_case_or_spaces_alone_are_warned_of():
    text = (
        "`y` of fit holds 'yes' and 'YES ', which differ in case or spaces alone, and they are taken for two "
        "classes. Spell them alike if they are one."
    )
    with pytest.warns(LabelWarning, match=f"^{re.escape(text)}$"):
        warn_of_twins(["yes", "no", "YES ", 1, True], "fit")
    warn_of_twins(["yes", "no", 1, "1", None], "fit")


def test_a_second_spelling_in_the_truth_is_refused_though_the_first_is_predicted():
    with pytest.raises(InvalidDataError, match="holds 'YES' where the predictions say 'yes'"):
        score_rows(
            None,
            ["yes", "no", "YES"],
            score=[0.9] * 3,
            predicted=["yes", "no", "yes"],
            owner="certify",
        )


def test_labels_that_no_class_has_are_told_by_their_name() -> None:
    with pytest.raises(InvalidDataError, match="None of the labels in `predicted` of certify"):
        known_indices(np.array(["x", "y"]), NAMES, "certify", "predicted")
