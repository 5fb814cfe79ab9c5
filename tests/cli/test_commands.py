"""`compare`, `inspect`, `report`, `plan`, `data` and `doctor`, as typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import reliablenet as rn
from reliablenet.methods import Comparison

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compared(loans, call):
    result = call(
        *("compare", loans / "loans.csv", "--target", "default", "--alpha", "0.1"),
        *("--methods", "erm,boosting", "--out", loans / "c.json", "--report", loans / "c.html"),
        *("--save-best", loans / "best.rnet", "--drop", "note"),
    )
    assert result.exit_code == 0, result.output
    return result


def test_compare_prints_a_table_a_sentence_and_the_next_command(compared, loans, call, tmp_path):
    assert "Use " in compared.stdout
    assert f"next        reliablenet predict {loans}/best.rnet" in compared.stdout
    left_out = [line.split("'")[1] for line in compared.stderr.splitlines() if "left out" in line]
    assert left_out == ["customer_id"]
    assert (loans / "c.html").read_text().startswith("<!DOCTYPE html>")
    comparison = Comparison.from_json((loans / "c.json").read_text())
    assert set(comparison.results) == {"erm", "boosting"}
    best = rn.load(loans / "best.rnet")
    assert best.certificate_ == comparison.best().certificate
    out = tmp_path / "d.csv"
    assert call("predict", loans / "best.rnet", loans / "new.csv", "--out", out).exit_code == 0
    assert len(pd.read_csv(out)) == 300


def test_compare_as_json_is_strict_and_alone_on_stdout(loans, call, tmp_path) -> None:
    pd.read_csv(loans / "loans.csv").head(120).to_csv(tmp_path / "few.csv", index=False)
    result = call(
        *("compare", tmp_path / "few.csv", "--target", "default", "--methods", "boosting"),
        *("--alpha", "0.01", "--json", "--save-best", tmp_path / "best.rnet"),
    )
    assert result.exit_code == 3
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    assert (found["best"], found["methods"]["boosting"]["certified"]) == ("", False)
    assert "model" not in found
    assert not (tmp_path / "best.rnet").exists()


def test_compare_names_an_unknown_method(loans, call) -> None:
    result = call("compare", loans / "loans.csv", "--target", "default", "--methods", "magic")
    assert result.exit_code == 2
    assert "must name some of" in result.stderr


def test_inspect_shows_what_a_model_file_holds(trained, compared, loans, call) -> None:
    result = call("inspect", loans / "model.rnet", "--json")
    found = json.loads(result.stdout)
    assert found["method"] == "ReliableClassifier"
    assert found["network"]["name"] == "tabular"
    assert found["features"]["numbers"] == ["debt", "member"]
    assert found["features"]["left_out"]["same"] == "it does not vary"
    assert found["classes"] == ["no", "yes"]
    model = rn.load(loans / "model.rnet")
    assert found["certificate"] == model.certificate_.to_dict()
    assert found["data_fingerprint"] == model.fingerprint_
    assert found["versions"]["reliablenet"] == rn.__version__
    assert {"file", "weights.safetensors"} <= found["sha256"].keys()
    text = call("inspect", loans / "model.rnet").stdout
    assert text.startswith("Certified: the model acts on ")
    assert "  numbers              2: debt, member\n" in text
    assert "  without customer_id  it is called an id" in text
    assert "Pipeline" in call("inspect", loans / "best.rnet").stdout or (
        "ERMClassifier" in call("inspect", loans / "best.rnet").stdout
    )


def test_inspect_refuses_a_damaged_file(trained, loans, call, tmp_path) -> None:
    content = bytearray((loans / "model.rnet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "m.rnet").write_bytes(content)
    result = call("inspect", tmp_path / "m.rnet")
    assert result.exit_code == 2
    assert "was damaged or altered" in result.stderr


@pytest.mark.parametrize("source", ["model.rnet", "c.json"])
def test_report_writes_a_page(trained, compared, loans, call, tmp_path, source) -> None:
    out = tmp_path / "page.html"
    result = call("report", loans / source, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"The page is in {out}.\n"
    assert out.read_text().startswith("<!DOCTYPE html>")


def test_report_shows_rows_of_the_training_table(trained, loans, call, tmp_path) -> None:
    out = tmp_path / "page.html"
    arguments = ("report", loans / "model.rnet", "--out", out, "--data")
    result = call(*arguments, loans / "loans.csv", "--target", "default")
    assert result.exit_code == 0, result.output
    assert "none at all" in out.read_text()  # a value of the table
    result = call(*arguments, loans / "fresh.csv", "--target", "default")
    assert result.exit_code == 2
    assert "`table` of model_page must be the table given to fit" in result.stderr
    assert call(*arguments, loans / "new.csv", "--target", "default").exit_code == 2
    assert call(*arguments, loans / "loans.csv").exit_code == 2


def copy_results(folder: Path) -> None:
    folder.mkdir()
    shutil.copy(ROOT / "results" / "paper" / "german_credit.jsonl", folder)


def test_report_of_a_profile_shows_the_runs_of_those_it_extends(call, tmp_path) -> None:
    copy_results(tmp_path / "paper")
    (tmp_path / "cpu").mkdir()
    result = call("report", tmp_path / "cpu", "--out", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert "german_credit" in (tmp_path / "page.html").read_text()


def test_report_of_results_and_of_nothing(call, tmp_path) -> None:
    copy_results(tmp_path / "paper")
    result = call("report", tmp_path / "paper", "--out", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    assert call("report", tmp_path / "absent", "--out", tmp_path / "p.html").exit_code == 5


def test_plan_agrees_with_the_library(call) -> None:
    result = call("plan", "--alpha", "0.05", "--expected-jcw", "0.02", "--rows", "400", "--json")
    found = json.loads(result.stdout)
    assert found["rows_needed"] == rn.rows_needed(0.05, expected_jcw=0.02)
    assert found["chance"] == rn.certificate.certification_power(400, 0.05, expected_jcw=0.02)
    assert found["least_bound"] == rn.clopper_pearson_upper(0, 400, 0.05)
    text = call("plan", "--alpha", "0.05", "--rows", "40").stdout
    assert text.startswith("59 certification rows show, with a chance of at least 90 %,")
    assert call("plan", "--alpha", "0.97").stdout.startswith("1 certification row shows, with")
    assert "40 rows  cannot certify 5 %, not even without a wrong action" in text
    assert call("plan", "--expected-jcw", "0.5").exit_code == 2


def test_data_lists_shows_and_gets(call, monkeypatch, tmp_path) -> None:
    assert set(json.loads(call("data", "list", "--json").stdout)) >= {"adult", "synthetic_band"}
    assert "synthetic_band is ready: generated" in call("data", "get", "synthetic_band").stdout
    found = json.loads(call("data", "info", "synthetic_band", "--json").stdout)
    assert found["rows"]["train fold"] == 5000
    assert "certification fold  3,000 rows" in call("data", "info", "synthetic_band").stdout
    assert call("data", "get", "nonsense").exit_code == 2
    monkeypatch.setenv("RELIABLENET_DATA", str(tmp_path / "absent"))
    result = call("data", "get", "adult")
    assert result.exit_code == 5
    assert "error: RELIABLENET_DATA names the folder" in result.stderr


def test_doctor_names_versions_and_no_path(call) -> None:
    result = call("doctor", "--json", env={"RELIABLENET_DATA": "/home/someone/secret"})
    found = json.loads(result.stdout)
    assert found["reliablenet"] == rn.__version__
    assert found["packages"]["numpy"]
    assert "RELIABLENET_DATA" in found["variables set"]
    assert "/" not in result.stdout.replace("and/or", "")
    assert "  numpy" in call("doctor").stdout


def test_plan_for_groups(call) -> None:
    typed = ("plan", "--groups", "5", "--shares", "0.4,0.3,0.15,0.1,0.05")
    found = json.loads(call(*typed, "--json").stdout)
    assert (found["promise"], found["rows_needed"], found["rows_in_all"]) == ("by-group", 90, 1800)
    text = call(*typed, "--rows", "89").stdout
    assert "5 thresholds share it: each is tested at 0.01" in text
    assert "cannot certify 5 %" in text
    common = json.loads(call("plan", "--groups", "5", "--common", "--json").stdout)
    assert common["rows_needed"] == 59
    for classes, rows in ((2, 72), (3, 59)):  # of more than two, no threshold is one class's own
        typed = ("plan", "--promise", "by-class", "--groups", classes, "--json")
        assert json.loads(call(*map(str, typed)).stdout)["rows_needed"] == rows
    assert "one rule for all" in call("plan", "--promise", "by-class", "--groups", "3").stdout
    assert "are rows acted on" in call("plan", "--promise", "among-accepted").stdout


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("--promise", "luck"), "--promise must be one of overall"),
        (("--promise", "cost", "--groups", "2"), "do not go with"),
        (("--groups", "2", "--shares", "1.0"), "must name 2 shares"),
        (("--groups", "2", "--shares", "a,b"), "must be numbers"),
        (("--groups", "2", "--shares", "0.5,0.6"), "have the sum 1"),
    ],
)
def test_plan_refuses_what_does_not_fit(call, typed, message) -> None:
    result = call("plan", *typed)
    assert result.exit_code == 2
    assert message in result.stderr
