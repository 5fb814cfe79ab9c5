"""predict and drift on the command line: what is odd, what is refused, and the exit code of a change."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import reliablenet as rn
from reliablenet.cli.app import app


def table(n, seed):
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"age": random.normal(40, 9, n), "job": random.choice(["clerk", "cook"], n)})
    return X, np.where(X["age"] + random.normal(0, 5, n) > 40, "yes", "no")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    fitted = rn.ERMClassifier(alpha=0.3, epochs=3, random_state=0).fit(*table(900, 0))
    return fitted.save(tmp_path_factory.mktemp("model") / "model.rnet")


def run(model, tmp_path, X, *words):
    X.to_csv(tmp_path / "new.csv", index=False)
    command, *options = words
    return CliRunner().invoke(app, [command, str(model), str(tmp_path / "new.csv"), *options])


def test_drift_ends_with_4_where_the_source_changed(model, tmp_path):
    X, _ = table(200, 1)
    same = run(model, tmp_path, X, "drift")
    assert same.exit_code == 0, same.output
    assert same.output.startswith("No change of the source is seen: 200 new rows")
    changed = run(model, tmp_path, X.assign(age=X["age"] + 20), "drift", "--json")
    assert changed.exit_code == 4
    found = json.loads(changed.output)
    assert found["changed"]
    assert "age" in found["where"]
    words = run(model, tmp_path, X.assign(age=X["age"] + 20), "drift")
    assert words.output.startswith("The source changed, in ")
    assert "promise" not in words.output
    assert run(model, tmp_path, X, "drift", "--level", "7").exit_code == 2


def test_predict_says_what_is_odd(model, tmp_path):
    X, _ = table(50, 2)
    X.loc[:9, "job"] = "pilot"
    out = ["--out", str(tmp_path / "decisions.csv")]
    said = run(model, tmp_path, X, "predict", *out)
    assert said.exit_code == 0
    assert "note: 10 of 50 rows are odd" in said.stderr
    assert "job: 10 values" in said.stderr
    careful = run(model, tmp_path, X, "predict", *out, "--defer-odd", "--json")
    found = json.loads(careful.stdout)
    assert found["oddities"]["odd"] == 10
    assert found["odd_deferred"]
    decisions = pd.read_csv(tmp_path / "decisions.csv")
    assert decisions["odd"].sum() == 10
    assert not decisions["accepted"][decisions["odd"]].any()


def test_an_empty_column_is_refused_unless_allowed(model, tmp_path):
    X, _ = table(50, 3)
    X["age"] = np.nan
    out = ["--out", str(tmp_path / "decisions.csv")]
    refused = run(model, tmp_path, X, "predict", *out)
    assert refused.exit_code == 2
    assert "Column 'age' is missing in all 50 rows" in refused.stderr
    assert not (tmp_path / "decisions.csv").exists()
    assert run(model, tmp_path, X, "predict", *out, "--allow-missing", "age").exit_code == 0
    assert "profile" in CliRunner().invoke(app, ["inspect", str(model)]).output
