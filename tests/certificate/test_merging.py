"""What is counted of partitions merges to what is counted of all rows; partitions that do not fit are refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from itertools import pairwise

import numpy as np
import pytest
from rule_examples import draw

from reliablenet.certificate import certify_partitions
from reliablenet.certificate.groups import draw_places
from reliablenet.certificate.judgement import judge
from reliablenet.certificate.merging import Look, count_all, in_one
from reliablenet.certificate.scored import score_rows
from reliablenet.certificate.streaming import ThresholdCounts
from reliablenet.errors import InvalidDataError

ROWS = score_rows(*draw(1, 200)[:2], owner="test")
WHOSE = np.arange(200) % 90
GROUPED = replace(ROWS, group=WHOSE)
LEVELS = 0.05, 0.1  # alpha and rho at which the threshold lies among the scores


def spread(rows, *ends, looks=None):
    """Return a run over the rows, cut at these places, that adds each look to a list."""
    parts = [rows.take(slice(a, b)) for a, b in pairwise([0, *ends, rows.n])]

    def run(look):
        if looks is not None:
            looks.append(look)
        return [look([part], number) for number, part in enumerate(parts)]

    return run


def monotone(n):
    return ThresholdCounts(*LEVELS)


def test_a_look_counts_nothing_in_itself() -> None:
    """It is called for many partitions, by several threads perhaps."""
    look = Look(ThresholdCounts(0.1, 0.1, 0.5))
    first, second = look([ROWS], 0), look([ROWS], 1)
    assert first.n == second.n == first.counts.count.n == second.counts.count.n == 200
    assert look.blank.count.n == 0
    with pytest.raises(FrozenInstanceError):
        look.seed = 1


def test_a_single_partition_with_groups_is_read_once() -> None:
    reads = []

    def read():
        reads.append(1)
        return [GROUPED]

    found = count_all(in_one(read), monotone, "test")
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


@pytest.mark.parametrize("grouped", [False, True])
def test_batches_of_any_size_are_counted_and_empty_ones_passed_over(grouped) -> None:
    rows = GROUPED if grouped else ROWS
    batches = [rows.take(slice(a, b)) for a, b in pairwise([0, 1, 1, 120, 120, 200])]
    look = Look(monotone(0), 4, {0: 0})
    part, whole = look(batches), look([rows])
    assert (part.number, part.n, part.grouped, whole.grouped) == (0, 200, grouped, grouped)
    if grouped:
        np.testing.assert_array_equal(part.draw.rows().score, whole.draw.rows().score)
        np.testing.assert_array_equal(part.draw.rows().group, WHOSE[:90])
        assert part.counts.count.n == 0
    else:
        assert part.draw is None
        assert part.counts.count.n == 200
        assert part.counts.count.right == np.count_nonzero(~ROWS.wrong)


def test_rows_that_say_whose_they_are_and_rows_that_do_not_are_counted_apart() -> None:
    part = Look(monotone(0))([GROUPED, ROWS, GROUPED])
    assert (part.n, part.counts.count.n, part.grouped, part.draw) == (600, 200, True, None)


@pytest.mark.parametrize("ends", [(), (50, 120), (0, 1, 199)])
def test_partitions_prove_what_all_rows_prove(ends) -> None:
    looks, asked = [], []

    def make(n):
        asked.append(n)
        return monotone(n)

    found = count_all(spread(ROWS, *ends, looks=looks), make, "test").certificate()
    assert 0.0 < found.threshold < 1.0
    assert found == judge(ROWS, *LEVELS)
    assert found.provenance == judge(ROWS, *LEVELS).provenance
    assert (asked, len(looks)) == ([0], 2)


@pytest.mark.parametrize("ends", [(), (50, 120), (0, 1, 199)])
@pytest.mark.parametrize("seed", [None, 0, 3])
def test_one_row_of_each_group_is_drawn_by_its_place_among_all_partitions(ends, seed) -> None:
    looks, asked = [], []

    def make(n):
        asked.append(n)
        return monotone(n)

    more = {} if seed is None else {"seed": seed}
    found = count_all(spread(GROUPED, *ends, looks=looks), make, "test", **more).certificate()
    drawn = ROWS.take(draw_places(WHOSE, 200, seed or 0))
    expected = judge(drawn, *LEVELS, unit="group")
    assert 0.0 < found.threshold < 1.0
    assert found == expected
    assert found.provenance == expected.provenance
    assert asked == [0, 90]
    assert len(looks) == (2 if ends else 1)  # one alone knows where its rows begin
    assert {look.seed for look in looks} == {seed or 0}


def test_a_threshold_among_drawn_rows_is_found_without_a_further_look() -> None:
    """The rows drawn are kept: what needs two looks at all rows needs none at them."""
    looks = []
    found = count_all(spread(GROUPED, 50, looks=looks), monotone, "test")
    assert len(looks) == 2
    assert 0 < found.count.accepted < found.count.n == 90


def test_groups_that_change_before_they_are_drawn_are_refused() -> None:
    cuts = iter([(100,), (120,)])
    with pytest.raises(InvalidDataError, match="200 at first, 200 on the second look, cut in"):
        count_all(lambda look: spread(GROUPED, *next(cuts))(look), monotone, "test")


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_no_rows_are_refused_by_the_name_of_who_asks(parts) -> None:
    with pytest.raises(InvalidDataError) as refusal:
        count_all(lambda look: [look([], n) for n in range(parts)], monotone, "certify_batches")
    assert str(refusal.value) == "certify_batches needs rows; got 0."
