"""Fingerprints: the same rows have the same one, and other rows another."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import reliablenet as rn
from reliablenet.certificate.fingerprint import Fingerprint, hash_columns, mix, number_bits

tables = arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.floats())


@given(tables, st.randoms())
def test_order_and_batches_do_not_matter_and_every_value_does(table, random) -> None:
    whole, parts, changed = Fingerprint(), Fingerprint(), Fingerprint()
    whole.add(*table.T)
    order = list(range(len(table)))
    random.shuffle(order)
    for place in order:
        parts.add(*table[[place]].T)
    assert whole.text() == parts.text()
    other = table.copy()
    other[-1, -1] = 0.0 if other[-1, -1] != 0.0 else 1.0
    changed.add(*other.T)
    assert changed.text() != whole.text()


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
