"""Who bears the mistakes of a fitted method: on the certification fold, on fresh rows, after a file."""

from __future__ import annotations

import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.tables import TabularEncoder


def people(n, seed):
    """Rows whose label can be learned, but for those from the south."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.normal(size=n),
            "region": rng.choice(["north", "south"], n, p=[0.8, 0.2]),
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(1500, size=n), "D"),
        }
    ).assign(joined=lambda frame: frame["joined"].dt.strftime("%Y-%m-%d"))
    noise = np.where(table["region"] == "south", 3.0, 0.3) * rng.normal(size=n)
    return table, np.where(table["income"] + noise > 0, "yes", "no")


@pytest.fixture(scope="module")
def model():
    inner = make_pipeline(TabularEncoder(), LogisticRegression())
    return rn.CertifiedThreshold(inner, alpha=0.1, random_state=0).fit(*people(3000, 0))


def test_the_fold_is_broken_down_by_its_columns(model) -> None:
    found, certificate = model.breakdown_, model.certificate_
    assert (found.whole.n, found.whole.accepted, found.whole.errors) == (
        certificate.n,
        certificate.accepted,
        certificate.errors,
    )
    assert {cell.column for cell in found.cells} == {
        "true class",
        "predicted class",
        "income",
        "region",
        "joined",
    }
    south = next(cell for cell in found.cells if cell.value == "south")
    assert found.is_clear(south)
    assert any(line.startswith("region = south") for line in found.summary())


def test_fresh_rows_fall_into_the_same_cells(model) -> None:
    X, y = people(800, 1)
    found = model.breakdown(X, y)
    assert found.cuts == model.breakdown_.cuts
    wrong = model.accept(X) & (model.predict(X) != y)
    south = next(cell for cell in found.cells if cell.value == "south")
    assert south.errors == wrong[X["region"] == "south"].sum()
    other = model.breakdown(X, y, by={"half": np.arange(800) < 400})
    assert [cell.value for cell in other.cells if cell.column == "half"] == ["False", "True"]


def test_a_file_keeps_it_and_older_files_have_classes(model, tmp_path, monkeypatch) -> None:
    loaded = rn.load(model.save(tmp_path / "model.rnet"))
    assert loaded.breakdown_ == model.breakdown_
    with zipfile.ZipFile(tmp_path / "model.rnet") as archive:
        assert b"south" in archive.read("manifest.json")
    monkeypatch.setattr(model, "_fold_breakdown", None)
    older = rn.load(model.save(tmp_path / "older.rnet"))
    assert {cell.column for cell in older.breakdown_.cells} == {"true class", "predicted class"}
    assert older.breakdown_.whole == model.breakdown_.whole


def test_counts_of_another_rule_are_not_shown(model, monkeypatch) -> None:
    monkeypatch.setattr(model, "threshold_", 0.9999)
    monkeypatch.setattr(model, "certificate_", model.certificate_)
    assert {cell.column for cell in model.breakdown_.cells} == {"true class", "predicted class"}


def test_arrays_have_numbered_columns_and_images_none() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=600) > 0).astype(int)
    fitted = rn.CertifiedThreshold(LogisticRegression(), alpha=0.1, random_state=0).fit(X, y)
    assert {cell.column for cell in fitted.breakdown_.cells} >= {"0", "1", "2"}
