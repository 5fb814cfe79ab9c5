"""Tables, marked places and templates of the pages."""

from __future__ import annotations

import pytest

from tools.docs.markdown import DOCS, PART, fill, percent, sentence, table
from tools.docs.pages import PARTS


def test_a_table_begins_its_named_columns_at_the_left():
    assert table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | --: |\n| x | 1 |"
    assert table(["a", "b"], [], left=("b",)) == "| a | b |\n| --: | --- |"


def test_a_marked_place_is_filled_and_what_is_around_it_stays():
    page = "Before.\n\n<!-- a -->\nold\n<!-- end -->\n\n<!-- a -->\n<!-- end -->\nAfter.\n"
    filled = fill(page, {"a": lambda: "new\n\n"})
    assert filled == page.replace("old\n", "").replace("-->\n<!-- end", "-->\nnew\n<!-- end")
    with pytest.raises(KeyError, match="Nothing fills the place a; there are b"):
        fill(page, {"b": str})


def test_small_shares_have_more_digits():
    assert [percent(count, 10_000) for count in (0, 5, 10, 512)] == [
        "0.0%",
        "0.05%",
        "0.1%",
        "5.1%",
    ]


def test_a_sentence_gets_its_values_and_misses_none():
    assert sentence("not_run", file="a.json") == "*Not run yet: there is no a.json.*\n"
    with pytest.raises(KeyError, match="file"):
        sentence("not_run")


def test_every_part_stands_on_a_page():
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    marked = {place["name"] for page in pages for place in PART.finditer(page.read_text())}
    assert set(PARTS) <= marked


def test_the_pages_folder_holds_pages_only():
    assert {path.suffix for path in DOCS.rglob("*") if path.is_file()} <= {".md", ".png", ".css"}
