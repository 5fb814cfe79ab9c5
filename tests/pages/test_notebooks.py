"""The tutorials as notebooks: they are those of the pages, and run from top to bottom in a process of their own."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from launcher import Process, launcher

from tools.docs import notebooks
from tools.docs.markdown import ROOT
from tools.docs.pages import BLOCK

NOTEBOOKS = [notebooks.FOLDER / page.with_suffix(".ipynb").name for page in notebooks.PAGES]
# What Jupyter does with the cells that we write: two of its magics, and Python in one namespace.
RUN = """
import json, subprocess, sys
from pathlib import Path

names = {"__name__": "__main__"}
for cell in json.loads(Path(sys.argv[1]).read_text())["cells"]:
    code = "".join(cell["source"])
    magic, _, body = code.partition("\\n")
    if cell["cell_type"] != "code":
        continue
    if magic == "%%bash":
        subprocess.run(["bash", "-c", body], check=True)
    elif magic.startswith("%%writefile "):
        Path(magic.split()[1]).write_text(body + "\\n")
    else:
        exec(compile(code, cell["id"], "exec"), names)
"""


def read(path: Path) -> dict:
    return json.loads(path.read_text())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_that_of_its_page(path, tmp_path) -> None:
    made = {new.name: new.read_text() for new in notebooks.main(tmp_path)}
    assert path.read_text() == made[path.name], "run: make docs-refresh"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_the_form_that_jupyter_reads(path) -> None:
    """The schema of nbformat 4.5, for the two kinds of cells that there are."""
    notebook = read(path)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    common = {"cell_type", "id", "metadata", "source"}
    for cell in notebook["cells"]:
        code = cell["cell_type"] == "code"
        assert set(cell) == common | ({"execution_count", "outputs"} if code else set())
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert all(isinstance(line, str) for line in cell["source"])
        assert not code or (cell["outputs"], cell["execution_count"]) == ([], None)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("page", notebooks.PAGES, ids=lambda page: page.stem)
def test_no_block_that_runs_is_lost(page) -> None:
    blocks = [b for b in BLOCK.finditer(page.read_text()) if b["language"] in ("python", "console")]
    cells = [c for c in notebooks.make_notebook(page.read_text())["cells"] if "outputs" in c]
    assert len(cells) == len(blocks) > 8


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_links_of_a_notebook_lead_to_files(path) -> None:
    text = "".join(line for cell in read(path)["cells"] for line in cell["source"])
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not re.match(r"\w+:", link)]
    assert links
    for link in links:
        assert (path.parent / link).resolve().is_relative_to(ROOT)
        assert (path.parent / link).is_file(), link


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path, tmp_path) -> None:
    folders = [launcher().commands, Path(sys.executable).parent, os.environ["PATH"]]
    settings = {"PATH": os.pathsep.join(map(str, folders))}
    process = Process(launcher(), ["-c", RUN, str(path)], tmp_path, os.environ | settings)
    out, err = process.communicate(timeout=800)
    assert process.returncode == 0, err
    assert "exit code" in out
