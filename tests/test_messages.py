"""What the library says, as texts of its source: words that a caller of any kind understands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "reliablenet"
FLAG = re.compile(r"(?<![\w-])--[a-z]")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that are no docstrings, with their lines."""
    tree = ast.parse(path.read_text())
    bare = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in bare:
            yield node.lineno, node.value


def test_only_the_command_line_names_its_flags() -> None:
    found = [
        (path.relative_to(SOURCE).as_posix(), line, text)
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "cli"
        for line, text in texts(path)
        if FLAG.search(text)
    ]
    assert found == []


def test_flags_would_be_found() -> None:
    said = [text for _, text in texts(SOURCE / "cli" / "running.py") if FLAG.search(text)]
    assert any("--drop" in text for text in said)
