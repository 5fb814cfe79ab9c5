"""Tables that no benchmark of ours has, as a newcomer brings them: train, inspect, predict."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_wine
from statsmodels.datasets import anes96, fair


def wine() -> tuple[pd.DataFrame, dict]:
    table, y = load_wine(return_X_y=True, as_frame=True)
    table["cultivar"] = y.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"})
    return table, {"sep": ";", "decimal": ",", "lineterminator": "\r\n", "encoding": "utf-8-sig"}


def digits() -> tuple[pd.DataFrame, dict]:
    table, y = load_digits(return_X_y=True, as_frame=True)
    rng = np.random.default_rng(0)
    noise = {f"noise {i}": rng.normal(size=len(y)) for i in range(36)}
    return table.assign(**noise, digit=y), {"sep": "\t"}  # 100 features


def affairs() -> tuple[pd.DataFrame, dict]:
    table = fair.load_pandas().data.sample(900, random_state=0)
    return table.assign(any=table["affairs"] > 0).drop(columns="affairs"), {"index": True}


def voters() -> tuple[pd.DataFrame, dict]:
    table = anes96.load_pandas().data
    table["respondent"] = [f"R-{i:05d}" for i in range(len(table))]
    table["interviewed"] = pd.date_range("1996-09-03", periods=len(table), freq="h").strftime(
        "%d/%m/%Y %H:%M"
    )
    table["remark"] = [None, "moved, then called back"] * (len(table) // 2)
    table["mood"] = np.where(np.arange(len(table)) % 3, "fine", "7")
    table.loc[table.index[::11], ["educ", "mood"]] = None
    return table, {"compression": "gzip"}


TABLES = {
    "wine": (wine, "cultivar", 0.1, ""),
    "digits": (digits, "digit", 0.1, ""),
    "affairs": (affairs, "any", 0.3, ""),
    "voters": (voters, "vote", 0.2, "popul"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_newcomers_table(name, call, tmp_path) -> None:
    make, target, alpha, drop = TABLES[name]
    table, style = make()
    path = tmp_path / "table.csv"
    table.to_csv(path, **({"index": False} | style))
    out = tmp_path / "m.rnet"
    made = call(
        *("train", path, "--target", target, "--alpha", alpha, "--drop", drop, "--out", out),
        "--json",
    )
    assert made.exit_code == 0, made.output
    found = json.loads(call("inspect", out, "--json").stdout)
    features = found["features"]
    if name == "wine":
        assert len(features["numbers"]) == 13
        assert found["classes"] == ["Barbera", "Barolo", "Grignolino"]
    if name == "digits":
        assert found["classes"] == list(range(10))
        assert len(features["numbers"]) + len(features["left_out"]) == 100
        assert set(features["left_out"].values()) == {"it does not vary"}
    if name == "affairs":
        assert found["classes"] == [False, True]
        assert "Unnamed: 0" in features["left_out"]
    if name == "voters":
        assert set(features["left_out"]) == {"respondent"}
        assert features["dates"] == ["interviewed"]
        # one text or none: that it is missing may tell something
        assert sorted(features["categories"]) == ["mood", "remark"]
        assert "popul" not in features["numbers"]
    new = tmp_path / "new.csv"
    table.drop(columns=target).head(50).to_csv(new, **({"index": False} | style))
    told = call("predict", out, new, "--out", tmp_path / "d.csv")
    assert told.exit_code == 0, told.output
    decisions = pd.read_csv(tmp_path / "d.csv")
    assert decisions["accepted"].sum() > 10
    right = decisions["label"].to_numpy() == table[target].head(50).to_numpy()
    assert (right[decisions["accepted"]]).mean() > 0.6
