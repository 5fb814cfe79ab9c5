"""One row of each group: every row with the same chance, in one batch or in many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chisquare

import reliablenet as rn
from reliablenet.certificate.groups import OneRowEach, draw_places
from reliablenet.certificate.scored import ScoredRows
from reliablenet.certificate.streaming import certified_threshold_batches, certify_batches
from reliablenet.errors import InvalidDataError


def rows(n: int, groups, seed=0) -> ScoredRows:
    random = np.random.default_rng(seed)
    score = random.uniform(0.5, 1.0, n)
    truth = random.integers(0, 2, n)
    wrong = random.random(n) > score
    return ScoredRows(score, wrong, 0.0, score, truth, truth ^ wrong, None, np.asarray(groups))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=200), st.integers(0, 2**32 - 1))
def test_each_group_gives_one_row_of_its_own(groups, seed) -> None:
    drawn = draw_places(groups, len(groups), seed)
    names = np.array(groups)[drawn]
    assert sorted(names.tolist()) == sorted(set(groups))
    assert np.array_equal(drawn, draw_places(groups, len(groups), seed))


def test_every_row_of_a_group_has_the_same_chance() -> None:
    counts = np.bincount([draw_places([1] * 8, 8, seed)[0] for seed in range(8000)], minlength=8)
    assert chisquare(counts).pvalue > 1e-6


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=120), st.integers(1, 50))
def test_batches_give_the_draw_of_memory(groups, size) -> None:
    whole = rows(len(groups), groups)
    draw = OneRowEach()
    for start in range(0, whole.n, size):
        draw.add(whole.take(slice(start, start + size)))
    expected = whole.take(draw_places(groups, len(groups)))
    assert sorted(draw.rows().score.tolist()) == sorted(expected.score.tolist())


@pytest.mark.parametrize("size", [7, 100, 1000])
def test_certificates_of_groups_are_those_of_memory_in_any_batches(size) -> None:
    person = np.random.default_rng(1).integers(0, 300, 1000)
    whole = rows(1000, person)

    def read():
        return (whole.take(slice(start, start + size)) for start in range(0, whole.n, size))

    given = {"score": whole.score, "predicted": whole.predicted, "groups": person}
    fixed = rn.certify(None, whole.truth, 0.9, 0.1, **given)
    assert fixed.unit == "group"
    assert fixed.n == len(np.unique(person))
    streamed = certify_batches(read(), 0.9, 0.1)
    assert streamed == fixed
    assert streamed.provenance == fixed.provenance
    chosen = rn.certified_threshold(None, whole.truth, 0.1, **given)
    assert chosen.unit == "group"
    assert certified_threshold_batches(read, 0.1) == chosen


def test_groups_are_checked() -> None:
    whole = rows(4, "abab")
    score = {"score": whole.score, "predicted": whole.predicted}
    with pytest.raises(InvalidDataError, match="one label for each of the 4 rows"):
        rn.certify(None, whole.truth, 0.9, groups=["a", "b"], **score)
    with pytest.raises(InvalidDataError, match="it is missing in row 2"):
        rn.certify(None, whole.truth, 0.9, groups=["a", "b", None, "a"], **score)
    with pytest.raises(rn.errors.InvalidParameterError, match="`random_state` of certify"):
        rn.certify(None, whole.truth, 0.9, groups=list("abab"), random_state="x", **score)
    with pytest.raises(InvalidDataError, match="Groups need rows"):
        OneRowEach().rows()
