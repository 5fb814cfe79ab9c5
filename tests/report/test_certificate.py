"""A certificate on a page: the parts of its promise as a table."""

from __future__ import annotations

import numpy as np

from reliablenet import Promise, certified_rule
from reliablenet.report import text
from reliablenet.report.certificate import certificate_facts, parts_table


def test_the_table_of_parts_ends_with_groups_that_nothing_is_promised_of() -> None:
    rng = np.random.default_rng(0)
    p, group = rng.uniform(0.5, 1.0, 4000), rng.choice(["A", "B", "C"], 4000, p=[0.6, 0.3, 0.1])
    y = (rng.random(4000) > p).astype(int)
    promise = Promise.by_group({"A": 0.05, "B": 0.05}, by="ward", common=True)
    found = certified_rule(np.column_stack([p, 1 - p]), y, promise, by=group)
    table = parts_table(found)
    assert table is not None
    assert [row[0] for row in table.rows] == ["ward=A", "ward=B", "other groups of ward"]
    (others,) = found.others
    assert list(table.rows[-1][1:3]) == [text.count(others.n), text.count(others.accepted)]
    assert table.rows[-1][-1] == "✕ nothing promised"
    assert parts_table(found.parts[0]) is None


def test_facts_of_a_promise_name_what_was_counted() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 4000)
    y = (rng.random(4000) > p).astype(int)
    proba, promise = np.column_stack([p, 1 - p]), Promise.overall(0.05)
    for groups, counted, share in (
        (None, "rows of the certification fold, seen once", "observed share of all rows"),
        (
            np.arange(4000) // 4,
            "groups of the certification fold, one row of each, drawn at random",
            "observed share of all groups, by the row drawn",
        ),
    ):
        found = certified_rule(proba, y, promise, groups=groups)
        facts = {name: meaning for name, _, meaning in certificate_facts(found)}
        assert (facts["n"], facts["Acts on"]) == (counted, share)
        table = parts_table(found)
        assert table is not None
        assert (table.columns[1], table.rows[0][0]) == (
            ("Rows", "all rows") if groups is None else ("Groups, one row of each", "all groups")
        )
