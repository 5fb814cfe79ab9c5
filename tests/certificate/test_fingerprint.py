"""Fingerprints: the same rows have the same one, and other rows another."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from splitmix64 import GOLDEN, MASK, mix_by_hand

import reliablenet as rn
from reliablenet.certificate.fingerprint import (
    CHUNK,
    Fingerprint,
    hash_columns,
    hash_entries,
    mix,
    number_bits,
)


def bits_by_hand(value: float) -> int:
    return int.from_bytes(struct.pack(">d", 0.0 if value == 0.0 else value), "big")


def test_64_bits_are_mixed_as_splitmix64_does() -> None:
    known = [0, 1, 2**31, 2**63, MASK, 0x123456789ABCDEF0]
    expected = [mix_by_hand(value) for value in known]
    assert expected[0] == 0xE220A8397B1DCDAF  # its first number from the seed 0
    assert mix(np.array(known, np.uint64)).tolist() == expected


def test_more_entries_than_a_chunk_are_all_counted() -> None:
    n = 2 * CHUNK + 7
    bits = np.arange(1, n + 1, dtype=np.uint64)
    found = hash_entries(bits, np.zeros(n, np.intp), np.arange(n + 1), 1)
    np.testing.assert_array_equal(found, hash_columns(bits[:, None]))


def test_a_fingerprint_is_this_sum_over_rows() -> None:
    """Certificates are compared with those of earlier versions: every bit must stay."""
    table, marks = [0.5, -0.0, 3.0, np.inf, 1e-300], [0, 1, -1, 2, 1]
    for values, bits in (
        (table, map(bits_by_hand, table)),
        ([7, MASK, 0, 1, 2], [7, MASK, 0, 1, 2]),
    ):
        found = Fingerprint()
        found.add(np.array(values, float if values is table else np.uint64), np.array(marks))
        rows = [
            mix_by_hand(mix_by_hand(bit) ^ (mark * GOLDEN & MASK))
            for bit, mark in zip(bits, marks, strict=True)
        ]
        second = sum(row * (row >> 32) for row in rows) & MASK
        assert found.text() == f"{sum(rows) & MASK:016x}{second:016x}"
    assert Fingerprint().text() == "0" * 32


@pytest.mark.parametrize("shape", [(3, 1), (5, 4), (20_000, 1), (3, 20_000)])
def test_a_row_of_bits_has_this_hash(shape) -> None:
    bits = np.random.default_rng(0).integers(0, 2**64, shape, np.uint64)
    found = hash_columns(bits)
    for row in (0, 2, shape[0] - 1):
        parts = [
            mix_by_hand(int(bit) ^ mix_by_hand((place + 1) * GOLDEN & MASK))
            for place, bit in enumerate(bits[row])
        ]
        assert int(found[row]) == mix_by_hand(sum(parts) & MASK)


values = arrays(np.float64, st.integers(1, 30), elements=st.floats())


@given(values, st.randoms())
def test_order_and_batches_do_not_matter_and_every_value_does(table, random) -> None:
    marks = np.array([random.randint(-1, 2) for _ in table])
    whole, parts = Fingerprint(), Fingerprint()
    whole.add(table, marks)
    order = list(range(len(table)))
    random.shuffle(order)
    for place in order:
        parts.add(table[[place]], marks[[place]])
    assert whole.text() == parts.text()
    other = table.copy()
    other[-1] = 0.0 if other[-1] != 0.0 else 1.0
    for changed in ((other, marks), (table, marks + (np.arange(len(marks)) == 0))):
        found = Fingerprint()
        found.add(*changed)
        assert found.text() != whole.text()


def test_chunks_do_not_matter() -> None:
    table, marks = np.arange(40_000.0), np.arange(40_000) % 3
    whole, parts = Fingerprint(), Fingerprint()
    whole.add(table, marks)
    for part in np.array_split(np.arange(40_000), 7):
        parts.add(table[part], marks[part])
    assert whole.text() == parts.text()


def test_hashes_are_spread_and_columns_have_an_order() -> None:
    bits = number_bits(np.arange(200_000, dtype=float)[:, None])
    assert len(np.unique(hash_columns(bits))) == 200_000
    pair = number_bits(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert len(np.unique(hash_columns(pair))) == 2
    assert len(np.unique(mix(np.arange(100_000, dtype=np.uint64)) >> np.uint64(44))) > 90_000


def test_zero_has_one_sign_and_nan_one_form() -> None:
    strange = np.array([0.0, -0.0, np.nan, -np.nan])
    assert len(np.unique(number_bits(strange))) == 2


def test_a_certificate_is_tied_to_what_was_said_of_its_rows() -> None:
    random = np.random.default_rng(0)
    score, y = random.random(300), random.integers(0, 2, 300)
    one = rn.certify(None, y, 0.5, score=score, predicted=np.zeros(300, int))
    order = random.permutation(300)
    same = rn.certify(None, y[order], 0.5, score=score[order], predicted=np.zeros(300, int))
    other = rn.certify(None, y, 0.5, score=score, predicted=np.ones(300, int))
    assert one.provenance.model == same.provenance.model != other.provenance.model
    assert rn.Certificate.from_json(one.to_json()).provenance == one.provenance


def test_fingerprints_of_parts_merge_to_that_of_all_rows() -> None:
    table, marks = np.arange(50.0), np.arange(50) % 2
    whole, first, second = Fingerprint(), Fingerprint(), Fingerprint()
    whole.add(table, marks)
    first.add(table[:20], marks[:20])
    second.add(table[20:], marks[20:])
    before = second.text()
    first.merge(second)
    assert first.text() == whole.text()
    assert second.text() == before
    first.merge(Fingerprint())  # of no rows
    assert first.text() == whole.text()
