"""Tables as people save them: read, or refused with what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from reliablenet.errors import DataFileError, InvalidDataError, MissingExtraError
from reliablenet.tables.files import (
    BATCH_ROWS,
    TableFile,
    column_names,
    local_file,
    read_batches,
    read_table,
)

PLAIN = pd.DataFrame({"a": [1.5, 2.25], "b": ["x", "y"]})


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "t.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1.5,x\n2.25,y\n",
        "a,b\r\n1.5,x\r\n2.25,y\r\n",
        "a,b\r1.5,x\r2.25,y",
        "\ufeffa,b\n1.5,x\n2.25,y",
        "a;b\n1,5;x\n2,25;y\n",
        "a;b\n1.5;x\n2.25;y\n",
        "a\tb\n1.5\tx\n2.25\ty\n",
        "a|b\n1.5|x\n2.25|y\n",
        "a , b\n1.5, x\n 2.25, y\n",
        '"a","b"\n"1.5","x"\n2.25,y\n\n',
        "\n\na,b\n\n1.5,x\n \n2.25,y\n",
    ],
)
def test_every_way_to_write_a_table_gives_the_same(write, text) -> None:
    pd.testing.assert_frame_equal(read_table(write(text)), PLAIN)
    utf16 = write(text.lstrip("\ufeff").encode("utf-16"), "wide.csv")
    pd.testing.assert_frame_equal(read_table(utf16), PLAIN)


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("folder/t.csv", content)
        archive.writestr("__MACOSX/t.csv", b"rubbish")
    return buffer.getvalue()


def zstandard(content: bytes) -> bytes:
    return pytest.importorskip("zstandard").compress(content)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zipped, zstandard])
@pytest.mark.parametrize("name", ["t.csv", "t.packed"])
def test_compressed_tables_whatever_their_name(write, pack, name) -> None:
    path = write(pack(b"a,b\n1.5,x\n2.25,y\n"), name)
    pd.testing.assert_frame_equal(read_table(path), PLAIN)
    assert column_names(path) == ["a", "b"]


def test_quoted_separators_quotes_and_line_ends(write) -> None:
    table = read_table(write('n,t\n1,"a, ""b""\nc"\n2,5" pipe\n3,"x"\n'))
    assert table["t"].tolist() == ['a, "b"\nc', '5" pipe', "x"]


def test_spellings_of_a_missing_value(write) -> None:
    words = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "?", "-", ".", "#N/A"]
    table = read_table(write("x,c\n" + "".join(f"{word},{word}\n" for word in words) + "1,a\n"))
    assert table["x"].isna().sum() == table["c"].isna().sum() == len(words)
    assert table["x"].dtype == np.float64


def test_booleans_with_gaps_are_booleans(write) -> None:
    table = read_table(write("b,c\nTrue,1\n,2\nfalse,3\n"))
    assert table["b"].dtype == "boolean"
    assert table["b"].tolist() == [True, pd.NA, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv is empty"),
        (" \n\n", "t.csv is empty"),
        ("a,b\n", "t.csv has a header and no rows"),
        ("a,b\n1,2\n3\n", "t.csv: line 3 has 1 field where the header has 2. Repair it"),
        ("a,b\n\n1,2\n3,4,5\n", "line 4 has 3 fields where the header has 2"),
        ("a,b\n1,2,3\n4,5,6\n", "line 2 has 3 fields"),
        ('a,b\n1,"x\ny"\n3\n', "line 4 has 1 field"),
        ('a,b\n1,2\n3,"open\n5,6\n', "a quote that opens in line 3 is not closed"),
        ('a,b\n1,2\n3,"' + "x\n" * 100_000, "a quote that opens in line 3 is not closed"),
        ("5.1,3.5,red\n4.9,3.0,blue\n", "t.csv has no header: its first line begins with 5.1, 3.5"),
        ("5,3\n4,1\n", "has no header: .* Add a first line"),
        ("a,b,a\n1,2,3\n", "'a' occur more than once. Rename"),
        ("a;b\n1,234;2\n", "such as '1,234', which may mean 1234 or 1.234"),
        ("a;b\n1,5;2.5\n", "decimal comma, such as '1,5', and with a decimal point, such as '2.5'"),
        ("a;b\n1.234,5;2\n", "groups the digits of its numbers, such as '1.234,5'"),
        (b"a,b\nJos\xe9,2\n", "not UTF-8 text .byte 0xe9 after 'a,b.nJos'.*iconv -f latin1"),
        (b"a,b\n1\x00,2\n", "not a text table"),
        (
            gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9],
            "t.csv is damaged: it cannot be decompressed",
        ),
        (zipped(b"")[:-30], "damaged"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_place(write, text, message) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read_table(write(text))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (b"1\n", "line 5002 has 1 field"),
        (b"1,\xff\n", "not UTF-8 text .byte 0xff"),
        (b"", "damaged"),
    ],
)
def test_faults_far_down_are_found_too(write, end, message) -> None:
    content = b"a,b\n" + b"1,2\n" * 5000 + end
    path = write(content if end else gzip.compress(content)[:-9])
    with pytest.raises(InvalidDataError, match=message):
        read_table(path)
    with pytest.raises(InvalidDataError, match=message):
        list(read_batches(path, rows=1000))


def test_columns_named_by_numbers_as_pandas_does_are_a_header(write) -> None:
    assert read_table(write("0,1\n5,3\n")).columns.tolist() == ["0", "1"]
    assert column_names(write("country,2019,2020\nx,1,2\n")) == ["country", "2019", "2020"]
    assert column_names(write(",a\n0,1\n")) == ["Unnamed: 0", "a"]


def test_archives_that_are_no_table(tmp_path) -> None:
    def archive(*names: str):
        path = tmp_path / "t.zip"
        with zipfile.ZipFile(path, "w") as file:
            for name in names:
                file.writestr(name, "a,b\n1,2\n")
        return path

    with pytest.raises(InvalidDataError, match="must hold one table; it holds 2 files"):
        read_table(archive("a.csv", "b.csv"))
    with pytest.raises(InvalidDataError, match="is a model and not a table"):
        read_table(archive("manifest.json", "certificate.json"))


def test_a_file_that_is_not_there_or_a_folder(tmp_path) -> None:
    with pytest.raises(DataFileError, match=r"There is no file .*absent.csv"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(DataFileError, match="holds no Parquet files"):
        read_table(tmp_path)


@given(rows=st.integers(1, 40), size=st.integers(1, 50), seed=st.integers(0, 2**32 - 1))
def test_batches_put_together_are_the_table(tmp_path_factory, rows, size, seed) -> None:
    rng = np.random.default_rng(seed)
    texts = rng.choice(["a", 'say "b, c"', "line\nend", "ü"], rows)
    table = pd.DataFrame({"x": rng.normal(size=rows), "t": texts, "n": rng.integers(0, 9, rows)})
    path = tmp_path_factory.mktemp("tables") / "t.csv"
    table.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_table(path), table, check_dtype=False)
    parts = list(read_batches(path, ["t", "x"], size))
    assert max(map(len, parts)) <= size
    pd.testing.assert_frame_equal(pd.concat(parts), table[["t", "x"]], check_dtype=False)


def test_text_columns_keep_their_zeros_in_every_batch(write) -> None:
    path = write("code,x\n007,1\n012,2\nA1,3\n")
    assert [b["code"].tolist() for b in read_batches(path, rows=2, text=["code"])] == [
        ["007", "012"],
        ["A1"],
    ]
    assert read_table(path)["code"].tolist() == ["007", "012", "A1"]


def test_batches_name_absent_columns(write) -> None:
    with pytest.raises(
        InvalidDataError, match=r"t.csv has no column 'colour'. Did you mean 'color'"
    ):
        next(read_batches(write("color,x\nred,1\n"), ["colour"]))


def test_standard_input_can_be_read_twice(monkeypatch, write) -> None:
    class Input:
        buffer = io.BytesIO(b"a,b\n1.5,x\n2.25,y\n")

    monkeypatch.setattr(sys, "stdin", Input)
    with local_file("-") as path:
        pd.testing.assert_frame_equal(read_table(path), PLAIN)
        pd.testing.assert_frame_equal(read_table(path), PLAIN)
        path.path.write_text("a,b\n1\n")
        with pytest.raises(InvalidDataError, match=r"^standard input: line 2"):
            read_table(path)
    assert not path.path.exists()
    with local_file("t.csv") as path:
        assert str(path.path) == "t.csv"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_without_a_header_columns_have_numbers(write, separator) -> None:
    path = write(f"1.5{separator}x\n2.25{separator}y\n")
    file = TableFile(path, header=False)
    assert column_names(file) == ["0", "1"]
    expected = PLAIN.set_axis(["0", "1"], axis=1)
    pd.testing.assert_frame_equal(read_table(file), expected)
    batches = list(read_batches(file, ["1"], rows=1))
    assert [batch["1"].tolist() for batch in batches] == [["x"], ["y"]]
    with pytest.raises(InvalidDataError, match=r"t.csv has no header"):
        read_table(path)
    with pytest.raises(InvalidDataError, match="line 2 has 1 field where the first line has 2"):
        read_table(TableFile(write("1,2\n3\n"), header=False))


def test_files_that_name_their_columns_are_not_read_without_names(write, tmp_path) -> None:
    for path in (write('{"a": 1}\n', "t.jsonl"), tmp_path / "t.parquet"):
        if path.suffix == ".parquet":
            PLAIN.to_parquet(path)
        for read in (read_table, column_names):
            with pytest.raises(InvalidDataError, match="names its columns"):
                read(TableFile(path, header=False))


def test_parquet_types_do_not_depend_on_gaps(tmp_path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    table = pd.DataFrame(
        {
            "flag": pd.array([True, None, False], "boolean"),
            "price": [Decimal("1.50"), None, Decimal("2.25")],
            "day": [date(2024, 1, 31), None, date(2024, 2, 1)],
            "kind": pd.Categorical(["a", "b", "a"]),
            "text": ["x", None, "z"],
        },
        index=pd.Index([5, 6, 7]),
    )
    table.to_parquet(path)
    read = read_table(path)
    assert read.columns.tolist() == list(table.columns)
    assert read["flag"].dtype == "boolean"
    assert read["price"].tolist()[::2] == [1.5, 2.25]
    assert pd.api.types.is_datetime64_any_dtype(read["day"])
    assert read["text"].tolist()[::2] == ["x", "z"]
    parts = list(read_batches(path, ["text", "flag"], 2))
    assert [part.index.tolist() for part in parts] == [[0, 1], [2]]
    assert all(part["flag"].dtype == "boolean" for part in parts)
    with pytest.raises(
        InvalidDataError, match=r"t.parquet has no column 'txt'. Did you mean 'text'"
    ):
        next(read_batches(path, ["txt"]))


def test_a_damaged_parquet_file(write) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(InvalidDataError, match=r"t.csv is not a whole Parquet file"):
        read_table(write(b"PAR1 and no more"))


def test_without_pyarrow_the_install_command_is_shown(monkeypatch, write) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'reliablenet\[parquet\]'"):
        read_table(write(b"PAR1....PAR1"))


def test_without_zstandard_the_install_command_is_shown(monkeypatch, write) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match="pip install zstandard"):
        read_table(write(b"\x28\xb5\x2f\xfd...."))


def test_memory_does_not_grow_with_the_file(tmp_path) -> None:
    import tracemalloc

    path = tmp_path / "t.csv"
    with path.open("w") as file:
        file.write("a,b\n")
        for _ in range(20):
            file.write("1.25,some text\n" * BATCH_ROWS)
    peaks = []
    tracemalloc.start()
    try:
        for _ in read_batches(path):
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert len(peaks) == 20
    assert peaks[-1] < 1.5 * peaks[1]
