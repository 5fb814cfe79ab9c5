"""Tables, marked places and templates: all that the pages' scripts write is Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TEMPLATES = Path(__file__).with_name("templates")
PART = re.compile(
    r"(?P<begin><!-- (?P<name>\w+) -->\n)(?P<body>.*?)(?P<end><!-- end -->)", re.DOTALL
)

Part = Callable[[], str]
Columns = Mapping[str, Callable[[dict[str, Any]], str]]  # the heading, and a record's cell


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    left: Collection[str] | None = None,
) -> str:
    """Return a table; the columns named in ``left``, or the first, begin at the left, others end at the right."""
    named = headings[:1] if left is None else left
    lines = [headings, ["---" if name in named else "--:" for name in headings], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def record_table(
    columns: Columns, records: Iterable[dict[str, Any]], left: Collection[str] | None = None
) -> str:
    """Return a table with a line for each record."""
    rows = ([cell(record) for cell in columns.values()] for record in records)
    return table(list(columns), rows, left)


def bold(cell: str, yes: bool = True) -> str:
    """Return a cell in bold, or as it is."""
    return f"**{cell}**" if yes else cell


def percent(count: float, n: float) -> str:
    """Return a share, with more digits where it is small."""
    return f"{count / n:.1%}" if count / n >= 0.001 or not count else f"{count / n:.2%}"


def fill(text: str, parts: Mapping[str, Part]) -> str:
    """Return a page with what its marked places, ``<!-- name -->`` to ``<!-- end -->``, should hold."""

    def filled(place: re.Match[str]) -> str:
        if place["name"] not in parts:
            known = ", ".join(sorted(parts))
            raise KeyError(f"Nothing fills the place {place['name']}; there are {known}.")
        return place["begin"] + parts[place["name"]]().strip("\n") + "\n" + place["end"]

    return PART.sub(filled, text)


def sentence(name: str, **values: Any) -> str:
    """Return the text of this name in templates/parts.md with its values."""
    return _sentences()[name].format_map(values)


@cache
def _sentences() -> dict[str, str]:
    text = (TEMPLATES / "parts.md").read_text()
    return {place["name"]: place["body"] for place in PART.finditer(text)}
