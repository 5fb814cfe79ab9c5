"""`reliablenet train` and `predict`, as typed."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import reliablenet as rn
from reliablenet.certificate import wording
from reliablenet.errors import ColumnWarning
from reliablenet.tables.files import read_table
from reliablenet.tables.target import take_target


def test_train_prints_verdict_reason_files_and_the_next_command(trained, loans) -> None:
    lines = trained.stdout.splitlines()
    assert lines[0].startswith("Certified: the model acts on ")
    assert "wrongly on at most 10 % of all rows from this source (95 % confidence)" in lines[0]
    model = rn.load(loans / "model.rnet")
    assert lines[1] == f"  because   {model.certificate_.reason}"
    assert lines[2] == f"  acted on  {wording.acted_on(model.certificate_)}"
    borne = [line for line in lines if line.startswith(("  borne by  ", "  and by    "))]
    said = model.breakdown_.summary(2)
    assert [
        line[12:].removesuffix(" (exploratory; only what the certificate names is promised)")
        for line in borne
    ] == (said if model.breakdown_.is_clear_anywhere else [])
    assert lines[-3:-1] == [f"  model     {loans}/model.rnet", f"  report    {loans}/page.html"]
    assert lines[-1].startswith(f"  next      reliablenet predict {loans}/model.rnet ")
    assert (loans / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_train_notes_on_stderr_what_it_leaves_out(trained, loans) -> None:
    notes = [line for line in trained.stderr.splitlines() if "is left out" in line]
    assert [line.split("'")[1] for line in notes] == ["customer_id", "note"]
    encoder = rn.load(loans / "model.rnet").encoder_
    assert encoder.numbers_ == ["debt", "member"]
    assert encoder.categories_ == ["job", "code"]
    assert encoder.dates_ == ["opened"]
    assert encoder.dropped_ == ["customer_id", "note", "empty", "same"]


def test_train_is_the_library_with_the_same_seed(trained, loans) -> None:
    X, y = take_target(read_table(loans / "loans.csv"), "default")
    with pytest.warns((ColumnWarning, rn.errors.ConstraintWarning)):
        ours = rn.ReliableClassifier(alpha=0.1, random_state=0).fit(X, y)
    assert ours.certificate_ == rn.load(loans / "model.rnet").certificate_


def test_predict_gives_what_the_model_decides(trained, loans, call, tmp_path) -> None:
    result = call("predict", loans / "model.rnet", loans / "new.csv", "--out", tmp_path / "d.csv")
    assert result.exit_code == 0, result.output
    made = pd.read_csv(tmp_path / "d.csv")
    assert made.columns.tolist() == ["label", "confidence", "accepted"]
    model = rn.load(loans / "model.rnet")
    rows = pd.read_csv(loans / "new.csv", dtype={"code": str})
    rows["member"] = rows["member"].astype("boolean")
    expected = model.decide(rows.reindex(columns=model.feature_names_in_)).to_frame()
    pd.testing.assert_frame_equal(made, expected, check_dtype=False)
    accepted = int(expected["accepted"].sum())
    assert f"Acts on {accepted} of 300 rows" in result.stdout
    assert 0 < accepted < 300


def test_predict_in_batches_is_predict_at_once(trained, loans, call, tmp_path, monkeypatch) -> None:
    whole = call(
        "predict", loans / "model.rnet", loans / "new.csv", "--out", tmp_path / "whole.csv"
    )
    monkeypatch.setattr("reliablenet.tables.files.read_batches.__defaults__", (None, 7))
    parts = call(
        "predict", loans / "model.rnet", loans / "new.csv", "--out", tmp_path / "parts.csv"
    )
    assert (whole.exit_code, parts.exit_code) == (0, 0)
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "parts.csv").read_bytes()


def test_parquet_gives_the_same_decisions_as_csv(trained, loans, call, tmp_path) -> None:
    pytest.importorskip("pyarrow")
    table = pd.read_csv(loans / "new.csv", dtype={"code": str})
    table["member"] = table["member"].astype("boolean")
    table.to_parquet(tmp_path / "new.parquet")
    for source in (loans / "new.csv", tmp_path / "new.parquet"):
        out = tmp_path / f"{source.suffix[1:]}.out"
        assert call("predict", loans / "model.rnet", source, "--out", out).exit_code == 0
    assert (tmp_path / "csv.out").read_bytes() == (tmp_path / "parquet.out").read_bytes()


def test_predict_as_json(trained, loans, call, tmp_path) -> None:
    out = tmp_path / "d.csv"
    result = call("predict", loans / "model.rnet", loans / "new.csv", "--out", out, "--json")
    found = json.loads(result.stdout)
    assert found["rows"] == 300 == found["accepted"] + found["deferred"]


def test_a_refused_certificate_writes_all_files_and_says_what_would_grant_it(
    loans, call, tmp_path
) -> None:
    table = pd.read_csv(loans / "loans.csv").head(90)
    table.to_csv(tmp_path / "few.csv", index=False)
    out, page = tmp_path / "m.rnet", tmp_path / "p.html"
    result = call(
        "train", tmp_path / "few.csv", "--target", "default", "--out", out, "--report", page
    )
    assert result.exit_code == 3
    assert result.stdout.startswith("Not certified: the model defers every row.\n")
    assert "  because   0 confident mistakes in 36 rows: up to " in result.stdout
    needed = "  needed    at least 59 fresh rows to certify on, about 148 fresh rows in all"
    assert needed in result.stdout
    assert page.exists()
    told = call("predict", out, loans / "new.csv", "--out", tmp_path / "d.csv")
    assert told.exit_code == 0
    assert "Acts on 0 of 300 rows" in told.stdout
    assert "the model has no certificate and defers every row: 0 confident mistakes" in told.stderr
    again = call("train", tmp_path / "few.csv", "--target", "default", "--out", out, "--json")
    assert again.exit_code == 3
    found = json.loads(again.stdout)
    assert (found["acts"], found["certificate"]["certified"]) == (False, False)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["absent.csv", "--target", "y", "--out", "m"], 5, "error: There is no file absent.csv."),
        (["loans.csv", "--target", "defualt", "--out", "m"], 2, "Did you mean 'default'?"),
        (["loans.csv", "--target", "debt", "--out", "m"], 2, "error: The target 'debt' is missing"),
        (["loans.csv", "--target", "customer_id", "--out", "m"], 2, "too many to learn"),
        (["loans.csv", "--target", "same", "--out", "m"], 2, "holds a single value, x"),
        (
            ["loans.csv", "--target", "default", "--drop", "nt", "--out", "m"],
            2,
            "has no column 'nt'",
        ),
        (["loans.csv", "--target", "default", "--out", "no/m"], 2, "there is no folder no"),
        (["loans.csv", "--target", "default", "--out", "."], 2, "is a folder; name a file"),
        (["loans.csv", "--target", "default"], 2, "Missing option '--out'"),
        (
            ["loans.csv", "--target", "default", "--out", "m", "--alpha", "5"],
            2,
            "Did you mean 5%",
        ),
        (
            ["loans.csv", "--target", "default", "--out", "m", "--rho", "x"],
            2,
            "Invalid value for '--rho'",
        ),
        (
            ["loans.csv", "--target", "default", "--out", "m", "--threshold", "2"],
            2,
            "selection or a",
        ),
        (["loans.csv", "--target", "default", "--out", "m", "--network", "gpt"], 2, "`network` of"),
        (
            ["loans.csv", "--target", "default", "--out", "m", "--seed", "-1"],
            2,
            "Invalid value for '--seed'",
        ),
    ],
)
def test_mistakes_are_one_clean_message(loans, call, monkeypatch, arguments, code, message) -> None:
    monkeypatch.chdir(loans)
    monkeypatch.setenv("COLUMNS", "200")
    result = call("train", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""
    assert not (loans / "m").exists()


def test_predict_refuses_tables_that_do_not_fit(trained, loans, call, tmp_path) -> None:
    model, out = loans / "model.rnet", tmp_path / "d.csv"
    table = pd.read_csv(loans / "new.csv")
    table.drop(columns=["debt"]).to_csv(tmp_path / "few.csv", index=False)
    result = call("predict", model, tmp_path / "few.csv", "--out", out)
    assert (result.exit_code, result.stderr) == (
        2,
        "error: few.csv has no column 'debt'. It has 'job', 'code', 'member', 'opened', 'empty'.\n",
    )
    table.astype({"debt": object}).assign(debt=["?"] * 299 + ["much"]).to_csv(
        tmp_path / "words.csv", index=False
    )
    result = call("predict", model, tmp_path / "words.csv", "--out", out)
    assert result.exit_code == 2
    assert (
        "Column 'debt' held numbers when the model was fitted; it now holds 'much' in row 299"
        in (result.stderr)
    )
    table.head(0).to_csv(tmp_path / "none.csv", index=False)
    result = call("predict", model, tmp_path / "none.csv", "--out", out)
    assert (result.exit_code, result.stderr) == (2, "error: none.csv has a header and no rows.\n")
    assert not out.exists()


def test_predict_without_a_model(loans, call, tmp_path) -> None:
    result = call("predict", tmp_path / "m.rnet", loans / "new.csv", "--out", tmp_path / "d.csv")
    assert result.exit_code == 5
    assert "error: There is no model file" in result.stderr
    result = call("predict", loans / "new.csv", loans / "new.csv", "--out", tmp_path / "d.csv")
    assert result.exit_code == 2
    assert "is not a ReliableNet model file" in result.stderr


def test_train_by_group_counts_each_person_once_and_leaves_the_column_out(
    loans, call, tmp_path
) -> None:
    table = pd.read_csv(loans / "loans.csv").assign(person=[f"p{row // 3}" for row in range(1500)])
    table.to_csv(tmp_path / "visits.csv", index=False)
    result = call(
        *("train", tmp_path / "visits.csv", "--target", "default", "--alpha", "0.2"),
        *("--group", "person", "--drop", "note", "--out", tmp_path / "model.rnet"),
    )
    assert result.exit_code == 0, result.output
    assert "  note      counted: one row of each group, drawn at random;" in result.stdout
    assert "of all rows" not in result.stdout
    model = rn.load(tmp_path / "model.rnet")
    assert model.certificate_.unit == "group"
    shown = call("inspect", tmp_path / "model.rnet")
    assert "  counted              groups, one row of each\n" in shown.stdout
    assert "person" not in model.feature_names_in_
    certified = table["person"].iloc[model.evidence_.row]
    assert model.certificate_.n == certified.nunique() == 198  # of 500 persons


def test_a_group_column_that_is_not_there_is_named(loans, call, tmp_path) -> None:
    result = call(
        *("train", loans / "loans.csv", "--target", "default", "--group", "persn"),
        *("--out", tmp_path / "model.rnet"),
    )
    assert result.exit_code == 2
    assert "persn" in result.stderr


def test_train_weighs_rows_by_a_column_that_is_no_feature(loans, call, tmp_path) -> None:
    table = pd.read_csv(loans / "loans.csv").head(400)
    kinds = table["default"].unique()
    table["counts"] = table["default"].map({kinds[0]: 9.0, kinds[1]: 1.0})
    table.to_csv(tmp_path / "weighted.csv", index=False)
    shared = ("--target", "default", "--alpha", "0.4", "--members", "network")
    shares = {}
    for name, more in {
        "weighted": ("--weight", "Counts", "--drop", "opened"),
        "plain": ("--drop", "opened,counts"),
    }.items():
        out = tmp_path / f"{name}.rnet"
        made = call("train", tmp_path / "weighted.csv", *shared, *more, "--out", out)
        assert made.exit_code in (0, 3), made.output
        model = rn.load(out)
        assert "counts" not in model.feature_names_in_
        rows = table[list(model.feature_names_in_)]
        shares[name] = model.predict_proba(rows)[:, list(model.classes_).index(kinds[0])].mean()
    assert shares["weighted"] > shares["plain"] + 0.1


def test_train_refuses_weights_that_are_none_and_options_of_classes_for_numbers(
    loans, call, tmp_path
) -> None:
    data, out = loans / "loans.csv", tmp_path / "model.rnet"
    result = call("train", data, "--target", "default", "--weight", "job", "--out", out)
    assert result.exit_code == 2
    assert "`sample_weight` of fit must hold a number of at least 0" in result.stderr
    result = call("train", data, "--target", "debt", "--tolerance", "5", "--balanced", "--out", out)
    assert result.exit_code == 2
    assert "--members and --balanced are for classes" in result.stderr
