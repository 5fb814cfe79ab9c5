"""What the server answers: the decisions of Python, bit for bit, each of them logged; outcomes; what it tells."""

import json
import re
import threading
import warnings

import numpy as np
import pytest
import requests
from prometheus_text import read_metrics
from serving import LocalServer, make_rows, records
from sklearn.linear_model import LogisticRegression

import reliablenet as rn
from reliablenet.monitor.log import DecisionLog
from reliablenet.tables.target import label_texts


def as_told(decisions):
    rows = zip(
        decisions.label.tolist(),
        decisions.confidence.tolist(),
        decisions.accepted.tolist(),
        strict=True,
    )
    return list(rows)


def told(predictions):
    return [(row["label"], row["confidence"], row["accepted"]) for row in predictions]


def test_the_same_bits_as_in_python(server, model):
    table, _ = make_rows(200, seed=5)
    table.loc[3, "x0"] = None
    table.loc[4, "colour"] = None
    table.loc[5, "colour"] = "never seen"
    before = read_metrics(server.get("/metrics").text)["odd_rows_total"]
    with pytest.warns(rn.errors.OddInputWarning):
        decisions = model.decide(table)
    expected = as_told(decisions)
    assert told(server.decide(table)) == expected
    after = read_metrics(server.get("/metrics").text)["odd_rows_total"]
    assert after - before == decisions.oddities.odd.sum() >= 3
    assert [told(server.decide(table.iloc[[i]]))[0] for i in (0, 5)] == [expected[0], expected[5]]
    known = table.drop(index=5)  # all categories are known ones, or null
    assert told(server.decide(known)) == [*expected[:5], *expected[6:]]


def test_what_is_odd_is_counted_by_column(model_file, tmp_path):
    table, _ = make_rows(6, seed=5)
    table.loc[0, "x0"], table.loc[1, "x0"], table.loc[2, "x1"] = 1e5, -1e5, None
    table.loc[3, "colour"] = "mauve"
    with LocalServer(model_file, tmp_path / "d.db") as counting:
        none = counting.get("/metrics").text
        counting.decide(table)
        counting.decide(table.iloc[[0]])
        told = counting.get("/metrics").text
    read_metrics(told)
    assert not re.search("^reliablenet_odd_values_total{", none, re.M)
    lines = re.findall("^reliablenet_odd_values_total(.*)$", told, re.M)
    assert lines == [
        '{column="colour",what="unseen"} 1',
        '{column="x0",what="outside"} 3',
        '{column="x1",what="missing"} 1',
    ]


def test_a_column_that_is_missing_as_it_never_was(server, model, model_file, tmp_path):
    table, _ = make_rows(3, seed=5)
    table["x0"] = None
    answer = server.post("/invocations", {"dataframe_records": records(table)})
    assert (answer.status_code, answer.json()["column"]) == (422, "x0")
    assert "but never in a row" in answer.json()["error"]
    settings = {"allow_missing": ("x0",), "defer_odd": True}
    with LocalServer(model_file, tmp_path / "d.db", **settings) as allowing:
        predictions = allowing.decide(table)
    assert not any(row["accepted"] for row in predictions)  # a gap where there was none is odd
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model.decide(table.astype({"x0": float}), allow_missing=["x0"])
    assert [row["confidence"] for row in predictions] == expected.confidence.tolist()


def test_requests_that_are_decided_together_get_their_own_answers(server, model):
    table, _ = make_rows(120, seed=6)
    expected = as_told(model.decide(table))
    found = {}

    def ask(start):
        found[start] = told(server.decide(table.iloc[start : start + 3]))

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(0, 120, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row for start in range(0, 120, 3) for row in found[start]] == expected


def test_one_bad_row_among_requests_that_are_decided_together(server, model):
    """A number that only the encoder finds too large must not spoil the requests beside it."""
    table, _ = make_rows(40, seed=7)
    expected, codes = as_told(model.decide(table)), {}

    def ask(i):
        rows = records(table.iloc[[i]])
        if i % 5 == 0:
            rows[0]["x0"] = 1e300
        answer = server.post("/invocations", {"dataframe_records": rows})
        codes[i] = answer.status_code
        if i % 5:
            assert told(answer.json()["predictions"]) == [expected[i]]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(codes[i] == (200 if i % 5 else codes[0]) for i in range(40))
    assert codes[0] in (200, 422)  # some encoders clip


def test_every_decision_is_in_the_log(server):
    table, _ = make_rows(30, seed=8)
    answers = server.decide(table)
    with DecisionLog(server.log) as log:
        entries = {entry.id: entry for entry in log.entries()}
        features = log.features([row["id"] for row in answers])
    for row, record in zip(answers, records(table), strict=True):
        entry = entries[row["id"]]
        assert (entry.label, entry.confidence) == (row["label"], row["confidence"])
        assert (entry.accepted, entry.audit, entry.share) == (row["accepted"], row["audit"], 0.5)
        assert entry.group == record["colour"]
        kept = json.loads(features[row["id"]])
        assert {name: kept[name] for name in record} == record


def test_a_table_in_the_other_form(server, model):
    table, _ = make_rows(5, seed=9)
    split = table.astype(object).to_dict("split")
    answer = server.post("/invocations", {"dataframe_split": split})
    assert told(answer.json()["predictions"]) == as_told(model.decide(table))
    swapped = table[table.columns[::-1]].astype(object).to_dict("split")
    answer = server.post("/invocations", {"dataframe_split": swapped})
    assert told(answer.json()["predictions"]) == as_told(model.decide(table))


def test_what_training_left_out_may_be_absent(server, model):
    table, _ = make_rows(4, seed=10)
    assert model.encoder_.dropped_ == ["same"]
    assert told(server.decide(table.drop(columns="same"))) == as_told(model.decide(table))


GOOD = {"x0": 0.5, "x1": 1, "x2": -0.2, "colour": "red"}


@pytest.mark.parametrize(
    ("body", "column", "words"),
    [
        (
            {"dataframe_records": [GOOD, {**GOOD, "x1": "1.0"}]},
            "x1",
            "must hold a number or null; got text in row 1",
        ),
        ({"dataframe_records": [{**GOOD, "x1": [1]}]}, "x1", "got a list"),
        ({"dataframe_records": [{**GOOD, "colour": {"a": 1}}]}, "colour", "got an object in row 0"),
        ({"dataframe_records": [{**GOOD, "colr": "red"}]}, "colr", "that the model does not know"),
        (
            {"dataframe_records": [{"x0": 1, "x1": 1, "x2": 1, "color": "red"}]},
            "color",
            "Did you mean 'colour'?",
        ),
        (
            {"dataframe_records": [GOOD, {"x0": 1, "x1": 1, "x2": 1}]},
            "colour",
            "Row 1 has no column 'colour'",
        ),
        ({"dataframe_records": [{**GOOD, "x0": 10**400}]}, None, "too large|not JSON"),
        ({"dataframe_records": []}, None, "holds no row"),
        ({"dataframe_records": GOOD}, None, "must be a list of objects"),
        ({"dataframe_records": [[1, 2]]}, None, "must be a list of objects"),
        (
            {"dataframe_split": {"columns": ["x0"], "data": [[1, 2]]}},
            None,
            "2 values for 1 columns",
        ),
        ({"dataframe_split": {"columns": ["x0", "x0"], "data": [[1, 2]]}}, "x0", "appears twice"),
        ({"dataframe_split": {"columns": ["x0"], "data": [[1]]}}, "x1", "has no column 'x1'"),
        ({"dataframe_split": [1]}, None, "must be"),
        ({"inputs": [[1, 2, 3, 4]]}, None, "knows its columns by name"),
        ({"instances": [[1]]}, None, "got 'instances'"),
        ({"dataframe_records": [GOOD], "more": 1}, None, "nothing else; got 'more'"),
        ({}, None, "must hold `dataframe_records`"),
        ([GOOD], None, "must be a JSON object"),
    ],
)
def test_rows_that_the_model_cannot_take_are_named(server, body, column, words):
    before = requests.get(f"{server.url}/metrics", timeout=30).text
    answer = server.post("/invocations", body)
    assert answer.status_code in (400, 422)
    assert answer.json().get("column") == column
    assert re.search(words, answer.json()["error"])
    after = read_metrics(server.get("/metrics").text)
    assert after["decisions_total"] == read_metrics(before)["decisions_total"]


@pytest.mark.parametrize(
    "text",
    [
        '{"dataframe_records": [{"x0": NaN}]}',
        '{"a": Infinity}',
        "{'a': 1}",
        "",
        "[1,",
        '{"a": "\ud800"}',
    ],
)
def test_only_strict_json_is_read(server, text):
    data = text.encode("utf-8", "surrogatepass")
    answer = requests.post(
        f"{server.url}/invocations",
        data=data,
        headers={"Content-Type": "application/json"},
        timeout=30,
    )
    assert answer.status_code == 400
    assert "not JSON" in answer.json()["error"]


def test_outcomes(server):
    a, b, c, d = (row["id"] for row in server.decide(make_rows(4, seed=11)[0]))
    answer = server.post(
        "/outcomes", {"outcomes": [{"id": a, "truth": "yes"}, {"id": b, "wrong": True}]}
    )
    assert (answer.status_code, answer.json()["recorded"]) == (200, 2)
    again = server.post("/outcomes", {"outcomes": [{"id": a, "truth": "yes"}]})
    assert (again.status_code, again.json()["results"][0]["status"]) == (200, "already recorded")
    other = server.post("/outcomes", {"outcomes": [{"id": a, "truth": "no"}]})
    assert (other.status_code, other.json()["results"][0]["status"]) == (
        409,
        "another outcome is recorded",
    )
    unknown = server.post(
        "/outcomes", {"outcomes": [{"id": "0" * 16 + "-00000000", "truth": "no"}]}
    )
    assert (unknown.status_code, unknown.json()["results"][0]["status"]) == (
        404,
        "no such decision",
    )
    mixed = {"outcomes": [{"id": c, "truth": "no"}, {"id": "no id\0", "truth": "no"}]}
    answer = server.post("/outcomes", mixed)
    assert (answer.status_code, answer.json()["recorded"]) == (207, 1)
    stranger = server.post("/outcomes", {"outcomes": [{"id": d, "truth": "maybe"}]})
    assert stranger.status_code == 200  # a class that the model does not know makes it wrong
    with DecisionLog(server.log) as log:
        found = {entry.id: entry for entry in log.entries()}
    assert (found[a].wrong, found[b].wrong) == (found[a].label != "yes", True)
    assert found[d].wrong is True


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"truth": "yes"}, "with the `id`"),
        ({"id": "a", "truth": "yes", "wrong": True}, "either"),
        ({"id": "a"}, "either"),
        ({"id": "a", "wrong": 1}, "true or false"),
        ({"id": "a", "truth": None}, "must be a class"),
        ({"id": "a", "truth": ""}, "empty"),
        ({"id": "a", "truth": " YES"}, "the model calls it 'yes'"),
        ({"id": "a", "truth": "a" * 2000}, "must be a class"),
        ({"id": "a", "truth": "yes", "by": "me"}, "an unknown field 'by'"),
        (3, "must be an object"),
    ],
)
def test_outcomes_that_say_nothing_are_refused(server, item, words):
    answer = server.post("/outcomes", {"outcomes": [item]})
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_the_audit_sample_waits_until_it_is_labelled(server):
    picked = [row["id"] for row in server.decide(make_rows(20, seed=12)[0]) if row["audit"]]
    listed = server.get("/audit?limit=500").json()["decisions"]
    assert set(picked) <= {row["id"] for row in listed}
    assert set(listed[0]["features"]) == {"x0", "x1", "x2", "colour", "same"}
    server.post("/outcomes", {"outcomes": [{"id": picked[0], "truth": "no"}]})
    assert picked[0] not in {
        row["id"] for row in server.get("/audit?limit=500").json()["decisions"]
    }
    for limit in ("0", "501", "x", "-1", "²"):
        assert server.get("/audit", params={"limit": limit}).status_code == 422


def test_what_the_server_tells(server, model):
    server.decide(make_rows(1, seed=6)[0])
    assert server.get("/ping").status_code == 200
    health = server.get("/healthz").json()
    assert health["status"] == "ok"
    certificate = server.get("/certificate").json()
    assert certificate["certificate"] == json.loads(model.certificate_.to_json())
    assert certificate["model"] == health["model"]
    described = server.get("/openapi.json").json()
    assert described["components"]["schemas"]["Row"]["required"] == ["x0", "x1", "x2", "colour"]
    counted = read_metrics(server.get("/metrics").text)
    assert counted["decisions_total"] > 0
    with DecisionLog(server.log) as log:
        assert counted["decisions_total"] == log.counts()["decisions"]
    assert server.get("/nothing").json() == {"error": "There is nothing at this address."}
    assert server.get("/invocations").status_code == 405


def tensors(table):
    return [
        {
            "name": name,
            "shape": [len(table)],
            "datatype": "BYTES" if table[name].dtype.kind not in "fi" else "FP64",
            "data": table[name].tolist(),
        }
        for name in table
    ]


def test_the_open_inference_protocol(server, model):
    assert server.get("/v2/health/ready").json() == {"ready": True}
    assert server.get("/v2").json()["name"] == "reliablenet"
    described = server.get("/v2/models/colours").json()
    assert [tensor["name"] for tensor in described["inputs"]] == [
        "x0",
        "x1",
        "x2",
        "colour",
        "same",
    ]
    assert server.get("/v2/models/colours/ready").json()["ready"] is True
    table, _ = make_rows(6, seed=13)
    answer = server.post(
        "/v2/models/colours/infer", {"id": "mine", "inputs": tensors(table)}
    ).json()
    assert (answer["model_name"], answer["id"]) == ("colours", "mine")
    outputs = {tensor["name"]: tensor["data"] for tensor in answer["outputs"]}
    found = list(zip(outputs["label"], outputs["confidence"], outputs["accepted"], strict=True))
    assert found == as_told(model.decide(table))
    with DecisionLog(server.log) as log:
        assert set(outputs["id"]) <= {entry.id for entry in log.entries()}
    assert server.post("/v2/models/other/infer", {"inputs": tensors(table)}).status_code == 404


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": [7]}, "must hold 7 values"),
        ({"shape": [-1]}, "list of whole numbers"),
        ({"shape": []}, "list of whole numbers"),
        ({"datatype": "FP128"}, "must be one of"),
        ({"data": ["a"] * 6}, "holds no FP64 in row 0"),
        ({"data": 3}, "must be a list"),
        ({"name": 3}, "an object with name"),
        ({"name": "x1"}, "appears twice"),
        ({"name": "z"}, "does not know"),
        ({"shape": [2, 3]}, "must have the shape"),
        ({"shape": [0], "data": []}, "."),
    ],
)
def test_tensors_that_do_not_fit_are_named(server, change, words):
    inputs = tensors(make_rows(6, seed=13)[0])
    inputs[0] = {**inputs[0], **change}
    answer = server.post("/v2/models/colours/infer", {"inputs": inputs})
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_a_model_around_scikit_learn_on_an_array(tmp_path):
    table, y = make_rows(1500, seed=1)
    # Rows in a row, as a server reads them: scikit-learn's sums differ in the last bit for columns in a row.
    X = np.ascontiguousarray(table[["x0", "x1", "x2"]])
    y = (y == "yes").astype(int)
    model = rn.CertifiedThreshold(LogisticRegression(), alpha=0.2, random_state=0).fit(X, y)
    path = model.save(tmp_path / "array.rnet")
    with LocalServer(path, tmp_path / "d.db", audit=0.0) as server:
        answer = server.post("/invocations", {"inputs": X[:7].tolist()})
        assert told(answer.json()["predictions"]) == as_told(model.decide(X[:7]))
        assert not any(row["audit"] for row in answer.json()["predictions"])
        tensor = {
            "name": "inputs",
            "shape": [7, 3],
            "datatype": "FP64",
            "data": X[:7].ravel().tolist(),
        }
        answer = server.post("/v2/models/array/infer", {"inputs": [tensor]}).json()
        assert answer["outputs"][0] == {
            "name": "label",
            "datatype": "INT64",
            "shape": [7],
            "data": model.decide(X[:7]).label.tolist(),
        }
        name = answer["outputs"][3]["data"][0]
        assert (
            server.post("/outcomes", {"outcomes": [{"id": name, "truth": 1.0}]}).status_code == 200
        )
        for bad, words in (
            ([[1, 2]], "must hold 3 numbers; got 2"),
            ([[1, 2, "a"]], "Column 2 must hold numbers; got text in row 0"),
            ([[1, 2, None]], "got null"),
            ([[1, 2, True]], "got true or false"),
            ([], "list of rows"),
            ([[[1, 2, 3]]], "."),
        ):
            answer = server.post("/invocations", {"inputs": bad})
            assert (answer.status_code, words in answer.json()["error"]) == (422, True), answer.text
        answer = server.post("/invocations", {"dataframe_records": [{"x0": 1}]})
        assert "without names" in answer.json()["error"]
    assert np.all(label_texts(model.classes_) == ["0", "1"])
