"""A folder for MLflow: what it says, what our loader makes of it, and MLflow itself where it is installed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from graphs import mixed

import reliablenet as rn
from reliablenet.certificate.rule import Rule, Thresholds
from reliablenet.errors import InvalidParameterError
from reliablenet.export.mlflow import LOADER, example_row, metrics, write_folder
from reliablenet.serve import pyfunc

ROOT = Path(__file__).parents[2]
MLFLOW = ROOT / ".mlflow"  # what `make mlflow` installs, apart: its pins are not ours
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::reliablenet.errors.{name}")
    for name in (
        *("ReuseWarning", "NotCertifiedWarning", "LabelWarning", "OddInputWarning"),
        "EmptyCertificateWarning",
    )
]
X, Y = mixed(600)


@pytest.fixture(scope="module")
def model() -> rn.ERMClassifier:
    promise = rn.Promise.by_group(0.45, by="ward")
    clf = rn.ERMClassifier(promise=promise, epochs=3, random_state=0)
    wards = np.where(np.arange(len(X)) % 2, "north", "south")
    return clf.fit(X.assign(same=1), Y, by=wards)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("mlflow")
    write_folder(model, model.save(place / "m.rnet"), place / "model")
    return place / "model"


def test_the_folder_holds_no_pickle_and_says_what_goes_in_and_out(folder, model) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"MLmodel", "model.rnet", "certificate.json", "metrics.json"} < names
    assert not [name for name in names if name.endswith((".pkl", ".pickle"))]
    said = json.loads((folder / "MLmodel").read_text())
    assert said["flavors"]["python_function"]["loader_module"] == LOADER == pyfunc.__name__
    inputs = json.loads(said["signature"]["inputs"])
    assert {one["name"]: one["type"] for one in inputs} == {
        **dict.fromkeys(("age", "debt", "gain", "member"), "double"),
        **dict.fromkeys(("job", "town", "ward"), "string"),
    }
    certificate = rn.RuleCertificate.from_json((folder / "certificate.json").read_text())
    assert certificate == model.certificate_
    assert json.loads((folder / "metrics.json").read_text()) == metrics(certificate)


def test_the_example_can_be_decided_and_the_loader_decides_as_the_model(folder, model) -> None:
    loaded = pyfunc._load_pyfunc(str(folder / "model.rnet"))
    example = json.loads((folder / "input_example.json").read_text())
    row = pd.DataFrame(example["data"], columns=example["columns"])
    assert loaded.predict(row).columns.tolist() == ["label", "confidence", "accepted"]
    wards = np.where(np.arange(len(X)) % 3, "north", "elsewhere")
    found = loaded.predict(X.assign(ward=wards))
    ours = model.decide(X.assign(same=1), wards).to_frame()
    pd.testing.assert_frame_equal(found, ours)
    with pytest.raises(rn.errors.InvalidDataError, match="The input has no column 'ward'"):
        loaded.predict(X)


def test_the_example_is_of_a_group_that_the_rule_knows_also_where_columns_are_crossed() -> None:
    """It had no ward and no sex, so that nobody acts on it."""
    rule = Rule((Thresholds(("ward", "sex"), {"A, f": 0.9, "B, m": 0.8}),))
    model = SimpleNamespace(profile_=SimpleNamespace(columns=()), rule_=rule)
    row = example_row(model, {"ward": "string", "sex": "string"})
    assert row == {"ward": "A", "sex": "f"}


def test_arrays_have_a_tensor_for_a_signature(tmp_path) -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(300, 2))
    clf = rn.ERMClassifier(0.4, epochs=1, random_state=0).fit(rows, rows[:, 0] > 0)
    write_folder(clf, clf.save(tmp_path / "m.rnet"), tmp_path / "model")
    said = json.loads((tmp_path / "model" / "MLmodel").read_text())
    (tensor,) = json.loads(said["signature"]["inputs"])
    assert tensor["tensor-spec"] == {"dtype": "float64", "shape": [-1, 2]}
    assert json.loads(said["signature"]["outputs"])[0]["type"] == "boolean"
    found = pyfunc._load_pyfunc(str(tmp_path / "model" / "model.rnet")).predict(rows)
    assert found["label"].tolist() == clf.predict(rows).tolist()
    with pytest.raises(InvalidParameterError, match="must name a new folder"):
        write_folder(clf, tmp_path / "m.rnet", tmp_path / "model")


@pytest.mark.skipif(not MLFLOW.is_dir(), reason="needs MLflow, which is heavy: run `make mlflow`")
def test_mlflow_serves_it(folder, model, tmp_path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.pathsep.join([str(MLFLOW), *filter(None, sys.path)])
    command = ["models", "serve", "-m", folder, "--env-manager", "local", "-h", "127.0.0.1"]
    said = tmp_path / "server.log"
    with said.open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", *command, "-p", str(port)],
            env=os.environ | {"PYTHONPATH": path, "PATH": f"{MLFLOW / 'bin'}:{os.environ['PATH']}"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    wards = ["north", "south", "elsewhere"]
    rows = X.head(3).assign(ward=wards).astype(object).where(lambda table: table.notna(), None)
    body = json.dumps({"dataframe_split": rows.to_dict("split", index=False)}, default=float)
    try:
        answer = ask(port, body, server, said)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
    ours = model.decide(X.head(3).assign(same=1), np.array(wards)).to_frame()
    found = pd.DataFrame(answer["predictions"])[ours.columns.tolist()]
    pd.testing.assert_frame_equal(found, ours)


def ask(port: int, body: str, server: Any, said: Path) -> Any:
    """Send rows as soon as the server answers."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        assert server.poll() is None, said.read_text()
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("POST", "/invocations", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            return json.loads(text)
        except ConnectionError:
            time.sleep(0.5)
        finally:
            connection.close()
    raise AssertionError("MLflow did not answer")
