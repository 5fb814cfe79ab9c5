"""Tables with a target as people have them: other case, no header, codes that look like numbers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from reliablenet.cli.labelled import read_labelled
from reliablenet.errors import ColumnWarning, InvalidDataError


@pytest.fixture
def path(tmp_path):
    table = pd.DataFrame({"Age": [30, 41, 52], "zip": [7, 12, 7], "who": "abc", "Late": [0, 1, 0]})
    table.to_csv(tmp_path / "t.csv", index=False)
    return str(tmp_path / "t.csv")


def test_columns_are_found_whatever_their_case(path) -> None:
    with pytest.warns(ColumnWarning, match="is used instead") as said:
        table = read_labelled(path, "late", group="WHO", by="age", drop="Zip", categorical="ZIP")
    assert (table.target, table.group, table.by, table.drop) == ("Late", "who", ("Age",), ("zip",))
    assert len(said) == 5
    features, labels = table.take()
    assert features.columns.tolist() == ["Age"]
    assert labels.tolist() == [0, 1, 0]
    assert table.groups is not None
    with pytest.raises(InvalidDataError, match=r"t.csv has no column 'latte'. Did you mean 'Late'"):
        read_labelled(path, "latte")


def test_codes_stay_as_they_are_written(path) -> None:
    assert read_labelled(path, "Late", categorical="zip").frame["zip"].tolist() == ["7", "12", "7"]
    with pytest.warns(ColumnWarning):
        table = read_labelled(path, "Late", categorical="ZIP")
    assert table.frame["zip"].tolist() == ["7", "12", "7"]


def test_a_model_of_a_table_without_header_and_its_codes(call, tmp_path) -> None:
    """Columns are numbered, a code is a category in training and in prediction, and an id comes along."""
    rng = np.random.default_rng(0)
    code, x = rng.choice([3, 11, 27], 900), rng.normal(size=900).round(3)
    y = np.where((code == 11) ^ (x > 0), "yes", "no")
    rows = pd.DataFrame(
        {"id": [f"{i:04d}" for i in rng.permutation(900)], "c": code, "x": x, "y": y}
    )
    rows[:800].to_csv(tmp_path / "t.csv", index=False, header=False)
    rows[800:].to_csv(tmp_path / "new.csv", index=False, header=False)
    model = tmp_path / "m.rnet"
    done = call(
        *("train", tmp_path / "t.csv", "--target", "3", "--no-header", "--categorical", "1"),
        *("--drop", "0", "--alpha", "20%", "--network", "mlp", "--out", model),
    )
    assert done.exit_code == 0, done.output
    wanted = ("predict", model, tmp_path / "new.csv", "--out", tmp_path / "d.csv")
    made = call(*wanted, "--no-header", "--keep", "0")
    assert made.exit_code == 0, made.output
    decided = pd.read_csv(tmp_path / "d.csv", dtype={"0": str})
    assert decided.columns.tolist() == ["0", "label", "confidence", "accepted"]
    assert decided["0"].tolist() == rows["id"][800:].tolist()
    assert (decided["label"].to_numpy() == y[800:]).mean() > 0.8
    everything = call(*wanted, "--no-header", "--keep", "all")
    assert everything.exit_code == 0, everything.output
    assert pd.read_csv(tmp_path / "d.csv").columns.tolist()[:4] == ["0", "1", "2", "3"]
    refused = call(*wanted)
    assert refused.exit_code == 2
    assert "new.csv has no" in refused.stderr


@pytest.mark.parametrize(
    ("column", "labels"),
    [("p_default", ["paid", "default"]), ("p", [0, 1]), ("score", [False, True])],
)
def test_one_probability_is_enough_for_two_classes(call, tmp_path, column, labels) -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(0.3, 0.3, 600)
    truth = np.array(labels, dtype=object)[(rng.random(600) < p).astype(int)]
    one = pd.DataFrame({"y": truth, column: p})
    one.to_csv(tmp_path / "one.csv", index=False)
    pd.DataFrame({"y": truth, f"q_{labels[0]}": 1 - p, f"q_{labels[1]}": p}).to_csv(
        tmp_path / "two.csv", index=False
    )

    def found(name: str, *more: str):
        return json.loads(
            call(
                "certify", "--predictions", tmp_path / name, "--label", "y", *more, "--json"
            ).stdout
        )

    single = found("one.csv", "--proba", column)
    both = found("two.csv", "--proba", f"q_{labels[0]},q_{labels[1]}")
    assert single["certified"]
    assert single == both
    turned = found("one.csv", "--proba", column, "--positive", str(labels[0]))
    assert turned["accepted"] < single["accepted"] / 2


def test_a_probability_whose_label_is_not_known_is_asked_for(call, tmp_path) -> None:
    table = pd.DataFrame({"y": ["good", "bad"] * 50, "p": [0.9, 0.2] * 50})
    table.to_csv(tmp_path / "t.csv", index=False)
    arguments = ("certify", "--predictions", tmp_path / "t.csv", "--label", "y", "--proba", "p")
    asked = call(*arguments)
    assert asked.exit_code == 2
    assert "Of which label is 'p' the probability? 'y' holds 'bad', 'good'" in asked.stderr
    assert call(*arguments, "--positive", "good").exit_code == 0
    assert "--positive needs" in call(*arguments[:-1], "p,q", "--positive", "good").stderr
    table.assign(p=2.0).to_csv(tmp_path / "t.csv", index=False)
    assert (
        "must hold probabilities, from 0 to 1; got 2"
        in call(*arguments, "--positive", "good").stderr
    )
    table.assign(y=["good", "bad", "ugly", "bad"] * 25).to_csv(tmp_path / "t.csv", index=False)
    assert "more than one other label" in call(*arguments, "--positive", "good").stderr
