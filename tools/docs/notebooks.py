"""Write the tutorials as notebooks: make docs-refresh.

The page is the one source. Its text becomes cells of text, and its blocks cells of code: Python as it is, commands under
``%%bash``, files under ``%%writefile``. What a page shows as printed is left out, for a notebook prints it itself.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from tools.docs.markdown import DOCS, ROOT
from tools.docs.pages import BLOCK, TITLE

PAGES = (DOCS / "tutorial.md", DOCS / "production.md")
FOLDER = ROOT / "examples"
LINK = re.compile(r"\]\((?!\w+:|#)([^)#]+)")


def main(folder: Path = FOLDER) -> list[Path]:
    """Write all notebooks into a folder and return their paths."""
    return [write_notebook(page, folder) for page in PAGES]


def write_notebook(page: Path, folder: Path) -> Path:
    """Write the notebook of a page and return its path."""
    path = folder / page.with_suffix(".ipynb").name
    content = make_notebook(moved(page.read_text(), page.parent))
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return path


def make_notebook(text: str) -> dict[str, Any]:
    """Return a page as a notebook of format 4.5, without outputs."""
    cells: list[dict[str, Any]] = []
    end = 0
    for block in BLOCK.finditer(text):
        code = code_of(block)
        printed = block["language"] == "text"
        if code is None and not printed:
            continue  # a command to read, not to run: it stays in the text
        add_cell(cells, "markdown", text[end : block.start()])
        if code is not None:
            add_cell(cells, "code", code)
        end = block.end()
    add_cell(cells, "markdown", text[end:])
    language = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": language},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def code_of(block: re.Match[str]) -> str | None:
    """Return what a block is as a cell of code; None if it is none."""
    if title := TITLE.search(block["options"]):
        return f"%%writefile {title[1]}\n{block['body']}"
    if block["language"] == "console":
        commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block["body"], re.MULTILINE)
        return "%%bash\n" + "\n".join(commands)
    return block["body"] if block["language"] == "python" else None


def add_cell(cells: list[dict[str, Any]], kind: str, source: str) -> None:
    """Add a cell unless it would be empty."""
    if not (source := source.strip("\n")):
        return
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    cells.append(cell | {"source": source.splitlines(keepends=True)})


def moved(text: str, place: Path) -> str:
    """Return a page whose links to other pages lead there from the notebooks' folder."""
    way = os.path.relpath(place, FOLDER)
    return LINK.sub(lambda link: f"]({way}/{link[1]}", text)


if __name__ == "__main__":
    main()
