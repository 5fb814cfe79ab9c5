"""`reliablenet certify`, as typed, against the library in memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

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


BESIDE = ("breakdown", "sensitivity", "acts_at")  # the certificate, in the JSON of the command


def certificate_in(text: str) -> dict[str, object]:
    """Return the certificate alone in what the command printed."""
    return {name: value for name, value in json.loads(text).items() if name not in BESIDE}


def test_a_model_on_fresh_rows(trained, loans, call) -> None:
    result = call(
        "certify", loans / "model.rnet", loans / "fresh.csv", "--target", "default", "--json"
    )
    model = rn.load(loans / "model.rnet")
    rows = pd.read_csv(loans / "fresh.csv", dtype={"code": str})
    rows["member"] = rows["member"].astype("boolean")
    expected = model.certify(rows[model.feature_names_in_], rows["default"])
    found = json.loads(result.stdout)
    parts = found["breakdown"]
    assert certificate_in(result.stdout) == expected.to_dict()
    borne = model.breakdown(rows[model.feature_names_in_], rows["default"])
    assert [part["errors"] for part in parts] == borne.to_frame()["errors"].tolist()
    assert result.exit_code == (0 if expected.certified else 3)
    assert expected.kind == "fixed"
    strict = call(
        *("certify", loans / "model.rnet", loans / "fresh.csv", "--target", "default"),
        *("--alpha", "0.001"),
    )
    assert strict.exit_code == 3
    assert strict.stdout.startswith(
        "Not certified: the model is not shown to keep its budget of 0.1"
    )
    assert "  needed    " in strict.stdout
    assert "alpha" not in strict.stdout.split("needed")[1].splitlines()[0]


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
    assert certificate_in(result.stdout) == expected.to_dict()
    assert expected.errors > 20
    assert result.exit_code == (0 if expected.certified else 3)


def test_labels_that_are_numbers_match_columns_by_position(call, tmp_path) -> None:
    table = pd.DataFrame({"y": [0, 1] * 100, "low": [0.9, 0.2] * 100, "high": [0.1, 0.8] * 100})
    table.to_csv(tmp_path / "p.csv", index=False)
    result = call(
        "certify", "--predictions", tmp_path / "p.csv", "--label", "y", "--proba", "low,high"
    )
    assert result.exit_code == 0
    assert "0 confident mistakes in 200 rows" in result.stdout


def test_labels_of_other_types_are_compared_as_a_person_would(call, tmp_path) -> None:
    table = pd.DataFrame({"y": ["1", "0"] * 100, "p": [1.0, 0.0] * 100, "s": 0.9})
    table.to_csv(tmp_path / "p.csv", index=False)
    arguments = ("--label", "y", "--predicted", "p", "--score", "s")
    result = call("certify", "--predictions", tmp_path / "p.csv", *arguments)
    assert "0 confident mistakes in 200 rows" in result.stdout


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


def test_labels_of_which_the_model_knows_none_and_features_are_refused(
    trained, loans, call
) -> None:
    model, rows = loans / "model.rnet", loans / "fresh.csv"
    result = call("certify", model, rows, "--target", "job")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: 'job' is a column that the model predicts from, and cannot be the target.\n",
    )
    table = pd.read_csv(rows)
    table.assign(default="maybe").to_csv(loans / "maybe.csv", index=False)
    result = call("certify", model, loans / "maybe.csv", "--target", "default")
    assert result.exit_code == 2
    assert "it has 'maybe', the model knows 'no', 'yes'" in result.stderr


def test_a_class_that_the_model_does_not_know_counts_as_wrong(trained, loans, call) -> None:
    """AUDIT A6: to leave such rows out would certify another source."""
    table = pd.read_csv(loans / "fresh.csv", dtype=str)
    table.loc[::20, "default"] = "maybe"
    table.to_csv(loans / "some-maybe.csv", index=False)
    arguments = ("certify", loans / "model.rnet", loans / "some-maybe.csv", "--target", "default")
    found = json.loads(call(*arguments, "--json").stdout)
    assert (found["unknown"], found["n"]) == (40, 800)
    plain = json.loads(
        call(
            "certify", loans / "model.rnet", loans / "fresh.csv", "--target", "default", "--json"
        ).stdout
    )
    assert (plain["unknown"], plain["accepted"]) == (0, found["accepted"])
    assert found["errors"] > plain["errors"]
    note = "40 rows of a class that the model does not know count as wrong"
    assert found["notes"] == [note]
    assert f"  note      {note}\n" in call(*arguments).stdout


@pytest.mark.parametrize("threshold", [[], ["--threshold", "0.5"]])
def test_a_class_without_a_probability_counts_as_wrong(call, tmp_path, threshold) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"y": rng.choice(["no", "yes"], 400)})
    table["p_yes"] = np.where(table["y"] == "yes", 0.9, 0.1)
    table["p_no"] = 1 - table["p_yes"]
    table.loc[:7, "y"] = "maybe"
    table.to_csv(tmp_path / "p.csv", index=False)
    arguments = ("--predictions", tmp_path / "p.csv", "--label", "y", "--proba", "p_no,p_yes")
    found = json.loads(call("certify", *arguments, *threshold, "--json").stdout)
    assert (found["unknown"], found["errors"], found["certified"]) == (8, 8, True)


@pytest.mark.parametrize("other", ["YES", "Yes"])
@pytest.mark.parametrize("columns", ["--predicted p --score s", "--proba no,yes"])
def test_predicted_labels_spelled_otherwise_are_refused_by_name(
    call, tmp_path, other, columns
) -> None:
    table = pd.DataFrame({"y": ["no", other] * 100, "p": ["no", "yes"] * 100, "s": 0.9})
    table = table.assign(no=[0.9, 0.1] * 100, yes=[0.1, 0.9] * 100)
    table.to_csv(tmp_path / "p.csv", index=False)
    arguments = ("--predictions", tmp_path / "p.csv", "--label", "y", *columns.split())
    result = call("certify", *arguments)
    assert result.exit_code == 2
    assert f"holds {other!r} where the predictions say 'yes'" in result.stderr
    assert "Spell the labels alike" in result.stderr


def test_true_labels_in_two_spellings_are_refused_where_predictions_have_one(
    call, tmp_path
) -> None:
    table = pd.DataFrame({"y": ["no", "yes", "NO", "YES"] * 50, "p": ["no", "yes"] * 100, "s": 0.9})
    table.to_csv(tmp_path / "p.csv", index=False)
    words = ("--predictions", tmp_path / "p.csv", "--label", "y", "--predicted", "p")
    result = call("certify", *words, "--score", "s")
    assert result.exit_code == 2
    assert "where the predictions say" in result.stderr


def test_predictions_in_other_words_than_the_truth_are_refused(call, tmp_path) -> None:
    table = pd.DataFrame({"y": ["no", "yes"] * 100, "p": [0, 1] * 100, "s": 0.9})
    table.to_csv(tmp_path / "p.csv", index=False)
    words = ("--predictions", tmp_path / "p.csv", "--label", "y", "--predicted", "p")
    result = call("certify", *words, "--score", "s")
    assert result.exit_code == 2
    assert "No label in 'p' ('0', '1') occurs in 'y' ('no', 'yes')" in result.stderr


def test_an_inverted_score_is_noted(call, tmp_path) -> None:
    unsure = np.linspace(0.0, 1.0, 2000)
    wrong = np.random.default_rng(0).random(2000) < 0.3 * unsure**2
    table = pd.DataFrame({"right": (~wrong).astype(int), "unsure": unsure})
    table.to_csv(tmp_path / "p.csv", index=False)
    words = ("certify", "--predictions", tmp_path / "p.csv", "--correct", "right", "--score")
    assert "turn its sign" in call(*words, "unsure").stderr
    assert "turn its sign" not in call(*words, "unsure", "--lower-is-better").stderr


def test_true_labels_spelled_otherwise_than_the_model_spells_them_are_refused(
    trained, loans, call
) -> None:
    table = pd.read_csv(loans / "fresh.csv", dtype=str)
    table.loc[5, "default"] = "Yes"
    table.to_csv(loans / "slip.csv", index=False)
    result = call("certify", loans / "model.rnet", loans / "slip.csv", "--target", "default")
    assert result.exit_code == 2
    assert "`default` of certify holds 'Yes' where the predictions say 'yes'" in result.stderr


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ("--label correct --predicted correct --score s", "--label and --predicted both name"),
        ("--label y --predicted p --score y", "--label and --score both name the column 'y'"),
        ("--label y --proba y,p", "--label and --proba both name the column 'y'"),
        ("--label y --proba p,p", "--proba and --proba both name the column 'p'"),
        ("--label y --predicted p --score s --group p", "--predicted and --group both name"),
        ("--label y --predicted Y --score s", "--label and --predicted both name the column 'y'"),
        ("--label Y --predicted y --score s", "--label and --predicted both name the column 'y'"),
        ("--correct right --score RIGHT", "--score and --correct both name the column 'right'"),
        ("--label y --predicted p --score s --by Y", "--label and --by both name the column 'y'"),
    ],
)
def test_a_column_given_twice_is_refused(call, tmp_path, monkeypatch, columns, named) -> None:
    """What is compared with itself is never wrong."""
    monkeypatch.setenv("COLUMNS", "200")
    table = {"correct": ["a", "b"] * 50, "y": ["a", "b"] * 50, "p": "a", "s": 0.9, "right": 1}
    pd.DataFrame(table).to_csv(tmp_path / "p.csv", index=False)
    result = call("certify", "--predictions", tmp_path / "p.csv", *columns.split())
    assert result.exit_code == 2
    assert named in result.stderr


def test_swapped_probability_columns_are_noted(predictions, call) -> None:
    path, _ = predictions
    arguments = ("certify", "--predictions", path, "--label", "truth", "--proba")
    assert "note:" not in call(*arguments, "p_no,p_yes", "--threshold", "0.9").stderr
    table = pd.read_csv(path).rename(columns={"p_no": "p_yes", "p_yes": "p_no"})
    swapped = path.with_name("swapped.csv")
    table.to_csv(swapped, index=False)
    arguments = ("certify", "--predictions", swapped, "--label", "truth", "--proba")
    result = call(*arguments, "p_no,p_yes", "--threshold", "0.9")
    assert "fewer than guessing among 2 labels would get. Are probability columns" in result.stderr
    assert result.exit_code == 3


def rare_and_wrong(n: int, accepted: int) -> pd.DataFrame:
    """A rule that acts on few rows, and wrongly on each."""
    sure = np.arange(n) < accepted
    return pd.DataFrame(
        {"y": ["a", "b"] * (n // 2), "p": "a", "s": np.where(sure, 0.9, 0.1)}
    ).assign(y=lambda t: np.where(sure, "b", t["y"]))


@pytest.mark.parametrize(
    ("n", "code", "sentence"),
    [
        (1000, 0, "Certified, but worth nothing: of 15 rows acted on 15 were wrong"),
        (100, 3, "Not certified: the rule is not shown to keep its budget of 5 %."),
    ],
)
def test_the_exit_code_follows_the_promise_and_not_its_worth(
    call, tmp_path, n, code, sentence
) -> None:
    """AUDIT: 14 errors among 15 rows acted on were "certified" without another word."""
    rare_and_wrong(n, 15).to_csv(tmp_path / "p.csv", index=False)
    arguments = ("certify", "--predictions", tmp_path / "p.csv", "--threshold", "0.5")
    columns = ("--label", "y", "--predicted", "p", "--score", "s")
    result = call(*arguments, *columns)
    assert result.exit_code == code
    assert result.stdout.startswith(sentence)
    found = json.loads(call(*arguments, *columns, "--json").stdout)
    assert (found["certified"], found["empty"]) == (code == 0, code == 0)
    assert found["error_accepted"] == 1.0


@pytest.mark.parametrize("threshold", [None, 0.9])
def test_predictions_of_groups_count_one_row_of_each(predictions, call, threshold) -> None:
    path, table = predictions
    table = table.assign(person=[f"p{i // 3}" for i in range(len(table))])
    path = path.with_name("groups.csv")
    table.to_csv(path, index=False)
    rule = [] if threshold is None else ["--threshold", threshold]
    arguments = ("certify", "--predictions", path, "--label", "truth", "--alpha", "0.1", *rule)
    columns = ("--predicted", "answer", "--score", "sure", "--group", "person")
    result = call(*arguments, *columns, "--json")
    given = {"score": table["sure"], "predicted": table["answer"], "groups": table["person"]}
    expected = (
        rn.certified_threshold(None, table["truth"], 0.1, **given)
        if threshold is None
        else rn.certify(None, table["truth"], threshold, 0.1, **given)
    )
    assert certificate_in(result.stdout) == expected.to_dict()
    assert (expected.unit, expected.n) == ("group", 1000)
    text = call(*arguments, *columns).stdout
    assert "of all rows" not in text
    assert "1,000 groups (one row of each)" in text


def test_a_model_on_fresh_rows_of_groups(trained, loans, call) -> None:
    table = pd.read_csv(loans / "fresh.csv", dtype={"code": str})
    table["person"] = [f"p{i // 2}" for i in range(len(table))]
    table.to_csv(loans / "visits.csv", index=False)
    arguments = ("certify", loans / "model.rnet", loans / "visits.csv", "--target", "default")
    result = call(*arguments, "--group", "person", "--json")
    model = rn.load(loans / "model.rnet")
    rows = table.assign(member=table["member"].astype("boolean"))[model.feature_names_in_]
    expected = model.certify(rows, table["default"], groups=table["person"])
    assert (expected.unit, expected.n) == ("group", 400)
    found = certificate_in(result.stdout)
    # of the file all rows are marked, in memory those that were drawn
    assert found | {"provenance": None} == expected.to_dict() | {"provenance": None}
    assert "a row drawn at random from a new group" in call(*arguments, "--group", "person").stdout
    nobody = table.assign(person=table["person"].mask(table.index == 3))
    nobody.to_csv(loans / "visits.csv", index=False)
    result = call(*arguments, "--group", "person")
    assert result.exit_code == 2
    assert "The group 'person' is missing in 1 of" in result.stderr
    assert "has no column 'persn'" in call(*arguments, "--group", "persn").stderr


def test_copies_among_fresh_rows_are_noted_and_counted(trained, loans, call) -> None:
    """AUDIT A5: each row five times made a bound of a fifth of the rows."""
    table = pd.read_csv(loans / "fresh.csv", dtype=str)
    table = table[table["debt"].notna()]
    pd.concat([table] * 5).to_csv(loans / "copies.csv", index=False)
    arguments = ("certify", loans / "model.rnet", loans / "copies.csv", "--target", "default")
    result = call(*arguments, "--json")
    assert "certification rows (80%) repeat another one, label included" in result.stderr
    assert "give the copies of a row the same name in `groups`" in result.stderr
    found = json.loads(result.stdout)
    assert found["provenance"]["copies"] >= 4 * len(table)
    assert any("repeat another row of the fold" in note for note in found["notes"])


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A table of answers that are right or wrong, and a folder to write it in."""
    rng = np.random.default_rng(1)
    entropy = rng.exponential(size=3000).round(2)  # with ties
    table = pd.DataFrame(
        {"entropy": entropy, "sure": -entropy, "who": rng.integers(900, size=3000)}
    )
    table["correct"] = rng.random(3000) > entropy / 12
    return tmp_path_factory.mktemp("answers"), table


def written(folder, table, kind) -> Path:
    path = folder / f"answers.{kind}"
    if kind == "csv":
        table.assign(correct=table["correct"].astype(float)).to_csv(path, index=False)
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:  # as lm-eval writes its samples
        lines = (
            json.dumps({"doc": {"who": row.who}, "acc": float(row.correct), "uq": [row.entropy]})
            for row in table.itertuples()
        )
        path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("threshold", [None, 0.25])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_answers_that_are_right_or_wrong(answers, call, kind, threshold) -> None:
    folder, table = answers
    path = written(folder, table, kind)
    names = ("acc", "uq.0") if kind == "jsonl" else ("correct", "entropy")
    arguments = ["certify", "--predictions", path, "--correct", names[0], "--score", names[1]]
    arguments += ["--lower-is-better", "--alpha", "0.04"]
    arguments += [] if threshold is None else ["--threshold", threshold]
    rows = {"score": table["sure"], "correct": table["correct"], "alpha": 0.04}
    expected = (
        rn.certified_threshold(**rows)
        if threshold is None
        else rn.certify(**rows, threshold=-threshold)
    )
    printed = call(*arguments, "--json").stdout
    acts_at = json.loads(printed)["acts_at"]
    assert certificate_in(printed) == expected.to_dict()
    assert expected.certified
    assert acts_at == {"column": names[1], "at_most": -expected.threshold}
    kept = table[table["entropy"] <= acts_at["at_most"]]
    assert (len(kept), (~kept["correct"]).sum()) == (expected.accepted, expected.errors)
    shown = call(*arguments)
    assert shown.exit_code == 0
    assert re.search(rf"acts      at {names[1]} [\d.]+…? or less\n", shown.stdout)
    assert "commonest" not in shown.stdout


def test_a_high_score_is_better_unless_said_otherwise(answers, call) -> None:
    folder, table = answers
    path = written(folder, table, "csv")
    arguments = ("certify", "--predictions", path, "--correct", "correct", "--score", "sure")
    one = json.loads(call(*arguments, "--group", "who", "--alpha", "0.1", "--json").stdout)
    assert one["acts_at"] == {"column": "sure", "at_least": one["threshold"]}
    expected = rn.certified_threshold(
        score=table["sure"], correct=table["correct"], groups=table["who"], alpha=0.1
    )
    assert (one["unit"], one["n"]) == ("group", expected.n)


def test_a_threshold_of_zero_has_no_sign(answers, call) -> None:
    folder, table = answers
    path = written(folder, table, "csv")
    shown = call(
        *("certify", "--predictions", path, "--correct", "correct", "--score", "entropy"),
        *("--lower-is-better", "--threshold", "0", "--alpha", "0.1"),
    )
    assert "acts      at entropy 0 or less" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "story"),
    [
        (["--correct", "correct"], "--predictions needs --label"),
        (["--target", "who", "--proba", "a,b"], "file of predictions give --label"),
        (["--correct", "correct", "--score", "sure", "--label", "who"], "--correct with --score"),
        (["--correct", "correct", "--score", "sure", "--proba", "a,b"], "--correct with --score"),
        (["--label", "who", "--proba", "a,b", "--score", "sure"], "--predictions needs --label"),
        (
            ["--label", "who", "--proba", "a,b", "--lower-is-better"],
            "--lower-is-better needs --score",
        ),
        (["--correct", "sure", "--score", "sure"], "both name the column 'sure'"),
        (
            ["--correct", "entropy", "--score", "sure"],
            r"The verdict 'entropy' must be true or false",
        ),
        (["--correct", "right", "--score", "sure"], "has no column 'right'"),
    ],
)
def test_columns_that_do_not_go_together_are_refused(answers, call, arguments, story) -> None:
    folder, table = answers
    path = written(folder, table, "csv")
    result = call("certify", "--predictions", path, *arguments)
    assert result.exit_code == 2
    assert story in " ".join(result.stderr.replace("│", " ").split())


def test_a_verdict_must_be_known_in_every_row(call, tmp_path) -> None:
    for cell, story in (
        ("", "is missing in 1 of 3 rows, first in row 2"),
        ("0.5", "got '0.5' in row 2"),
    ):
        path = tmp_path / "gap.csv"
        path.write_text(f"correct,score\n1,0.5\n0,0.4\n{cell},0.3\n")
        result = call("certify", "--predictions", path, "--correct", "correct", "--score", "score")
        assert result.exit_code == 2
        assert story in result.stderr


@pytest.mark.parametrize(
    ("typed", "promise"),
    [
        (("--by", "race"), rn.Promise.by_group(0.05, by="race")),
        (("--by", "race", "--common", "--budget", "1=0.1", "--budget", "2=0.1"), rn.Promise.by_group({"1": 0.1, "2": 0.1}, by="race", common=True)),
        (("--promise", "by-predicted=0.04"), rn.Promise.by_predicted(0.04)),
        (("--promise", "by-class", "--budget", "yes=0.1"), rn.Promise.by_class({"yes": 0.1})),
        (("--promise", "overall", "--promise", "among-accepted=0.2"), rn.Promise.all_of(rn.Promise.overall(0.05), rn.Promise.among_accepted(0.2))),
    ],
    ids=["groups", "common", "predicted", "class", "several"],
)  # fmt: skip
def test_a_promise_is_certified_as_in_memory(predictions, call, tmp_path, typed, promise) -> None:
    _, table = predictions
    groups = np.random.default_rng(1).integers(1, 4, len(table))
    file = tmp_path / "p.csv"
    table.assign(race=groups).to_csv(file, index=False)
    result = call(
        *("certify", "--predictions", file, "--label", "truth", "--proba", "p_no,p_yes"),
        *typed, "--json",
    )  # fmt: skip
    expected = rn.certified_rule(
        table[["p_no", "p_yes"]], table["truth"], promise, classes=["no", "yes"],
        by={"race": groups.astype(str)},
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert result.exit_code == 0, result.stderr
    assert found["rule"] == expected.to_dict()["rule"]
    assert found["promise"] == promise.to_dict()
    assert [p["errors"] for p in found["parts"]] == [p.errors for p in expected.parts]


def test_predictions_tell_who_bears_the_mistakes(predictions, call, tmp_path, monkeypatch) -> None:
    _, table = predictions
    wrong = table["truth"] != table["answer"]
    rng = np.random.default_rng(2)
    side = np.where(wrong & (rng.random(len(table)) < 0.8), "left", rng.choice(["left", "right"], len(table)))  # fmt: skip
    file = tmp_path / "p.csv"
    table = table.assign(side=side, age=rng.integers(20, 80, len(table)), right=~wrong)
    table.to_csv(file, index=False)
    monkeypatch.setattr("reliablenet.tables.files.BATCH_ROWS", 700)
    arguments = ("certify", "--predictions", file, "--label", "truth", "--predicted", "answer")
    arguments += ("--score", "sure", "--alpha", "0.1")
    shown = call(*arguments).stdout
    assert re.search(r"  borne by  side = left: \d+ of [\d,]+ rows acted on wrongly", shown)
    assert "(exploratory; only what the certificate names is promised)" in shown
    found = json.loads(call(*arguments, "--json").stdout)
    cells = {(cell["column"], cell["value"]): cell for cell in found["breakdown"]}
    assert {column for column, _ in cells} == {"", "true class", "predicted class", "side", "age", "p_no", "p_yes"}  # fmt: skip
    mine = (table["sure"] >= found["threshold"]) & (table["side"] == "left")
    left = cells["side", "left"]
    assert (left["n"], left["accepted"], left["errors"]) == ((side == "left").sum(), mine.sum(), (mine & wrong).sum())  # fmt: skip
    assert left["jcw_low"] < left["jcw"] < left["jcw_high"]
    assert left["clear"]
    assert 0.0 < found["sensitivity"][""]["reach"]["total variation"] < 0.1
    assert "breakdown" not in json.loads(call(*arguments, "--no-breakdown", "--json").stdout)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("--by", "race", "--threshold", "0.9"), "a promise finds its own thresholds"),
        (("--by", "truth"), "--label and --by both name the column 'truth'"),
        (("--by", "race"), "race"),  # no such column
        (("--promise", "by-class", "--budget", "maybe=0.1"), "but the classes of the model are"),
        (("--promise", "overall", "--lower-is-better"), "--lower-is-better"),
    ],
)
def test_a_promise_that_does_not_fit_the_file_is_refused(predictions, call, typed, message) -> None:
    path, _ = predictions
    result = call(
        *("certify", "--predictions", path, "--label", "truth", "--proba", "p_no,p_yes"), *typed
    )
    assert result.exit_code not in (0, 3)
    assert message in result.stderr.replace("\n", " ")
