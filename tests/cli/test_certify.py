"""`reliablenet certify`, as typed, against the library in memory."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import reliablenet as rn


@pytest.fixture(scope="module")
def predictions(tmp_path_factory):
    """A file of predictions, and the same as arrays."""
    rng = np.random.default_rng(0)
    n = 3000
    top = rng.uniform(0.5, 1.0, n).round(3)  # with ties
    truth = rng.choice(["no", "yes"], n)
    other = np.where(truth == "no", "yes", "no")
    answer = np.where(rng.random(n) < top, truth, other)
    table = pd.DataFrame({"truth": truth, "answer": answer, "sure": top})
    table["p_no"] = np.where(answer == "no", top, 1 - top)
    table["p_yes"] = 1 - table["p_no"]
    path = tmp_path_factory.mktemp("predictions") / "p.csv"
    table.to_csv(path, index=False)
    return path, table


def test_a_model_on_fresh_rows(trained, loans, call) -> None:
    result = call(
        "certify", loans / "model.rnet", loans / "fresh.csv", "--target", "default", "--json"
    )
    model = rn.load(loans / "model.rnet")
    rows = pd.read_csv(loans / "fresh.csv", dtype={"code": str})
    rows["member"] = rows["member"].astype("boolean")
    expected = model.certify(rows[model.feature_names_in_], rows["default"])
    assert json.loads(result.stdout) == expected.to_dict()
    assert result.exit_code == (0 if expected.certified else 3)
    assert expected.kind == "fixed"
    strict = call(
        *("certify", loans / "model.rnet", loans / "fresh.csv", "--target", "default"),
        *("--alpha", "0.001"),
    )
    assert strict.exit_code == 3
    assert strict.stdout.startswith("Not certified: the model is not shown to keep its budget.")
    assert "  needed   " in strict.stdout


@pytest.mark.parametrize("how", ["label and score", "probabilities"])
@pytest.mark.parametrize("threshold", [None, 0.9])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_of_any_model(predictions, call, how, threshold, suffix) -> None:
    path, table = predictions
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
        path = path.with_suffix(".parquet")
        table.to_parquet(path)
    arguments = ["--predictions", path, "--label", "truth", "--alpha", "0.1", "--rho", "0.02"]
    columns = (
        ["--proba", "p_no,p_yes"]
        if how == "probabilities"
        else ["--predicted", "answer", "--score", "sure"]
    )
    rule = [] if threshold is None else ["--threshold", threshold]
    result = call("certify", *arguments, *columns, *rule, "--json")
    given = (
        {"proba": table[["p_no", "p_yes"]], "classes": np.array(["no", "yes"])}
        if how == "probabilities"
        else {"proba": None, "score": table["sure"], "predicted": table["answer"]}
    )
    proba = given.pop("proba")
    expected = (
        rn.certified_threshold(proba, table["truth"], 0.1, 0.02, **given)
        if threshold is None
        else rn.certify(proba, table["truth"], threshold, 0.1, 0.02, **given)
    )
    assert json.loads(result.stdout) == expected.to_dict()
    assert expected.errors > 20
    assert result.exit_code == (0 if expected.certified else 3)


def test_labels_that_are_numbers_match_columns_by_position(call, tmp_path) -> None:
    table = pd.DataFrame({"y": [0, 1] * 100, "low": [0.9, 0.2] * 100, "high": [0.1, 0.8] * 100})
    table.to_csv(tmp_path / "p.csv", index=False)
    result = call(
        "certify", "--predictions", tmp_path / "p.csv", "--label", "y", "--proba", "low,high"
    )
    assert result.exit_code == 0
    assert "0 errors in 200 rows" in result.stdout


def test_labels_of_other_types_are_compared_as_a_person_would(call, tmp_path) -> None:
    table = pd.DataFrame({"y": ["1", "0"] * 100, "p": [1.0, 0.0] * 100, "s": 0.9})
    table.to_csv(tmp_path / "p.csv", index=False)
    arguments = ("--label", "y", "--predicted", "p", "--score", "s")
    result = call("certify", "--predictions", tmp_path / "p.csv", *arguments)
    assert "0 errors in 200 rows" in result.stdout


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        (
            {"y": ["a", None], "p": "a", "s": 0.5},
            "--predicted p --score s",
            "missing in 1 of 2 rows",
        ),
        ({"y": ["a", "b"], "p": "a", "s": "x"}, "--predicted p --score s", "'s' must hold numbers"),
        (
            {"y": ["a", "b"], "p": "a", "s": [0.5, None]},
            "--predicted p --score s",
            "must be finite",
        ),
        ({"y": ["a", "b"], "p": "a", "s": 0.5}, "--predicted p --score t", "has no column 't'"),
        ({"y": ["a", "b"], "q": 0.5, "r": 0.5}, "--proba q,r", "neither the names nor the numbers"),
        ({"y": [0, 1], "q": 0.5, "r": 0.9}, "--proba q,r", "must sum to 1; row 0 sums to 1.4"),
        ({"y": [0, 1], "q": 3.5, "r": 0.9}, "--proba q,r", "If these are logits, apply a softmax"),
    ],
)
def test_predictions_that_prove_nothing(call, tmp_path, table, arguments, message) -> None:
    pd.DataFrame(table).to_csv(tmp_path / "p.csv", index=False)
    result = call(
        "certify", "--predictions", tmp_path / "p.csv", "--label", "y", *arguments.split()
    )
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_what_must_be_given_together(trained, loans, call, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for arguments in ([], [loans / "model.rnet"], [loans / "model.rnet", loans / "fresh.csv"]):
        result = call("certify", *arguments)
        assert result.exit_code == 2
        assert "give MODEL, DATA and --target" in result.stderr
    for arguments in ([], ["--label", "y"], ["--label", "y", "--predicted", "p"]):
        result = call("certify", "--predictions", "p.csv", *arguments)
        assert result.exit_code == 2
        assert "--predictions needs --label" in result.stderr


def test_labels_that_the_model_does_not_know_and_features_are_refused(trained, loans, call) -> None:
    model, rows = loans / "model.rnet", loans / "fresh.csv"
    result = call("certify", model, rows, "--target", "job")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: The model predicts from 'job', so that it is not the target.\n",
    )
    table = pd.read_csv(rows)
    table.assign(default="maybe").to_csv(loans / "maybe.csv", index=False)
    result = call("certify", model, loans / "maybe.csv", "--target", "default")
    assert result.exit_code == 2
    assert "labels that the model does not know: ['maybe']. It knows ['no', 'yes']" in result.stderr
