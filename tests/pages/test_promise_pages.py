"""The command of a page on a promise makes the promise that its Python makes."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer.main

import reliablenet as rn
from reliablenet.cli.app import app
from reliablenet.cli.options import names as options_names
from reliablenet.cli.promises import make_promise
from tools.docs.markdown import DOCS
from tools.docs.pages import BLOCK, TITLE

PAGES = [page for page in sorted((DOCS / "promises").glob("*.md")) if page.stem != "choose"]
ROW = re.compile(r"^\| [\w ]+ \| (`--.*) \|$", re.MULTILINE)


def parsed(options: list[str]) -> rn.Promise | None:
    """Return the promise of `train` with these options, as its parser reads them."""
    train = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]
    values = train.make_context("train", options).params
    values["by"] = options_names(values["by"])
    names = ("alpha", "promise", "by", "budget", "costs", "common")
    return make_promise(*(values[name] for name in names))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_command_of_a_page_makes_the_promise_of_its_python(page, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = list(BLOCK.finditer(page.read_text()))
    for block in blocks:
        if title := TITLE.search(block["options"]):
            Path(title[1]).write_text(block["body"])
    names = {"rn": rn}
    for block in blocks:
        if block["language"] == "python":
            for line in ast.parse(block["body"]).body:
                targets = [t.id for t in getattr(line, "targets", []) if isinstance(t, ast.Name)]
                if {"promise", "matrix"} & set(targets) and targets[0] not in names:
                    exec(ast.unparse(line), names)  # noqa: S102 - the page is ours
    shown = [block["body"] for block in blocks if block["language"] == "sh"]
    commands = [shlex.split(body.replace("\\\n", "")) for body in shown]
    assert len(commands) == 1
    program, command, table, *options = commands[0]
    assert (program, command) == ("reliablenet", "train")
    Path(table).write_text("")
    made = parsed([table, *options]) or rn.Promise.overall(0.05)
    assert made == names["promise"]


def test_the_overview_shows_options_that_train_takes(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("")
    Path("costs.csv").write_text("truth,a,b\na,0,5\nb,9,0\n")
    shown = [
        re.findall(r"`(--[^`]*)`", row)
        for row in ROW.findall((DOCS / "promises" / "choose.md").read_text())
    ]
    assert len(shown) == len(PAGES)
    for first, *more in shown:
        for options in [first, *(f"{first} {other}" for other in more)]:
            asked = shlex.split(options)
            made = parsed(["table.csv", "--target", "y", "--out", "m.rnet", *asked])
            assert (made is None) == (asked[0] == "--alpha")
