"""One row of each group: every row with the same chance, in one batch or in many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chisquare
from splitmix64 import mix_by_hand

import reliablenet as rn
from reliablenet.certificate.groups import OneRowEach, check_groups, draw_places
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


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", "b"], "`groups` must hold one label for each of the 4 rows; got shape (2,)."),
        (np.zeros((4, 1)), "`groups` must hold one label for each of the 4 rows; got shape (4, 1)."),
        (["a", "b", None, np.nan], "`groups` must name a group for every row; it is missing in row 2 (2 in all). Give each such row a group of its own if it has none."),
        (["a", "b", np.nan, "a"], "`groups` must name a group for every row; it is missing in row 2 (1 in all). Give each such row a group of its own if it has none."),
        (np.ma.array([1, 2, 1, 2], mask=[False, False, True, False]), "`groups` must not hold masked values; got 1 of them. Drop those rows first."),
        (np.array([1.0, np.nan, 2.0, 1.0]), "`groups` must name a group for every row; it is missing in row 1 (1 in all). Give each such row a group of its own if it has none."),
    ],
)  # fmt: skip
def test_groups_that_are_missing_or_too_few_are_refused_in_these_words(groups, message) -> None:
    whole = rows(4, list("abab"))
    score = {"score": whole.score, "predicted": whole.predicted}
    for call in (
        lambda: check_groups(groups, 4),
        lambda: draw_places(groups, 4),
        lambda: rn.certify(None, whole.truth, 0.9, groups=groups, **score),
    ):
        with pytest.raises(InvalidDataError) as caught:
            call()
        assert str(caught.value) == message


def test_what_draws_needs_rows_and_a_seed() -> None:
    whole = rows(4, list("abab"))
    score = {"score": whole.score, "predicted": whole.predicted}
    with pytest.raises(rn.errors.InvalidParameterError, match="`random_state` of certify"):
        rn.certify(None, whole.truth, 0.9, groups=list("abab"), random_state="x", **score)
    with pytest.raises(InvalidDataError, match=r"^Groups need rows; got 0\.$"):
        OneRowEach().rows()
    draw = OneRowEach()
    draw.add(whole)
    assert draw._priority.dtype == np.uint64  # as float64 its last bits would be lost


@pytest.mark.parametrize(
    "groups",
    [["b", "a", "b"], np.array([2, 1, 2], ">i4"), np.array([2.0, 1.0, 2.0]), ("b", int, "b")],
)  # fmt: skip
def test_groups_are_numbered_as_they_come(groups) -> None:
    assert check_groups(groups, 3).tolist() == [0, 1, 0]


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_the_row_with_the_smallest_number_is_drawn(seed) -> None:
    """The draw of a seed stays the same for ever: certificates are compared with earlier ones."""
    groups = np.random.default_rng(0).integers(0, 9, 60)
    number = [mix_by_hand(place ^ mix_by_hand(seed)) for place in range(60)]
    firsts = dict.fromkeys(groups.tolist())
    drawn = [min(np.flatnonzero(groups == g).tolist(), key=number.__getitem__) for g in firsts]
    assert draw_places(groups, 60, seed).tolist() == sorted(drawn)
    whole, draw = rows(60, groups), OneRowEach(seed)
    for start in (0, 25):
        draw.add(whole.take(slice(start, start + 25 if start == 0 else 60)))
    assert draw.rows().score.tolist() == whole.score[drawn].tolist()
    if seed == 0:
        assert draw_places(groups, 60).tolist() == sorted(drawn)
        default = OneRowEach()
        default.add(whole)
        assert default.rows().group.tolist() == list(firsts)
        assert default.rows().score.tolist() == whole.score[drawn].tolist()


@given(place=st.integers(0, 120), seed=st.integers(0, 2**32 - 1))
def test_draws_of_two_halves_are_the_draw_of_all(place, seed) -> None:
    """The second knows how many rows come before it; a half without rows has nothing to add."""
    whole = rows(120, np.random.default_rng(seed).integers(0, 40, 120))
    first, second, every = OneRowEach(seed), OneRowEach(seed, place), OneRowEach(seed)
    every.add(whole)
    for half, part in ((first, slice(0, place)), (second, slice(place, 120))):
        if whole.take(part).n:
            half.add(whole.take(part))
    first.merge(second)
    np.testing.assert_array_equal(first.rows().score, every.rows().score)
    np.testing.assert_array_equal(first.rows().group, every.rows().group)
