"""The intervals of a breakdown hold all at once, in short; the long form is studies/guarantees/breakdowns."""

from __future__ import annotations

from studies.guarantees.breakdowns import blocks, complaints, truth


def test_intervals_hold_all_at_once_and_pointwise_ones_are_caught() -> None:
    found = [record for block in blocks(150) for record in block.finish([])]
    assert len(found) == 3
    assert complaints(found) == []


def test_complaints_name_a_broken_promise_and_a_fault_that_is_not_seen() -> None:
    record = {"level": 0.9, "draws": 1000, "missed": 200, "missed_pointwise": 50}
    told = complaints([record | {"named_falsely": 200, "named_falsely_pointwise": 50}])
    assert [line.split(":")[0] for line in told] == [
        "intervals miss too often",
        "pointwise intervals pass unseen",
        "someone is named falsely too often",
        "pointwise tests pass unseen",
    ]


def test_where_parts_fare_alike_their_truth_is_one() -> None:
    known = truth(unequal=False)
    assert len({tuple(rates.round(9)) for rates in known.values()}) == 1
