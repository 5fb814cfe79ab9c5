"""`predict --explain` and the columns of a report, as typed."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import reliablenet as rn
from reliablenet.tables import TabularEncoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model file, and new rows with an id."""
    place = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(size=2000), "job": rng.choice(["cook", "clerk"], 2000)})
    y = np.where(X["income"] + 0.5 * rng.normal(size=2000) > 0, "yes", "no")
    inner = make_pipeline(TabularEncoder(), LogisticRegression())
    rn.CertifiedThreshold(inner, random_state=0).fit(X, y).save(place / "model.rnet")
    new = X[:60].assign(number=range(60), threshold="mine")
    new.to_csv(place / "new.csv", index=False)
    return place


def test_reasons_stand_beside_the_decisions(folder, call) -> None:
    plain, why = folder / "plain.csv", folder / "why.csv"
    arguments = ("predict", folder / "model.rnet", folder / "new.csv", "--keep", "number", "--out")
    assert call(*arguments, plain).exit_code == 0
    result = call(*arguments, why, "--explain")
    assert result.exit_code == 0, result.output
    first, found = pd.read_csv(plain), pd.read_csv(why, keep_default_na=False)
    assert list(found) == [*first, "threshold", "lacking", "why", "lowered_by"]
    pd.testing.assert_frame_equal(found[list(first)], first)
    model = rn.load(folder / "model.rnet")
    expected = model.explain(pd.read_csv(folder / "new.csv")[["income", "job"]]).to_frame()
    assert found["lowered_by"].tolist() == expected["lowered_by"].tolist()
    deferred = found[~found["accepted"]]
    assert (deferred["why"] == "confidence").all()
    assert deferred["lowered_by"].str.contains("income = ").any()
    assert (found.loc[found["accepted"], "why"] == "").all()
    assert f"why rows are deferred: confidence ({len(deferred)})" in result.stderr


def test_json_counts_the_reasons_and_names_do_not_clash(folder, call) -> None:
    out = folder / "d.csv"
    arguments = ("predict", folder / "model.rnet", folder / "new.csv", "--out", out)
    said = json.loads(call(*arguments, "--explain", "--json").stdout)
    assert said["why"] == {"confidence": said["deferred"]}
    assert "why" not in json.loads(call(*arguments, "--json").stdout)
    assert call(*arguments, "--keep", "threshold").exit_code == 0
    refused = call(*arguments, "--keep", "threshold", "--explain")
    assert refused.exit_code != 0
    assert "has a column 'threshold', and decisions have one of that name too" in refused.stderr


def test_the_report_of_train_and_that_of_its_table_show_the_columns(trained, loans, call) -> None:
    assert "Which columns the decisions rest on" in (loans / "page.html").read_text()
    out = loans / "columns.html"
    table = ("--data", loans / "loans.csv", "--target", "default")
    assert call("report", loans / "model.rnet", *table, "--out", out).exit_code == 0
    assert '<section id="columns"' in out.read_text()
