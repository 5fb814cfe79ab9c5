"""Run every block of the README and of every page, and write down what it prints: make docs-refresh.

A page is run from top to bottom, in one namespace and in one folder of its own, as a reader would do.

* a block marked ``python`` is executed; a block marked ``text`` right below shows what it printed;
* in a block marked ``console``, lines that begin with ``$ `` are commands, the rest is their output;
* a block with a ``title`` is a file of that name.
* Between ``<!-- name -->`` and ``<!-- end -->`` stands what the function of that name in `PARTS` returns.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reliablenet import errors
from reliablenet.methods import ledger
from tools.docs import (
    default_tables,
    guarantee_tables,
    monitor_tables,
    number_tables,
    promise_tables,
    quality_tables,
    release_tables,
    speed_tables,
    team_tables,
    text_tables,
)
from tools.docs.markdown import DOCS, PART, ROOT, fill

README = ROOT / "README.md"
PARTS = (
    default_tables.PARTS
    | guarantee_tables.PARTS
    | monitor_tables.PARTS
    | number_tables.PARTS
    | promise_tables.PARTS
    | quality_tables.PARTS
    | release_tables.PARTS
    | speed_tables.PARTS
    | team_tables.PARTS
    | text_tables.PARTS
)
BLOCK = re.compile(
    r"^```(?P<language>\w+)(?P<options>[^\n`]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
TITLE = re.compile(r'title="([^"]+)"')
WIDTH = 84  # what fits into a page
COMMANDS: list[
    Path
] = []  # folders with commands of console blocks, before those of this interpreter


def main(names: list[str]) -> None:
    """Refresh the named pages, or all."""
    import torch

    torch.set_num_threads(1)  # as the tests do: sums depend on it
    for path in [Path(name).resolve() for name in names] or pages():
        text = path.read_text()
        with tempfile.TemporaryDirectory() as folder:
            fresh = run_page(fill(text, PARTS), Path(folder))
        if fresh != text:
            path.write_text(fresh)
            sys.stderr.write(f"{path.relative_to(ROOT)} refreshed\n")


def pages() -> list[Path]:
    """Return the pages with something to run or to fill in, but that of the datasets, which needs their files."""
    found = [README, *sorted(DOCS.rglob("*.md"))]
    found.remove(DOCS / "datasets.md")
    return [path for path in found if runs(text := path.read_text()) or PART.search(text)]


def runs(text: str) -> bool:
    """Tell whether a page has a block to run."""
    return any(block["language"] in ("python", "console") for block in BLOCK.finditer(text))


def run_page(text: str, folder: Path) -> str:
    """Return a page as its blocks, run in a folder, make it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    ledger.clear()  # a page is read in a process of its own
    parts, end, printed, printed_at = [], 0, "", -1
    with inside(folder):
        for block in BLOCK.finditer(text):
            body, title = block["body"], TITLE.search(block["options"])
            follows = not text[printed_at : block.start()].strip()
            if title:
                Path(title[1]).write_text(body)
            elif block["language"] == "python":
                printed, printed_at = execute(body, names), block.end()
            elif block["language"] == "console":
                body = converse(body)
            elif block["language"] == "text" and printed_at >= 0 and follows:
                body = printed
            parts += [text[end : block.start("body")], body]
            end = block.end("body")
    return "".join([*parts, text[end:]])


def execute(code: str, names: dict[str, Any]) -> str:
    """Execute Python code and return what it printed, warnings of ours among it."""
    output = io.StringIO()

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        text = textwrap.fill(f"{category.__name__}: {message}", WIDTH, break_on_hyphens=False)
        output.write(text + "\n")

    with contextlib.redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in vars(errors).values():
            if isinstance(category, type) and issubclass(category, Warning):
                warnings.filterwarnings("always", category=category)
        warnings.showwarning = show  # type: ignore[assignment]
        exec(compile(code, "<page>", "exec"), names)  # noqa: S102
    return output.getvalue()


def converse(body: str) -> str:
    """Run the commands of a console block and return the block with what they print."""
    lines = []
    for command in re.findall(r"^\$ ((?:.*\\\n)*.*)$", body, re.MULTILINE):
        settings = {"OMP_NUM_THREADS": "1", "COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
        folders = [*map(str, COMMANDS), str(Path(sys.executable).parent), os.environ["PATH"]]
        ended = subprocess.run(  # noqa: S602 - the pages are ours
            command,
            shell=True,
            env=os.environ | settings | {"PATH": os.pathsep.join(folders)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        if ended.returncode:
            raise RuntimeError(f"`{command}` ended with {ended.returncode}:\n{ended.stdout}")
        output = "\n".join(line.rstrip() for line in ended.stdout.strip("\n").splitlines())
        lines.append(f"$ {command}\n" + (output + "\n" if output else ""))
    return "".join(lines)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, without the user's data folder: pages need no files but their own."""
    data = os.environ.pop("RELIABLENET_DATA", None)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        if data is not None:
            os.environ["RELIABLENET_DATA"] = data


if __name__ == "__main__":
    main(sys.argv[1:])
