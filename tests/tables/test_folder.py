"""A folder of Parquet is one table: its files in the order of their numbers, nothing passed over in silence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from reliablenet.errors import DataFileError, InvalidDataError
from reliablenet.tables.files import TableFile, column_names, read_batches, read_table
from reliablenet.tables.folder import parquet_files

pytest.importorskip("pyarrow")

TABLE = pd.DataFrame({"x": np.arange(100.0), "t": [f"row {i}" for i in range(100)]})


@pytest.fixture
def folder(tmp_path) -> Path:
    """Twelve files, one of them without rows and one with a single one."""
    ends = [0, 9, 18, 27, 36, 36, 37, 50, 60, 70, 80, 90, 100]
    for number in range(12):
        part = TABLE.iloc[ends[number] : ends[number + 1]]
        part.to_parquet(tmp_path / f"part.{number}.parquet", row_group_size=4)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part.0.parquet.crc").write_bytes(b"crc")
    return tmp_path


def test_files_are_one_table_in_the_order_of_their_numbers(folder) -> None:
    assert [path.name for path in parquet_files(folder)] == [
        f"part.{number}.parquet" for number in range(12)
    ]
    assert column_names(folder) == ["x", "t"]
    assert_frame_equal(read_table(folder), TABLE)
    batches = list(read_batches(folder, ["t"], rows=5))
    assert max(map(len, batches)) <= 5
    assert_frame_equal(pd.concat(batches), TABLE[["t"]])


def test_it_is_the_table_that_dask_reads(folder) -> None:
    dd = pytest.importorskip("dask.dataframe")
    read = dd.read_parquet(folder).compute()
    assert read["x"].tolist() == read_table(folder)["x"].tolist()


def test_columns_that_some_files_lack_are_named_before_anything_is_read(folder) -> None:
    pd.DataFrame({"x": [1.0], "new": [1]}).to_parquet(folder / "part.12.parquet")
    assert column_names(folder) == ["x"]
    assert len(read_table(folder)) == 101
    with pytest.raises(InvalidDataError, match=r"^part\.12\.parquet has no column 't'\. It has "):
        next(read_batches(folder, ["t"]))


def test_types_may_differ_between_files(tmp_path) -> None:
    pd.DataFrame({"n": [1, 2], "t": ["a", None]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"n": [1.5, None], "t": [None, None]}).to_parquet(tmp_path / "b.parquet")
    pd.DataFrame({"n": ["007", "8"], "t": [1, 2]}).to_parquet(tmp_path / "c.parquet")
    frames = list(read_batches(tmp_path, ["n", "t"], text={"n", "t"}))
    assert [frame["n"].tolist()[0] for frame in frames] == ["1", 1.5, "007"]
    assert frames[2]["t"].tolist() == ["1", "2"]


def test_what_is_no_parquet_is_refused_by_name(folder) -> None:
    (folder / "notes.txt").write_text("x\n1\n")
    with pytest.raises(InvalidDataError) as refusal:
        column_names(folder)
    assert str(refusal.value) == (
        f"{folder} must hold Parquet files alone; it also holds 'notes.txt'. Move such files elsewhere, or "
        "give them by themselves."
    )


def test_feather_is_no_parquet(folder) -> None:
    TABLE.to_feather(folder / "part.13.feather")
    with pytest.raises(InvalidDataError, match=r"it also holds 'part\.13\.feather'"):
        read_table(folder)


def test_folders_inside_are_refused(folder) -> None:
    (folder / "year=2026").mkdir()
    with pytest.raises(InvalidDataError, match=r"holds folders: 'year=2026'\. Give one of them"):
        read_table(folder)


def test_a_damaged_file_is_named(folder) -> None:
    damaged = folder / "part.3.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(InvalidDataError, match=r"part\.3\.parquet is not a whole Parquet file"):
        column_names(folder)


def test_a_folder_without_files_or_rows_is_refused(tmp_path) -> None:
    with pytest.raises(DataFileError, match="holds no Parquet files"):
        column_names(tmp_path)
    TABLE.iloc[:0].to_parquet(tmp_path / "none.parquet")
    with pytest.raises(InvalidDataError, match="no rows"):
        read_table(tmp_path)
    with pytest.raises(InvalidDataError, match="names its columns"):
        column_names(TableFile(tmp_path, header=False))
