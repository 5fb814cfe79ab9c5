"""Commands for models that predict numbers: train --tolerance, predict, certify, inspect."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import reliablenet as rn


def flats(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size, street = rng.uniform(30, 120, n).round(1), rng.choice(["old", "new"], n)
    price = size * 3 * np.exp(rng.normal(0, np.where(street == "new", 0.02, 0.3)))
    return pd.DataFrame({"size": size, "street": street, "price": price.round(2)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory, call):
    place = tmp_path_factory.mktemp("flats")
    flats(1200, 0).to_csv(place / "flats.csv", index=False)
    flats(800, 1).to_csv(place / "sold.csv", index=False)
    done = call(
        *(
            "train",
            place / "flats.csv",
            "--target",
            "price",
            "--tolerance",
            "15%",
            "--alpha",
            "0.1",
        ),
        *("--out", place / "m.rnet", "--report", place / "m.html"),
    )
    assert done.exit_code == 0, done.output
    return place, done


def test_train_says_what_is_promised(folder) -> None:
    place, done = folder
    assert "with an error above 15 % of the truth on at most 10 % of all rows" in done.stdout
    model = rn.load(place / "m.rnet")
    assert isinstance(model, rn.ReliableRegressor)
    page = (place / "m.html").read_text()
    assert "a number" in page
    assert "estimated chance of being right" in page


def test_predict_writes_values(folder, call) -> None:
    place, _ = folder
    done = call("predict", place / "m.rnet", place / "sold.csv", "--out", place / "d.csv")
    assert done.exit_code == 0, done.output
    written = pd.read_csv(place / "d.csv")
    assert written.columns.tolist()[:3] == ["value", "confidence", "accepted"]
    new = (flats(800, 1)["street"] == "new").to_numpy()
    assert written["accepted"][new].mean() > written["accepted"][~new].mean()


def test_certify_counts_on_fresh_rows(folder, call) -> None:
    place, _ = folder
    line = ("certify", place / "m.rnet", place / "sold.csv", "--target", "price", "--json")
    found = json.loads(call(*line).stdout)
    model, table = rn.load(place / "m.rnet"), flats(800, 1)
    decided = model.decide(table[["size", "street"]])
    wrong = np.abs(decided.value - table["price"]) > 0.15 * table["price"]
    assert found["errors"] == int((wrong & decided.accepted).sum())
    assert found["tolerance"] == "15 % of the truth"
    again = call("certify", place / "m.rnet", place / "flats.csv", "--target", "price")
    assert again.exit_code != 0
    assert "given to `fit` already" in again.output


def test_inspect_says_that_it_predicts_a_number(folder, call) -> None:
    place, _ = folder
    shown = call("inspect", place / "m.rnet")
    assert "a number, right within 15 % of the truth" in shown.stdout
    assert json.loads(call("inspect", place / "m.rnet", "--json").stdout)["classes"] is None


@pytest.mark.parametrize("tolerance", ["0", "-3", "0%", "100%", "nan"])
def test_a_bad_tolerance_is_refused_before_anything_is_read(call, tmp_path, tolerance) -> None:
    done = call(
        *("train", "nowhere.csv", "--target", "price", f"--tolerance={tolerance}"),
        *("--out", tmp_path / "m.rnet"),
    )
    assert done.exit_code == 2
    assert f"got {tolerance}." in done.output


def test_a_target_of_text_and_a_column_that_is_not_there(folder, call, tmp_path) -> None:
    place, _ = folder
    out = ("--out", tmp_path / "m.rnet")
    done = call("train", place / "flats.csv", "--target", "street", "--tolerance", "5", *out)
    assert done.exit_code != 0
    assert "must hold finite numbers" in done.output
    done = call("train", place / "flats.csv", "--target", "price", "--tolerance", "allowed", *out)
    assert done.exit_code != 0
    assert "names the column 'allowed'" in done.output


def test_compare_hands_out_the_best_regressor(folder, call) -> None:
    place, _ = folder
    done = call(
        *("compare", place / "flats.csv", "--target", "price", "--tolerance", "15%"),
        *("--alpha", "0.1", "--methods", "ridge", "--save-best", place / "best.rnet", "--json"),
    )
    found = json.loads(done.stdout)
    assert found["best"] == "ridge"
    assert "right: off by no more than 15 % of the truth" in found["sentence"]
    assert rn.load(place / "best.rnet").certificate_.tolerance == "15 % of the truth"
