"""A certificate on a page: the parts of its promise as a table."""

from __future__ import annotations

import numpy as np

from reliablenet import Promise, certified_rule
from reliablenet.report import text
from reliablenet.report.certificate import parts_table


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
