"""`export`, as typed."""

from __future__ import annotations

import json
from pathlib import Path

import onnxruntime
import pandas as pd
import pytest

import reliablenet as rn


@pytest.fixture(scope="module")
def model(loans, tmp_path_factory) -> Path:
    table = pd.read_csv(loans / "loans.csv")
    clf = rn.ERMClassifier(0.3, epochs=3, random_state=0)
    clf.fit(table[["debt", "job", "code"]], table["default"])
    return clf.save(tmp_path_factory.mktemp("export") / "model.rnet")


def test_a_model_becomes_a_graph_tried_on_its_own_table(model, loans, call, tmp_path) -> None:
    out = tmp_path / "model.onnx"
    done = call("export", model, "--to", "onnx", "--out", out, "--check", loans / "loans.csv")
    assert done.exit_code == 0, done.output
    assert "tried on 2,000 made-up rows and 1,500 rows of" in done.stdout
    count = rn.load(model).certificate_.n
    assert f"{count} certification rows among them" in done.stdout
    session = onnxruntime.InferenceSession(out)
    assert [one.name for one in session.get_inputs()] == ["debt", "job", "code"]


def test_a_model_becomes_a_folder_of_mlflow(model, call, tmp_path) -> None:
    out = tmp_path / "folder"
    done = call("export", model, "--to", "mlflow", "--out", out)
    assert done.exit_code == 0, done.output
    assert (out / "model.rnet").read_bytes() == model.read_bytes()
    assert json.loads((out / "MLmodel").read_text())["metadata"]["certificate"]["alpha"] == 0.3
    assert call("export", model, "--to", "mlflow", "--out", out).exit_code == 2


def test_mistakes_are_said_before_anything_is_written(model, call, tmp_path) -> None:
    out = tmp_path / "model.onnx"
    done = call("export", model, "--to", "word", "--out", out)
    assert done.exit_code == 2
    assert "must be one of onnx" in " ".join(done.stderr.split())
    assert call("export", tmp_path / "no.rnet", "--to", "onnx", "--out", out).exit_code == 5
    done = call("export", model, "--to", "onnx", "--out", out, "--check", tmp_path / "no.csv")
    assert done.exit_code == 5
    assert not out.exists()
