"""A folder that cannot be written to: said before the work, or at once, with its name."""

from __future__ import annotations

import sys

import pytest

import reliablenet as rn
from reliablenet.bench import Store, run_jobs
from reliablenet.report import write_page

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts a folder")


def test_library_and_commands(read_only, model, tables, start) -> None:
    fitted, folder = rn.load(model), read_only()
    with pytest.raises(OSError, match=f"Read-only file system: '{folder}/m.rnet'"):
        fitted.save(folder / "m.rnet")
    with pytest.raises(OSError, match=f"Read-only file system: '{folder}/page.html'"):
        write_page("<p>", folder / "page.html")
    with pytest.raises(
        rn.errors.DataFileError, match=f"Results cannot be written to {folder}/tiny: Read-only"
    ):
        run_jobs([], Store(folder / "tiny"))
    commands = {
        "cannot be written to": [
            ("train", tables / "large.csv", "--target", "y", "--out", folder / "m.rnet"),
            ("predict", model, tables / "large-rows.csv", "--out", folder / "d.csv"),
            ("report", model, "--out", folder / "page.html"),
        ],
        "Read-only file system": [
            ("bench", "run", "--profile", tables / "tiny.toml", "--results", folder),
            ("demo", "--out", folder / "demo"),
        ],
    }
    for message, lines in commands.items():
        for begun in [start(*line, COLUMNS="400") for line in lines]:
            code, out, err = begun.end()
            assert code in (2, 5), err
            assert message in err
            assert str(folder) in err
            assert "Traceback" not in err
            assert "1. Synthetic Band" not in out  # no work was done in vain
    assert list(folder.iterdir()) == []


def test_a_model_is_used_from_a_read_only_folder(read_only, model) -> None:
    (read_only.folder / "m.rnet").write_bytes(model.read_bytes())
    assert rn.load(read_only() / "m.rnet").threshold_ == rn.load(model).threshold_
