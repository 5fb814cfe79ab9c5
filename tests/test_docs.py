"""The pages under docs/ say what the data say, run as they stand, and lead nowhere in vain."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from launcher import Launcher, Process, launcher
from markdown import markdown as to_html
from PIL import Image
from trained_pages import disagreements

import reliablenet as rn
from reliablenet.datasets import load_dataset
from reliablenet.datasets.sources import DataFileError, data_folders
from tools.docs import datasets, figures, markdown, mathml, pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STEM = attrgetter("stem")
# Pages that train a model, and the rows behind their figures where they name none: those of a fold.
TRAINED = {
    "README.md": 153,
    "any-model.md": 750,
    "choose.md": 577,
    "index.md": 153,
    "tutorial.md": 900,
    "fixed-threshold.md": 900,
    "images.md": 269,
    "large-data.md": 1000,
    "own-loop.md": 1500,
    "several-processes.md": 600,
    "steer-training.md": 450,
}
RUN = """
import sys
from pathlib import Path

import torch
from tools.docs import pages

torch.set_num_threads(1)
page, folder, today, *pages.COMMANDS = map(Path, sys.argv[1:])
today.write_text(pages.run_page(pages.fill(page.read_text(), pages.PARTS), folder))
"""


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[Launcher]:
    """Starts commands as on a processor without vector instructions, whose sums end in other bits.

    Where the pages were written, their own bits would come out again and prove nothing.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    launcher = Launcher(ATEN_CPU_CAPABILITY="default", PYTHONPATH=path)
    yield launcher
    launcher.close()


@pytest.mark.parametrize("page", [p for p in pages.pages() if p.name in TRAINED], ids=STEM)
def test_the_blocks_of_a_page_that_trains_run_and_keep_its_promises(
    page, elsewhere, tmp_path
) -> None:
    folder, today = tmp_path / "work", tmp_path / "today.md"
    folder.mkdir()
    line = ["-c", RUN, str(page), str(folder), str(today), str(elsewhere.commands)]
    ended = Process(elsewhere, line, tmp_path, os.environ | {"ATEN_CPU_CAPABILITY": "default"})
    _, err = ended.communicate()
    assert ended.returncode == 0, err
    found = disagreements(page.read_text(), today.read_text(), TRAINED[page.name])
    assert found == [], "run: make docs-refresh"


@pytest.mark.parametrize("page", [p for p in pages.pages() if p.name not in TRAINED], ids=STEM)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch) -> None:
    if "$ reliablenet" in (shown := page.read_text()):
        monkeypatch.setattr(pages, "COMMANDS", [launcher().commands])
    today = pages.run_page(markdown.fill(shown, pages.PARTS), tmp_path)
    assert today == shown, "run: make docs-refresh"


def test_no_python_or_console_block_escapes_the_runner() -> None:
    for page in [pages.README, *DOCS.rglob("*.md")]:
        text = page.read_text()
        found = [block["language"] for block in pages.BLOCK.finditer(text)]
        for language in ("python", "console"):
            written = len(re.findall(rf"^[ \t>]*(?:```|~~~) ?{language}\b", text, re.MULTILINE))
            assert found.count(language) == written, f"an indented {language} block in {page.name}"


def test_the_runner_reports_a_stale_output_and_a_failing_command(tmp_path) -> None:
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert pages.run_page(page, tmp_path) == page.replace("3", "2")
    page = '```toml title="a.toml"\nx = 1\n```\n\n```console\n$ cat a.toml\nx = 2\n```\n'
    assert pages.run_page(page, tmp_path) == page.replace("x = 2", "x = 1")
    with pytest.raises(RuntimeError, match="`false` ended with 1"):
        pages.run_page("```console\n$ false\n```\n", tmp_path)
    with pytest.raises(ZeroDivisionError):
        pages.run_page("```python\n1 / 0\n```\n", tmp_path)


def test_dollars_around_latex_become_mathml_and_money_stays() -> None:
    extension = mathml.makeExtension()
    html = to_html(r"At $\alpha \le 0.05$ it costs $5 or $ 7; `$x$`.", extensions=[extension])
    assert html.count("<math") == 1
    assert "it costs $5 or $ 7; <code>$x$</code>" in html


def test_the_pictures_are_those_that_the_script_draws(tmp_path) -> None:
    figures.main(tmp_path)
    drawn = sorted(tmp_path.glob("*.png"))
    assert len(drawn) == len(figures.DRAWINGS)
    for path in drawn:
        new, old = (
            np.asarray(Image.open(file).convert("L"), float)
            for file in (path, DOCS / "images" / path.name)
        )
        assert new.shape == old.shape
        assert np.abs(new - old).mean() < 0.5, f"{path.name}: run make docs-refresh"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built strictly from a copy of what it is made of."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "src", "tests/theory", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    built = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr  # a broken link among others
    return folder / "site"


def test_every_page_is_built_and_in_the_menu(site) -> None:
    menu = (site / "index.html").read_text()
    for page in DOCS.rglob("*.md"):
        place = page.relative_to(DOCS).with_suffix(".html")
        place = place.with_name("index.html") if page.stem == "README" else place
        assert (site / place).is_file(), place
        if page.parent.name != "decisions" or page.stem == "README":
            assert re.search(rf'href="(?:\./)?{re.escape(str(place))}"', menu), place


def test_every_link_of_the_built_site_leads_somewhere(site) -> None:
    pages = {path: path.read_text() for path in site.rglob("*.html") if path.name != "404.html"}
    anchors = {path: set(re.findall(r'\bid="?([^"\s>]+)', text)) for path, text in pages.items()}
    checked = 0
    for path, text in pages.items():
        for link in re.findall(r'<(?:a|img)\b[^>]*?\b(?:href|src)="?([^"\s>]+)', text):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.exists(), f"{path.relative_to(site)} links to {link}"
            if anchor and target in anchors:
                assert anchor in anchors[target], f"{path.relative_to(site)} links to {link}"
            checked += 1
    assert checked > 500


def test_reading_the_site_needs_no_network(site) -> None:
    loaded = r'<(?:script|img|iframe|source)\b[^>]*\bsrc="?(\S+?)["\s>]|<link\b[^>]*\bhref="?(\S+?)["\s>]'
    for path in site.rglob("*.html"):
        for source, sheet in re.findall(loaded, path.read_text()):
            assert not re.match(r"(?:https?:)?//", source or sheet), f"{path.name}: {source}{sheet}"
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", path.read_text()), path.name


def test_mathematics_and_docstrings_are_in_the_site(site) -> None:
    theory = (site / "explanations" / "theory.html").read_text()
    assert theory.count("<math") > 100
    assert "$" not in re.sub(r"<(script|code|pre)\b.*?</\1>", "", theory, flags=re.DOTALL)
    reference = (site / "reference" / "certificates.html").read_text()
    assert 'id="reliablenet.certificate.threshold.certify"' in reference
    assert "Allowed failure probability" in reference or "allowed failure probability" in reference


def test_every_public_name_is_in_the_reference(site) -> None:
    text = "".join(path.read_text() for path in (site / "reference").glob("*.html"))
    documented = set(re.findall(r'id="reliablenet\.[\w.]*?(\w+)"', text))
    assert set(rn.__all__) - documented <= {"__version__", "metrics"}


def test_every_name_that_a_room_makes_public_is_in_the_reference() -> None:
    text = "".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    listed = {
        place.rpartition(".")[2] for place in re.findall(r"^::: ([\w.]+)", text, re.MULTILINE)
    }
    rooms = [getattr(rn, name) for name in dir(rn) if inspect.ismodule(getattr(rn, name))]
    public = {name for room in rooms for name in getattr(room, "__all__", ())}
    assert len(public) > 100
    assert public <= listed, f"not in docs/reference: {sorted(public - listed)}"


@pytest.mark.parametrize(
    "name", ["synthetic_band", "adult", "german_credit", "unsw_nb15", "coloured_mnist"]
)
def test_the_counts_of_the_datasets_page_are_those_of_the_data(name) -> None:
    folder = {"german_credit": "german", "coloured_mnist": "mnist"}.get(name, name)
    if name != "synthetic_band" and not any((data_folders()[0] / folder).glob("[!.]*")):
        pytest.skip(f"needs the files of {name}; set RELIABLENET_DATA")
    counts = datasets.counts(load_dataset(name))
    assert counts in (DOCS / "datasets.md").read_text()
    assert (DOCS / "images" / f"{name}.png").stat().st_size > 5000


def test_without_files_or_network_the_message_says_what_to_do(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("RELIABLENET_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert len(load_dataset("synthetic_band").folds.train) == 5000
    for name, file in (("adult", "adult.data"), ("unsw_nb15", "UNSW"), ("cifar10", "cifar-10")):
        with pytest.raises(
            DataFileError, match=rf"{file}.*RELIABLENET_DATA|RELIABLENET_DATA.*{file}"
        ):
            load_dataset(name)
