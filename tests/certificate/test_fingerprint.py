"""Fingerprints: the same rows have the same one, and other rows another."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import reliablenet as rn
from reliablenet.certificate.fingerprint import Fingerprint, hash_columns, mix, number_bits

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
