"""What is counted of partitions merges to what is counted of all rows; partitions that do not fit are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from rule_examples import draw

from reliablenet.certificate import certify_partitions
from reliablenet.certificate.groups import OneRowEach
from reliablenet.certificate.merging import Look, count_all, in_one
from reliablenet.certificate.scored import score_rows
from reliablenet.certificate.streaming import ThresholdCounts
from reliablenet.errors import InvalidDataError

ROWS = score_rows(*draw(1, 200)[:2], owner="test")


def test_a_look_counts_nothing_in_itself() -> None:
    """It is called for many partitions, by several threads perhaps."""
    look = Look(ThresholdCounts(0.1, 0.1, 0.5), 0, {})
    first, second = look([ROWS], 0), look([ROWS], 1)
    assert first.n == second.n == first.counts.count.n == second.counts.count.n == 200
    assert look.blank.count.n == 0


@given(place=st.integers(0, 200), seed=st.integers(0, 100))
def test_draws_of_two_halves_are_the_draw_of_all(place, seed) -> None:
    whose = np.random.default_rng(seed).integers(0, 60, 200)
    rows = replace(ROWS, group=whose)
    whole, first, second = OneRowEach(seed), OneRowEach(seed), OneRowEach(seed, place)
    whole.add(rows)
    for half, part in ((first, slice(0, place)), (second, slice(place, 200))):
        if rows.take(part).n:
            half.add(rows.take(part))
    first.merge(second)
    np.testing.assert_array_equal(first.rows().score, whole.rows().score)
    np.testing.assert_array_equal(first.rows().group, whole.rows().group)


def test_a_single_partition_with_groups_is_read_once() -> None:
    reads = []

    def read():
        reads.append(1)
        return [replace(ROWS, group=np.arange(200) % 90)]

    found = count_all(in_one(read), lambda n: ThresholdCounts(0.2, 0.1), "test")
    assert (found.count.n, found.count.unit, len(reads)) == (90, "group", 1)


def test_a_partition_that_is_counted_twice_is_refused() -> None:
    with pytest.raises(InvalidDataError, match=r"Partition 0 was counted twice\. Give each"):
        certify_partitions(lambda look: [look([ROWS]), look([ROWS])], 0.2)


def test_partitions_that_change_are_refused() -> None:
    calls = []

    def run(look):
        calls.append(look)
        ends = (100, 120)[len(calls) - 1]
        parts = [ROWS.take(slice(0, ends)), ROWS.take(slice(ends, 200))]
        return [look([part], number) for number, part in enumerate(parts)]

    with pytest.raises(InvalidDataError) as refusal:
        certify_partitions(run, 0.05)
    assert str(refusal.value) == (
        "The rows changed while they were certified: 200 at first, 200 on the second look, cut in other "
        "places. Certify a file that nobody writes to."
    )
