"""The pages under docs/ say what the data say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from reliablenet.data import load_dataset
from reliablenet.data.files import DataFileError, data_folders

DOCS = Path(__file__).parents[1] / "docs"


def refresh_datasets():
    spec = importlib.util.spec_from_file_location("refresh", DOCS / "refresh_datasets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", ["synthetic_band", "adult", "german_credit", "unsw_nb15", "coloured_mnist"]
)
def test_the_counts_of_the_datasets_page_are_those_of_the_data(name) -> None:
    folder = {"german_credit": "german", "coloured_mnist": "mnist"}.get(name, name)
    if name != "synthetic_band" and not (data_folders()[0] / folder).is_dir():
        pytest.skip(f"needs the files of {name}; set RELIABLENET_DATA")
    counts = refresh_datasets().counts(load_dataset(name))
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
