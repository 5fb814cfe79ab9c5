"""Copies across folds are found in every kind of table, and coincidences are left in peace."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from reliablenet.tables import Fold
from reliablenet.tables.copies import Copies, count_copies, hash_rows

NUMBERS = np.random.default_rng(0).standard_normal((60, 3))
LABELS = np.arange(60) % 2
TEXT = pd.DataFrame({"a": [f"word {i}" for i in range(60)], "b": NUMBERS[:, 0]})
KINDS = {
    "float64": NUMBERS,
    "float32": NUMBERS.astype(np.float32),
    "whole numbers": np.arange(180).reshape(60, 3),
    "columns first": np.asfortranarray(NUMBERS),
    "images": NUMBERS.reshape(60, 3, 1, 1),
    "frame of numbers": pd.DataFrame(NUMBERS).assign(b=range(60)),
    "frame with text": TEXT,
    "frame with categories and gaps": TEXT.astype({"a": "category"}).assign(c=[None, 1.5] * 30),
    "array of objects": TEXT.to_numpy(object),
    "texts": TEXT["a"].tolist(),
}


def rows(table, numbers):
    if isinstance(table, pd.DataFrame):
        return table.iloc[numbers]
    return [table[i] for i in numbers] if isinstance(table, list) else table[numbers]


@pytest.mark.parametrize("table", KINDS.values(), ids=KINDS)
def test_copies_are_found_in_every_kind_of_table(table):
    first, second = (
        Fold(rows(table, range(20)), LABELS[:20]),
        Fold(rows(table, range(20, 40)), LABELS[20:40]),
    )
    again = [3, 7, 25, *range(50, 60)]
    wrong_label = np.where(np.array(again) == 7, 1 - LABELS[again], LABELS[again])
    fold = Fold(rows(table, again), wrong_label)
    assert count_copies(fold, [first, second]) == Copies(n=13, distinct=13, twins=3, copies=2)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=20), st.lists(st.integers(0, 5), max_size=20)
)
def test_the_count_is_that_of_a_set_of_rows(own, others):
    fold = Fold(np.array(own, float)[:, None], np.zeros(len(own), int))
    other = Fold(np.array(others, float).reshape(-1, 1), np.zeros(len(others), int))
    expected = sum(value in others for value in own)
    assert count_copies(fold, [other]) == Copies(len(own), len(set(own)), expected, expected)


def test_numbers_count_by_their_value_whatever_their_column_could_hold():
    """A table that a program put together row by row has columns of any objects."""
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 2.5], "c": [True, False, True]})
    expected = hash_rows(frame)
    assert (hash_rows(frame.astype(object)) == expected).all()
    assert (hash_rows(frame.astype(object).to_numpy(object)) == expected).all()
    mixed = pd.DataFrame({"a": [1, "x"]}, dtype=object)
    assert (hash_rows(mixed) == hash_rows(mixed.astype(str))).all()


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_a_table_in_half_the_memory_is_the_same_table(kind):
    table = kind(np.column_stack([NUMBERS, 1e6 * NUMBERS[:, 0], np.arange(60)]))
    expected = hash_rows(table)
    assert (hash_rows(table.astype(np.float32)) == expected).all()
    assert len(np.unique(expected)) == 60


def test_numbers_that_tell_records_or_moments_apart_go_on_doing_so():
    for first in (2.0**24, 1.7e9, 1e15):
        numbers = first + np.arange(100.0)
        assert len(np.unique(hash_rows(numbers[:, None]))) == 100
        assert (hash_rows(numbers.astype(np.int64)[:, None]) == hash_rows(numbers[:, None])).all()
    large = np.array([[np.inf], [-np.inf], [np.nan], [1e300], [-1e300]])
    assert len(np.unique(hash_rows(large))) == 5


def test_zero_is_zero_with_either_sign():
    assert (
        count_copies(Fold(np.array([[-0.0]]), [1]), [Fold(np.array([[0.0]]), np.array([1]))]).copies
        == 1
    )


@given(st.integers(0, 2**32 - 1))
def test_a_row_of_a_sparse_matrix_has_the_hash_of_the_row(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 9, 2)
    table = rng.choice([0.0, -0.0, 1.5, np.nan, 1e-3, 2.0**25 + 1, -7.0], shape)
    expected = hash_rows(table)
    for kind in ("csr", "csc", "coo", "lil", "dok", "bsr"):
        np.testing.assert_array_equal(hash_rows(sparse.coo_array(table).asformat(kind)), expected)
    small = table.astype(np.float32)
    np.testing.assert_array_equal(hash_rows(sparse.csr_matrix(small)), hash_rows(small))


def test_entries_of_a_sparse_matrix_may_be_zero_repeated_and_in_any_order():
    entries = ([1.0, 2.0, 0.0, 4.0], ([0, 0, 1, 1], [2, 2, 0, 1]))
    rows = sparse.coo_array(entries, (2, 3))
    odd = sparse.csr_array(([1.0, 2.0, 4.0, 0.0], [2, 2, 1, 0], [0, 2, 4]), shape=(2, 3))
    expected = hash_rows(np.array([[0, 0, 3], [0, 4, 0]]))
    for matrix in (rows, odd):
        np.testing.assert_array_equal(hash_rows(matrix), expected)
    assert odd.indices.tolist() == [2, 2, 1, 0]  # the user's own stays as it is
    empty = sparse.csr_array((5, 3))
    np.testing.assert_array_equal(hash_rows(empty), hash_rows(np.zeros((5, 3))))
    assert len(hash_rows(empty[:0])) == 0
    for strange in (sparse.csr_array((5, 0)), sparse.csr_array((5, 3), dtype=complex)):
        assert hash_rows(strange) is None
    whole = sparse.csr_array(np.eye(3, dtype=np.int64))
    np.testing.assert_array_equal(hash_rows(whole), hash_rows(np.eye(3)))
    np.testing.assert_array_equal(hash_rows(whole.astype(bool)), hash_rows(np.eye(3)))


def test_copies_are_found_in_sparse_matrices():
    matrix = sparse.eye_array(4, format="csr")
    assert count_copies(Fold(matrix, LABELS[:4]), [Fold(matrix, LABELS[:4])]) == Copies(4, 4, 4, 4)


def test_what_cannot_be_compared_has_no_copies():
    for rows in ([["a"], ["b", "c"]], [{"a": 1}, {"b": 2}]):
        assert hash_rows(rows) is None
        assert count_copies(Fold(rows, LABELS[:2]), [Fold(rows, LABELS[:2])]) == Copies(2, 2, 0, 0)
    assert count_copies(Fold(NUMBERS, LABELS), []) == Copies(60, 60, 0, 0)


@pytest.mark.parametrize(
    ("twins", "copies", "suspicious"),
    [
        (0, 0, False),
        (4, 4, False),
        (5, 5, True),
        (100, 95, True),
        (100, 94, False),
        (23, 17, False),
    ],
)
def test_a_few_copies_or_many_coincidences_are_no_matter(twins, copies, suspicious):
    assert Copies(100, 100, twins, copies).suspicious is suspicious


def test_where_few_rows_are_different_at_all_copies_are_natural():
    assert Copies(100, 5, 60, 60).suspicious
    assert not Copies(100, 4, 60, 60).suspicious


def test_rows_without_features_are_left_to_whoever_fits():
    empty = Fold(np.empty((4, 0)), LABELS[:4])
    assert count_copies(empty, [empty]) == Copies(4, 4, 0, 0)
