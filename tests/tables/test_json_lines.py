"""JSON lines as programs write them: nested, with gaps, packed, damaged."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from reliablenet.errors import InvalidDataError
from reliablenet.tables.files import column_names, read_batches, read_table
from reliablenet.tables.json_lines import SAMPLE_LINES, find_field, json_frames

RECORDS = [
    {"id": 1, "code": "007", "ok": True, "doc": {"age": 30, "a.b": {"c": 1}}, "resps": [["x", -1]]},
    {"id": 2, "code": 7, "ok": None, "doc": {"age": None}, "resps": [], "late": "text"},
    {"id": 3, "code": True, "ok": False, "doc": {}, "resps": [["y", -2.5], ["z", 0]]},
]


@pytest.fixture
def file(tmp_path):
    """A file with blank lines between its records."""
    path = tmp_path / "samples.jsonl"
    path.write_text("\n" + "\n\n".join(map(json.dumps, RECORDS)))
    return path


def test_names_lead_into_objects(file) -> None:
    names = ["id", "code", "ok", "doc.age", "doc.a.b.c", "resps", "late", "doc"]
    assert column_names(file) == names
    assert read_table(file).columns.tolist() == names


def test_a_table_is_read_whole_or_in_batches(file) -> None:
    wanted = ["ok", "doc.age", "resps.0.1", "doc.a.b.c", "code", "id"]
    whole = next(read_batches(file, wanted, text={"code"}))
    assert whole.columns.tolist() == wanted
    assert whole["code"].tolist() == ["007", "7", "True"]
    assert whole["ok"].dtype == "boolean"
    assert whole["ok"].tolist() == [True, pd.NA, False]
    np.testing.assert_equal(whole["resps.0.1"].to_numpy(), [-1, np.nan, -2.5])
    np.testing.assert_equal(whole["doc.a.b.c"].to_numpy(), [1, np.nan, np.nan])
    batches = list(read_batches(file, wanted, rows=2, text={"code"}))
    assert [batch.index.tolist() for batch in batches] == [[0, 1], [2]]
    joined = pd.concat(batches)
    assert joined["code"].tolist() == whole["code"].tolist()
    assert joined["id"].tolist() == [1, 2, 3]


def test_packed_lines_and_a_byte_order_mark_are_read(tmp_path) -> None:
    path = tmp_path / "table"
    path.write_bytes(gzip.compress('\ufeff{"a": 1}\r\n{"a": 2.5}\r\n'.encode()))
    assert read_table(path)["a"].tolist() == [1.0, 2.5]


def test_a_field_after_the_first_lines_is_read_whole_and_not_guessed_in_batches() -> None:
    lines = ['{"a": 1}'] * SAMPLE_LINES + ['{"a": 2, "b": 3}']
    assert next(json_frames(lines, "x"))["b"].iloc[-1] == 3
    with pytest.raises(InvalidDataError, match="x has no column 'b'"):
        next(json_frames(lines, "x", ["b"], rows=10))


def test_texts_lists_and_objects_stay_as_they_are_written() -> None:
    lines = ['{"a": {"b": [1, "x"]}}', '{"a": {"b": NaN}}', '{"a": {"b": 2.0}}']
    frame = next(json_frames(lines, "x", ["a.b"], text={"a.b"}))
    assert frame["a.b"].tolist()[::2] == ['[1, "x"]', "2.0"]
    assert frame["a.b"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("name", ["resps.1", "resps.x", "resps.0.0.0", "doc.age.year", "", "."])
def test_what_is_not_there_is_missing(name) -> None:
    assert find_field(RECORDS[0], name) is None


@pytest.mark.parametrize(
    ("text", "story"),
    [
        (
            '{"a": 1}\n{"a": \n',
            r"t.jsonl: line 2 is not a JSON object of its own \(Expecting value\)\.",
        ),
        (
            '[\n{"a": 1}]\n',
            "line 1 is not a JSON object of its own .* must become one object a line",
        ),
        ('{\n"a": 1}\n', "line 1 is not a JSON object .* must become one object a line"),
        ('[{"a": 1}]\n', "line 1 is JSON, but not an object with named fields"),
        ('{"a": 1}\n3\n', "line 2 is JSON, but not an object with named fields"),
        ('{"a": ' + "[" * 100_000 + "\n", "line 1 is not a JSON object of its own"),
    ],
    ids=["cut", "list", "indented", "one line", "number", "deep"],
)
def test_a_damaged_file_is_refused_with_the_line(tmp_path, text, story) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(InvalidDataError, match=story):
        read_table(path)


def test_a_column_that_no_line_has_is_refused(file) -> None:
    with pytest.raises(
        InvalidDataError, match=r"has no column 'doc\.agee'\. Did you mean 'doc.age'"
    ):
        list(read_batches(file, ["doc.agee"]))
