"""A promise by group from the command line: trained, inspected, decided, certified, reported."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import reliablenet as rn


def make_table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    site = rng.choice([1, 2, 30], n, p=[0.5, 0.48, 0.02])
    x = rng.normal(size=(n, 2)).round(4)
    noise = np.where(site == 1, 0.4, 1.0) * rng.normal(size=n)
    late = np.where(x.sum(axis=1) + noise > 0, "yes", "no")
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "site": site, "late": late})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("promises")
    make_table(2500, 0).to_csv(folder / "t.csv", index=False)
    make_table(3000, 1).to_csv(folder / "fresh.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def trained(folder: Path, call):
    """The group is no feature, and is read all the same."""
    result = call(
        *("train", folder / "t.csv", "--target", "late", "--by", "site", "--drop", "site"),
        *("--alpha", 0.06, "--network", "mlp", "--out", folder / "m.rnet"),
        *("--report", folder / "page.html"),
    )
    assert result.exit_code == 0, result.output
    return result


def test_train_says_what_is_promised_to_whom(trained, folder: Path) -> None:
    first, *lines = trained.stdout.splitlines()
    assert "in every group of site, at most 6 % of the rows are acted on wrongly" in first
    assert first.endswith("deferred: site=30.")
    assert any(line.split() == ["acts,", "30", "never"] for line in lines)
    model = rn.load(folder / "m.rnet")
    assert list(model.feature_names_in_) == ["a", "b"]
    assert set(model.rule_.thresholds) == {"1", "2", "30"}
    page = (folder / "page.html").read_text()
    assert "The promise, part by part" in page
    assert "site=30" in page


def test_inspect_names_the_promise(trained, folder: Path, call) -> None:
    result = call("inspect", folder / "m.rnet", "--json")
    contents = json.loads(result.stdout)
    assert contents["promise"].startswith("in every group of site")
    assert contents["certificate"]["format"] == "reliablenet-rule-certificate/1"


def test_predict_reads_the_group_column(trained, folder: Path, call, tmp_path: Path) -> None:
    out = tmp_path / "d.csv"
    said = call("predict", folder / "m.rnet", folder / "fresh.csv", "--out", out)
    assert said.exit_code == 0
    fresh, made = pd.read_csv(folder / "fresh.csv"), pd.read_csv(out)
    assert not made.accepted[fresh.site == 30].any()
    assert made.accepted[fresh.site == 1].mean() > made.accepted[fresh.site == 2].mean() > 0
    model = rn.load(folder / "m.rnet")
    ours = model.decide(fresh[["a", "b"]], by=fresh.site.astype(str))
    assert ours.accepted.tolist() == made.accepted.tolist()
    rare = (fresh.site == 30).sum()
    assert f"rows whose group has no certificate are deferred: 30 ({rare})." in said.stderr


def test_predict_counts_groups_that_are_new_or_missing(
    trained, folder: Path, call, tmp_path: Path
) -> None:
    table = pd.read_csv(folder / "fresh.csv").head(20).astype({"site": object})
    table["site"] = ["7"] * 3 + [None] * 2 + ["1"] * 15
    table.to_csv(tmp_path / "new.csv", index=False)
    said = call(
        "predict", folder / "m.rnet", tmp_path / "new.csv", "--out", tmp_path / "d.csv", "--json"
    )
    assert json.loads(said.stdout)["without_certificate"] == {"7": 3, "missing": 2}
    assert not pd.read_csv(tmp_path / "d.csv").accepted[:5].any()


def test_predict_without_the_group_column_says_which(
    trained, folder: Path, call, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.csv"
    pd.read_csv(folder / "fresh.csv").drop(columns="site").to_csv(bare, index=False)
    result = call("predict", folder / "m.rnet", bare, "--out", tmp_path / "d.csv")
    assert result.exit_code != 0
    assert "site" in str(result.exception) + result.output


def test_certify_tries_the_rule_on_fresh_rows(trained, folder: Path, call) -> None:
    result = call("certify", folder / "m.rnet", folder / "fresh.csv", "--target", "late", "--json")
    found = json.loads(result.stdout)
    parts = {part["name"]: part for part in found["parts"]}
    assert set(parts) == {"site=1", "site=2", "site=30"}
    assert sum(part["n"] for part in parts.values()) == 3000
    assert result.exit_code == (0 if found["certified"] else 3)
    assert parts["site=30"]["accepted"] == 0
