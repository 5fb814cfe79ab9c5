"""Excel workbooks as people save them."""

from __future__ import annotations

import warnings
import zipfile
from datetime import date, datetime

import pandas as pd
import pytest

from reliablenet.errors import ColumnWarning, InvalidDataError
from reliablenet.tables.files import TableFile, column_names, read_batches, read_table

openpyxl = pytest.importorskip("openpyxl")

ROWS = [
    ["age", "job", "opened", "member", "note, in words"],
    [31, "office", date(2024, 1, 31), True, 'said "no"'],
    [None, "trade", datetime(2024, 2, 1, 9, 30), False, "one,two"],
    [47.5, None, None, None, "?"],
]


@pytest.fixture
def book(tmp_path):
    def book(rows=ROWS, more=(), name="t.xlsx"):
        made = openpyxl.Workbook()
        for row in rows:
            made.active.append(row)
        for title in more:
            made.create_sheet(title)
        made.save(tmp_path / name)
        return tmp_path / name

    return book


def test_a_sheet_is_read_as_its_csv_would_be(book) -> None:
    table = read_table(book())
    assert table.columns.tolist() == ROWS[0] == column_names(book())
    assert table["age"].tolist()[::2] == [31.0, 47.5]
    assert table["age"].isna().tolist() == [False, True, False]
    assert table["opened"].tolist()[:2] == ["2024-01-31", "2024-02-01 09:30:00"]
    assert table["member"].dtype == "boolean"
    assert table["note, in words"].tolist()[:2] == ['said "no"', "one,two"]
    assert table["note, in words"].isna().tolist() == [False, False, True]
    batches = list(read_batches(book(), ["job", "age"], rows=2))
    pd.testing.assert_frame_equal(pd.concat(batches)[["age"]], table[["age"]])


def test_a_code_may_stay_text_and_the_name_of_the_file_does_not_matter(book) -> None:
    path = book([["code", "y"], ["007", 1], ["012", 0]], name="codes.csv")
    assert read_table(path, text={"code"})["code"].tolist() == ["007", "012"]


def test_empty_rows_and_touched_cells_are_no_rows(book) -> None:
    path = book([[None, None], ["a", "b", None], [1, 2, None], [None, None, None], [3, 4, ""]])
    pd.testing.assert_frame_equal(read_table(path), pd.DataFrame({"a": [1, 3], "b": [2, 4]}))


def test_without_a_header(book) -> None:
    file = TableFile(book([[1, "x"], [2, "y"]]), header=False)
    pd.testing.assert_frame_equal(read_table(file), pd.DataFrame({"0": [1, 2], "1": ["x", "y"]}))


def test_the_first_of_several_sheets_is_read_and_said(book) -> None:
    with pytest.warns(ColumnWarning, match="t.xlsx has 3 sheets; the first, 'Sheet', is read"):
        read_table(book(more=["Rates", "Old"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(book())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", "b"], [1, 2, 3]], "line 2 has 3 fields where the header has 2"),
        ([["a", "a"], [1, 2]], "'a' occur more than once"),
        ([["a", "b"]], "t.xlsx has a header and no rows"),
        ([], "t.xlsx is empty"),
    ],
)
def test_sheets_that_are_no_table_are_refused(book, rows, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read_table(book(rows))


def test_damaged_workbooks_are_refused(book, tmp_path) -> None:
    path = book()
    with zipfile.ZipFile(path) as whole:
        members = {name: whole.read(name) for name in whole.namelist()}
    for broken in ("xl/workbook.xml", "xl/worksheets/sheet1.xml"):
        with zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content[:60] if name == broken else content)
        with pytest.raises(InvalidDataError, match=r"bad.xlsx cannot be read as a workbook"):
            read_table(tmp_path / "bad.xlsx")
    (tmp_path / "half.xlsx").write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InvalidDataError, match=r"half.xlsx is damaged"):
        read_table(tmp_path / "half.xlsx")
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(600))
    with pytest.raises(InvalidDataError, match=r"Save it as .xlsx or CSV first"):
        read_table(tmp_path / "old.xls")
