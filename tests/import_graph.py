"""Who imports whom in our package, in functions too, and the order of the rooms."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PACKAGE = "reliablenet"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
LAYERS = next(c["layers"] for c in SETTINGS["contracts"] if c["type"] == "layers")  # highest first


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path.read_text() for path in SOURCE.rglob("*.py")}


def imports(
    name: str, text: str, known: frozenset[str], *, hints: bool = True
) -> Iterator[tuple[str, int]]:
    """Yield each module of ours that a module imports anywhere in its text, and the line.

    Without ``hints`` those are left out that only a type checker reads.
    """
    nodes = list(ast.walk(ast.parse(text)))
    unread = {
        part
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not hints
        for statement in node.body
        for part in ast.walk(statement)
    }
    for node in nodes:
        if node in unread:
            continue
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}, line {node.lineno}: a relative import"
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            found = [arg.value for arg in node.args if is_text(arg)]
        for target in found:
            while target and target not in known:  # a name in a module
                target = target.rpartition(".")[0]
            if target:
                yield target, node.lineno


def called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def height(module: str, layers: list[str]) -> int:
    """Return the number of the layer from below; the package itself, which offers all, is on top."""
    if module == PACKAGE:
        return len(layers)
    places = [n for n, layer in enumerate(layers[::-1]) if f"{module}.".startswith(f"{layer}.")]
    return places[0] if places else -1  # what belongs to no layer may be imported by all
