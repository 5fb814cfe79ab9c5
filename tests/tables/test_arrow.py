"""Arrow's files: the same table whether it comes as Parquet, Feather or CSV."""

from __future__ import annotations

import pandas as pd
import pytest

from reliablenet.errors import InvalidDataError
from reliablenet.tables.files import column_names, read_batches, read_table

pytest.importorskip("pyarrow")

TABLE = pd.DataFrame({"a": [1.5, None, 3.0], "b": ["x", None, "z"], "code": [7, 12, 7]})


@pytest.fixture(params=["parquet", "feather", "feather-uncompressed"])
def path(request, tmp_path):
    path = tmp_path / "t.bin"  # the content tells, and not the name
    if request.param == "parquet":
        TABLE.to_parquet(path, row_group_size=2)
    else:
        packing = "lz4" if request.param == "feather" else "uncompressed"
        TABLE.to_feather(path, compression=packing, chunksize=2)
    return path


def test_whole_and_in_batches(path) -> None:
    pd.testing.assert_frame_equal(read_table(path), TABLE)
    assert column_names(path) == ["a", "b", "code"]
    for rows in (1, 2, 5):
        batches = list(read_batches(path, ["code", "a"], rows))
        assert max(len(batch) for batch in batches) <= rows
        pd.testing.assert_frame_equal(pd.concat(batches), TABLE[["code", "a"]])


def test_whole_numbers_may_be_kept_as_text(path) -> None:
    assert read_table(path, text={"code"})["code"].tolist() == ["7", "12", "7"]
    batches = list(read_batches(path, text={"code"}, rows=10))
    assert pd.concat(batches)["code"].tolist() == ["7", "12", "7"]


def test_absent_columns_are_named(path) -> None:
    with pytest.raises(InvalidDataError, match=r"t.bin has no column 'cod'. Did you mean 'code'"):
        next(read_batches(path, ["cod"]))


def test_half_a_file_is_refused(path) -> None:
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InvalidDataError, match=r"t.bin is not a whole (Parquet|Feather) file"):
        read_table(path)


def test_the_first_feather_is_refused(tmp_path) -> None:
    (tmp_path / "t.feather").write_bytes(b"FEA1" + bytes(60))
    with pytest.raises(InvalidDataError, match="Feather of the first version, which is no longer"):
        read_table(tmp_path / "t.feather")
