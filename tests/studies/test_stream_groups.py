"""Certificates by group of a large file: what the committed figures must show."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from studies.runner import read_records
from studies.speed.predictions import write_predictions
from studies.speed.stream_groups import GROUPS, ROWS


def test_a_certificate_by_group_takes_at_most_twice_the_time_and_hardly_more_memory():
    found = {record["rows"]: record for record in read_records("speed", "stream_groups")}
    for record in found.values():
        assert record["ratio"] <= 2.0
        assert record["groups_certified"] == GROUPS
    # of ten times the rows a quarter is wrong, and takes twelve bytes twice
    grown = found[ROWS]["by_group_peak_bytes"] - found[ROWS // 10]["by_group_peak_bytes"]
    assert grown < 40 * ROWS / 4


def test_the_file_holds_unequal_groups(tmp_path: Path):
    write_predictions(tmp_path / "p.parquet", 2000, 5)
    table = pd.read_parquet(tmp_path / "p.parquet")
    assert len(table) == 2000
    assert table["site"].value_counts().index.tolist() == [f"site {i:02d}" for i in (4, 3, 2, 1, 0)]
