from __future__ import annotations

import dataclasses
import math
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch

import reliablenet as rn
from reliablenet.certificate.labels import LabelsSeen, class_indices, column_indices
from reliablenet.certificate.scored import (
    ScoredRows,
    check_correct,
    check_score,
    join_rows,
    proba_rows,
    score_rows,
    top_entries,
)
from reliablenet.errors import InvalidDataError, InvalidParameterError, LabelWarning

PROBA = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]])
LABELS = [0, 1, 0, 2]


def reduce(proba=PROBA, y=LABELS, **others):
    return score_rows(proba, y, owner="certify", **others)


def test_the_top_probability_is_the_score_and_its_column_the_prediction():
    rows = reduce()
    assert rows.score.tolist() == [0.7, 0.8, 0.4, 0.5]
    assert rows.wrong.tolist() == [False, False, True, True]
    assert rows.n == 4
    assert rows.lowest == 0.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_of_tied_probabilities_the_first_column_is_the_prediction(n_classes):
    table = np.random.default_rng(0).dirichlet(np.ones(n_classes), 500).round(1)
    table /= table.sum(axis=1, keepdims=True)
    table[::7] = 1 / n_classes
    answers = table.argmax(axis=1)
    rows = reduce(table, np.zeros(500, int))
    assert (table == table.max(axis=1, keepdims=True)).sum(axis=1).max() == n_classes
    np.testing.assert_array_equal(rows.wrong, answers != 0)
    np.testing.assert_array_equal(rows.score, table.max(axis=1))


def test_a_score_beside_proba_replaces_the_score_alone():
    rows = reduce(score=[4, 3, 2, 1])
    assert rows.score.tolist() == [4.0, 3.0, 2.0, 1.0]
    assert rows.wrong.tolist() == [False, False, True, True]
    assert rows.lowest == -math.inf


def test_score_and_predicted_stand_in_for_proba():
    rows = reduce(None, ["a", "b", "a"], score=[1, 2, 3], predicted=["a", "a", "a"])
    assert rows.score.tolist() == [1.0, 2.0, 3.0]
    assert rows.wrong.tolist() == [False, True, False]


def test_classes_give_the_order_of_the_columns():
    names = ["no", "yes", "maybe"]
    rows = reduce(y=[names[k] for k in LABELS], classes=names)
    assert rows.wrong.tolist() == reduce().wrong.tolist()


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.ndarray.tolist,
        torch.from_numpy,
        lambda table: torch.from_numpy(table).requires_grad_(),
        pd.DataFrame,
    ],
)
def test_any_array_like_table_is_read(convert):
    assert reduce(convert(PROBA)).score.tolist() == reduce().score.tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_tensors_of_low_precision_keep_their_exact_values(dtype):
    table = torch.tensor([[0.75, 0.25], [0.125, 0.875]], dtype=dtype, requires_grad=True)
    rows = reduce(table, torch.tensor([0, 0]))
    assert rows.score.dtype == np.float64
    assert rows.score.tolist() == [0.75, 0.875]


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        torch.tensor,
        pd.Series,
        lambda y: np.asarray(y, np.uint8),
        lambda y: np.asarray(y, float),
        lambda y: np.asarray(y, object),
    ],
)
def test_any_vector_of_column_numbers_is_read(convert):
    assert reduce(y=convert(LABELS)).wrong.tolist() == reduce().wrong.tolist()


@pytest.mark.parametrize("convert", [np.asarray, pd.Series, pd.Categorical, list])
def test_any_vector_of_names_is_read(convert):
    rows = reduce(y=convert(["a", "b", "a", "c"]), classes=np.array(["a", "b", "c"]))
    assert rows.wrong.tolist() == [False, False, True, True]


def test_rows_of_float16_may_miss_the_sum_of_1_a_little():
    table = np.full((3, 7), 1 / 7, dtype=np.float16)
    assert reduce(table, [0, 0, 0]).n == 3


@pytest.mark.parametrize(
    ("most", "too_far"), [([0.5, 0.499], [0.5, 0.4989]), ([0.501, 0.5], [0.5011, 0.5])]
)
def test_a_row_may_miss_the_sum_of_1_by_a_thousandth_and_no_more(most, too_far):
    assert reduce([most], [0]).score.tolist() == [most[0]]
    with pytest.raises(InvalidDataError, match="row 0 sums to"):
        reduce([too_far], [0])


@pytest.mark.parametrize(
    ("proba", "text"),
    [
        ([[0.5, math.nan]], r"`proba` of certify must be finite; got nan in row 0, column 1"),
        ([[0.5, 0.5], [math.inf, 0.0]], r"must be finite; got inf in row 1, column 0 \(1 such"),
        ([[0.5, 0.5], [-math.inf, 0.0]], r"must be finite; got -inf in row 1, column 0"),
        ([[2.0, -3.0]], r"must lie in \[0, 1\]; got values from -3 to 2. If these are logits"),
        ([[0.6, 0.3]], r"Each row of `proba` of certify must sum to 1; row 0 sums to 0.9"),
        ([[0.5, 0.5], [0.8, 0.8]], r"must sum to 1; row 1 sums to 1.6. Normalise the rows"),
        ([0.5, 0.5], r"must have shape \(n, K\) with K >= 2; got \(2,\).*np.column_stack"),
        ([[1.0], [1.0]], r"must have shape \(n, K\) with K >= 2; got \(2, 1\)"),
        ([["a", "b"]], "`proba` of certify must hold numbers; got dtype <U1"),
    ],
)
def test_a_table_that_holds_no_probabilities_is_refused(proba, text):
    with pytest.raises(InvalidDataError, match=text):
        reduce(proba, [0] * len(proba))


@pytest.mark.parametrize("seed", range(3))
def test_logits_are_never_taken_for_probabilities(seed):
    """Also where every row of logits happens to sum to one."""
    logits = np.random.default_rng(seed).normal(size=(20, 3))
    logits += (1 - logits.sum(axis=1, keepdims=True)) / 3
    with pytest.raises(InvalidDataError, match="If these are logits, apply a softmax first"):
        reduce(logits, [0] * 20)


@pytest.mark.parametrize("classes", [None, ["a", "b"]])
def test_predictions_that_are_no_labels_are_refused(classes):
    """Column numbers against names would silently count every row as wrong."""
    with pytest.raises(InvalidDataError, match="`predicted` of certify"):
        reduce(None, ["a", "b"], score=[1, 2], predicted=[0, 1], classes=classes)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("y", {}),
        ("proba", {}),
        ("score", {}),
        ("classes", {}),
        ("score", {"proba": None, "predicted": [*LABELS]}),
        ("predicted", {"proba": None, "score": [1, 2, 3, 4]}),
        ("classes", {"proba": None, "score": [1, 2, 3, 4], "predicted": [*LABELS]}),
    ],
)
def test_rows_of_unequal_length_are_refused_by_name(name, arguments):
    with pytest.raises(InvalidDataError, match=f"^`{name}` must be an array; got a list"):
        reduce(**arguments | {name: [[1], [1, 2]]})


@pytest.mark.parametrize("y", [[], np.zeros((4, 1)), 3])
def test_labels_that_are_no_vector_are_refused(y):
    with pytest.raises(InvalidDataError, match="`y` of certify must be a non-empty vector; got"):
        reduce(y=y)


def test_no_rows_are_refused():
    with pytest.raises(InvalidDataError, match=r"non-empty vector; got shape \(0,\)"):
        reduce(np.empty((0, 2)), np.empty(0, int))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("proba", {"proba": PROBA[:3]}),
        ("proba", {"proba": PROBA[:3], "score": [1, 2, 3, 4]}),
        ("score", {"score": [1, 2, 3]}),
        ("score", {"proba": None, "score": [1, 2, 3], "predicted": [*LABELS]}),
        ("predicted", {"proba": None, "score": [1, 2, 3, 4], "predicted": [0]}),
    ],
)
def test_the_argument_of_the_wrong_length_is_named(name, arguments):
    text = f"`{name}` of certify must have one entry for each of the 4 rows; got shape"
    with pytest.raises(InvalidDataError, match=text):
        reduce(**arguments)


@pytest.mark.parametrize("values", [np.ones((4, 1)), np.ones((4, 4)), 1])
@pytest.mark.parametrize("name", ["score", "predicted"])
def test_scores_and_predictions_that_are_no_vector_are_refused(name, values):
    """A column of predictions would silently be compared with every label."""
    arguments = {"score": [1, 2, 3, 4], "predicted": [*LABELS]} | {name: values}
    with pytest.raises(InvalidDataError, match=rf"`{name}` of certify must .* got .*\("):
        reduce(None, **arguments)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_refused(bad):
    with pytest.raises(InvalidDataError, match=f"`score` of certify must be finite; got {bad} in"):
        reduce(score=[1.0, bad, 2.0, 3.0])


@pytest.mark.parametrize("given", [{}, {"score": [1.0]}, {"predicted": [0]}])
def test_without_proba_both_score_and_predicted_are_needed(given):
    text = "certify needs `proba`, or `score` and `predicted` with proba=None"
    with pytest.raises(InvalidParameterError, match=text):
        reduce(None, [0], **given)


def test_the_truth_itself_is_no_prediction():
    y = np.array([0, 1, 1])
    with pytest.raises(InvalidParameterError) as caught:
        score_rows(None, y, score=[0.9, 0.8, 0.7], predicted=y, owner="certify")
    assert str(caught.value) == (
        "`predicted` of certify is `y` itself, so that every answer would be right. Give what "
        "the model answered."
    )
    answers = score_rows(None, y, score=[0.9, 0.8, 0.7], predicted=y.copy(), owner="certify")
    assert not answers.wrong.any()  # a model that is always right is possible


def test_predicted_beside_proba_is_refused():
    with pytest.raises(InvalidParameterError, match="takes `predicted` only with proba=None"):
        reduce(predicted=LABELS)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: reduce([0.5, 0.5], [0, 0]),
            "`proba` of certify must have shape (n, K) with K >= 2; got (2,). "
            "For a vector p of P(class 1), pass np.column_stack([1 - p, p]).",
        ),
        (
            lambda: reduce([[2.0, 0.5]], [0]),
            "`proba` of certify must lie in [0, 1]; got values from 0.5 to 2. "
            "If these are logits, apply a softmax first.",
        ),
        (
            lambda: reduce([[1.5, 0.0]], [0]),
            "`proba` of certify must lie in [0, 1]; got values from 0 to 1.5. "
            "If these are logits, apply a softmax first.",
        ),
        (
            lambda: reduce([[0.5, 0.5], [0.0, 0.5]], [0, 0]),
            "Each row of `proba` of certify must sum to 1; row 1 sums to 0.5. "
            "Normalise the rows, or pass `score` and `predicted`.",
        ),
        (
            lambda: reduce([[1.0, 0.5]], [0]),
            "Each row of `proba` of certify must sum to 1; row 0 sums to 1.5. "
            "Normalise the rows, or pass `score` and `predicted`.",
        ),
        (
            lambda: reduce(y=[0, 1, 2, 3]),
            "`y` of certify holds labels that are not among the 3 known classes: 3. "
            "Known: 0, 1, 2. Give the names of the classes, in the order of the columns, with "
            "`classes=`.",
        ),
        (
            lambda: reduce(None, ["a"], score=[1], predicted=["z"], classes=["a", "b"]),
            "`predicted` of certify holds labels that are not among the 2 known classes: 'z'. "
            "Known: 'a', 'b'. Give the names of the classes, in the order of the columns, with "
            "`classes=`.",
        ),
        (
            lambda: reduce(None, ["a", "b"], score=[1, 2], predicted=[7, 8]),
            "`predicted` of certify must hold labels as `y` does; got np.int64(7) where `y` has "
            "np.str_('a'). Translate column numbers into labels first.",
        ),
        (
            lambda: reduce(score=["1", "2", "3", "4"]),
            "`score` of certify must hold numbers; got <U1.",
        ),
        (
            lambda: reduce(predicted=LABELS),
            "certify takes `predicted` only with proba=None: `proba` already decides it.",
        ),
        (
            lambda: reduce(np.empty((0, 3))),
            "`proba` of certify must have one entry for each of the 4 rows; got shape (0,).",
        ),
    ],
)
def test_bad_rows_are_refused_in_these_words(call, text):
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        call()
    assert str(caught.value) == text


def test_places_are_whole_numbers_whatever_the_labels_are():
    assert class_indices(np.array([], dtype=object), ["a", "b"], "certify").dtype == np.intp
    assert column_indices(np.array([1, 0], np.uint8), None, 2, "certify").dtype == np.intp
    for n_classes in (2, 3):
        assert top_entries(np.eye(n_classes))[1].dtype == np.intp


def test_a_probability_of_nought_and_a_score_of_booleans_are_taken():
    assert reduce([[1.0, 0.0], [0.0, 1.0]], [0, 0]).wrong.tolist() == [False, True]
    rows = reduce(score=[True, False, True, True])
    assert rows.score.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert rows.score.dtype == np.float64


def test_whole_numbers_may_be_probabilities():
    rows = reduce(np.eye(2, dtype=int), [0, 1])
    assert rows.score.tolist() == [1.0, 1.0]
    assert rows.score.dtype == np.float64


def test_rows_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        reduce().lowest = 1.0
    assert len({reduce(), reduce()}) == 2  # arrays have no single truth value to compare rows by


SCORE = [0.1, 3.0, -2.0, 0.5]


RIGHT = [True, True, False, True]


@pytest.mark.parametrize(
    "correct",
    [
        RIGHT,
        np.array(RIGHT),
        [1, 1, 0, 1],
        np.array([1, 1, 0, 1], np.uint8),
        [1.0, 1.0, 0.0, 1.0],
        torch.tensor([1.0, 1.0, 0.0, 1.0], dtype=torch.float16),
        torch.tensor(RIGHT),
        pd.Series(RIGHT, dtype="boolean"),
        pd.Series([1, 1, 0, 1], dtype="Int64"),
        np.array([True, 1, 0.0, np.True_], dtype=object),
    ],
    ids=repr,
)
def test_verdicts_are_read_however_they_are_written(correct) -> None:
    rows = score_rows(None, score=SCORE, correct=correct, owner="certify")
    assert rows.wrong.tolist() == [False, False, True, False]
    assert rows.score.tolist() == SCORE
    assert rows.lowest == -math.inf
    assert rows.truth is rows.predicted is rows.top_probability is rows.unknown is None
    assert rows.label_counts() is None


@pytest.mark.parametrize(
    ("correct", "got"),
    [
        ([1, 1, 0.5, 1], "0.5 in row 2"),
        ([1.0, math.nan, 0.0, 1.0], "nan in row 1"),
        ([1, 2, 0, 1], "2 in row 1"),
        ([1, -1, 0, 1], "-1 in row 1"),
        ([True, None, False, True], "None in row 1"),
        (pd.Series([True, None, False, True], dtype="boolean"), "<NA> in row 1"),
        (["yes", "no", "yes", "yes"], "'yes' in row 0"),
        ([b"1", b"1", b"0", b"1"], "b'1' in row 0"),
    ],
    ids=repr,
)
def test_what_is_neither_right_nor_wrong_is_refused_with_its_row(correct, got) -> None:
    text = rf"`correct` of certify must hold true or false \(or 1 and 0\).*; got {got}\. Decide"
    with pytest.raises(InvalidDataError, match=text):
        rn.certify(score=SCORE, correct=correct, threshold=0.0)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"proba": np.eye(4)}, "takes `correct` with `score` alone.*Leave out `proba`"),
        ({"y": [0, 1, 0, 1]}, "takes `correct` with `score` alone.*Leave out `y`"),
        ({"predicted": [0, 1, 0, 1]}, "Leave out `predicted`, or `correct`"),
        ({"classes": [0, 1]}, "Leave out `classes`, or `correct`"),
        ({"score": None}, "needs a `score` beside `correct`: how sure each answer is"),
        ({"score": SCORE[:3]}, r"`score` .* one entry for each of the 4 rows; got shape \(3,\)"),
        ({"score": [0.1, math.inf, 0, 1]}, r"`score` of \w+ must be finite; got inf in row 1"),
        ({"score": list("abcd")}, "`score` .* must hold numbers"),
        ({"correct": []}, r"`correct` .* must be a non-empty vector; got shape \(0,\)"),
        ({"correct": [RIGHT]}, r"`correct` .* must be a non-empty vector; got shape \(1, 4\)"),
        ({"correct": None}, "needs the truth of each row: `y`, or `correct` with `score`"),
        ({"correct": None, "y": [0, 1, 0, 1]}, "or `score` and `correct` alone"),
    ],
)
@pytest.mark.parametrize(
    "call", [rn.certify, rn.certified_threshold, rn.jcw_threshold, rn.conformal_threshold]
)
def test_what_does_not_go_with_verdicts_is_refused(call, given, text) -> None:
    arguments = {"score": SCORE, "correct": RIGHT} | given
    if call is rn.certify:
        arguments["threshold"] = 0.0
    with pytest.raises((InvalidParameterError, InvalidDataError), match=text) as caught:
        call(**arguments)
    assert call.__name__ in str(caught.value)


def test_checked_probabilities_become_rows():
    table = np.array([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]])
    rows = proba_rows(table, np.array([0, 0, -1]))
    assert rows.score.tolist() == rows.top_probability.tolist() == [0.7, 0.8, 0.6]
    assert rows.wrong.tolist() == [False, True, True]
    assert (rows.predicted.tolist(), rows.truth.tolist()) == ([0, 1, 0], [0, 0, -1])
    assert (rows.unknown.tolist(), rows.lowest) == ([False, False, True], 0.0)
    other = proba_rows(table[:2], np.array([0, 1]), score=np.array([3.0, -1.0]))
    assert (other.score.tolist(), other.lowest, other.unknown) == ([3.0, -1.0], -math.inf, None)
    assert other.top_probability.tolist() == [0.7, 0.8]


def test_joined_rows_know_what_every_part_knows():
    first = ScoredRows(
        np.array([0.9]), np.array([True]), 0.0, truth=np.array([1]), predicted=np.array([0]),
        unknown=np.array([True]), group=np.array(["g"]), by={"race": np.array(["A"])},
        tolerance=np.array([2.0]),
    )  # fmt: skip
    second = first.take([0, 0])
    both = join_rows([first, second])
    assert both.n == 3
    for name in ("score", "wrong", "truth", "predicted", "unknown", "group", "tolerance"):
        assert getattr(both, name).tolist() == [*getattr(first, name), *getattr(second, name)]
    assert both.by["race"].tolist() == ["A"] * 3
    assert both.top_probability is None
    plain = ScoredRows(np.array([0.5]), np.array([False]), 0.0)
    mixed = join_rows([first, plain])
    assert mixed.unknown.tolist() == [True, False]
    assert mixed.truth is mixed.by is mixed.group is mixed.tolerance is None
    assert join_rows([plain, plain]).unknown is None
    assert (mixed.unknown.dtype, mixed.n_unknown, plain.n_unknown) == (np.bool_, 1, 0)
    alone = join_rows([first])
    assert (alone.lowest, alone.by["race"].tolist()) == (0.0, ["A"])


@pytest.mark.parametrize(
    "given", [{"y": LABELS}, {"score": [1.0]}, {"classes": [0, 1, 2]}, {"correct": [True]}]
)
def test_scored_rows_are_taken_alone(given):
    rows = reduce()
    assert score_rows(rows, owner="certify") is rows
    with pytest.raises(InvalidParameterError) as caught:
        score_rows(rows, owner="certify", **given)
    assert str(caught.value) == (
        "certify takes scored rows alone, without `y`: they already hold the truth."
    )


def test_rows_keep_what_they_were_scored_from():
    rows = reduce()
    assert rows.top_probability.tolist() == [0.7, 0.8, 0.4, 0.5]
    assert (rows.truth.tolist(), rows.predicted.tolist()) == ([0, 1, 0, 2], [0, 1, 2, 0])
    assert rows.unknown is None
    some = rows.take([2, 0])
    assert (some.lowest, some.truth.tolist(), some.predicted.tolist()) == (0.0, [0, 0], [2, 0])
    given = {"score": [1, 2, 3], "predicted": ["b", "a", "b"]}
    bare = reduce(None, ["a", "a", "b"], **given)
    assert (bare.truth.tolist(), bare.predicted.tolist()) == (["a", "a", "b"], ["b", "a", "b"])
    assert bare.top_probability is bare.unknown is None
    places = reduce(None, ["a", "a", "b"], **given, classes=["b", "a"])
    assert (places.truth.tolist(), places.predicted.tolist()) == ([1, 1, 0], [0, 1, 0])
    assert places.wrong.tolist() == [True, False, False]
    assert places.top_probability is places.unknown is None


@pytest.mark.parametrize(
    "given",
    [
        {"proba": PROBA[:, :2] / PROBA[:, :2].sum(axis=1, keepdims=True)},
        {"proba": None, "score": [1, 2, 3, 4], "predicted": ["no", "yes", "no", "no"]},
    ],
    ids=["proba", "score"],
)
def test_a_class_that_is_not_known_is_marked_and_never_right(given):
    with pytest.warns(LabelWarning, match="^1 of 4 rows have a label that the model does not know"):
        rows = reduce(given.pop("proba"), ["no", "yes", "eh", "no"], classes=["no", "yes"], **given)
    assert rows.unknown.tolist() == [False, False, True, False]
    assert rows.truth.tolist() == [0, 1, -1, 0]
    assert rows.wrong[2]
    assert rows.n_unknown == 1
    assert rows.label_counts() == {0: 2, 1: 1}


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        ([0, 2, 2, 4], {0: 1, 2: 2, 4: 1}),
        ([1, 1], {1: 2}),
        ([-5, 3, -5], {-5: 2, 3: 1}),
        ([9, 7, 9, 10**12], {9: 2, 7: 1, 10**12: 1}),
        (np.array([200, 1, 200], np.uint8), {200: 2, 1: 1}),
        (["b", "a", "b"], {"b": 2, "a": 1}),
        ([0.5, 0.5, 2.0], {0.5: 2, 2.0: 1}),
        (np.array([True, False, True]), {True: 2, False: 1}),
        (np.empty(0, int), {}),
    ],
    ids=str,
)
def test_labels_are_counted_whatever_they_are(truth, expected):
    truth = np.asarray(truth)
    rows = ScoredRows(np.zeros(len(truth)), np.zeros(len(truth), bool), 0.0, truth=truth)
    assert rows.label_counts() == expected
    assert type(rows.label_counts()) is Counter
    unknown = np.ones(len(truth), bool)
    assert dataclasses.replace(rows, unknown=unknown).label_counts() == {}


def test_numbers_that_are_predicted_within_a_tolerance_are_no_labels():
    truth = np.array([1.5, 2.5])
    rows = ScoredRows(truth, np.zeros(2, bool), -math.inf, truth=truth, tolerance=truth)
    assert rows.label_counts() is None
    assert dataclasses.replace(rows, tolerance=None).label_counts() == {1.5: 1, 2.5: 1}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: reduce(None, ["Cat", "dog"], score=[1, 2], predicted=["cat", "dog"]),
            "`y` of certify holds 'Cat' where the predictions say 'cat': they differ in case or spaces "
            "alone. Spell the labels alike.",
        ),
        (
            lambda: reduce(None, ["x"], score=[1], predicted=["a"], classes=["a", "b"]),
            "None of the labels in `y` of certify is among the 2 known classes: got 'x'; known are "
            "'a', 'b'.",
        ),
        (
            lambda: check_correct(np.ma.masked_array([1, 0], [True, False]), "certify"),
            "`correct` must not hold masked values; got 1 of them. Drop those rows first.",
        ),
    ],
)
def test_labels_and_verdicts_that_do_not_fit_are_refused_in_these_words(call, text):
    with pytest.raises(InvalidDataError) as caught:
        call()
    assert str(caught.value) == text


def test_a_score_without_labels_beside_it_must_be_a_vector() -> None:
    np.testing.assert_array_equal(check_score([1, 2], None, "certify"), [1.0, 2.0])
    with pytest.raises(InvalidDataError) as caught:
        check_score([[1.0, 2.0]], None, "certify")
    assert str(caught.value) == "`score` of certify must be a vector; got shape (1, 2)."


@pytest.mark.parametrize(
    "given",
    [
        {"proba": np.array([[0.8, 0.2]] * 3), "classes": ["a", "b"]},
        {"proba": None, "score": [0.8] * 3, "predicted": ["a"] * 3, "classes": ["a", "b"]},
        {"proba": None, "score": [0.8] * 3, "predicted": ["A", "b", "b"]},
    ],
)
def test_of_a_part_of_the_rows_labels_are_written_down_and_judged_later(given) -> None:
    """No label of this part may be known, or be spelt as the answers are: other parts are to come."""
    seen = LabelsSeen()
    strangers = ["x", "y", "x"] if "classes" in given else ["a", "b", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score_rows(y=strangers, owner="certify", seen=seen, **given)
    assert seen.n == 3
    if "classes" in given:
        assert (seen.unknown, list(seen.strangers)) == (3, ["x", "y"])
    else:
        assert (seen.true, seen.said) == ({"a", "b"}, {"A", "b"})
    with pytest.raises(InvalidDataError):
        seen.check(given.get("classes", ()), "certify")
